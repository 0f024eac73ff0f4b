"""Models: the intermediate form, the values a run begins with, and files."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, replace
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pytest

import sateen
from sateen.core.errors import InputError, MissingValueError, ModelError, SimulationError
from sateen.engine.simulate import simulate
from sateen.language.expression import Number
from sateen.language.grammar import parse_condition, parse_expression
from sateen.model.model import Constant, Event, Model, Parameter, Transition, Variable

SIR = """
species S = 95, I = 5, R = 0
constant N = 100
parameter gamma = 0.05
infect:  S + I -> 2 I  @ beta * S * I / N
recover: I -> R        @ gamma * I
"""


@pytest.fixture
def sir() -> Model:
    return Model.parse(SIR)


# Parts.


def test_what_a_transition_changes_is_what_it_produces_less_what_it_consumes() -> None:
    rate = parse_expression("k")
    assert Transition("r", rate, (("S", 1), ("I", 1)), (("I", 2),)).change == {"S": -1, "I": 1}
    assert Transition("r", rate, (("E", 1), ("S", 1)), (("E", 1), ("P", 1))).change == {"S": -1, "P": 1}
    assert Transition("r", rate, (("A", 3),), (("A", 1),)).change == {"A": -2}
    assert Transition("r", rate).change == {}


def test_what_a_transition_reads_is_listed_once() -> None:
    transition = Transition(
        "r",
        parse_expression("k * A"),
        update=(("A", parse_expression("B + k")), ("B", parse_expression("c"))),
        guard=parse_condition("A > low"),
    )
    assert transition.reads == ("k", "A", "B", "c", "low")


def test_models_are_frozen(sir: Model) -> None:
    with pytest.raises(FrozenInstanceError):
        sir.variables = ()  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        sir.transitions[0].rate = Number(1.0)  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        sir.parameters[0].default = 3.0  # type: ignore[misc]


def test_models_are_equal_where_their_parts_are_and_warnings_do_not_count(sir: Model) -> None:
    assert sir == Model.parse(SIR)
    assert hash(sir) == hash(Model.parse(SIR))
    assert sir == replace(sir, warnings=("line 1: something",))
    assert sir != replace(sir, constants=(Constant("N", Number(101.0)),))
    assert sir != Model.parse(SIR.replace("0.05", "0.06"))


def test_a_model_names_what_its_expressions_may_read(sir: Model) -> None:
    assert sir.species == ("S", "I", "R")
    assert sir.names == ("S", "I", "R", "N", "gamma", "beta")
    assert repr(sir) == "<Model: 3 species, 2 reactions>"


def test_a_model_shows_itself_in_a_notebook_without_becoming_html() -> None:
    model = Model.parse("species `<b>` = 1\n`<b>` -> 0 @ k * `<b>` when `<b>` > 0")
    assert "<b>" not in model._repr_html_()
    assert "&lt;b&gt;" in model._repr_html_()


# Values.


def test_values_are_given_defaults_and_constants(sir: Model) -> None:
    assert sir.values({"beta": 0.12}) == {"gamma": 0.05, "beta": 0.12, "N": 100.0}
    assert sir.values({"beta": 1, "gamma": 2}) == {"gamma": 2.0, "beta": 1.0, "N": 100.0}
    assert sir.values({"beta": np.float64(0.5)})["beta"] == 0.5


def test_a_parameter_without_value_is_named_with_the_nearest_known_name() -> None:
    model = Model.parse("species A = 1\nparameter gamma = 0.05, delta\nA -> 0 @ gama * A\nA -> 0 @ delta * A * gamma")
    with pytest.raises(MissingValueError) as raised:
        model.values({"delta": 1})
    assert "the parameter gama has no value" in str(raised.value)
    assert "did you mean gamma?" in str(raised.value)
    with pytest.raises(
        MissingValueError, match=r"the parameter delta has no value\n.*give it one: theta=\{.delta.: \.\.\.\}"
    ):
        model.values({"gama": 1})


def test_an_unknown_parameter_is_refused_with_the_nearest_known_name(sir: Model) -> None:
    with pytest.raises(MissingValueError) as raised:
        sir.values({"bta": 0.1, "gamma": 0.1})
    assert str(raised.value) == "the model has no parameter bta; did you mean beta?"
    with pytest.raises(MissingValueError, match=r"^the model has no parameter zzz$"):
        sir.values({"zzz": 0.1})


def test_a_species_or_a_constant_cannot_be_given_as_a_parameter(sir: Model) -> None:
    with pytest.raises(MissingValueError, match=r"I is a species; .* I = I0"):
        sir.values({"beta": 1, "I": 3})
    with pytest.raises(MissingValueError, match="N is a constant of the model"):
        sir.values({"beta": 1, "N": 3})


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400, "0.1", None])
def test_a_parameter_is_a_finite_number(sir: Model, value: Any) -> None:
    with pytest.raises(InputError, match=r"the parameter beta is .*; it must be a finite number"):
        sir.values({"beta": value})


def test_constants_may_read_parameters_and_constants_before_them() -> None:
    model = Model.parse("constant a = 2 * k, b = a^2 + 1\nspecies X = b\nX -> 0 @ X")
    assert model.values({"k": 3}) == {"k": 3.0, "a": 6.0, "b": 37.0}
    assert model.initial(model.values({"k": 3})) == {"X": 37.0}


def test_counts_may_be_parameters() -> None:
    model = Model.parse("species I = I0, S = 100 - I0\nI -> 0 @ I * S")
    assert model.initial(model.values({"I0": 7})) == {"I": 7.0, "S": 93.0}


@pytest.mark.parametrize("count", [2.5, -1, 101])
def test_an_initial_count_is_a_whole_number_from_0_on(count: float) -> None:
    model = Model.parse("species I = I0, S = 100 - I0\nI -> 0 @ I * S")
    with pytest.raises(InputError, match=r"^[IS] starts at .* \(from .*I0\); it needs a whole number from 0 on$"):
        model.initial(model.values({"I0": count}))


@pytest.mark.parametrize(
    ("low", "high", "initial", "wanted"),
    [
        (0, 3, 4.0, "x starts at 4; it needs a whole number from 0 to 3"),
        (2, None, 1.0, "x starts at 1; it needs a whole number from 2 on"),
        (None, None, 1.5, "x starts at 1.5; it needs a whole number"),
    ],
)
def test_an_initial_value_lies_within_the_bounds(
    low: int | None, high: int | None, initial: float, wanted: str
) -> None:
    model = Model((Variable("x", Number(initial), low, high),), ())
    with pytest.raises(InputError) as raised:
        model.initial({})
    assert str(raised.value) == wanted


def test_a_variable_without_bounds_may_be_negative() -> None:
    model = Model((Variable("x", parse_expression("-3"), None, None),), ())
    assert model.initial({}) == {"x": -3.0}


# The form carries what other languages need.


def bounded(**changes: Any) -> Model:
    """A counter from 0 to 3, up with probability 1/2, reset by an expression."""
    up = Transition("up", parse_expression("2"), produced=(("x", 1),), guard=parse_condition("x < 3"))
    reset = Transition(
        "reset", parse_expression("1"), update=(("x", parse_expression("x - 3")), ("y", parse_expression("x + y")))
    )
    reset = replace(reset, guard=parse_condition("x == 3"))
    parts = {
        "variables": (Variable("x", Number(0.0), 0, 3), Variable("y", Number(0.0), None, None)),
        "transitions": (up, reset),
    }
    return Model(**{**parts, **changes})


def test_a_transition_fires_only_where_its_guard_holds() -> None:
    path = simulate(bounded(), until=50, seed=1)
    assert path["x"].max() == 3
    assert path["x"].min() == 0
    assert len(path) > 20


def test_updates_all_read_the_state_before() -> None:
    path = simulate(bounded(), until=50, seed=1)
    xs, ys = path["x"].tolist(), path["y"].tolist()
    resets = [
        (x, y, x_after, y_after) for x, y, x_after, y_after in zip(xs, ys, xs[1:], ys[1:], strict=False) if y != y_after
    ]
    assert len(resets) > 3
    # Had y read the x after, it would have grown by 0; both are assigned at once.
    assert all((x, x_after, y_after) == (3, 0, y + 3) for x, y, x_after, y_after in resets)


def test_a_value_beyond_its_upper_bound_is_an_error_of_the_model() -> None:
    unguarded = Transition("up", parse_expression("2"), produced=(("x", 1),))
    with pytest.raises(SimulationError, match=r"^up takes x to 4 at time .*, from x = 3, y = 0"):
        simulate(bounded(transitions=(unguarded,)), until=50, seed=1)


def test_a_value_below_its_lower_bound_is_an_error_of_the_model() -> None:
    down = Transition("down", parse_expression("2"), consumed=(("x", 1),))
    with pytest.raises(SimulationError, match=r"^down takes x to -1 at time .*, from x = 0, y = 0"):
        simulate(bounded(transitions=(down,)), until=50, seed=1)


@pytest.mark.parametrize("value", ["x + 0.5", "0 / x", "1 / x"])
def test_an_update_to_what_is_no_whole_number_is_an_error_of_the_model(value: str) -> None:
    """Variables are integers, so a half, an infinity and what is not a number are none."""
    odd = Transition("odd", parse_expression("2"), update=(("y", parse_expression(value)),))
    with pytest.raises(SimulationError, match="odd takes y to"):
        simulate(bounded(transitions=(odd,)), until=50, seed=1)


def test_bounds_assignments_and_events_are_part_of_the_text() -> None:
    model = bounded(
        parameters=(Parameter("k"),),
        events=(
            Event("dose", (("x", Number(0.0)),), parse_condition("time >= 5")),
            Event("alarm", (("y", parse_expression("y + k")),), parse_condition("x > 1"), initially=False),
        ),
    )
    assert str(model) == (
        "species x = 0 in [0, 3], y = 0 in (-inf, inf)\n"
        "parameter k\n"
        "up: 0 -> x @ 2 when x < 3\n"
        "reset: x := x - 3, y := x + y @ 1 when x == 3\n"
        "event dose: x := 0 when time >= 5\n"
        "event alarm: y := y + k when x > 1 initially false\n"
    )


# Files.


@pytest.mark.parametrize("name", ["sir.sateen", "sir.txt", "SIR.TXT"])
def test_the_suffix_says_which_reader(tmp_path: FilePath, sir: Model, name: str) -> None:
    (tmp_path / name).write_text(SIR, encoding="utf-8")
    assert sateen.Model.load(tmp_path / name) == sir
    assert sateen.Model.load(str(tmp_path / name)) == sir


def test_line_ends_of_windows_and_a_byte_order_mark_do_no_harm(tmp_path: FilePath, sir: Model) -> None:
    (tmp_path / "crlf.txt").write_bytes(SIR.replace("\n", "\r\n").encode())
    assert Model.load(tmp_path / "crlf.txt") == sir
    (tmp_path / "mark.txt").write_bytes(SIR.lstrip().encode("utf-8-sig"))
    assert Model.load(tmp_path / "mark.txt") == sir


def test_a_saved_model_loads_as_itself(tmp_path: FilePath, sir: Model) -> None:
    (tmp_path / "sir.sateen").write_text(str(sir), encoding="utf-8")
    assert Model.load(tmp_path / "sir.sateen") == sir


def test_a_file_that_is_not_there_is_named(tmp_path: FilePath) -> None:
    with pytest.raises(ModelError, match=r"nowhere\.txt cannot be read: No such file"):
        Model.load(tmp_path / "nowhere.txt")


def test_a_folder_is_no_model(tmp_path: FilePath) -> None:
    (tmp_path / "folder.txt").mkdir()
    with pytest.raises(ModelError, match=r"folder\.txt is a folder; give a file in it"):
        Model.load(tmp_path / "folder.txt")


@pytest.mark.parametrize(
    ("name", "said"), [("sir.docx", r"no reader for \.docx"), ("sir", "no reader for a file without suffix")]
)
def test_an_unknown_suffix_is_refused_with_the_known_ones(tmp_path: FilePath, name: str, said: str) -> None:
    (tmp_path / name).write_text(SIR, encoding="utf-8")
    with pytest.raises(ModelError, match=said) as raised:
        Model.load(tmp_path / name)
    assert ".sateen, .txt" in raised.value.remedy


def test_a_file_that_is_not_utf_8_is_refused(tmp_path: FilePath) -> None:
    (tmp_path / "latin.txt").write_bytes("species é = 1".encode("latin-1"))
    with pytest.raises(ModelError, match=r"latin\.txt is not text in UTF-8"):
        Model.load(tmp_path / "latin.txt")


def test_a_file_that_is_too_large_is_refused_unread(tmp_path: FilePath) -> None:
    with open(tmp_path / "huge.txt", "wb") as file:
        file.truncate(10**10)  # a hole: it takes no room on the disk, and would fill the memory
    with pytest.raises(ModelError, match=r"huge\.txt has 10,000,000,000 bytes, and at most 800,000 are read"):
        Model.load(tmp_path / "huge.txt")


def test_a_mistake_in_a_file_is_pointed_at(tmp_path: FilePath) -> None:
    (tmp_path / "odd.txt").write_text("species A = 1\nA -> 0 @ 2 A\n", encoding="utf-8")
    with pytest.raises(ModelError) as raised:
        Model.load(tmp_path / "odd.txt")
    assert (raised.value.line, raised.value.column) == (2, 12)
