"""Events against closed forms, and the engines against each other.

Seeds are counted from 0 and never chosen; a test fails when what it saw has a probability below one in a million.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom, binomtest, poisson

from distributions import LEVEL, assert_distributed
from lane_checks import count, formulas_of
from sateen.core.path import Path, Verdict
from sateen.engine.exact import exact
from sateen.engine.run import Runner, replay
from sateen.engine.simulate import simulate
from sateen.logic.monitor import monitor
from sateen.logic.parser import stl
from sateen.model.model import Model

# Four streams that know nothing of each other: immigration and death, with a count that is set at 2.5; arrivals that
# are counted to 8 and then from 0; arrivals whose rate is switched at 1.5; calls, each of which puts an alarm off.
STREAMS = Model.parse("""
    species X = 6, M = 0, N = 0, A = 0, alarm = 0
    real k = 2
    come:  0 -> X @ 8
    leave: X -> 0 @ 0.7 * X
    pass:  0 -> M @ 4
    tick:  0 -> N @ k
    call:  0 -> A @ 1.3
    event set:    X := 9 when time >= 2.5
    event wrap:   M := 0 when M >= 8
    event switch: k := 5 when time >= 1.5
    event late:   alarm := 1 when time >= 1 + A
""")
UNTIL = 4.0


def by_reference(run: int) -> Path:
    return simulate(STREAMS, until=UNTIL, seed=run)


def by_lane(run: int) -> Path:
    return replay(STREAMS, until=UNTIL, seed=0, run=run)


def immigration_death(start: int, time: float) -> npt.NDArray[np.float64]:
    """The probabilities of X, `time` after it was `start`."""
    survivors = binom.pmf(np.arange(start + 1), start, math.exp(-0.7 * time))
    newcomers = poisson.pmf(np.arange(60), 8 / 0.7 * (1 - math.exp(-0.7 * time)))
    return np.convolve(survivors, newcomers)


def alarm_probability(calls: float, last: int) -> float:
    """That there are at most n - 1 calls by time n, for some n = 1, ..., last."""
    still = np.array([1.0])  # the chance of each number of calls, with no alarm so far
    for n in range(1, last + 1):
        still = np.convolve(still, poisson.pmf(np.arange(40), calls))
        still[:n] = 0.0
    return 1.0 - float(still.sum())


@pytest.mark.slow
@pytest.mark.parametrize(("path", "runs"), [(by_reference, 200), (by_lane, 2500)])
def test_streams_have_the_distributions_of_closed_form(path: Callable[[int], Path], runs: int) -> None:
    seen = [path(run) for run in range(runs)]
    at = {time: [each.at(time) for each in seen] for time in (2.0, 3.5, UNTIL)}

    def values(name: str, time: float) -> npt.NDArray[np.int64]:
        return np.array([state[name] for state in at[time]], dtype=np.int64)

    assert_distributed(values("X", 2.0), immigration_death(6, 2.0))
    assert_distributed(values("X", UNTIL), immigration_death(9, 1.5))
    passed = poisson.pmf(np.arange(80), 4 * UNTIL)
    assert_distributed(values("M", UNTIL), passed.reshape(10, 8).sum(axis=0))
    assert_distributed(values("N", UNTIL), poisson.pmf(np.arange(60), 2 * 1.5 + 5 * 2.5))
    late = int(values("alarm", 3.5).sum())
    assert binomtest(late, runs, alarm_probability(1.3, 3)).pvalue > LEVEL
    assert [each.at(2.5)["X"] for each in seen] == [9.0] * runs


# The same numbers, computed: exact against closed forms. Without its guard, X would be free to grow for ever.
RESET = Model.parse("""
    species X = 6
    parameter T = 25
    come:  0 -> X @ 8 when X < 60
    leave: X -> 0 @ 0.7 * X
    event reset: X := 9 when time >= T
""")


@pytest.mark.parametrize(("T", "time", "expected"), [(25, 24.5, (6, 24.5)), (25, 26.5, (9, 1.5)), (1, 1.25, (9, 0.25))])
def test_a_reset_starts_immigration_and_death_anew(T: float, time: float, expected: tuple[int, float]) -> None:
    found = np.array([exact(RESET, stl(f"F[{time}, {time}] X <= {n}"), {"T": T})[0] for n in range(40)])
    assert np.allclose(found, np.cumsum(immigration_death(*expected))[:40], atol=1e-9)
    start, since = expected
    mean = start * math.exp(-0.7 * since) + 8 / 0.7 * (1 - math.exp(-0.7 * since))
    assert (1 - found).sum() == pytest.approx(mean, abs=1e-6)


def test_a_switched_rate_makes_a_poisson_process_in_two_pieces() -> None:
    model = Model.parse("species N = 0\nreal k = 2\n0 -> N @ k when N < 70\nevent switch: k := 5 when time >= 1.5")
    for time, mean in ((1.5, 3.0), (4.0, 15.5)):
        found = [exact(model, stl(f"F[{time}, {time}] N <= {n}"), {})[0] for n in range(0, 30, 3)]
        assert np.allclose(found, poisson.cdf(range(0, 30, 3), mean), atol=1e-9)
    # Nothing comes on [1, 2]: half of it at either rate.
    none = exact(model, stl("G[1, 2] N == 0"), {})[0]
    assert none == pytest.approx(math.exp(-(2 * 1.5 + 5 * 0.5)), abs=1e-9)


def test_a_count_that_wraps_is_a_poisson_process_modulo() -> None:
    model = Model.parse("species M = 0\n0 -> M @ 4\nevent wrap: M := 0 when M >= 8")
    passed = poisson.pmf(np.arange(80), 4 * 3.0).reshape(10, 8).sum(axis=0)
    found = [exact(model, stl(f"F[3, 3] M == {m}"), {})[0] for m in range(9)]
    assert np.allclose(found, [*passed, 0.0], atol=1e-9)
    assert exact(model, stl("F M == 7"), {}) == pytest.approx(1)
    assert exact(model, stl("F M == 8"), {}) == 0


# All engines on the same questions; the clock, the state and both set off events, and windows straddle their instants.
WARD = Model.parse("""
    species X = 0
    real k = 1
    parameter mu = 0.3, T = 2.5
    come:  0 -> X @ k when X < 12
    leave: X -> 0 @ mu * X
    event set:   X := 7, k := 0.4 * k + 0.1 when time >= T
    event fill:  X := X + 3 when X <= 1 and time > 1
    event relax: X := 5 when X >= 10
""")
POINTS = [{"mu": 0.3, "T": 2.5}, {"mu": 0.8, "T": 2.0}, {"mu": 0.8, "T": 1.0}]
QUESTIONS = formulas_of(
    [
        "F[0, 2] X == 5",
        "F[1, 2.5] X == 6",
        "F[2, 3] X == 8 & G[0, 2] X < 9",
        "F[2.5, 2.5] X == 7",
        "F[5, 5] X <= 6",
        "G[2.5, 3] X >= 7",
        "G[2, 2.75] (X > 3 & k < 1.1)",
        "(X < 6) U[1, 3] (X >= 7)",
        "(X != 4) U[0.5, 2.5] (X == 6)",
        "(k == 1) U[0, 2.5] (X > 7)",
        "F[0, 6] X == 10",
        "(X > 1 U X == 9) | G[1, 2] X > 4",
    ]
)
RUNS = 50_000


@pytest.mark.slow
def test_lanes_agree_with_exact() -> None:
    runner = Runner(WARD, QUESTIONS)
    for place, theta in enumerate(POINTS):
        counts = count(runner, theta, RUNS, seed=place)
        assert counts.undecided.sum() == 0
        for hits, formula in zip(counts.satisfied[:, 0].tolist(), QUESTIONS, strict=True):
            p = exact(WARD, formula, theta)[0]
            assert binomtest(hits, RUNS, p).pvalue > LEVEL / len(QUESTIONS) / len(POINTS), (str(formula), hits, p)


@pytest.mark.slow
def test_the_reference_simulator_agrees_with_exact() -> None:
    runs = 200
    for place, theta in enumerate(POINTS):
        paths = [simulate(WARD, theta, until=6, seed=1000 * place + run) for run in range(runs)]
        for formula in (formula for formula in QUESTIONS if formula.horizon <= 6):
            verdicts = [monitor(formula, path) for path in paths]
            assert Verdict.UNKNOWN not in verdicts
            p = exact(WARD, formula, theta)[0]
            hits = verdicts.count(Verdict.TRUE)
            assert binomtest(hits, runs, p).pvalue > LEVEL / len(QUESTIONS) / len(POINTS), (str(formula), hits, p)


def test_points_share_chains_only_where_events_are_the_same() -> None:
    """Many points at once give what each gives alone."""
    thetas = [{"mu": mu, "T": T} for T in (0.0, 1.0, 2.5, 3.0, 9.0) for mu in (0.3, 0.9, 0.0)]
    for formula in (QUESTIONS[2], QUESTIONS[8], QUESTIONS[11]):
        alone = [exact(WARD, formula, theta)[0] for theta in thetas]
        assert exact(WARD, formula, thetas[::-1]).tolist()[::-1] == alone
        assert len(set(alone)) > 3
