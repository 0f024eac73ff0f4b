"""Events without noise: what happens, when, and in which order, in the reference simulator, the lanes and exact alike.

Every scenario is a small model in which only events happen, and what its variables then are. All of them also run side
by side in one model, where none may disturb another.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sateen.core.errors import ExactError, InputError, ModelError, SimulationError
from sateen.core.path import Path
from sateen.engine.emit import kernel_source
from sateen.engine.events import MOST_ROUNDS
from sateen.engine.exact import exact
from sateen.engine.run import Runner, replay
from sateen.engine.simulate import simulate
from sateen.language.expression import Boolean, Expression, Name, Number
from sateen.language.grammar import parse_condition, parse_expression
from sateen.logic.parser import stl
from sateen.model.model import Event, Model, Transition, Variable

Steps = list[tuple[float, float]]  # times, and the values from then on
UNTIL = 30.0

# What the text says, and the steps of its variables.
SCENARIOS: dict[str, tuple[str, dict[str, Steps]]] = {
    "an event at a time": (
        "species a = 4\nevent a1: a := a + 1 when time >= 25",
        {"a": [(0, 4), (25, 5)]},
    ),
    "just after comes after at": (
        "species b = 1\nevent b1: b := b * 10 when time > 25\nevent b2: b := b + 2 when time >= 25",
        {"b": [(0, 1), (25, 30)]},
    ),
    "an instant that is true only then": (
        "species c1 = 0, c2 = 0\nevent c1: c1 := c1 + 1 when time == 3\nevent c2: c2 := c2 + 1 when time != 4",
        {"c1": [(0, 0), (3, 1)], "c2": [(0, 0), (4, 1)]},
    ),
    "the clock on the right side": (
        "species d = 0\nevent d1: d := 1 when not 7 > time",
        {"d": [(0, 0), (7, 1)]},
    ),
    "what was true before time 0 does not become true": (
        "species e = 5\nevent e1: e := 6 when e > 3\nevent e2: e := 7 when time >= 0",
        {"e": [(0, 5)]},
    ),
    "what was false before time 0 and is true fires at 0": (
        "species f = 5\nevent f1: f := f + 1 when f > 3 initially false\n"
        "event f2: f := f + 10 when time >= 1 initially false",
        {"f": [(0, 6), (1, 16)]},
    ),
    "just after time 0": (
        "species g = 5\nevent g1: g := g + 1 when time > 0\nevent g2: g := g * 2 when time >= 0 initially false",
        {"g": [(0, 11)]},
    ),
    "a threshold before time 0": (
        "species h = 5\nevent h1: h := 6 when time >= -2\nevent h2: h := h * 2 when time > -1 initially false",
        {"h": [(0, 10)]},
    ),
    "a round reads the state before it": (
        "species i1 = 1, i2 = 2\nevent i1: i1 := i2 when time >= 4\nevent i2: i2 := i1 when time >= 4",
        {"i1": [(0, 1), (4, 2)], "i2": [(0, 2), (4, 1)]},
    ),
    "within a round the last event wins": (
        "species j = 0\nevent j1: j := 1 when time >= 4\nevent j2: j := 2 when 4 <= time\nevent j3: j := j when j > 9",
        {"j": [(0, 0), (4, 2)]},
    ),
    "events set off others at the same instant": (
        "species k1 = 0, k2 = 0, k3 = 0\nevent k3: k3 := k2 + 1 when k2 >= 2\n"
        "event k2: k2 := k1 + 1 when k1 >= 1\nevent k1: k1 := 1 when time >= 5",
        {"k1": [(0, 0), (5, 1)], "k2": [(0, 0), (5, 2)], "k3": [(0, 0), (5, 3)]},
    ),
    "what is true and stays true fires once": (
        "species l = 0\nevent l1: l := 5 when time >= 2\nevent l2: l := l - 1 when l > 0",
        {"l": [(0, 0), (2, 4)]},
    ),
    "what becomes true again fires again": (
        "species m1 = 0, m2 = 0\nevent m1: m1 := 1 - m1 when time == 1\nevent m2: m1 := 1 - m1 when time == 2\n"
        "event m3: m1 := 1 - m1 when time == 3\nevent m4: m2 := m2 + 1 when m1 == 1",
        {"m1": [(0, 0), (1, 1), (2, 0), (3, 1)], "m2": [(0, 0), (1, 1), (3, 2)]},
    ),
    "rounds go on until nothing is new": (
        "species n = 0, n0 = 2\nevent n0: n0 := 0 when time >= 3\n"
        "event n1: n := n + 1, n0 := 1 when n0 == 0 and n < 7\nevent n2: n := n + 1, n0 := 0 when n0 == 1 and n < 7",
        {"n": [(0, 0), (3, 7)], "n0": [(0, 2), (3, 1)]},
    ),
    "a span of time": (
        "species o1 = 0, o2 = 0\nevent o1: o1 := o1 + 1 when time >= 10 and time < 20\n"
        "event o2: o2 := o2 + 1 when time < 10 or time > 20",
        {"o1": [(0, 0), (10, 1)], "o2": [(0, 0), (20, 1)]},
    ),
    "time and state, whichever comes last": (
        "species p1 = 0, p2 = 0, p3 = 0, p4 = 0\nevent p1: p1 := 6 when time >= 3\nevent p2: p2 := 6 when time >= 12\n"
        "event p3: p3 := 1 when time >= 10 and p1 > 5\nevent p4: p4 := 1 when time >= 10 and p2 > 5",
        {"p1": [(0, 0), (3, 6)], "p2": [(0, 0), (12, 6)], "p3": [(0, 0), (10, 1)], "p4": [(0, 0), (12, 1)]},
    ),
    "real numbers": (
        "real q = 0.25\nspecies q1 = 0\nevent q1: q := q / 2 - 1 when time >= 0.5\nevent q2: q1 := 3 when q < 0",
        {"q": [(0, 0.25), (0.5, -0.875)], "q1": [(0, 0), (0.5, 3)]},
    ),
    "values at the bounds": (
        "species r = 0 in [-2, 3]\nevent r1: r := -2 when time >= 1\nevent r2: r := 3 when time >= 2",
        {"r": [(0, 0), (1, -2), (2, 3)]},
    ),
    "a value that is the same is no jump": (
        "species s = 2\nevent s1: s := 2 when time >= 6.125",
        {"s": [(0, 2)]},
    ),
    "the clock within a choice": (
        "species u = 0\nparameter w = 1\nevent u1: u := 1 when if(time >= 8, w, 0) > 0.5",
        {"u": [(0, 0), (8, 1)]},
    ),
}
# These wait for times that the state decides, which exact refuses.
DEADLINES: dict[str, tuple[str, dict[str, Steps]]] = {
    "again and again": (
        "real v = 0.5\nspecies v1 = 0\nevent v1: v1 := v1 + 1, v := v + 0.5 when time >= v and v1 < 4",
        {"v1": [(0, 0), (0.5, 1), (1, 2), (1.5, 3), (2, 4)], "v": [(0, 0.5), (0.5, 1), (1, 1.5), (1.5, 2), (2, 2.5)]},
    ),
    "a deadline brought forward": (
        "real x = 29\nspecies x1 = 0\nevent x1: x := 8 when time >= 6\nevent x2: x1 := 1 when time >= x",
        {"x": [(0, 29), (6, 8)], "x1": [(0, 0), (8, 1)]},
    ),
    "a deadline brought into the past": (
        "real y = 29\nspecies y1 = 0\nevent y1: y := 2 when time >= 6\nevent y2: y1 := 1 when time >= y",
        {"y": [(0, 29), (6, 2)], "y1": [(0, 0), (6, 1)]},
    ),
    "a deadline brought to this very instant": (
        "real z = 29\nspecies z1 = 0\nevent z1: z := 6 when time >= 6\nevent z2: z1 := 1 when time > z",
        {"z": [(0, 29), (6, 6)], "z1": [(0, 0), (6, 1)]},
    ),
}
EVERY = {**SCENARIOS, **DEADLINES}


def together(names: Iterable[str]) -> tuple[Model, dict[str, Steps]]:
    """Scenarios side by side in one model."""
    chosen = [EVERY[name] for name in names]
    steps = {variable: each for _, expected in chosen for variable, each in expected.items()}
    return Model.parse("\n".join(text for text, _ in chosen)), steps


def assert_follows(path: Path, expected: dict[str, Steps]) -> None:
    """The path has those steps, a row for each instant at which any of them is, and no other row."""
    instants = sorted({float(time) for steps in expected.values() for time, _ in steps})
    assert path.times.tolist() == instants
    for name, steps in expected.items():
        assert [path.at(time)[name] for time, _ in steps] == [value for _, value in steps], name
        held = [value for time in instants for value in [dict(steps).get(time)]]
        for row, value in enumerate(held):
            assert path[name][row] == (path[name][row - 1] if value is None else value), name


@pytest.mark.parametrize("name", EVERY)
def test_the_reference_simulator_follows_the_scenario(name: str) -> None:
    text, expected = EVERY[name]
    path = simulate(Model.parse(text), until=UNTIL, seed=1)
    assert_follows(path, expected)
    assert path.end == UNTIL
    assert path.absorbed


def test_side_by_side_no_scenario_disturbs_another() -> None:
    model, expected = together(EVERY)
    assert_follows(simulate(model, until=UNTIL, seed=1), expected)


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in (1, 2, 3))])
def test_a_lane_follows_the_scenarios(part: int) -> None:
    """Six at a time: a kernel takes a while to compile, one with many events longer."""
    model, expected = together(list(EVERY)[part::4])
    path = replay(model, until=UNTIL, seed=1)
    assert_follows(path, expected)
    assert path == simulate(model, until=UNTIL, seed=1)


@pytest.mark.parametrize("name", SCENARIOS)
def test_exact_is_certain_of_the_scenario(name: str) -> None:
    text, expected = SCENARIOS[name]
    model = Model.parse(text)
    for variable, steps in expected.items():
        for (time, value), (following, _) in zip(steps, [*steps[1:], (UNTIL, 0)], strict=True):
            assert exact(model, stl(f"F[{time}, {time}] `{variable}` == {value}"), {}) == 1
            assert exact(model, stl(f"G[{time}, {following - 1e-9}] `{variable}` == {value}"), {}) == 1
        assert exact(model, stl(f"F `{variable}` == {steps[-1][1]}"), {}) == 1


def test_no_formula_sees_the_states_between_rounds() -> None:
    """At 3 n runs through 1, 2, ... 6 to 7; at 2 l is 5 for no time."""
    model, _ = together(["rounds go on until nothing is new", "what is true and stays true fires once"])
    flat = [stl(text) for text in ("F[0, 9] (n > 0 & n < 7)", "F[0, 9] l == 5", "F (n == 3 | n0 == 0)")]
    formulas = (*flat, stl("F[0, 9] F[0, 1] n == 6"))
    counts = Runner(model, formulas).run([[]], [[0, 0, 40]], seed=1)
    assert counts.satisfied.tolist() == [[0], [0], [0], [0]]
    assert counts.undecided.sum() == 0
    assert [exact(model, formula, {}).tolist() for formula in flat] == [[0], [0], [0]]


# A law: four events at any times, some at once.

FOUR = Model.parse("species X = 1\n" + "\n".join(f"event e{i}: X := 3 * X + {i} when time >= T{i}" for i in range(4)))


def by_hand(times: list[float]) -> Steps:
    """The steps of FOUR: of events at once the last one counts, and all read the same X."""
    steps: Steps = [(0.0, 1.0)]
    order = sorted((time, i) for i, time in enumerate(times) if time > 0)
    for time, group in groupby(order, key=lambda each: each[0]):
        steps.append((time, 3 * steps[-1][1] + max(i for _, i in group)))
    return steps


@given(some.lists(some.sampled_from([-1.0, 0.0, 0.1, 0.3, 1.0, 2.0, 2.5, 7.0]), min_size=4, max_size=4))
def test_events_at_times_happen_in_their_order(times: list[float]) -> None:
    theta = {f"T{i}": time for i, time in enumerate(times)}
    steps = by_hand(times)
    for path in (simulate(FOUR, theta, until=8, seed=1), replay(FOUR, theta, until=8, seed=1)):
        assert list(zip(path.times.tolist(), path["X"].tolist(), strict=True)) == steps
    for time, value in steps:
        assert exact(FOUR, stl(f"F[{time}, {time}] X == {value}"), theta) == 1


# Ends.


LATE = Model.parse("species X = 1\nX -> 0 @ X\nevent late: X := 3 when time >= 100")


def test_a_path_is_not_absorbed_while_the_clock_can_still_set_off_an_event() -> None:
    early, whole = (simulate(LATE, until=until, seed=1) for until in (60, 900))
    assert not early.absorbed
    assert early.at(60) == {"X": 0}
    assert whole.absorbed
    assert whole.at(100) == {"X": 3}
    assert whole["X"].tolist() == [1, 0, 3, 2, 1, 0]


def test_an_unbounded_formula_waits_for_the_events_to_come() -> None:
    formulas = (stl("F X == 3"), stl("F X == 4"))
    counts = Runner(LATE, formulas).run([[]], [[0, 0, 50]], seed=1)
    assert counts.satisfied.tolist() == [[50], [0]]
    assert counts.undecided.sum() == 0
    assert [exact(LATE, formula, {}).tolist() for formula in formulas] == [[1], [0]]


def test_an_event_at_the_end_of_a_path_belongs_to_it() -> None:
    model = Model.parse(SCENARIOS["an event at a time"][0])
    assert simulate(model, until=25, seed=1).at(25) == {"a": 5}
    assert simulate(model, until=math.nextafter(25, 0), seed=1).states.tolist() == [[4]]


# What goes wrong.

LADDER = Model.parse("""
    species z = 0, turn = 0
    parameter top
    event ping: z := z + 1, turn := 1 when turn == 0 and z < top initially false
    event pong: z := z + 1, turn := 0 when turn == 1 and z < top
""")


ENDLESS = "set each other off without end at time 0, from z = 1000, turn = 0: after 1,000 rounds ping would fire"
ON_TOP = stl(f"F[0, 1] z == {MOST_ROUNDS}")


def test_a_thousand_rounds_are_made_and_one_more_is_an_error_that_names_the_event() -> None:
    assert simulate(LADDER, {"top": MOST_ROUNDS}, until=1, seed=1)["z"].tolist() == [MOST_ROUNDS]
    assert exact(LADDER, ON_TOP, {"top": MOST_ROUNDS}) == 1
    with pytest.raises(SimulationError, match=ENDLESS):
        simulate(LADDER, {"top": MOST_ROUNDS + 1}, until=1, seed=1)
    with pytest.raises(SimulationError, match=ENDLESS):
        exact(LADDER, ON_TOP, {"top": MOST_ROUNDS + 1})


@pytest.mark.slow
def test_lanes_make_a_thousand_rounds_and_no_more() -> None:
    runner = Runner(LADDER, (ON_TOP,))
    assert runner.run([[MOST_ROUNDS]], [[0, 0, 9]], seed=1).satisfied.tolist() == [[9]]
    with pytest.raises(SimulationError, match=rf"(?s){ENDLESS}.*replay it with seed 1, point 0, run 0"):
        runner.run([[MOST_ROUNDS + 1]], [[0, 0, 9]], seed=1)


WRONG = Model.parse("""
    species X = 2, Y = 0 in [-1, 4]
    real k = 1
    parameter x = 0, y = 0, new = 1
    event soon: X := x, Y := y when time >= 3
    event then: k := 1 / new when X == 0
""")


GROWS = stl("F[0, 9] X > 3")


NOT_ALLOWED = [
    ({"x": 2.5}, "soon takes X to 2.5 at time 3, from X = 2, Y = 0, k = 1: it needs a whole number from 0 on\n"),
    ({"x": -1.0}, "soon takes X to -1 at time 3, .*\n  the event sets it to x"),
    ({"y": 5.0}, "soon takes Y to 5 at time 3, .*: it needs a whole number from -1 to 4\n"),
    ({"new": 0.0}, "then takes k to inf at time 3, from X = 0, Y = 0, k = 1: it needs a finite number\n"),
]


@pytest.mark.parametrize(("theta", "message"), NOT_ALLOWED)
def test_a_value_that_a_variable_cannot_have_is_an_error_of_the_event(theta: dict[str, float], message: str) -> None:
    with pytest.raises(SimulationError, match=message):
        simulate(WRONG, theta, until=9, seed=1)
    with pytest.raises(SimulationError, match=message):
        exact(WRONG, GROWS, theta)


@pytest.mark.slow
@pytest.mark.parametrize(("theta", "message"), NOT_ALLOWED)
def test_so_it_is_in_lanes(theta: dict[str, float], message: str) -> None:
    row = list(WRONG.values(theta).values())
    with pytest.raises(SimulationError, match=rf"(?s){message}.*seed 7, point 2, run 0"):
        Runner(WRONG, (GROWS,)).run([row], [[2, 0, 30]], seed=7)


def test_what_a_run_does_not_come_to_is_no_error() -> None:
    assert simulate(WRONG, {"x": 2.5}, until=2.5, seed=1).at(2)["X"] == 2
    assert exact(WRONG, stl("G[0, 2.9] X == 2"), {"x": 2.5}) == 1


@pytest.mark.slow
def test_what_a_lane_does_not_come_to_is_no_error() -> None:
    counts = Runner(WRONG, (GROWS,)).run([[2.5, 0, 1]], [[0, 0, 30]], seed=1, max_time=2.9)
    assert counts.undecided.sum() == 30


@pytest.mark.parametrize("name", DEADLINES)
def test_exact_refuses_a_time_that_depends_on_the_state(name: str) -> None:
    with pytest.raises(
        ExactError, match=r"the event \w+ waits for the time \w, and \w changes; (?s:.*) simulate instead"
    ):
        exact(Model.parse(DEADLINES[name][0]), stl("F[0, 3] true & F[0, 9] `" + DEADLINES[name][0][5] + "` > 99"), {})


# The intermediate form.


def event(trigger: Expression, **update: Expression) -> Event:
    return Event("e", tuple(update.items()), trigger)


@pytest.mark.parametrize(
    ("trigger", "thresholds"),
    [
        ("X > 3", []),
        ("time >= 25", ["25"]),
        ("2 * k > time", ["2 * k"]),
        ("time >= 10 and (time < 20 or X > k) and not time == 10", ["10", "20"]),
        ("if(time > 3, X, 2) > 1", ["3"]),
    ],
)
def test_the_thresholds_are_what_the_clock_is_compared_with(trigger: str, thresholds: list[str]) -> None:
    assert list(map(str, event(parse_condition(trigger)).thresholds)) == thresholds


@pytest.mark.parametrize("trigger", ["time + 1 > 3", "2 * time > X", "time > time", "X > if(time > 3, time, 0)"])
def test_the_clock_stands_alone_on_one_side_of_a_comparison(trigger: str) -> None:
    with pytest.raises(ModelError, match=r"e reads the time within (?s:.*)alone on one side of a comparison"):
        event(parse_condition(trigger))


def test_a_trigger_is_a_condition() -> None:
    assert event(Boolean(True)).trigger == Boolean(True)
    for number in (Name("X"), Number(1.0), parse_expression("X + 1")):
        with pytest.raises(ModelError, match=rf"the trigger of the event e is {re.escape(str(number))}, a number"):
            event(number)


X, K = Variable("X", Number(0.0)), Variable("k", Number(0.5), None, None, whole=False)
BIRTH = Transition("birth", Name("k"), produced=(("X", 1),))
ALWAYS = parse_condition("X > 3")


def test_nothing_that_is_assigned_reads_the_time() -> None:
    with pytest.raises(ModelError, match="e sets X to time"):
        event(ALWAYS, X=Name("time"))
    timed = Transition("timed", Name("time"), update=(("X", Name("time")),))
    for events in ((), (event(ALWAYS),)):
        with pytest.raises(ModelError, match="timed sets X to time: only rates, guards and triggers read the time"):
            Model((X,), (timed,), events=events)


def test_with_events_nothing_else_is_called_time() -> None:
    clock = Variable("time", Number(0.0))
    assert Model((clock,), ()).species == ("time",)
    with pytest.raises(ModelError, match="time is the clock in a model with events"):
        Model((X, clock), (), events=(event(ALWAYS),))


def test_events_read_and_set_what_the_model_has() -> None:
    with pytest.raises(ModelError, match=r"e reads Xs, which the model does not have\n  did you mean X\?"):
        Model((X,), (), events=(event(parse_condition("Xs > 3")),))
    with pytest.raises(ModelError, match=r"e reads q, which"):
        Model((X,), (), events=(event(ALWAYS, X=Name("q")),))
    with pytest.raises(ModelError, match=r"e sets x, which is not a variable of the model\n  did you mean X\?"):
        Model((X,), (), events=(event(ALWAYS, x=Number(0.0)),))


def test_real_numbers_have_no_bounds_and_change_by_events_alone() -> None:
    with pytest.raises(ModelError, match="k is a real number, which has no bounds"):
        Variable("k", Number(0.5), whole=False)
    with pytest.raises(ModelError, match="birth changes k, a real number"):
        Model((K,), (Transition("birth", Number(1.0), produced=(("k", 1),)),))
    with pytest.raises(ModelError, match="set changes k, a real number"):
        Model((K,), (Transition("set", Number(1.0), update=(("k", Number(1.0)),)),))
    model = Model((X, Variable("k", parse_expression("1 / X0"), None, None, False)), (BIRTH,))
    assert model.initial({"X0": 4.0}) == {"X": 0, "k": 0.25}
    with pytest.raises(InputError, match=r"k starts at inf \(from 1 / X0\); it needs a finite number"):
        model.initial({"X0": 0.0})


# The source.


def test_a_kernel_without_events_has_no_trace_of_them() -> None:
    formulas = (stl("F[0, 3] X > 2"), stl("F[0, 3] G[0, 1] X > 1"))
    plain = Model.parse("species X = 1\nX -> 0 @ d * X / (1 + X)\n0 -> X @ 1 when X < 5")
    ringing = Model(plain.variables, plain.transitions, plain.parameters, events=(event(ALWAYS, X=Number(0.0)),))
    for options in ({}, {"checked": True}, {"population": True}, {"record": True}):
        words = ("settle", "ring", "rung", "said0", "nr")
        assert not [w for w in words if re.search(rf"\b{w}\b", kernel_source(plain, formulas, **options).text)]
        assert all(re.search(rf"\b{w}\b", kernel_source(ringing, formulas, **options).text) for w in words)


def test_no_name_in_an_event_stands_in_the_source() -> None:
    model = Model.parse(
        "species `a\\b` = 1\nreal `os.system('x')` = 2\n0 -> `a\\b` @ 1\n"
        "event `import os`: `a\\b` := `k é`, `os.system('x')` := 3 when time >= `os.system('x')` + `k é`"
    )
    text = kernel_source(model, (stl("F[0, 3] `a\\b` > 2"),)).text
    assert text.isascii()
    assert not [name for name in ("a\\b", "os.system", "import os") if name in text]
