"""The command `init`: a study file that is checked against the model, and is not written over another."""

from __future__ import annotations

import json
import os
import tomllib
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import command_line
import sateen as st

SIR = """species S = 95, I = I0, R = 0
parameter gamma = 0.05, I0 = 5
infect:  S + I -> 2 I  @ `beta 1` * S * I
recover: I -> R        @ gamma * I
"""
QUEUE = """ctmc
const int n;
const bool fast;
const double arrival;
module queue
    jobs : [0..n];
    [] jobs < n -> arrival : (jobs'=jobs+1);
    [] jobs > 0 -> (fast ? 2 : 1) : (jobs'=jobs-1);
endmodule
"""
PROPS = """const double T;
"full": P>=0.5 [ F<=T jobs=n ];
"ever": P=? [ F jobs=n ];
"""
FORMULA = "(I > 0) U[100, 120] (I == 0)"
VARY = ("--vary", "beta 1=0.005:0.3", "-p", FORMULA)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two models and properties of one."""
    for name, text in (("sir.sateen", SIR), ("queue.prism", QUEUE), ("queue.props", PROPS)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


pytestmark = pytest.mark.usefixtures("desk")


sateen = partial(command_line.sateen, "init")


def study(*arguments: str, file: str = "sir.toml") -> dict[str, Any]:
    """What the study file says that the command writes."""
    assert sateen(*arguments).stdout.splitlines()[-1] == file
    return tomllib.loads(Path(file).read_text(encoding="utf-8"))


def test_a_study_has_all_that_a_study_needs() -> None:
    written = study("sir.sateen", *VARY, "--vary", "gamma=0.005:0.2:log", "--at", "I0=7", "--seed", "3")
    assert written == {
        "study": {"name": "sir", "seed": 3},
        "model": {"file": "sir.sateen"},
        "space": {
            "gamma": {"range": [0.005, 0.2], "scale": "log"},
            "I0": 7,
            "beta 1": [0.005, 0.3],
        },
        "property": {"I_above_0_until_I_is_0": FORMULA},
        "observe": {
            "train": {"design": "sobol", "points": 512, "runs": 50},
            "calibrate": {"seconds": "training"},
            "test": {"design": "uniform", "points": 200, "runs": 1000},
        },
        "learn": {"learners": ["svi-gp", "ep-gp"]},
        "guarantee": {"method": "lift", "level": 0.9, "confidence": 0.95},
    }


def test_its_model_its_space_and_its_formula_are_what_was_asked(desk: Path) -> None:
    written = study("sir.sateen", *VARY)
    model = st.Model.load(desk / written["model"]["file"])
    space = st.Space(written["space"])
    formula = st.stl(written["property"]["I_above_0_until_I_is_0"])
    (seen,) = st.observe(model, formula, space.uniform(1, seed=1), runs=2, seed=2).trials
    assert seen == 2


def test_what_does_not_vary_is_proposed_in_a_comment() -> None:
    sateen("sir.sateen", *VARY)
    lines = Path("sir.toml").read_text(encoding="utf-8").splitlines()
    space = lines[lines.index("[space]") + 1 : lines.index("[property]") - 1]
    assert [line.rstrip() for line in space] == [
        '# gamma = { range = [0.005, 0.5], scale = "log" }  # the default is 0.05',
        "# I0 = 5                                          # the default is 5; it suggests no range",
        '"beta 1" = [0.005, 0.3]                           # no default',
    ]


def test_without_vary_everything_is_proposed_in_comments() -> None:
    done = sateen("sir.sateen", "-p", FORMULA)
    assert done.stdout == "choose in [space] what varies, then: sateen run sir.toml\nsir.toml\n"
    text = Path("sir.toml").read_text(encoding="utf-8")
    assert tomllib.loads(text)["space"] == {}
    freed = "\n".join(line.removeprefix("# ") if " = " in line else line for line in text.splitlines())
    assert tomllib.loads(freed)["space"] == {
        "gamma": {"range": [0.005, 0.5], "scale": "log"},
        "I0": 5,
        "beta 1": [0.1, 10],
    }


@pytest.mark.parametrize(
    ("dimension", "points", "learners"),
    [(1, 128, ["svi-gp", "ep-gp"]), (3, 1024, ["svi-gp", "ep-gp"]), (4, 2048, ["svi-gp"]), (9, 4096, ["svi-gp"])],
)
def test_sizes_grow_with_what_varies(dimension: int, points: int, learners: list[str], desk: Path) -> None:
    names = [f"k{place}" for place in range(dimension)]
    (desk / "wide.sateen").write_text(f"species A = 1\n0 -> A @ {' + '.join(names)}\n", encoding="utf-8")
    vary = [word for name in names for word in ("--vary", f"{name}=0:1")]
    written = study("wide.sateen", *vary, "-p", "F[0, 1] A > 1", file="wide.toml")
    assert (written["observe"]["train"]["points"], written["learn"]["learners"]) == (points, learners)


def test_constants_of_a_model_are_kept_and_those_of_a_property_are_put_in() -> None:
    given = ("--const", "n=5,fast=true,T=2.5", "--vary", "arrival=0.5:3")
    written = study("queue.prism", *given, "-p", "queue.props:full", "-p", "queue.props:ever", file="queue.toml")
    assert written["model"] == {"file": "queue.prism", "constants": {"n": 5, "fast": 1}}
    assert written["property"] == {"full": "F[0, 2.5] jobs == n", "ever": "F jobs == n"}
    text = Path("queue.toml").read_text(encoding="utf-8")
    assert "# queue.props:full; the question is whether P >= 0.5\n" in text
    assert "# queue.props:ever; without a last time: runs that take too long are undecided\n" in text


def test_several_formulas_are_named_after_what_they_say_and_may_be_cut_at_an_end() -> None:
    written = study("sir.sateen", *VARY, "-p", "G I > 2", "--end", "50")
    cut = {"formula": FORMULA, "end": 50}, {"formula": "G I > 2", "end": 50}
    assert written["property"] == dict(zip(("I_above_0_until_I_is_0", "always_I_above_2"), cut, strict=True))


@pytest.mark.parametrize(
    ("formula", "name"),
    [
        ("F[0, 2] S == 0", "eventually_S_is_0"),
        ("G[0, 60] I <= 40 & S > 0.5", "always_I_at_most_40_and_S_above_0p5"),
        ("I >= 1 -> F[1, 2] !(S < I)", "I_at_least_1_implies_eventually_not_S_below_I"),
    ],
)
def test_a_name_says_the_formula_in_words_without_its_windows(formula: str, name: str) -> None:
    assert list(study("sir.sateen", *VARY[:2], "-p", formula)["property"]) == [name]


def test_formulas_that_differ_in_their_windows_alone_have_names_with_numbers() -> None:
    written = study("sir.sateen", *VARY[:2], "-p", "F[0, 1] I > 2", "-p", "F[0, 2] I > 2")
    assert written["property"] == {"eventually_I_above_2": "F[0, 1] I > 2", "eventually_I_above_2_2": "F[0, 2] I > 2"}


def test_the_model_is_found_from_where_the_study_is(desk: Path) -> None:
    (desk / "deep" / "er").mkdir(parents=True)
    written = study("sir.sateen", *VARY, "-o", "deep/er/s.toml", file="deep/er/s.toml")
    assert written["model"]["file"] == "../../sir.sateen"


def test_a_name_that_no_file_could_have_is_changed(desk: Path) -> None:
    os.rename(desk / "sir.sateen", desk / "my sir (2).sateen")
    assert study("my sir (2).sateen", *VARY, file="my_sir_2_.toml")["study"]["name"] == "my_sir_2_"


def test_json_tells_what_was_written() -> None:
    content = json.loads(sateen("sir.sateen", *VARY, "--json").stdout)
    assert content == {
        "model": "sir.sateen",
        "file": "sir.toml",
        "vary": ["beta 1"],
        "properties": {"I_above_0_until_I_is_0": FORMULA},
    }


def test_a_file_that_is_there_is_not_overwritten(desk: Path) -> None:
    (desk / "sir.toml").write_text("mine", encoding="utf-8")
    said = sateen("sir.sateen", *VARY, code=1).stderr
    assert said == "InputError: sir.toml exists, and is not overwritten\n  give another name with -o\n"
    assert (desk / "sir.toml").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["sir.sateen", "--vary", "beta=0:1", "-p", FORMULA], 1, "no parameter beta; did you mean beta 1?"),
        (["sir.sateen", "--vary", "zzz=0:1", "-p", FORMULA], 1, "its parameters are gamma, I0, beta 1"),
        (["sir.sateen", *VARY, "--at", "gama=1"], 1, "no parameter gama; did you mean gamma?"),
        (["sir.sateen", *VARY, "--at", "beta 1=1"], 2, "is in --vary and in --at"),
        (["sir.sateen", "--vary", "gamma=0.1:1", "-p", FORMULA], 1, "the parameter beta 1 has no value"),
        (["sir.sateen", "--vary", "gamma=1:0.1", "-p", FORMULA], 2, "a range needs low < high"),
        (["sir.sateen", *VARY, "--vary", "I0=1:9"], 1, "I starts at 4.0557"),
        (["sir.sateen", "--vary", "beta 1=0:1", "-p", "F[0, 5] J > 0"], 1, "the model has no J"),
        (["sir.sateen", "--vary", "beta 1=0:1", "-p", "F[0, 5 I > 0"], 1, "expected ']'"),
        (["sir.sateen", "--vary", "beta 1=0:1"], 2, "Missing option '-p'"),
        (["sir.sateen", *VARY, "-o", "study.txt"], 2, "end the name in .toml"),
        (["sir.sateen", *VARY, "-o", "none/study.toml"], 1, "there is no folder none"),
        (["sir.sateen", *VARY, "--const", "n=5"], 1, "no constant n is left open"),
        (["none.sateen", *VARY], 1, "none.sateen cannot be read"),
        (["queue.prism", "-p", "F[0, 1] jobs > 0"], 1, "the bool constant fast has no value"),
        (
            ["queue.prism", "--const", "n=5,fast=false,arrival=1", "-p", "F[0, 1] jobs > 0"],
            1,
            "no parameter that could",
        ),
        (
            ["queue.prism", "--const", "n=5,fast=false,T=1", "-p", "queue.props:1", "-p", "queue.props:full"],
            1,
            "two properties are called full",
        ),
    ],
)
def test_what_cannot_be_is_told_and_nothing_is_written(arguments: list[str], code: int, said: str, desk: Path) -> None:
    assert said in sateen(*arguments, code=code).stderr
    assert list(desk.glob("*.toml")) == []


def test_every_name_and_formula_can_be_written(desk: Path) -> None:
    name = 'a"b\\c'
    (desk / "odd.sateen").write_text(f"species `{name}` = 1\n0 -> `{name}` @ `k'é`\n", encoding="utf-8")
    written = study("odd.sateen", "--vary", "k'é=0:1", "-p", f"F[0, 1] `{name}` > 1", file="odd.toml")
    assert written["space"] == {"k'é": [0, 1]}
    assert written["property"] == {"eventually_a_b_c_above_1": f"F[0, 1] `{name}` > 1"}
