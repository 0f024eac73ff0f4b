"""What a newcomer mistypes in the README's model and formula, and what sateen says: the place, and the remedy."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import sateen as st
from command_line import sateen

SIR = """
species S = 95, I = 5, R = 0
constant N = 100
parameter gamma = 0.05
infect:  S + I -> 2 I  @ beta * S * I / N
recover: I -> R        @ gamma * I
"""
FORMULA = "(I > 0) U[100, 120] (I == 0)"
THETA = {"beta": 0.12, "gamma": 0.05}

# What is written instead of what, the text that the caret points to, what is said, and what to do.
MODEL_TYPOS = [
    pytest.param("@ gamma * I", "gamma * I", "", "has no rate", "write it after @", id="missing @"),
    pytest.param("@ gamma * I", "@", "", "has no rate", "I -> R @ gamma * I", id="missing rate"),
    pytest.param("@ gamma * I", "@ 2I", "I", "operator is missing", "written 2 * I", id="2I in a rate"),
    pytest.param("@ gamma * I", "@ gamma I", "I", "operator is missing", "gamma * I", id="product without *"),
    pytest.param("I -> R", "J -> R", "J -> R", "J is not a species", "species J = 0", id="undeclared species"),
    pytest.param("I -> R", "i -> R", "i -> R", "i is not a species", "did you mean I?", id="lower case"),
    pytest.param("2 I ", "2 II ", "2 II", "II is not a species", "did you mean I?", id="doubled letter"),
    pytest.param("I -> R", "I <-> R", "<-> R", "not the arrow", "as two reactions", id="reversible arrow"),
    pytest.param("I -> R", "I => R", "=> R", "not the arrow", "write ->", id="fat arrow"),
    pytest.param("I -> R", "I R", "I R", "one arrow", "S + I -> 2 I @", id="missing arrow"),
    pytest.param("recover:", "recover", "recover I", "not a species", "A + 2 B", id="missing colon"),
    pytest.param("species", "specis", "specis S", "neither", "did you mean species?", id="misspelt species"),
    pytest.param("constant", "const", "const N", "neither", "did you mean constant?", id="abbreviated constant"),
    pytest.param("R = 0", "R = 0.5", "0.5", "whole number", "from 0 on", id="half a count"),
    pytest.param("R = 0", "R", "R", "initial count", "species R = 0", id="species without a count"),
    pytest.param("R = 0", "I = 0", "I = 0", "declared twice", "another name", id="species declared twice"),
    pytest.param("* I / N", "* (I / N", "(I / N", "this '('", "never closed", id="missing bracket in a rate"),
    pytest.param("gamma * I", "gamma", "I -> R", "could fall below 0", "multiply the rate by I", id="rate without I"),
    pytest.param("gamma * I", "-gamma * I", "-gamma", "never positive", "change its sign", id="negative rate"),
    pytest.param("gamma * I", "gamma * t", "gamma * t", "t is not declared", "the clock is time", id="time in a rate"),
]
FORMULA_TYPOS = [
    pytest.param("120] ", "120 ", "(I == 0)", "expected ']'", "U[100, 120]", id="missing bracket"),
    pytest.param("100, 120", "120, 100", "[120, 100]", "ends before it begins", "[100, 120]", id="swapped bounds"),
    pytest.param("100, 120", "100 120", "120]", "expected ','", "U[100, 120]", id="missing comma"),
    pytest.param("100, 120", "120", "]", "two bounds", "[<=120]", id="one bound"),
    pytest.param("100, 120", "-5, 120", "-5", "not negative", "from 0 up", id="negative bound"),
    pytest.param("120]", "120)", ")", "windows are closed", "write ]", id="half-open window"),
    pytest.param("[100, 120]", "(100, 120)", ", 120)", "comma", "square brackets", id="round window"),
    pytest.param("120", "T", "T]", "T has no value", "constants=", id="bound without a value"),
    pytest.param("I > 0", "I => 0", "> 0", "=> is not an operator", "write >=", id="=>"),
    pytest.param("(I > 0)", "", "U[100", "U needs a formula on its left", "(I > 0) U", id="nothing left of U"),
    pytest.param("U[100, 120] ", "", "(I == 0)", "operator is missing", "U[a, b]", id="missing U"),
    pytest.param(FORMULA, "I", "", "is a number, not a property", "I > 0", id="I alone"),
    pytest.param("(I == 0)", "", "", "ends too soon", "something must follow", id="nothing right of U"),
    pytest.param("(I > 0)", "(I > 0", "(I > 0", "this '('", "never closed", id="missing round bracket"),
]


def pointed(text: str) -> str:
    """What stands in the shown line from the caret on."""
    lines = text.splitlines()
    (caret,) = [number for number, line in enumerate(lines) if re.fullmatch(r"\s+\^", line)]
    return lines[caret - 1][lines[caret].index("^") :].rstrip()


@pytest.mark.parametrize(("right", "wrong", "place", "what", "remedy"), MODEL_TYPOS)
def test_a_typo_in_a_model_is_shown_with_its_line_its_place_and_a_remedy(
    right: str, wrong: str, place: str, what: str, remedy: str
) -> None:
    assert right in SIR
    typed = SIR.replace(right, wrong)
    with pytest.raises(st.ModelError) as caught:
        st.Model.parse(typed)
    message = str(caught.value)
    assert pointed(message).startswith(place)
    assert bool(place) == bool(pointed(message))
    assert what in message.splitlines()[0]
    assert remedy in message
    line = next(number for number, text in enumerate(typed.splitlines(), start=1) if text not in SIR.splitlines())
    assert f"(line {line})" in message


@pytest.mark.parametrize(("right", "wrong", "place", "what", "remedy"), FORMULA_TYPOS)
def test_a_typo_in_a_formula_is_shown_with_its_place_and_a_remedy(
    right: str, wrong: str, place: str, what: str, remedy: str
) -> None:
    assert right in FORMULA
    with pytest.raises(st.FormulaError) as caught:
        st.stl(FORMULA.replace(right, wrong, 1))
    message = str(caught.value)
    assert pointed(message).startswith(place)
    assert bool(place) == bool(pointed(message))
    assert what in message.splitlines()[0]
    assert remedy in message


def test_a_misspelt_parameter_in_a_rate_is_doubted_where_the_right_one_is_declared() -> None:
    with pytest.warns(st.ModelWarning, match=r"line 4: nothing uses the parameter gamma; was it meant by gama\?"):
        model = st.Model.parse(SIR.replace("gamma * I", "gama * I"))
    with pytest.raises(
        st.MissingValueError, match=r"gama has no value\n.*did you mean gamma\?.*give it one: theta=\{.gama.: "
    ):
        st.simulate(model, THETA, until=1, seed=1)


def test_a_misspelt_value_is_refused_with_the_nearest_parameter() -> None:
    with pytest.raises(st.MissingValueError, match=r"no parameter gama; did you mean gamma\?"):
        st.simulate(st.Model.parse(SIR), {"beta": 0.12, "gama": 0.05}, until=1, seed=1)


def test_a_parameter_without_a_value_is_named_with_the_way_to_give_one() -> None:
    with pytest.raises(
        st.MissingValueError, match=r"the parameter beta has no value\n  give it one: theta=\{.beta.: \.\.\.\}"
    ):
        st.simulate(st.Model.parse(SIR), until=1, seed=1)


def test_a_value_for_a_species_or_a_constant_is_refused_with_what_to_declare() -> None:
    model = st.Model.parse(SIR)
    with pytest.raises(st.MissingValueError, match=r"I is a species; .*I = I0"):
        st.simulate(model, {"beta": 0.12, "I": 5}, until=1, seed=1)
    with pytest.raises(st.MissingValueError, match="N is a constant of the model; declare it as a parameter"):
        st.simulate(model, {"beta": 0.12, "N": 5}, until=1, seed=1)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("gama", "did you mean gamma?"), ("i", "did you mean I?"), ("Infected", "it has gamma, beta, N, S, I, R")],
)
def test_an_unknown_name_in_a_formula_is_told_the_names_there_are(name: str, hint: str) -> None:
    path = st.simulate(st.Model.parse(SIR), THETA, until=1, seed=1)
    with pytest.raises(st.MissingValueError) as caught:
        st.monitor(st.stl(FORMULA.replace("I == 0", f"{name} == 0")), path)
    assert f"{name} is neither a species nor a parameter" in str(caught.value)
    assert hint in str(caught.value)


def simulated(tmp_path: Path, *options: str, model: str = SIR, formula: str = FORMULA) -> str:
    """What the command line says, on stderr and nowhere else, of a run that cannot be."""
    file = tmp_path / "sir.sateen"
    file.write_text(model, encoding="utf-8")
    done = sateen("simulate", file, "-p", formula, *(options or ("--at", "beta=0.12")), code=1)
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr


def test_the_command_line_shows_the_caret_where_the_library_puts_it(tmp_path: Path) -> None:
    said = simulated(tmp_path, formula="(I > 0) U[100, 120 (I == 0)")
    assert said == (
        "FormulaError: expected ']' after the interval\n"
        "  (I > 0) U[100, 120 (I == 0)\n"
        "                     ^\n"
        "  intervals look like U[100, 120]\n"
    )


@pytest.mark.parametrize(("right", "wrong", "place", "what", "remedy"), MODEL_TYPOS[::4])
def test_the_command_line_says_of_a_model_what_the_library_says(
    tmp_path: Path, right: str, wrong: str, place: str, what: str, remedy: str
) -> None:
    typed = SIR.replace(right, wrong)
    with pytest.raises(st.ModelError) as caught:
        st.Model.parse(typed)
    assert simulated(tmp_path, model=typed) == f"ModelError: {caught.value}\n"


def test_the_command_line_warns_of_a_misspelt_parameter_and_says_that_it_has_no_value(tmp_path: Path) -> None:
    warning, error, remedy = simulated(tmp_path, model=SIR.replace("gamma * I", "gama * I")).splitlines()
    assert warning == "warning: line 4: nothing uses the parameter gamma; was it meant by gama?"
    assert error == "MissingValueError: the parameter gama has no value"
    assert remedy == "  did you mean gamma? If not, give it one: --at gama=..."


def test_the_command_line_names_the_nearest_parameter_of_a_misspelt_option(tmp_path: Path) -> None:
    said = simulated(tmp_path, "--at", "beta=0.12,gama=0.05")
    assert said == "MissingValueError: the model has no parameter gama; did you mean gamma?\n"


def test_the_command_line_refuses_an_unknown_name_in_a_formula_before_the_run(tmp_path: Path) -> None:
    failing = "species I = 0\nparameter gamma = 1\n0 -> I @ 2.5 * gamma - I\n"  # at 3 its rate is negative
    assert "SimulationError" in simulated(tmp_path, "--until", "99", model=failing, formula="F[0, 5] gamma < 0")
    said = simulated(tmp_path, "--until", "99", model=failing, formula="F[0, 5] gama < 0")
    assert said == "MissingValueError: gama is neither a species nor a parameter of this path\n  did you mean gamma?\n"


def test_the_command_line_has_its_own_remedy_for_a_bound_without_a_value(tmp_path: Path) -> None:
    said = simulated(tmp_path, formula="F[0, T] I == 0")
    assert pointed(said) == "T] I == 0"
    assert "give it one: --const T=10" in said
    assert "stl(" not in said
