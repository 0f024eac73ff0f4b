"""Files that cannot be run, of every language: each is refused with what is wrong, its name and its line.

And texts that are made to harm: refused within a second each, in a process with little memory.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

import sateen as st
from hostile import outcomes_of
from sateen.model.antimony import read_antimony
from sateen.model.prism import read_prism
from sateen.model.sbml import read_sbml
from sateen.model.sbml_safety import MAX_BYTES
from sbml_texts import (
    assignment,
    compartment,
    document,
    element,
    event,
    formula,
    function,
    parameter,
    reaction,
    reference,
    rule,
    species,
)

X, K, DECAY = species("X", 10), parameter("k", 0.5), reaction("decay", {"X": 1})
DELAYED = '<csymbol encoding="text" definitionURL="http://www.sbml.org/sbml/symbols/delay">d</csymbol>'
DIMENSION = '<arrays:listOfDimensions><arrays:dimension arrays:id="d"/></arrays:listOfDimensions>'
ARRAYS = ' xmlns:arrays="http://www.sbml.org/sbml/level3/version1/arrays/version1" arrays:required="true"'
EXTERNAL = '<comp:externalModelDefinition comp:id="e" comp:source="/etc/passwd"/>'
OTHER = f"<comp:listOfExternalModelDefinitions>{EXTERNAL}</comp:listOfExternalModelDefinitions>"
COMP = ' xmlns:comp="http://www.sbml.org/sbml/level3/version1/comp/version1" comp:required="true"'


def changing(name: str, value: object = None) -> str:
    return parameter(name, value, constant="false")


# What the file is called and holds; what the message begins with; what the line that it points to holds.
SBML = {
    "no two directions": (
        document(X, K, reaction("r", {"X": 1}, law="k * (X - 3) * (7 - X)", reversible="true")),
        "the rate of r is negative in some states, and cannot be split: k * (X - 3) * (7 - X)",
        'reaction id="r"',
    ),
    "rate rule": (
        document(X, changing("k", 1), rule("k", "2", "rateRule"), DECAY),
        "the rate rule for k is not supported",
        "<rateRule",
    ),
    "algebraic rule": (
        document(X, changing("k", 1), rule("", "k - 2", "algebraicRule"), DECAY),
        "an algebraic rule is not supported",
        "<algebraicRule",
    ),
    "rules in a circle": (
        document(X, changing("k"), changing("q"), rule("k", "q"), rule("q", "k + 1"), DECAY),
        "this is not valid SBML",
        "",
    ),
    "fast": (
        document(X, K, reaction("decay", {"X": 1}, fast="true")),
        "the reaction decay is fast",
        'reaction id="decay"',
    ),
    "a parameter called time where a rate depends on time": (
        document(X, K, parameter("time", 2), reaction("decay", {"X": 1}, law="k * X * time")),
        "time is the clock in a model with rates that depend on time",
        'parameter id="time"',
    ),
    "delay in a formula": (
        document(X, K, reaction("decay", {"X": 1}, law=f"<apply>{DELAYED}<ci>X</ci><cn>1</cn></apply>")),
        "the rate of decay: a delay is not supported",
        'reaction id="decay"',
    ),
    "half a molecule": (document(species("X", 10.5), K, DECAY), "the species X begins with 10.5", 'species id="X"'),
    "half a molecule by assignment": (
        document(species("X", None), parameter("k", 1.5), assignment("X", "3 * k"), DECAY),
        "X starts at 4.5 (from 3 * k); it needs a whole number from 0 on",
        "<initialAssignment",
    ),
    "amounts in a circle": (
        document(species("X", None), species("Y", None), K, DECAY, assignment("X", "Y + 1"), assignment("Y", "X + 1")),
        "this is not valid SBML",
        "",
    ),
    "amounts in a long chain": (
        document(
            *(species(f"X{each}", None) for each in range(30)),
            parameter("k", 1),
            *(assignment(f"X{each}", f"X{each + 1} + 1" if each < 29 else "k") for each in range(30)),
            reaction("decay", {"X0": 1}, law="k * X0"),
        ),
        "more than 20 values are read by way of each other: X0 -> X1 -> X2",
        "<initialAssignment",
    ),
    "no amount": (document(species("X", None), K, DECAY), "the species X has no amount at the start", 'species id="X"'),
    "no size": (
        document(compartment(size=None), species("X", 10, hasOnlySubstanceUnits="false"), K, DECAY),
        "the compartment C has no size, and X is measured by its concentration in it",
        'compartment id="C"',
    ),
    "a compartment that grows": (
        document(
            compartment(constant="false"),
            species("X", 10, hasOnlySubstanceUnits="false"),
            K,
            rule("C", "1 + X"),
            reaction("decay", {"X": 1}, law="k"),
        ),
        "this is not valid SBML",
        "",
    ),
    "a compartment that an event changes": (
        document(
            compartment(constant="false"),
            species("X", 10, hasOnlySubstanceUnits="false"),
            K,
            DECAY,
            event("grow", "time > 3", {"C": "2"}),
        ),
        "the compartment C changes its size",
        "<eventAssignment",
    ),
    "level 1": (
        '<sbml xmlns="http://www.sbml.org/sbml/level1" level="1" version="2"><model name="m">\n'
        '<listOfCompartments><compartment name="C"/></listOfCompartments>\n'
        '<listOfSpecies><species name="X" compartment="C" initialAmount="1"/></listOfSpecies></model></sbml>',
        "SBML of Level 1 is not read",
        "<sbml",
    ),
    "a package": (
        document(X, K, DECAY, attributes=ARRAYS).replace("<listOfReactions", f"{DIMENSION}<listOfReactions"),
        "the model needs the package arrays",
        "<arrays:listOf",
    ),
    "a definition in another file": (
        document(X, K, DECAY, attributes=COMP).replace("</model>", f"</model>{OTHER}"),
        "a model definition in another file is refused",
        "<comp:externalModelDefinition",
    ),
    "delayed event": (
        document(X, K, DECAY, event("e", "X < 5", {"X": "1"}, element("delay", formula("3")))),
        "the event e has a delay",
        "<event",
    ),
    "priority": (
        document(X, K, DECAY, event("e", "X < 5", {"X": "1"}, element("priority", formula("X")))),
        "the priority of the event e is X",
        "<event",
    ),
    "not persistent": (
        document(X, K, DECAY, event("e", "X < 5", {"X": "1"}, persistent="false"), event("f", "X < 2", {"X": "9"})),
        "the trigger of the event e is not persistent",
        'event id="e"',
    ),
    "values from later": (
        document(
            X,
            K,
            DECAY,
            event("e", "X < 5", {"X": "1"}, useValuesFromTriggerTime="false"),
            event("f", "X < 2", {"X": "9"}),
        ),
        "the event e does not use the values at the time of its trigger",
        'event id="e"',
    ),
    "time in a priority": (
        document(X, K, DECAY, event("e", "X > 3", {"X": "1"}, element("priority", formula("time + 1")))),
        "the priority of the event e is time + 1",
        "<event",
    ),
    "time within a trigger": (
        document(X, K, DECAY, event("e", "time^2 > X", {"X": "1"})),
        "the trigger of the event e reads the time within a formula",
        "<event",
    ),
    "time in what an event sets": (
        document(X, K, DECAY, event("e", "X < 5", {"X": "time"})),
        "the event e sets X to a value that depends on time",
        "<event",
    ),
    "a species called time": (
        document(
            X, species("time"), K, DECAY, reaction("up", produced={"time": 1}, law="k"), event("e", "X < 5", {"X": "1"})
        ),
        "time is the clock in a model with events",
        'species id="time"',
    ),
    "tangent": (
        document(X, K, reaction("decay", {"X": 1}, law="k * X * tan(k)")),
        "the rate of decay: tan is not supported",
        'reaction id="decay"',
    ),
    "no otherwise": (
        document(X, K, reaction("decay", {"X": 1}, law="piecewise(k * X, X > 5)")),
        "the rate of decay: a piecewise without <otherwise>",
        'reaction id="decay"',
    ),
    "half a reactant": (
        document(X, K, reaction("decay", {"X": 0.5})),
        "the stoichiometry of X in decay is 0.5",
        'reaction id="decay"',
    ),
    "a stoichiometry that moves": (
        document(X, K, reaction("decay", reference("X", 1, constant="false", id="s")), rule("s", "X + 1")),
        "the stoichiometry of X in decay depends on X",
        "<assignmentRule",
    ),
    "no kinetic law": (
        document(X, K, reaction("decay", {"X": 1}, law="")),
        "the reaction decay has no kinetic law",
        'reaction id="decay"',
    ),
    "never positive": (
        document(X, K, reaction("decay", {"X": 1}, law="-(k * X)")),
        "the rate of decay is never positive: -(k * X)",
        'reaction id="decay"',
    ),
    "no reactions": (document(X, K), "this model has no reactions", "<model"),
    "no such name": (document(X, DECAY), "this is not valid SBML: ", 'reaction id="decay"'),
    "a function that calls itself": (
        document(X, K, function("f", "lambda(x, f(x))"), reaction("decay", {"X": 1}, law="f(X)")),
        "this is not valid SBML: ",
        "",
    ),
    "too deep": (
        document(X, K, reaction("decay", {"X": 1}, law="k * X" + "^(1 + X" * 60 + ")" * 60)),
        "the rate of decay: more than 100 levels of operations",
        'reaction id="decay"',
    ),
    "not XML": (document(X, K, DECAY).replace("</model>", ""), "this is not XML: mismatched tag", "</sbml>"),
    "another XML": ("<html>\n<body/></html>", "this is XML, but not SBML: its outermost element is html", "<html>"),
    "doctype": (
        document(X, K, DECAY).replace("<sbml", "<!DOCTYPE sbml>\n<sbml"),
        "a document type (DOCTYPE) is refused",
        "<!DOCTYPE",
    ),
}


@pytest.mark.parametrize(("text", "message", "pointed"), SBML.values(), ids=SBML)
def test_sbml_that_cannot_be_run_is_refused_by_name_and_line(text, message, pointed):
    with pytest.raises(st.ModelError) as error:
        read_sbml(text)
    assert error.value.message.startswith(message)
    assert pointed in text.splitlines()[error.value.line - 1]
    assert "\n" not in error.value.message


OTHERS = {
    "no arrow.sateen": ("species X = 1\nX @ k", "a reaction has one arrow, ->", 2),
    "no rate.sateen": ("species X = 1\nX -> 0", "this reaction has no rate", 2),
    "unknown species.sateen": ("species X = 1\nX + Y -> 0 @ X", "Y is not a species", 2),
    "fraction.sateen": ("species X = 1.5\nX -> 0 @ X", "a count is a whole number from 0 on", 1),
    "time.sateen": ("species X = 1\nX -> 0 @ X * t", "t is not declared", 2),
    "below zero.sateen": ("species X = 1\nX -> 0 @ k", "r1 consumes X, which its rate k does not see", 2),
    "dtmc.prism": ("dtmc\nmodule m\n x : [0..1];\nendmodule", "", 1),
    "type.prism": ("ctmc\nmodule m\n x : [0..1];\n [] true -> 1 : (x'=true);\nendmodule", "", 4),
    "unknown.prism": ("ctmc\nmodule m\n x : [0..1];\n [] y=0 -> 1 : (x'=1);\nendmodule", "", 4),
    "circle.prism": (
        "ctmc\nformula f = g;\nformula g = f;\nmodule m\n x : [0..1];\n [] f>0 -> 1 : (x'=1);\nendmodule",
        "",
        0,
    ),
    "gamma.ant": ("A -> ; gamma*A\nA = 1; gamma = 2", "gamma cannot be used as a name", 1),
    "import.ant": ('\nimport "other.ant"', "import is refused", 2),
    "rate rule.ant": ("R: A -> ; k*A\nA = 1\nk' = 2", "the rate rule for k is not supported", 3),
    "nothing.xml": ("", "an SBML file without any text", 1),
    "text.xml": ("species X = 1\nX -> 0 @ X", "this is not XML: syntax error", 1),
    "model.docx": ("", "", 1),
}


@pytest.mark.parametrize(
    ("name", "text", "message", "line"), [(name, *rest) for name, rest in OTHERS.items()], ids=OTHERS
)
def test_a_file_of_any_language_that_cannot_be_run_is_refused_with_its_line(name, text, message, line, tmp_path: Path):
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    with pytest.raises(st.ModelError) as error:
        st.Model.load(file)
    assert error.value.message.removeprefix(f"{file}: ").startswith(message)
    assert line in (0, error.value.line)
    assert len(error.value.message) > 10


def test_a_file_that_is_not_there_or_not_text_or_too_large_is_said_to_be_so(tmp_path: Path):
    for name in ("missing.xml", "missing.ant"):
        with pytest.raises(st.ModelError, match="cannot be read: No such file"):
            st.Model.load(tmp_path / name)
    (tmp_path / "utf16.xml").write_bytes(document(X, K, DECAY).encode("utf-16"))
    with pytest.raises(st.ModelError, match="is not text in UTF-8"):
        st.Model.load(tmp_path / "utf16.xml")
    with (tmp_path / "large.xml").open("wb") as file:
        file.truncate(100_000_000)
    begin = time.monotonic()
    with pytest.raises(st.ModelError, match="has 100,000,000 bytes, and at most 10,000,000 are read"):
        st.Model.load(tmp_path / "large.xml")
    assert time.monotonic() - begin < 1


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
@pytest.mark.parametrize("suffix", [".sateen", ".xml", ".ant", ".prism"])
def test_what_cannot_be_the_name_of_a_file_is_refused(name, suffix):
    with pytest.raises(st.ModelError, match="cannot be the name of a file"):
        st.Model.load(name + suffix)


@pytest.mark.skipif(sys.platform == "win32", reason="named pipes")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.sateen")
    with pytest.raises(st.ModelError, match="is not a regular file"):
        st.Model.load(tmp_path / "pipe.sateen")


def test_an_error_without_a_place_names_the_file(tmp_path):
    (tmp_path / "empty.ant").write_text("// nothing", encoding="utf-8")
    with pytest.raises(st.ModelError, match=r"empty\.ant: an empty Antimony file"):
        st.Model.load(tmp_path / "empty.ant")


@pytest.mark.parametrize("place", ['id="m"', "</sbml>"])
def test_half_a_surrogate_pair_in_sbml_is_pointed_at(place):
    text = document(X, K, DECAY).replace(place, f"{place}\udc89")
    with pytest.raises(st.ModelError, match="is half of a character") as error:
        read_sbml(text)
    assert text[error.value.position] == "\udc89"


def test_no_more_molecules_take_part_than_text_can_say():
    with pytest.raises(st.ModelError, match="of B in R is 3,000,000,000") as error:
        read_antimony("R: A -> 3000000000 B; k*A\nA = 1; B = 0; k = 1")
    assert error.value.line == 1
    assert error.value.remedy == "it can be at most 1,000,000,000"
    with pytest.raises(st.ModelError, match="1,800,000,000 A take part in r"):
        st.Model.parse("species A = 0\nr: 0 -> 900000000 A + 900000000 A @ 1")
    jump = read_prism("ctmc module m x : int init 0; [] true -> 1 : (x'=x+3000000000); endmodule").model
    assert st.Model.parse(str(jump)) == jump


def entities(*declared: str, used: str = "&z;") -> str:
    doctype = f"<!DOCTYPE sbml [{''.join(declared)}]>"
    return document(X, K, DECAY).replace("<sbml", f"{doctype}<sbml").replace('id="m"', f'id="{used}"')


LAUGHS = [f'<!ENTITY {new} "{f"&{old};" * 10}">' for old, new in zip("abcdefghijklm", "bcdefghijklmz", strict=True)]
DEEP = "<apply><minus/>" * 100_000 + "<ci>X</ci>" + "</apply>" * 100_000
HOSTILE = {
    "a billion laughs": entities('<!ENTITY a "ha">', *LAUGHS),
    "quadratic": entities(f'<!ENTITY z "{"a" * 100_000}">', used="&z;" * 10_000),
    "an external entity": entities('<!ENTITY z SYSTEM "file:///etc/passwd">'),
    "a parameter entity": entities('<!ENTITY % p SYSTEM "http://localhost:1/x"> %p;'),
    "an external document type": document(X, K, DECAY).replace("<sbml", '<!DOCTYPE sbml SYSTEM "file:///x"><sbml', 1),
    "too large": document(X, K, DECAY).replace("</model>", " " * MAX_BYTES + "</model>"),
    "deep MathML": document(X, K, reaction("decay", {"X": 1}, law=DEEP)),
    "deep notes": document(X, K, DECAY).replace("<listOfSpecies>", "<notes>" * 100_000 + "<listOfSpecies>"),
    "a wide formula": document(X, K, reaction("r", {"X": 1}, law=f"<apply><plus/>{'<ci>X</ci>' * 200_000}</apply>")),
    "functions that double": document(
        X,
        K,
        function("f0", "lambda(x, x)"),
        *(function(f"f{each + 1}", f"lambda(x, f{each}(x) + f{each}(x))") for each in range(18)),
        reaction("decay", {"X": 1}, law="f18(X)"),
    ),
    "functions in a long chain": document(
        X,
        K,
        function("f0", "lambda(x, x)"),
        *(function(f"f{each + 1}", f"lambda(x, f{each}(x))") for each in range(500)),
        DECAY,
    ),
    "rules in a long chain": document(
        X,
        K,
        *(changing(f"y{each}") for each in range(1000)),
        rule("y0", "X"),
        *(rule(f"y{each + 1}", f"y{each} + 1") for each in range(999)),
        DECAY,
    ),
    "rules that double": document(
        X,
        K,
        *(changing(f"y{each}") for each in range(60)),
        rule("y0", "X"),
        *(rule(f"y{each + 1}", f"y{each} + y{each}") for each in range(59)),
        reaction("decay", {"X": 1}, law="y59"),
    ),
    "an encoding that hides": document(X, K, DECAY).replace("UTF-8", "UTF-16"),
    "a document type in UTF-7": document(X, K, DECAY)
    .replace("UTF-8", "UTF-7")
    .replace("<sbml", "+ADwAIQ-DOCTYPE x><sbml"),
    "a number that is none": document(X, parameter("k", "1e999"), DECAY),
    "an unknown encoding": document(X, K, DECAY).replace("UTF-8", "x-unknown"),
}


def test_texts_made_to_harm_are_refused_with_little_time_and_little_memory():
    outcomes = outcomes_of("sateen.model.sbml:read_sbml", document(X, K, DECAY), HOSTILE)
    assert outcomes == dict.fromkeys(HOSTILE, "ModelError")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_text_made_to_harm_is_refused_within_a_second(name):
    begin = time.process_time()
    with pytest.raises(st.ModelError):
        read_sbml(HOSTILE[name])
    assert time.process_time() - begin < 1
