"""The lanes on random networks: against pinned counts, exact probabilities and the reference simulator.

Seeds are counted from 0 and never chosen; each family of comparisons errs with a probability below one in a million.
"""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path as FilePath

import pytest
from scipy.stats import binomtest, fisher_exact

from lane_checks import count, disagreements, formulas_of, row
from pinned_networks import pinned
from sateen.core.path import Verdict
from sateen.engine.exact import exact
from sateen.engine.run import Runner
from sateen.engine.simulate import simulate
from sateen.logic.formula import Eventually, Globally, Until, subformulas
from sateen.logic.monitor import monitor
from sateen.model.model import Model
from sateen.paper.cases.random_ctmc import KINDS
from sateen.paper.published import DIMENSIONS

LEVEL = 1e-6
FOLDER = FilePath(__file__).parent.parent / "data" / "random"


# The pinned networks: 100 points each, three properties, counts out of 20,000 runs.

PINNED_RUNS = 4000


@pytest.mark.slow
@pytest.mark.parametrize("reactions", DIMENSIONS)
def test_a_pinned_network_has_its_stored_counts(reactions: int) -> None:
    """Fisher's exact test at every point and property of every network."""
    network = pinned(FOLDER, reactions)
    runner = Runner(network.model, network.properties)
    thetas = [row(network.model, theta) for theta in network.points]
    items = [[point, 0, PINNED_RUNS] for point in range(len(thetas))]
    counts = runner.run(thetas, items, seed=reactions, max_events=network.max_events)
    least = LEVEL / (len(DIMENSIONS) * len(KINDS) * len(thetas))
    for kind in range(len(KINDS)):
        for point in range(len(thetas)):
            # A run that hit the cap may have either verdict; the stored counts have it among the others.
            low = int(counts.satisfied[kind, point])
            high = low + int(counts.undecided[kind, :, point].sum())
            known = int(network.satisfied[kind, point])
            nearest = min(max(round(known * PINNED_RUNS / network.runs), low), high)
            table = [[nearest, PINNED_RUNS - nearest], [known, network.runs - known]]
            assert fisher_exact(table).pvalue > least, (KINDS[kind], point, table)
    assert counts.undecided.mean() < 0.02 * PINNED_RUNS


@pytest.mark.slow
def test_a_pinned_network_has_the_monitors_verdicts_run_by_run() -> None:
    network = pinned(FOLDER, 4)
    runner = Runner(network.model, network.properties)
    for place in (0, 50, 99):
        assert disagreements(runner, network.points[place], 30, seed=place, until=10.0) == []


# Small finite networks, drawn by switching reactions of one model on and off: one kernel for all of them.

SWITCHED = Model.parse("""
    species A = a, B = b
    parameter a = 0, b = 0
    r1: 0 -> A         @ k1 when A < 3
    r2: A -> 0         @ k2 * A
    r3: A -> B         @ k3 * A * if(B < 2, 1, 0)
    r4: B -> 0         @ k4 * B
    r5: 0 -> B         @ k5 when B < 2
    r6: A + B -> 2 A   @ k6 * A * B * if(A < 3, 1, 0)
    r7: B -> A + B     @ k7 * B when A < 3
""")
FLAT = formulas_of(
    [
        "F[0, 1.5] A > 1",
        "G[0.5, 1] B >= 1",
        "(A < 3) U[1, 3] (B == 2)",
        "(A == B) U[0, 4.5] (A + 2 * B >= 5)",
        "F[3, 3] A == 0 & F[0.5, 4.5] B == 2",
        "F[0, 1] A == 2 <-> G[1, 3] B < 2",
        "F[1.5, 3] B != 2 -> (A == 0 | F[0.5, 0.5] A > 1)",
        "!((A > 0) U[0.5, 1.5] (B == 0 & A < 2))",
        "F (A == 0 & B == 0)",
        "G[1, inf) A + B < 4",
        ("(B < 2) U[0.5, 9] (A == 3)", 2),
    ]
)
NETWORKS, LANE_RUNS, REFERENCE_RUNS = 24, 20_000, 40


@cache
def networks() -> list[dict[str, float]]:
    """Each reaction is there or not, with a rate on a grid; the initial counts are any."""
    rng = random.Random(0)
    return [
        {
            **{f"k{place}": rng.choice((0.0, 0.3, 0.7, 1.1, 2.0)) for place in range(1, 8)},
            "a": float(rng.randint(0, 3)),
            "b": float(rng.randint(0, 2)),
        }
        for _ in range(NETWORKS)
    ]


@pytest.fixture(scope="module")
def switched() -> Runner:
    return Runner(SWITCHED, FLAT)


CAP = 3000  # events; what is never absorbed stays undecided there


@pytest.mark.slow
def test_small_networks_have_their_exact_probabilities(switched: Runner) -> None:
    """Undecided runs, of unbounded operators on chains that never end, leave an interval that holds the probability."""
    thetas = networks()
    counts = switched.run(
        [row(SWITCHED, theta) for theta in thetas],
        [[point, 0, LANE_RUNS] for point in range(NETWORKS)],
        seed=1,
        max_events=CAP,
    )
    decided, told = 0, 0
    for place, formula in enumerate(FLAT):
        for point, probability in enumerate(exact(SWITCHED, formula, thetas).tolist()):
            low = int(counts.satisfied[place, point])
            high = low + int(counts.undecided[place, :, point].sum())
            nearest = min(max(round(probability * LANE_RUNS), low), high)
            chance = min(max(probability, 0.0), 1.0)
            least = LEVEL / (NETWORKS * len(FLAT))
            assert binomtest(nearest, LANE_RUNS, chance).pvalue > least, (
                str(formula),
                thetas[point],
                low,
                high,
                chance,
            )
            decided += low == high
            told += low == high and 0.01 < chance < 0.99
    assert decided > 0.8 * NETWORKS * len(FLAT)
    assert told > 0.3 * NETWORKS * len(FLAT)


@pytest.mark.slow
def test_small_networks_have_the_references_frequencies(switched: Runner) -> None:
    bounded, some = [place for place, formula in enumerate(FLAT) if formula.horizon < 10], networks()[:12]
    for point, theta in enumerate(some):
        counts = count(switched, theta, 4000, seed=2, point=point, max_events=CAP)
        paths = [simulate(SWITCHED, theta, until=5, seed=100 * point + run) for run in range(REFERENCE_RUNS)]
        for place in bounded:
            known = [monitor(FLAT[place], path) for path in paths].count(Verdict.TRUE)
            hits = int(counts.satisfied[place, 0])
            table = [[hits, 4000 - hits], [known, REFERENCE_RUNS - known]]
            assert fisher_exact(table).pvalue > LEVEL / (len(some) * len(bounded)), (str(FLAT[place]), theta, table)


@pytest.mark.slow
def test_small_networks_have_the_monitors_verdicts_run_by_run(switched: Runner) -> None:
    for point, theta in enumerate(networks()[:8]):
        apart = disagreements(switched, theta, 10, seed=3, point=point, until=400.0, max_time=200.0)
        assert apart == []


# Networks of different structure, each a kernel of its own.

PARTS = (
    "0 -> A @ {k} when A < 3",
    "A -> 0 @ mass_action({k})",
    "A -> B @ {k} * A when B < 2",
    "B -> 0 @ {k} * B / (1 + A)",
    "2 B -> A @ mass_action({k})",
    "A + B -> B @ {k} * sqrt(A) * B",
    "B -> 2 B @ {k} * max(B, A) when B < 2 and B > 0",
)
WINDOWS = ("[0, 2]", "[0.5, 1.5]", "[1, 1]", "[0.25, 3]")
CONDITIONS = ("A == 0", "A > 1", "B >= 1", "A == B", "A * B < 2", "A^2 + B > 3 | B == 2")


def drawn(seed: int) -> tuple[Model, tuple, dict[str, float]]:
    """A network of two to five reactions, four flat formulas and a nested one, and parameters."""
    rng = random.Random(seed)
    chosen = rng.sample(PARTS, rng.randint(2, 5))
    lines = [part.format(k=f"k{place}") for place, part in enumerate(chosen)]
    model = Model.parse("\n".join([f"species A = {rng.randint(1, 3)}, B = {rng.randint(0, 2)}", *lines]))

    def condition() -> str:
        return f"({rng.choice(CONDITIONS)})"

    def operator() -> str:
        if rng.random() < 0.4:
            return f"({condition()} U{rng.choice(WINDOWS)} {condition()})"
        return f"{rng.choice('FG')}{rng.choice(WINDOWS)} {condition()}"

    texts = [f"{operator()} {rng.choice(('&', '|', '->', '<->'))} {operator()}" for _ in range(4)]
    texts.append(f"F[0, 2] ({condition()} & {operator()})")
    theta = {f"k{place}": rng.uniform(0.3, 2.0) for place in range(len(lines))}
    return model, formulas_of(texts), theta


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_networks_of_any_structure_agree_with_exact_reference_and_monitor(seed: int) -> None:
    model, formulas, theta = drawn(seed)
    runner = Runner(model, formulas)
    assert disagreements(runner, theta, 25, seed=seed, until=8.0) == []
    counts = count(runner, theta, LANE_RUNS, seed=seed)
    assert counts.undecided.sum() == 0
    paths = [simulate(model, theta, until=5, seed=run) for run in range(300)]
    for place, formula in enumerate(formulas):
        hits = int(counts.satisfied[place, 0])
        known = [monitor(formula, path) for path in paths].count(Verdict.TRUE)
        assert fisher_exact([[hits, LANE_RUNS - hits], [known, 300 - known]]).pvalue > LEVEL / 40, str(formula)
        operators = [node for node in subformulas(formula.root) if isinstance(node, Eventually | Globally | Until)]
        if place < 4:
            (probability,) = exact(model, formula, theta).tolist()
            assert binomtest(hits, LANE_RUNS, probability).pvalue > LEVEL / 40, str(formula)
        else:
            assert len(operators) == 2
