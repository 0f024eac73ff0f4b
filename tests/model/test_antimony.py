"""Antimony, through its own library: what is read, and what its mistakes are told as."""

from __future__ import annotations

import math
import sys
from random import Random

import pytest

import sateen as st
from hostile import outcomes_of
from sateen.model.antimony import MAX_CHARACTERS, as_sbml, read_antimony


def test_reactions_counts_and_parameters():
    text = """
        model epidemic
            infect:  S + I -> 2 I; beta * S * I / N   // a comment
            recover: I => R; k_recover * I
            S = 95; I = 5; R = 0
            beta = 0.12; k_recover = 0.05
            N = S + I + R
        end
    """
    assert read_antimony(text).model == st.Model.parse("""
        species S = 95, I = 5, R = 0
        constant N = 95 + 5 + 0
        parameter beta = 0.12, k_recover = 0.05
        infect: S + I -> 2 I @ beta * S * I / N
        recover: I -> R @ k_recover * I
    """)


def test_rules_events_functions_boundaries_and_compartments():
    made = read_antimony("""
        function twice(x)
            2 * x
        end
        compartment cell = 2
        species X in cell, $B in cell
        substanceOnly species X, B
        X = 10; B = 3; k = 0.5
        total := twice(X) + B
        decay: X -> ; k * total * X
        late: at time >= 25, t0 = false: X = 50, k = 0.25
    """)
    assert made.model == st.Model.parse("""
        species X = 10
        real k = 0.5
        constant cell = 2
        constant B = 3
        observable total = 2 * X + B, [X] = X / cell, [B] = B / cell
        decay: X -> 0 @ k * (2 * X + B) * X
        event late: X := 50, k := 0.25 when time >= 25 initially false
    """)
    assert {name: str(value) for name, value in made.rules.items()} == {"total": "2 * X + B"}


def test_a_concentration_is_an_amount_over_the_size_of_its_compartment():
    made = read_antimony("compartment cell = 2\nspecies X in cell\nX = 10; k = 1\ndecay: X -> ; k * X * cell")
    text = "species X = 20\nconstant cell = 2\nparameter k = 1\ndecay: X -> 0 @ k * (X / cell) * cell"
    text += "\nobservable [X] = X / cell"
    assert made.model == st.Model.parse(text)


def test_modules_are_put_together():
    made = read_antimony("""
        model decay(X, k)
            gone: X -> ; k * X
        end
        model *both()
            a: decay(A, ka)
            b: decay(B, kb)
            A = 5; B = 6; ka = 1; kb = 2
        end
    """)
    assert made.model.species == ("A", "B")
    assert [str(each.rate) for each in made.model.transitions] == ["ka * A", "kb * B"]


def test_a_file_is_found_by_its_suffix_and_runs_in_all_engines(tmp_path):
    file = tmp_path / "decay.ant"
    file.write_text("decay: X -> ; k * X\nX = 3; k = 0.5\n", encoding="utf-8")
    model = st.Model.load(file)
    gone, expected = st.stl("F[2, 2] X == 0"), (1 - math.exp(-1)) ** 3
    assert st.exact(model, gone, {})[0] == pytest.approx(expected, abs=1e-9)
    runs = st.observe(model, gone, st.Space().uniform(1, seed=1), runs=20_000, seed=5)
    assert abs(runs.frequency[0] - expected) < 4.9 * math.sqrt(expected * (1 - expected) / 20_000)


RESERVED = "Antimony has a function or constant of that name"
MISTAKES = {
    "assigned": ("A -> ; gamma*A\nA = 10\ngamma = 3", "gamma cannot be used as a name", 1, RESERVED),
    "only read": ("A = 10\nA -> ; gamma*A", "gamma cannot be used as a name", 2, RESERVED),
    "time as a name": ("A -> ; k*A\nA = 1; k = 1\ntime = 3", "time cannot be used as a name", 3, RESERVED),
    "delay as a name": ("A -> ; delay*A\nA = 1", "delay cannot be used as a name", 1, RESERVED),
    "a function inside a model": (
        "model m\n  function f(x)\n    x\n  end\nend",
        "a model cannot hold a function",
        2,
        "a function stands outside: put  function f(x) ... end  above the line that begins with  model",
    ),
    "a keyword": ("A -> ; k*A\nA = 1\nk = gene", "gene cannot stand here", 3, "is a reserved word of Antimony"),
    "syntax": ("A -> ; k*(A\nA = 1", "Antimony says: syntax error", 1, ""),
    "no two directions": ("A = 1; B = 0\nR: A -> B; (A - B)*(B - k); k = 2", "the rate of R is negative", 2, "B * k"),
    "nameless": ("A = 1; k = 1\nA -> ; k*A*tan(time)", "the rate of _J0: tan is not supported", 2, "supported are"),
    "a rate rule": ("A = 1; k = 1\nR: A -> ; k*A\nk' = 2", "the rate rule for k is not supported", 1, "changes only"),
    "a fraction": ("R: A -> ; k*A\nA = 10.5; k = 1", "the species A begins with 10.5", 2, "molecules"),
    "a delay": (
        "R: A -> ; k*A; A = 1; k = 1\nat 5 after A > 3: A = 2",
        "the event _E0 has a delay",
        2,
        "without delay are supported",
    ),
    "random": ("R: A -> ; k*A; A = 1\nk = normal(1, 2)", "normal is a random number", 2, "a parameter can vary"),
    "infinite": ("R: A -> ; k*A; A = 1\nk = 1/0", "the initial assignment of k: 1 / 0 is not a finite number", 2, ""),
    "loop": ("R: A -> ; k*A; A = 1\nk := q; q := k", "Antimony says: Loop detected", 2, ""),
    "import": (
        '// import is fine here\nimport "other.ant"',
        "import is refused: a model is one file",
        2,
        "replace it by the text",
    ),
}


@pytest.mark.parametrize(("text", "message", "line", "remedy"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told_with_its_line_and_what_to_do(text, message, line, remedy):
    with pytest.raises(st.ModelError) as error:
        read_antimony(text)
    assert error.value.message.startswith(message)
    assert error.value.line == line
    assert remedy in error.value.remedy


@pytest.mark.parametrize(
    "text",
    [
        "",
        "// nothing",
        "A" * (MAX_CHARACTERS + 1),
        "R: A -> ; " + "A + " * 1000 + "A",
        "R: A -> ; " + "(" * 101 + "A" + ")" * 101,
        'k = "import',
    ],
)
def test_a_text_that_says_nothing_or_too_much_is_refused(text):
    with pytest.raises(st.ModelError):
        read_antimony(text)


def outcome(text):
    """The model that a text makes, as text, or what its error says."""
    try:
        return str(read_antimony(text).model)
    except st.ModelError as error:
        return str(error)


@pytest.fixture
def canary(tmp_path, monkeypatch):
    """The name of a file beside the model, which has the species canary."""
    (tmp_path / "secret.ant").write_text("canary -> ; k*canary; canary = 10; k = 1")
    monkeypatch.chdir(tmp_path)
    return str(tmp_path / "secret.ant")


PAST_THE_COMMENTS = {
    "a comment in a comment": '/*\n# */ import "{}"',
    "continued": 'import \\\n"{}"',
    "backquotes": "import ```{}```",
    "after a number": 'm.sboTerm = 2e5import "{}"',
    "after an arrow": 'A -oimport "{}"',
    "escaped": 'x is "a\\\\"; import "{}"',
    "plain": 'import "{}"',
}


@pytest.mark.parametrize("text", PAST_THE_COMMENTS.values(), ids=PAST_THE_COMMENTS)
def test_import_is_refused_wherever_the_library_sees_it(text, canary):
    with pytest.raises(st.ModelError, match="import is refused"):
        read_antimony("model m\nx = 1\nend\n" + text.format(canary))


def test_a_file_beside_the_model_is_never_read(canary):
    parts = (
        *(
            "import",
            "import",
            f'"{canary}"',
            f'"{canary}"',
            "```" + canary + "```",
            "x = 1",
            'x is "a"',
            "A -> ; A",
            "2e5",
        ),
        *("/*", "*/", "//", "#", "\\", "\\\n", "\n", "\n", "\r", " ", " ", ";", '"', "```", "`", "'", "<", "-o", "."),
        *("\v", "\f", "\0", "\x85", "\u2028", "\ufeff"),
    )
    random = Random(4)
    for _ in range(50):
        pieces = ["import", f'"{canary}"', *random.choices(parts, k=random.randint(1, 10))]
        random.shuffle(pieces)
        made = outcome("".join(pieces))
        shown = made.split("\n")[0]
        assert "canary =" not in made
        assert "secret" not in shown
        assert "open" not in shown


@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process")
def test_the_library_itself_cannot_open_a_file(canary):
    text = f'import "{canary}"'
    with pytest.raises(st.ModelError):
        as_sbml("", text)


def test_sbml_is_not_read_as_antimony():
    with pytest.raises(st.ModelError, match="this is XML, not Antimony"):
        read_antimony('\n <sbml xmlns="http://www.sbml.org/sbml/level3/version1/core" level="3" version="1"/>')


@pytest.mark.parametrize("place", ["A = 1 β", "\ufeffA = 1", "A\x1b = 1", "A = 1\0", "A\ud800 = 1"])
def test_what_is_not_ascii_stands_in_comments_and_strings_only(place):
    with pytest.raises(st.ModelError, match="can only stand in a comment or a string") as error:
        read_antimony(f"# β\nA -> ; k*A; k = 1\n{place}")
    assert error.value.line == 3
    assert read_antimony('A -> ; k*A; k = 1; A = 1; A is "β-catenin \ud800\x1b" // é \0').model.species == ("A",)


@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process")
@pytest.mark.parametrize("text", ["A -> ; k*A; A = 1; k = a + 0notnot.5", "model inner(x)\n p: inner(y)\nend"])
def test_a_text_on_which_the_library_crashes_or_never_ends_is_refused(text):
    with pytest.raises(st.ModelError, match="crashes or does not end"):
        read_antimony(text)


def test_names_may_end_in_import():
    made = read_antimony("glucose_import: -> A; k2_import; A = 1; k2_import = 1").model
    assert made.happening == ("glucose_import",)


def test_the_word_import_may_stand_in_comments_and_strings():
    made = read_antimony('# import "a"\nR: A -> ; k*A // nuclear import\nA = 1; k = 2; R is "import"')
    assert made.model.species == ("A",)


def test_a_text_made_to_be_slow_is_refused_soon():
    slow = {
        "slashes": "import " + "/" * 1900,
        "comments": "import " + "/* */" * 19_000,
        "empty lines": "\n" * 99_000 + "A",
        "quotes": '"\\' * 900,
        "at": "at " * 600,
    }
    outcomes = outcomes_of("sateen.model.antimony:read_antimony", "A -> ; A; A = 1", slow)
    assert outcomes == dict.fromkeys(slow, "ModelError")


def test_one_text_leaves_nothing_for_the_next():
    read_antimony("model other\nA -> ; k*A; A = 1; k = 1\nend")
    with pytest.raises(st.ModelError):
        read_antimony("model mine\nx: other()\nend")
