"""Rates that read the clock: the lanes against thinning by hand, the monitor and closed forms, and the simulator too.

A Poisson process of rate λ(s) has a Poisson count of mean ∫λ; individuals that die at rate h(s) survive with
probability exp(-∫h), each for itself; and what comes at rate λ(s) and leaves so is Poisson at every time.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binom, chi2, poisson

from lane_checks import count, disagreements, formulas_of, lane_verdicts
from lanes_by_hand import thinned
from sateen.core.errors import ExactError, SimulationError
from sateen.core.path import Verdict
from sateen.core.space import Space
from sateen.engine.emit import kernel_source
from sateen.engine.enclosure import Enclosure
from sateen.engine.exact import exact
from sateen.engine.run import Runner, follow, replay
from sateen.engine.simulate import simulate as reference
from sateen.language.grammar import parse_expression
from sateen.logic.monitor import monitor
from sateen.logic.parser import stl
from sateen.logic.rewards import Reward
from sateen.model.model import Model
from sateen.sampling.ensemble import simulate
from sateen.sampling.estimate import estimate

LEVEL = 1e-6
RUNS = 20_000

MODELS = {
    "waves come": "species X = 3\nparameter a = 5, w = 2\n0 -> X @ a * (1 + sin(w * time))\nX -> 0 @ 0.3 * X",
    "a hazard grows": "species X = 40\nX -> 0 @ 0.05 * time * X",
    "switches": "species X = 0\n0 -> X @ 3 when time >= 4\nX -> 0 @ if(time < 5, 0, X)",
    "ageing": "species A = 30, B = 0\nA -> B @ 0.01 * exp(0.3 * time) * A\nB -> A @ B / (1 + time)",
    "the state decides when": "species X = 2\n0 -> X @ if(time > X, 4, 0.5)\nX -> 0 @ X * abs(sin(time))",
    "no bound at first": "species X = 5\nX -> 0 @ X / sqrt(time + 0.01)\n0 -> X @ max(0, cos(3 * time)) * time",
}


@pytest.mark.parametrize("name", MODELS)
def test_a_run_of_the_lanes_is_the_run_by_hand(name: str) -> None:
    model = Model.parse(MODELS[name])
    for run in range(12):
        path = replay(model, {}, until=6, seed=3, run=run)
        times, states = thinned(model, {}, seed=3, run=run, until=6)
        assert path.states.tolist() == states
        assert path.times == pytest.approx(times, rel=1e-10, abs=1e-12)


# Nothing is possible before 2, and nothing again from 9 on.
SEASON = Model.parse("""
    species X = 0, Y = 1
    parameter k = 1
    come: 0 -> X @ k * (1 + cos(time)) when time > 2 and time < 9
    turn: X -> Y @ if(time < 9, 0.4 * X * min(time, 5), 0)
    lose: Y -> 0 @ 0.5 * Y when time >= 2 and time <= 9
""")
QUESTIONS = formulas_of(
    [
        *("F[0, 20] X > 3", "G[3, 8] X < 4", "(X < 3) U[2.5, 6] (Y >= 2)", "F Y > 4", "G[0, 30] Y < 6"),
        "(X < 9) U Y > 7",
        *("F[0, 5] G[0, 2] X > 0", "G (X > 0 -> F[0, 3] Y > 1)", "F[0, 12] X - X(t-1.5) > 2", "F G[0, 50] X == 0"),
        *("X == 0", ("F[0, 10] G (Y < 3)", 8.5)),
    ]
)  # fmt: skip


def test_verdicts_of_the_lanes_are_those_of_the_monitor_on_the_same_run() -> None:
    runner = Runner(SEASON, QUESTIONS)
    assert disagreements(runner, {"k": 1.0}, 60, seed=5, until=math.inf) == []
    verdicts = lane_verdicts(runner, {"k": 1.0}, 60, seed=5)
    assert not any(Verdict.UNKNOWN in each for each in verdicts)  # that nothing more can happen is found out
    mixed = sum(len(set(each)) == 2 for each in verdicts)
    assert mixed >= 8


@pytest.mark.parametrize("caps", [{"max_events": 4}, {"max_events": 1}, {"max_time": 5.5}])
def test_caps_count_jumps_and_no_candidates(caps: dict[str, float]) -> None:
    runner = Runner(SEASON, QUESTIONS)
    capped = [
        line
        for line in disagreements(runner, {"k": 1.0}, 40, seed=6, until=math.inf, **caps)
        # A run that max_time ends may be followed a little less far than to its next jump.
        if "max_time" not in caps or "lanes unknown" not in line
    ]
    assert capped == []
    assert count(runner, {"k": 1.0}, 40, seed=6, **caps).undecided.sum() > 0


def test_counts_do_not_depend_on_how_runs_are_divided() -> None:
    runner = Runner(SEASON, QUESTIONS)
    together = count(runner, {"k": 1.0}, 100, seed=7)
    parts = runner.run([[1.0]] * 3, [[0, 0, 30], [0, 30, 50], [0, 80, 20]], seed=7)
    assert together.satisfied.ravel().tolist() == parts.satisfied.sum(axis=1).tolist()
    assert together.events == parts.events


# Closed forms.


def close(found: np.ndarray, mean: float, variance: float) -> None:
    """A z-test of the mean of counts."""
    assert abs(found.mean() - mean) < 4.9 * math.sqrt(variance / len(found))


def distributed(found: np.ndarray, masses: Callable[[np.ndarray], np.ndarray]) -> None:
    """A χ² test of whole numbers against a distribution, with what is rare put together."""
    values = np.arange(int(found.max()) + 30)
    expected = masses(values) * len(found)
    common = expected >= 10
    seen = np.array([(found == value).sum() for value in values])
    counts = np.append(seen[common], len(found) - seen[common].sum())
    wanted = np.append(expected[common], len(found) - expected[common].sum())
    assert chi2.sf(((counts - wanted) ** 2 / wanted).sum(), len(counts) - 1) > LEVEL


POISSON = {
    "a wave": ("0 -> X @ a * (1 + sin(w * time))", lambda t: 5 * (t + (1 - math.cos(2 * t)) / 2)),
    "steps": (
        "0 -> X @ if(time < 1, a, if(time < 3, 0, if(time <= 7, w * a, 1)))",
        lambda t: 5 * min(t, 1) + 10 * max(min(t, 7) - 3, 0) + max(t - 7, 0),
    ),
    "a ramp and a guard": ("0 -> X @ a * time when time > w", lambda t: 2.5 * max(t**2 - 4, 0)),
    "two ways": (
        "0 -> X @ a * exp(-time)\n0 -> X @ w / (1 + time)^2",
        lambda t: 5 * (1 - math.exp(-t)) + 2 * (1 - 1 / (1 + t)),
    ),
}


@pytest.mark.parametrize("name", POISSON)
def test_counts_of_a_poisson_process_with_a_rate_in_time(name: str) -> None:
    law, mean = POISSON[name]
    model = Model.parse(f"species X = 0\nparameter a = 5, w = 2\n{law}")
    times = [0.5, 2.0, 3.0, 4.5, 8.0]
    ensemble = simulate(model, times=times, runs=RUNS, seed=11)
    for place, time in enumerate(times):
        if mean(time) == 0.0:
            assert not ensemble["X"][:, place].any()
            continue
        close(ensemble["X"][:, place], mean(time), mean(time))
        distributed(ensemble["X"][:, place], lambda values, time=time: poisson.pmf(values, mean(time)))
    # Counts in spans that do not overlap are independent.
    first, last = ensemble["X"][:, 1].astype(float), (ensemble["X"][:, 4] - ensemble["X"][:, 1]).astype(float)
    assert first.std() == 0 or abs(np.corrcoef(first, last)[0, 1]) < 4.9 / math.sqrt(RUNS)
    paths = np.array([reference(model, until=4.5, seed=seed).at(4.5)["X"] for seed in range(600)])
    close(paths, mean(4.5), mean(4.5))
    distributed(paths, lambda values: poisson.pmf(values, mean(4.5)))


LAWS = [
    "30 / (1 + exp(-50 * (time - 1)))",
    "if(sin(6 * time) > 0.9, 40, 0)",
    "20 * abs(sin(300 * time))",
    "max(0, 1.5 - time) * 20",
    "5 * floor(2 * time) + log(1 + time)",
    "(time - 1)^2 * q * q",
    "3^time * if(2 * time > 3, 1, 0.5)",
    "8 / sqrt(0.1 + time) * min(1, cos(time) ^ 2)",
]


def test_laws_of_every_kind_give_poisson_counts_of_their_integrals() -> None:
    names = [f"X{place}" for place in range(len(LAWS))]
    lines = [f"species {name} = 0\n0 -> {name} @ {law}" for name, law in zip(names, LAWS, strict=True)]
    model = Model.parse("\n".join(["parameter q = -2", *lines]))
    ensemble = simulate(model, times=[2.5], runs=RUNS, seed=15)
    middles = (np.arange(250_000) + 0.5) * 1e-5
    for name, law in zip(names, LAWS, strict=True):
        mean = float(parse_expression(law).evaluate({"time": middles, "q": -2.0}).mean() * 2.5)
        distributed(ensemble[name][:, 0], lambda values, mean=mean: poisson.pmf(values, mean))


DEATHS = {
    "a hazard that grows": ("X -> 0 @ 0.1 * time * X", lambda t: math.exp(-0.05 * t * t)),
    "a season": ("X -> 0 @ 0.2 * X when time >= 1 and time < 4", lambda t: math.exp(-0.2 * max(min(t, 4) - 1, 0))),
    "a wave": ("X -> 0 @ X * (1 - cos(time)) / 5", lambda t: math.exp(-(t - math.sin(t)) / 5)),
}


@pytest.mark.parametrize("name", DEATHS)
def test_survivors_of_a_hazard_in_time_are_binomial(name: str) -> None:
    law, survival = DEATHS[name]
    model = Model.parse(f"species X = 50\n{law}")
    ensemble = simulate(model, times=[2.0, 5.0], runs=RUNS, seed=12)
    for place, time in enumerate((2.0, 5.0)):
        p = survival(time)
        close(ensemble["X"][:, place], 50 * p, 50 * p * (1 - p))
        distributed(ensemble["X"][:, place], lambda values, p=p: binom.pmf(values, 50, p))
    p = survival(5.0)
    paths = np.array([reference(model, until=5.0, seed=seed).at(5.0)["X"] for seed in range(300)])
    close(paths, 50 * p, 50 * p * (1 - p))


def test_what_comes_in_waves_and_leaves_is_poisson() -> None:
    model = Model.parse("species X = 0\n0 -> X @ 5 * (1 + sin(2 * time))\nX -> 0 @ 0.5 * X")
    ensemble = simulate(model, times=[1.0, 6.0], runs=RUNS, seed=13)
    for place, t in enumerate((1.0, 6.0)):
        wave = (0.5 * math.sin(2 * t) - 2 * math.cos(2 * t) + 2 * math.exp(-0.5 * t)) / 4.25
        mean = 10 * (1 - math.exp(-0.5 * t)) + 5 * wave
        distributed(ensemble["X"][:, place], lambda values, mean=mean: poisson.pmf(values, mean))


def test_a_switch_and_an_event_at_the_same_time_say_the_same() -> None:
    model = Model.parse("""
        species X = 0, Y = 0
        real k = 1
        0 -> X @ k
        0 -> Y @ if(time < 2, 1, 4) * (1 + 0 * sin(time))
        event faster: k := 4 when time >= 2
        event reset: X := 0, Y := 0 when X + Y >= 40
    """)
    ensemble = simulate(model, times=[1.5, 5.0], runs=RUNS, seed=14)
    for name in ("X", "Y"):
        distributed(ensemble[name][:, 0], lambda values: poisson.pmf(values, 1.5))
    reset = ensemble["X"][:, 1] + ensemble["Y"][:, 1]
    assert reset.max() < 40
    paths = [replay(model, {}, until=5, seed=14, run=run) for run in range(20)]
    assert all(path.at(5)["X"] == state for path, state in zip(paths, ensemble["X"][:20, 1], strict=True))
    means = np.array([reference(model, until=5, seed=seed).at(5)["X"] for seed in range(300)])
    both = np.sqrt(means.var() / 300 + ensemble["X"][:, 1].var() / RUNS)
    assert abs(means.mean() - ensemble["X"][:, 1].mean()) < 4.9 * both


# Rest.

LATE = "species X = 0\nparameter k = 1\n0 -> X @ k when time >= 10 and time < 12"


def test_a_rate_that_is_0_until_10_does_not_absorb() -> None:
    model = Model.parse(LATE)
    path = reference(model, until=5, seed=1)
    assert not path.absorbed
    assert len(path) == 1
    assert monitor(stl("F[0, 20] X > 0"), path) is Verdict.UNKNOWN
    share = estimate(model, stl("F[0, 20] X > 0"), {}, runs=RUNS, seed=2)
    assert abs(share.probability - (1 - math.exp(-2))) < 4.9 * math.sqrt(math.exp(-2) * (1 - math.exp(-2)) / RUNS)


def test_a_state_in_which_no_rate_is_positive_at_any_later_time_absorbs() -> None:
    model = Model.parse(LATE)
    for path in (reference(model, until=12, seed=1), replay(model, {}, until=12, seed=1)):
        assert path.absorbed
        assert path.end == 12
    forever = replay(model, {}, until=math.inf, seed=1)
    assert forever.absorbed
    # Every run of an operator without an end is decided, also where nothing ever happens.
    share = estimate(model, stl("F X > 1"), {}, runs=RUNS, seed=3)
    assert share.undecided == 0
    assert abs(share.probability - (1 - 3 * math.exp(-2))) < 4.9 * math.sqrt(0.25 / RUNS)


def test_extinction_under_a_hazard_that_grows_without_bound_is_rest() -> None:
    model = Model.parse("species X = 5\nX -> 0 @ 0.1 * time * exp(0.01 * time) * X")
    path = reference(model, until=1000, seed=1)
    assert path.absorbed
    assert path.at(1000)["X"] == 0
    assert estimate(model, stl("F X == 0"), {}, runs=200, seed=1).satisfied == 200
    shown = follow(model, stl("G X < 6"), {}, seed=1)
    assert shown.absorbed


# Errors.


def test_a_rate_that_becomes_negative_is_an_error_with_its_time() -> None:
    model = Model.parse("species X = 3\nwave: 0 -> X @ 2 * sin(time)")
    with pytest.raises(SimulationError, match=r"the rate of wave is -\S+ at time [3-6]\.\d+, where X = \d+: 2 \* sin"):
        reference(model, until=10, seed=1)
    with pytest.raises(SimulationError, match=r"the rate of wave is -[^\n]+\n[^\n]+\n  replay it with seed 1, point 0"):
        estimate(model, stl("F[0, 10] X > 90"), {}, runs=10, seed=1)


def test_a_rate_that_would_be_negative_after_the_horizon_is_none() -> None:
    model = Model.parse("species X = 0\n0 -> X @ 10 - time")
    assert estimate(model, stl("F[0, 9] X >= 0 & G[0, 9] X < 1000"), {}, runs=200, seed=1).satisfied == 200
    assert reference(model, until=9.9, seed=1).end == 9.9
    assert simulate(model, times=[9.9], runs=100, seed=1).unknown.sum() == 0
    with pytest.raises(SimulationError, match="at time 1"):
        estimate(model, stl("F[0, 30] X > 1000"), {}, runs=10, seed=1)


def test_a_law_without_a_bound_is_named() -> None:
    model = Model.parse("species X = 0\n0 -> X @ 1\nburst: 0 -> X @ if(time > 3, 1 / (time - 3), 0)")
    message = r"the rate of burst has no bound just after time 3, where X = \d+: if\(time > 3"
    with pytest.raises(SimulationError, match=message):
        reference(model, until=10, seed=1)
    with pytest.raises(SimulationError, match=message):
        estimate(model, stl("F[0, 10] X > 90"), {}, runs=10, seed=1)
    assert estimate(model, stl("F[0, 2.5] X > 90"), {}, runs=10, seed=1).satisfied == 0


def test_what_needs_a_chain_refuses_rates_in_time_by_name() -> None:
    model = Model.parse("species X = 0\nparameter k = 1\nup: 0 -> X @ k * time when X < 5")
    refusal = r"the rate of up depends on time.*: k \* time when X < 5\n  simulate instead"
    with pytest.raises(ExactError, match=refusal):
        exact(model, stl("F[0, 5] X > 3"), {})
    with pytest.raises(ExactError, match=refusal):
        exact(model, Reward(parse_expression("X"), "C", 5.0), {})
    space = Space(k=(0.5, 2))
    with pytest.raises(ExactError, match=refusal):
        Enclosure.of(model, stl("F[0, 5] X > 3"), space)


# Speed: what a model without time in its rates pays.


def test_a_kernel_without_time_in_rates_has_nothing_of_windows() -> None:
    plain = Model.parse("species X = 1\nparameter time = 2\n0 -> X @ time")
    timed = Model.parse("species X = 1\nparameter tempo = 2\n0 -> X @ tempo * time")
    formulas = (stl("F[0, 3] X > 2"), stl("F[0, 3] G[0, 1] X > 2"))
    words = ("far", "width", "fires", "h0", "c0")
    assert not any(f" {word} " in kernel_source(plain, formulas).text for word in words)
    assert all(f" {word} " in kernel_source(timed, formulas).text for word in words)
    assert not plain.timed
