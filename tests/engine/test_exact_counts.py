"""Every count is exact, or there is an error that names it: in the lanes, in `replay`, in `simulate` and in `exact`."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from sateen.core.errors import FormulaError, InputError, SateenError, SimulationError
from sateen.core.path import Verdict
from sateen.engine.bounds import is_whole, largest_count
from sateen.engine.emit import kernel_source
from sateen.engine.exact import exact
from sateen.engine.run import Runner, replay
from sateen.engine.simulate import simulate
from sateen.language.grammar import parse_expression
from sateen.logic.monitor import monitor
from sateen.logic.parser import stl
from sateen.model.model import Model

RUNS = 20


def lanes(text: str, formula: str, **theta: float) -> int:
    """How many of the runs satisfy the formula; all must be decided."""
    model = Model.parse(text)
    counts = Runner(model, (stl(formula),)).run(
        [[theta[parameter.name] for parameter in model.parameters]], [[0, 0, RUNS]], seed=1
    )
    assert not counts.undecided.any()
    return int(counts.satisfied[0, 0])


VAST = {
    "an assignment that doubles": ("species X = 1\ng: X := 2*X + 1 @ 1", "G[0,200] X - 2*floor(X/2) == 1"),
    "an assignment that squares": ("species X = 3\ng: X := X*X @ 1", "G[0,200] X - X == 0"),
    "a count without bounds": ("species X = 1 in (-inf, inf)\ng: X := X*X + 1 @ 1", "G[0,200] X >= 1"),
    "a jump by one": ("species X = 9007199254740990\ng: X -> 2 X @ X/9e15", "G[0,200] X >= 0"),
    "an event": ("species X = 9007199254740990\ng: 0 -> X @ 0\nevent e: X := X + 5 when time >= 1", "G[0,200] X >= 0"),
}


def refused_everywhere(text: str, formula: str, match: str) -> None:
    """The lanes, `replay`, `simulate` and `exact` all raise a SimulationError with these words."""
    model = Model.parse(text)
    ways: list[Callable[[], object]] = [
        lambda: lanes(text, formula),
        lambda: replay(model, until=200, seed=1),
        lambda: simulate(model, until=200, seed=1),
        lambda: exact(model, stl(formula), {}),
    ]
    for way in ways:
        with pytest.raises(SimulationError, match=match):
            way()


@pytest.mark.parametrize(("text", "formula"), VAST.values(), ids=VAST)
def test_a_count_that_reaches_2_to_the_53_is_an_error_everywhere(text: str, formula: str) -> None:
    refused_everywhere(text, formula, r"X .*counts are exact only below 2\^53")


def test_the_last_state_that_max_events_allows_is_checked_too() -> None:
    model = Model.parse("species A = 2 in [0, 4]\ng: A := A + 3 @ 1")
    with pytest.raises(SimulationError, match=r"A becomes 5 at time .*: it needs a whole number from 0 to 4"):
        replay(model, until=50, seed=1, max_events=1)


def test_a_run_that_passes_max_population_first_is_undecided() -> None:
    model = Model.parse(VAST["an assignment that doubles"][0])
    runner = Runner(model, (stl("G[0,200] X - 2*floor(X/2) == 1"),), max_population=10**6)
    counts = runner.run(np.empty((1, 0)), [[0, 0, RUNS]], seed=1)
    assert counts.undecided[0, :, 0].tolist() == [0, 0, RUNS]


def test_an_initial_count_from_2_to_the_53_on_is_refused() -> None:
    model = Model.parse("species X = n\nX -> 0 @ 1e-9*X")
    for way in (
        lambda: Runner(model, (stl("X > 3"),)).run([[2.0**53]], [[0, 0, 1]], seed=1),
        lambda: simulate(model, {"n": 2.0**53}, until=1, seed=1),
        lambda: exact(model, stl("X > 3"), {"n": 2.0**53}),
    ):
        with pytest.raises(InputError, match=r"X starts at 9007199254740992.*exact only below 2\^53"):
            way()


@pytest.mark.parametrize("count", [2**52 + 1, 2**53 - 1])
def test_an_initial_count_below_2_to_the_53_is_exact(count: int) -> None:
    assert lanes(f"species X = {count}\nX -> 0 @ 1e-20*X", f"X == {count}") == RUNS


def test_a_count_that_is_not_whole_is_an_error_everywhere() -> None:
    words = r"X .*1\.5.*it needs a whole number from 0 on"
    refused_everywhere("species X = 3\nhalve: X := X/2 @ 1", "G[0, 5] X == floor(X)", words)


AGREED = {
    "fused products": ("species X = 3, Y = 3\nX + Y -> 2 X + 2 Y @ k when X < 30", "G[0,5] k*X - k*Y == 0", 0.1, 1.0),
    "regrouped products": ("species X = 3\nX -> 2 X @ k when X < 30", "G[0,5] X*k/k == X", 0.1, 0.0),
    "a regrouped quotient": ("species X = 1\nX -> 2 X @ k when X < 3", "G[0,5] X/k*k == X", 49.0, 0.0),
    "a rate too small to wait for": ("species X = 1\nX -> 0 @ k*X", "G[0,9] X == 1", 1e-307, 1.0),
    "a pair of equals that is gone": ("species A = 2\n2 A -> 0 @ mass_action(k)", "F A == 0", 0.7, 1.0),
    "a pair that never was": ("species A = 0\n2 A -> 0 @ mass_action(k)", "G[0, 2] A != 3", 0.7, 1.0),
    "a state that hardly lasts": (
        "species X = 0\n0 -> X @ k when X == 0\nX -> 2 X @ 1e19 when X == 1",
        "F[0, 100] X == 1",
        1.0,
        1.0,
    ),
    "a state that hardly lasts, nested": (
        "species X = 0\n0 -> X @ k when X == 0\nX -> 2 X @ 1e19 when X == 1",
        "F[0, 100] ((X == 0) U[0, 100] (X == 1))",
        1.0,
        1.0,
    ),
    "a delay that is undefined beyond the horizon": (
        "species Y = 1, Z = 0\nY -> 0 @ k*Y\n0 -> Z @ 1",
        "F[0, 0.5] Y/Y(t-1) > 2",
        10.0,
        0.0,
    ),
    "a detour beyond 2^53": (
        "species A = 9007199254740990, B = 0\n0 -> 3 A @ k when B > 0\nA -> 0 @ k*min(A, 1) when A > 9007199254740980",
        "F[0, 100] A == 9007199254740989",
        1.0,
        1.0,
    ),
    "many states within a tick": (
        "species A = 0\n0 -> A @ k*1e25 when A < 50",
        "F[0, 1] (A == 25 & F[0, 1] A == 50)",
        1.0,
        1.0,
    ),
    "a guard": (
        "species A = 2\n0 -> 3 A @ 0.7 when A < 5 and A/k*k == A\n0 -> A @ 0",
        "G[0, 5] A == 2",
        49.0,
        float(2 / 49.0 * 49.0 != 2),
    ),
    "a rate that is infinite only in the order it is written in": (
        "species A = 2\n2 A -> 0 @ mass_action(k)",
        "F A == 0",
        1.7e308,
        1.0,
    ),
    "a power": ("species X = 1\n0 -> X @ k when X < 9", "G[0,5] k^3*X == k*(k*k)*X", 0.3, 1.0),
}


@pytest.mark.parametrize(("text", "formula", "k", "truth"), AGREED.values(), ids=AGREED)
def test_the_lanes_agree_with_the_monitor_to_the_last_bit(text: str, formula: str, k: float, truth: float) -> None:
    assert lanes(text, formula, k=k) == truth * RUNS
    model, asked = Model.parse(text), stl(formula)
    for run in range(3):
        path = replay(model, {"k": k}, until=min(asked.horizon, 1e300), seed=1, run=run)
        assert monitor(asked, path) is (Verdict.TRUE if truth else Verdict.FALSE)


def test_a_wait_that_is_no_number_is_not_taken_for_the_end() -> None:
    model = Model.parse("species X = 1\nX -> 0 @ k*X")
    counts = Runner(model, (stl("F X == 0"),)).run([[1e-307]], [[0, 0, RUNS]], seed=1)
    assert counts.undecided[0, :, 0].tolist() == [0, RUNS, 0]
    assert not replay(model, {"k": 1e-307}, until=math.inf, seed=1).absorbed
    assert exact(model, stl("F X == 0"), {"k": 1e-307}) == 1.0


def test_a_parameter_so_small_that_rates_might_vanish_is_refused() -> None:
    model = Model.parse("species A = 2\n2 A -> 0 @ mass_action(k)")
    with pytest.raises(InputError, match=r"k is 4\.94066e-324, too small"):
        Runner(model, (stl("F A == 0"),)).run([[5e-324]], [[0, 0, RUNS]], seed=1)
    with pytest.raises(InputError, match=r"k is 4\.94066e-324, too small"):
        replay(model, {"k": 5e-324}, until=1, seed=1)


def test_an_atom_that_is_undefined_after_its_formula_is_decided_is_no_error_whatever_is_asked_beside_it() -> None:
    model = Model.parse("species A = 3, B = 0\nA -> 0 @ 5*A\n0 -> B @ 1")
    decided, longer = stl("F[0, 1] A/A == 1"), stl("G[0, 50] B >= 0")
    for formulas in ((decided,), (decided, longer), (longer, decided), (stl("!F[2, 2.1] A/A == 1", end=1), longer)):
        counts = Runner(model, formulas).run(np.empty((1, 0)), [[0, 0, RUNS]], seed=1)
        assert counts.satisfied[:, 0].tolist() == [RUNS] * len(formulas)


UNDEFINED = {
    "hidden by min": ("species X = 0, Y = 0\n0 -> X @ k when X < 3", "F[0,5] min(1, X/Y) < 2", 1.0, FormulaError),
    "hidden by max, in a rate": ("species X = 0, Y = 0\n0 -> X @ k*max(1, X/Y) when X < 3", "F[0,5] X > 2", 1.0, None),
    "inf - inf": ("species X = 1\n0 -> X @ k/k when X < 5", "G[0,5] k*X - k*X >= 0", 1e308, FormulaError),
    "an infinite rate": (
        f"species X = 4503599627370496\nX -> 0 @ k*{'*'.join('X' * 20)}",
        "F[0,1] X < 4503599627370490",
        1.0,
        None,
    ),
}


@pytest.mark.parametrize(("text", "formula", "k", "error"), UNDEFINED.values(), ids=UNDEFINED)
def test_what_is_undefined_is_an_error_everywhere(
    text: str, formula: str, k: float, error: type[SateenError] | None
) -> None:
    model, asked, expected = Model.parse(text), stl(formula), error or SimulationError
    with pytest.raises(expected):
        lanes(text, formula, k=k)
    with pytest.raises(expected):
        monitor(asked, replay(model, {"k": k}, until=5, seed=1))
    with pytest.raises(expected):
        exact(model, asked, {"k": k})


BOUNDED = {
    "X -> 2 X @ k": 1001.0,
    "X -> 0 @ k*X": 1001.0,
    "X := X + 3 @ k": 3003.0,
    "X := floor(X/2) @ k": 1001.0,
    "X := min(2*X, 50) @ k": 50.0,
    "X := max(X - 5, 0) @ k": 5005.0,
    "X := 2*X @ k when X < 100": 200.0,
    "X := 2*X @ k": math.inf,
    "X := X*X @ k": math.inf,
    "X := X^2 @ k": math.inf,
    "X := Y @ k": 7.0,
    "X := abs(Y - X) @ k": 7007.0,
}


@pytest.mark.parametrize(("reaction", "growth"), BOUNDED.items(), ids=BOUNDED)
def test_how_far_counts_can_grow_in_a_thousand_events(reaction: str, growth: float) -> None:
    model = Model.parse(f"species X = 1, Y = 7 in [0, 7]\n{reaction}")
    bound = largest_count(model, {"k": np.array([1.0])}, 1000)
    assert bound == math.inf if math.isinf(growth) else bound <= growth + 10


def test_a_guard_from_above_says_nothing_of_how_far_a_count_can_fall() -> None:
    model = Model.parse("species X = -1 in (-inf, inf)\nX := 2*X @ k when X < 100")
    assert largest_count(model, {"k": np.array([1.0])}, 1000) == math.inf


@pytest.mark.parametrize("reaction", ["X -> 2 X @ k*X", "X := X + 3 @ k", "X := max(X - 5, 0) @ k"])
def test_no_check_of_the_size_is_compiled_where_none_is_needed(reaction: str) -> None:
    model, formulas = Model.parse(f"species X = 1\n{reaction}"), (stl("F[0, 5] X > 3"),)
    source = kernel_source(model, formulas)
    assert not source.unchecked.may_fail(model, {"k": np.array([1.0])}, 1_000_000)
    assert "9007199254740992" not in source.text
    assert "9007199254740992" in kernel_source(model, formulas, checked=True).text


WHOLE = ["X", "X + Y", "-X", "2*X - 3", "floor(k)", "min(X, 3)", "X^2", "if(k > 1, X, 0)", "abs(X)", "ceil(X/2)"]
BROKEN = ["k", "X/2", "X*k", "0.5", "sqrt(X)", "X^k", "if(X > 1, k, 0)", "exp(X)", "max(X, k)"]


@pytest.mark.parametrize(("text", "whole"), [*((text, True) for text in WHOLE), *((text, False) for text in BROKEN)])
def test_which_expressions_are_whole_by_their_form(text: str, whole: bool) -> None:
    assert is_whole(parse_expression(text), frozenset({"X", "Y"})) is whole


@given(some.integers(0, 10**6), some.integers(0, 10**6), some.sampled_from(WHOLE))
def test_an_expression_that_is_whole_by_its_form_has_whole_values(x: int, y: int, text: str) -> None:
    assert float(parse_expression(text).evaluate({"X": x, "Y": y, "k": 2.5})).is_integer()


CANCELLING = {
    "a bound that rounding must not pass": ("species x = 10, y = 0\nf: 0 -> y @ max(0, 0.1*x - y)", {}),
    "two products": ("species x = 10, y = 0\nf: 0 -> y @ 0.3*x - 3*y", {}),
    "two products of parameters": (
        "species x = 10, y = 0\nparameter a, b\nf: 0 -> y @ a*x - b*y",
        {"a": 0.3, "b": 3.0},
    ),
    "a parameter that is negative": (
        "species x = 10, y = 0\nparameter a, b\nf: 0 -> y @ a*x + b*y",
        {"a": 0.3, "b": -3.0},
    ),
    "the same product in two orders": ("species x = 7, y = 0\nf: 0 -> y @ max(0, x*0.1*3 - x*0.1*3)", {}),
    "parameters alone": (
        "species x = 7, y = 0\nparameter a, b\nf: 0 -> y @ max(0, a*10 - b*b) * x",
        {"a": 0.1, "b": 1.0},
    ),
    "constants alone": ("species x = 7, y = 0\nconstant a = 0.1, c = a*10 - 1\nf: 0 -> y @ max(0, c) * x", {}),
    "a whole part": ("species x = 49, y = 0\nf: 0 -> y @ max(0, 1 - floor(x / 49)) * x", {}),
    "a logarithm of one": ("species x = 49, y = 0\nf: 0 -> y @ max(0, log(x / 49))", {}),
}


@pytest.mark.parametrize(("text", "theta"), CANCELLING.values(), ids=CANCELLING)
def test_a_rate_that_is_0_as_it_is_written_is_0_in_the_lanes_too(text: str, theta: dict[str, float]) -> None:
    model = Model.parse(text)
    path = simulate(model, theta, until=1e9, seed=1)
    assert path.absorbed
    last = float(path.states[-1, model.species.index("y")])
    reached, beyond = (stl(f"F y {symbol} {last}") for symbol in (">=", ">"))
    assert exact(model, reached, theta)[0] == 1
    assert exact(model, beyond, theta)[0] == 0
    # A formula that sums products turns fusing off in its kernel, so each is asked alone, too.
    for formulas in ((reached,), (beyond,), (reached, beyond), (reached, stl("F 0.1*x + 0.2*y < 0"))):
        runner = Runner(model, formulas)
        counts = runner.run([[theta[name] for name in runner.parameters]], [[0, 0, RUNS]], seed=1)
        assert not counts.undecided.any()
        assert counts.satisfied[:, 0].tolist() == [RUNS if formula is reached else 0 for formula in formulas]
    again = replay(model, theta, until=1e9, seed=1)
    assert again.absorbed
    assert again.states[-1, model.species.index("y")] == last


def test_logistic_growth_ends_at_its_capacity_whatever_that_is() -> None:
    model = Model.parse("species X = 1\nparameter K\ngrow: X -> 2 X @ X * (1 - X / K)")
    capacities = np.arange(2.0, 201.0)
    runner = Runner(model, (stl("F X == K"), stl("F X > K")))
    counts = runner.run(capacities[:, None], [[point, 0, 2] for point in range(len(capacities))], seed=1)
    assert not counts.undecided.any()
    assert counts.satisfied[0].tolist() == [2] * len(capacities)
    assert not counts.satisfied[1].any()
