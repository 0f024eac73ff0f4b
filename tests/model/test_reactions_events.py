"""Reaction text beyond reactions: bounds, real numbers, assignments and events; and how mistakes are pointed at."""

from __future__ import annotations

import warnings

import pytest

from sateen.core.errors import ModelError, ModelWarning
from sateen.language.expression import Name, Number, number
from sateen.language.grammar import parse_condition, parse_expression
from sateen.model.model import Event, Model, Transition, Variable


def parse(text: str) -> Model:
    """The model, whatever the reader doubts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return Model.parse(text)


# Bounds.


@pytest.mark.parametrize(
    ("written", "low", "high"),
    [
        ("", 0, None),
        ("in [0, 10]", 0, 10),
        ("in [-3, 10]", -3, 10),
        ("in [ - 3 , +10 ]", -3, 10),
        ("in [0, inf)", 0, None),
        ("in (-inf, 10]", None, 10),
        ("in (-inf, inf)", None, None),
        ("in [-inf, inf]", None, None),
    ],
)
def test_bounds_stand_behind_the_initial_value(written: str, low: int | None, high: int | None) -> None:
    model = Model.parse(f"species x = 4 {written}, y = 1\n0 -> x @ 1")
    assert model.variables == (Variable("x", Number(4.0), low, high), Variable("y", Number(1.0)))


def test_a_bounded_variable_may_start_below_0() -> None:
    assert Model.parse("species x = -2 in [-5, 5]\n0 -> x @ 1").variables == (Variable("x", number(-2.0), -5, 5),)


def test_an_initial_value_in_brackets_may_have_bounds() -> None:
    assert parse("species x = (n)in [0, 3]\n0 -> x @ 1").variables == (Variable("x", Name("n"), 0, 3),)


def test_a_parameter_may_be_called_in() -> None:
    model = Model.parse("species x = 2 * in\nparameter in\n0 -> x @ in")
    assert model.variables[0].initial == parse_expression("2 * `in`")
    assert Model.parse(str(model)) == model


def test_written_bounds_say_that_a_careless_rate_is_meant() -> None:
    """Without them it is an error; with them, a doubt: a run that leaves the bounds stops with an error anyway."""
    with pytest.raises(ModelError, match="A could fall below 0"):
        Model.parse("species A = 3\nA -> 0 @ k")
    careless = parse("species A = 3 in [0, inf)\nA -> 0 @ k")
    assert careless.variables == (Variable("A", Number(3.0)),)
    assert careless.warnings == (
        "line 2: r1 consumes A, which its rate k does not see: A could fall below 0; "
        "multiply the rate by A, or add a guard: when A >= 1",
    )
    assert str(careless).startswith("species A = 3 in [0, inf)\n")
    assert parse(str(careless)) == careless


@pytest.mark.parametrize("bounds", ["in [-9, 9]", "in (-inf, 9]", "in [1, 9]"])
def test_a_variable_with_another_lower_bound_is_no_count_that_a_rate_must_see(bounds: str) -> None:
    assert Model.parse(f"species x = 3 {bounds}\nx -> 0 @ k").warnings == ()


def test_a_guard_that_keeps_written_bounds_is_no_doubt() -> None:
    assert Model.parse("species x = 3 in [0, 9]\nx -> 0 @ k when x > 0").warnings == ()
    assert parse("species x = 3 in [0, 9]\ngo: 2 x -> 0 @ k * x").warnings == (
        "line 2: go takes 2 x and may still fire with 1 left; "
        "its rate should be 0 there: mass_action(k), or a guard: when x >= 2",
    )


# Assignments.


def test_a_reaction_may_assign() -> None:
    model = Model.parse("species x = 3, busy = 1 in [0, 1]\nserve: x := x - 1, busy := 0 @ mu when x > 0")
    update = (("x", parse_expression("x - 1")), ("busy", Number(0.0)))
    assert model.transitions == (Transition("serve", Name("mu"), update=update, guard=parse_condition("x > 0")),)


def test_a_reaction_may_change_and_assign() -> None:
    model = Model.parse("species A = 3, B = 0, x = 0\ngo: A -> B, x := max(x, A) @ k * A")
    (transition,) = model.transitions
    assert (transition.change, transition.update) == ({"A": -1, "B": 1}, (("x", parse_expression("max(x, A)")),))
    assert Model.parse(str(model)) == model


def test_a_reaction_that_assigns_needs_no_name() -> None:
    assert Model.parse("species x = 3\nx := 0 @ 1\n`x` := 1 @ 2").transitions == (
        Transition("r1", Number(1.0), update=(("x", Number(0.0)),)),
        Transition("r2", Number(2.0), update=(("x", Number(1.0)),)),
    )


def test_a_value_outside_the_bounds_is_doubted() -> None:
    model = parse("species x = 3 in [0, 5]\nx := 7 @ 1 when x > 5")
    assert model.warnings == ("line 2: x := 7 is outside the bounds of x",)


# Events and real numbers.


def test_an_event_assigns_when_its_trigger_becomes_true() -> None:
    model = Model.parse("""
        species X = 0
        real k = 0.5
        0 -> X @ k
        event reset: X := 50, k := k / 2 when time >= 25
        event `at once`: X := 1 when X < 3 or time > T initially false
        event late: X := 2 when X > 3 initially true
        event idle: 0 when X > 9
    """)
    assert model.variables == (Variable("X", Number(0.0)), Variable("k", Number(0.5), None, None, whole=False))
    update = (("X", Number(50.0)), ("k", parse_expression("k / 2")))
    assert model.events == (
        Event("reset", update, parse_condition("time >= 25")),
        Event("at once", (("X", Number(1.0)),), parse_condition("X < 3 or time > T"), initially=False),
        Event("late", (("X", Number(2.0)),), parse_condition("X > 3")),
        Event("idle", (), parse_condition("X > 9")),
    )
    assert [each.name for each in model.parameters] == ["T"]
    assert Model.parse(str(model)) == model


def test_a_model_may_have_events_only() -> None:
    model = Model.parse("species X = 0\nevent one: X := 1 when time >= 1")
    assert model.transitions == ()
    assert Model.parse(str(model)) == model


def test_a_reaction_may_be_called_event() -> None:
    model = Model.parse("species A = 1\nevent: A -> 0 @ A")
    assert [each.name for each in model.transitions] == ["event"]
    assert Model.parse(str(model)) == model


def test_the_order_of_counts_and_real_numbers_is_kept() -> None:
    model = parse("species a = 1\nreal b = 2\nspecies c = 3, d = 4\n0 -> a @ b")
    assert model.species == ("a", "b", "c", "d")
    assert str(model).startswith("species a = 1\nreal b = 2\nspecies c = 3, d = 4\n")


@pytest.mark.parametrize(
    "text",
    [
        "species A = 1\nparameter c\n0 -> A @ 1\nevent e: A := c when time >= 5",
        "species A = 1\nparameter c\n0 -> A @ 1\nevent e: A := 0 when time >= c",
        "species A = 1\nparameter c\nreal b = c\n0 -> A @ b",
        "species A = 1\nparameter c\nA := A + c @ 1",
    ],
)
def test_a_parameter_that_an_event_or_an_assignment_reads_is_used(text: str) -> None:
    assert Model.parse(text).warnings == ()


# Mistakes are pointed at.

ONE = "species A = 1\n0 -> A @ 1\n"


@pytest.mark.parametrize(
    ("text", "line", "column", "message", "remedy"),
    [
        # Bounds.
        ("species A = 1 in 0..5\n0 -> A @ 1", 1, 18, "bounds look like [0, 10]", "open ends are"),
        ("species A = 1 in\n0 -> A @ 1", 1, 17, "bounds look like [0, 10]", "whole numbers"),
        ("species A = 1 in [0, n]\n0 -> A @ 1", 1, 18, "bounds look like [0, 10]", "whole numbers"),
        ("species A = 1 in [0, 5), B = 2\n0 -> A @ 1", 1, 23, "bounds belong to the range", "write ]"),
        ("species A = 1 in (0, 5]\n0 -> A @ 1", 1, 18, "bounds belong to the range", "write ["),
        ("species A = 1 in [5, 0]\n0 -> A @ 1", 1, 18, "no number is from 5 to 0", "comes first"),
        ("species A = 1 in [0, 99999999999999999999999]\n0 -> A @ 1", 1, 22, "too large for a bound", "open"),
        ("species A = 9 in [0, 5]\n0 -> A @ 1", 1, 13, "A starts at 9, outside its bounds", ""),
        ("species A = 0.5 in [0, 5]\n0 -> A @ 1", 1, 13, "a count is a whole number, not 0.5", ""),
        ("species A = -1\n0 -> A @ 1", 1, 13, "a whole number from 0 on, not -1", ""),
        ("real k\nspecies A = 1\n0 -> A @ k", 1, 6, "k needs an initial value", "real k = 0"),
        ("real k = 1 in [0, 2]\nspecies A = 1\n0 -> A @ k", 1, 12, "a real number has no bounds", "species"),
        ("real k = A\nspecies A = 1\n0 -> A @ k", 1, 6, "k cannot read the species A", "before the run"),
        # Assignments.
        (ONE + "go: A := 1", 3, 11, "this reaction has no rate", "after @"),
        (ONE + "go: A := 1, A := 2 @ 1", 3, 13, "A is assigned twice", "the state before"),
        (ONE + "go: A := 1, @ 1", 3, 13, "an assignment is missing here", "x := x - 1"),
        (ONE + "go: A := 1, A -> 0 @ 1", 3, 13, "'A -> 0' is not an assignment", "x := x - 1"),
        (ONE + "go: A := 1, A = 2 @ 1", 3, 13, "'A = 2' is not an assignment", "x := x - 1"),
        (ONE + "go: A := @ 1", 3, 9, "an expression without any text", ""),
        (ONE + "go: B := 1 @ 1", 3, 5, "B is not a species", "declare it first"),
        (ONE + "go: A := 0.5 @ 1", 3, 10, "A is a whole number, and this is 0.5", ""),
        (ONE + "real k = 1\ngo: k := 2 @ 1", 4, 5, "k is a real number, which only events change", "event e: k := 2"),
        (ONE + "real k = 1\ngo: k -> 0 @ 1", 4, 5, "k is a real number, which only events change", "only species"),
        (ONE + "go: A := time @ 1", 3, 5, "time is not declared, and assignments cannot", "parameter time"),
        # Events.
        (ONE + "event: A := 1 when A > 2", 3, 6, "an event has a name", "event reset:"),
        (ONE + "event A := 1 when A > 2", 3, 7, "an event has a name", "event reset:"),
        (ONE + "event e: A := 1", 3, 16, "this event has no trigger", "when time >= 25"),
        (ONE + "event e: A := 1 when", 3, 17, "this event has no trigger", "a condition"),
        (ONE + "event e: A := 1 when A", 3, 23, "ends too soon", ""),
        (ONE + "event e: A := 1 when A > 2 initially", 3, 28, "write initially false, or initially true", "before"),
        (ONE + "event e: A := 1 when A > 2 initially no", 3, 28, "write initially false", "before time 0"),
        (ONE + "event e: when A > 2", 3, 10, "an assignment is missing here", ""),
        (ONE + "event e: A -> 0 when A > 2", 3, 10, "'A -> 0' is not an assignment", "x := x - 1"),
        (ONE + "event e: A := 1 @ 2 when A > 2", 3, 17, "an event has no rate", "trigger"),
        (ONE + "event e: A := 1 when A > 2\nevent e: A := 2 when A > 3", 4, 7, "two events are called e", "another"),
        (ONE + "parameter k = 1\nevent e: k := 1 when A > 2", 4, 10, "k is not a species", "real k = 1"),
        (ONE + "event e: A := time when A > 2", 3, 10, "only its trigger may read the time", ""),
        (ONE + "event e: A := 0 when time + 1 > 2", 3, 22, "reads the time within time + 1 > 2", "stands alone"),
        (ONE + "event e: A := 0 when time > time", 3, 22, "reads the time within", "stands alone"),
        (ONE + "event e: A := 0 when t > 5", 3, 22, "t is not declared", "the clock is time"),
        (ONE + "parameter time\nevent e: A := 0 when time > 5", 3, 11, "time is the clock", "choose another"),
        ("species A = time\n0 -> A @ 1\nevent e: A := 0 when A > 5", 1, 9, "A cannot read the clock", "before the run"),
        (ONE + "evnt e", 3, 1, "neither a declaration nor a reaction", "did you mean event?"),
    ],
)  # fmt: skip
def test_a_mistake_is_pointed_at(text: str, line: int, column: int, message: str, remedy: str) -> None:
    with pytest.raises(ModelError) as raised:
        Model.parse(text)
    assert message in raised.value.message
    assert remedy in raised.value.remedy
    assert (raised.value.line, raised.value.column) == (line, column)
    assert raised.value.text == text


def test_rates_and_guards_read_the_clock_unless_something_has_its_name() -> None:
    model = Model.parse("species X = 1\nparameter k\n0 -> X @ k * time\nX -> 0 @ X when time > 3")
    assert model.timed
    assert [parameter.name for parameter in model.parameters] == ["k"]
    assert Model.parse(str(model)) == model
    for declared in ("parameter time = 2", "constant time = 2", "species time = 2"):
        other = Model.parse(f"species X = 1\n{declared}\n0 -> X @ time")
        assert not other.timed
        assert "time" in other.names
        assert Model.parse(str(other)) == other
