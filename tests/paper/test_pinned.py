"""The pinned random networks: their reader, and the reference simulator against their stored counts."""

from __future__ import annotations

import json
from pathlib import Path as FilePath

import numpy as np
import pytest
from scipy import stats

from pinned_networks import pinned
from sateen.core.errors import InputError
from sateen.core.path import Verdict
from sateen.core.space import Range
from sateen.engine.simulate import simulate
from sateen.logic.monitor import monitor
from sateen.logic.parser import stl
from sateen.paper.cases.random_ctmc import KINDS, MAX_EVENTS
from sateen.paper.published import DIMENSIONS

FOLDER = FilePath(__file__).parent.parent / "data" / "random"
each_dimension = pytest.mark.parametrize("reactions", DIMENSIONS)

COMPARED = (0, 33, 66)  # points
RUNS = 100
LEAST_P = 1e-6 / (len(DIMENSIONS) * len(KINDS) * len(COMPARED))  # the whole family of comparisons at 1e-6


@each_dimension
def test_a_pinned_network_is_read_whole(reactions: int) -> None:
    network = pinned(FOLDER, reactions)
    assert network.points.theta.shape == (100, reactions)
    assert set(network.points.space.ranges.values()) == {Range(0.001, 1, scale="log")}
    assert network.satisfied.shape == (3, 100)
    assert not network.satisfied.flags.writeable
    assert (network.runs, network.max_events) == (20_000, 3000)
    assert network.frequency.min() >= 0
    assert network.frequency.max() <= 1
    assert [formula.horizon for formula in network.properties] == [10, 10, 10]


@each_dimension
def test_every_pinned_property_tells_parameters_apart(reactions: int) -> None:
    assert (np.ptp(pinned(FOLDER, reactions).satisfied, axis=1) > 0).all()


@pytest.mark.parametrize(
    "reactions",
    [pytest.param(reactions, marks=[pytest.mark.slow] if reactions > 12 else []) for reactions in DIMENSIONS],
)
def test_the_reference_simulator_agrees_with_the_stored_counts(reactions: int) -> None:
    network = pinned(FOLDER, reactions)
    for place in COMPARED:
        satisfied = [0] * len(KINDS)
        for run in range(RUNS):
            seed = 1_000_000 * reactions + 1000 * place + run
            path = simulate(network.model, network.points[place], until=10, seed=seed, max_events=network.max_events)
            for kind, formula in enumerate(network.properties):
                verdict = monitor(formula, path)
                assert verdict is not Verdict.UNKNOWN
                satisfied[kind] += bool(verdict)
        for kind, count in enumerate(satisfied):
            known = int(network.satisfied[kind, place])
            table = [[count, RUNS - count], [known, network.runs - known]]
            assert stats.fisher_exact(table).pvalue > LEAST_P, (KINDS[kind], place, table)


@each_dimension
def test_the_stored_form_of_the_third_kind_is_the_papers(reactions: int) -> None:
    network = pinned(FOLDER, reactions)
    stored = network.properties[2]
    (name,) = stored.species
    paper = stl(f"F[0, 10] G ({name} < 20)", end=10)
    for seed in range(5):
        path = simulate(network.model, network.points[seed], until=10, seed=seed, max_events=MAX_EVENTS)
        assert monitor(stored, path) is monitor(paper, path)


def test_a_network_that_is_not_there_is_refused_with_what_is() -> None:
    with pytest.raises(InputError, match=r"r05_m1\.json does not exist; the folder has r02_m1\.json, r03_m1\.json"):
        pinned(FOLDER, 5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"theta": None}, "not a pinned network"),
        ({"theta": [[2.0, 0.5]] * 100}, "outside its range"),
        ({"model": "species S1 = 1"}, "no reactions"),
        ({"properties": {}}, "has no entry 'phi1'"),
        ({"satisfied": {"phi1": [1], "phi2": [1], "phi3": [1]}}, r"counts of shape \(3, 1\) for 100 points"),
        ({"truth_runs": 5}, "counts outside 0 to 5"),
    ],
)
def test_a_damaged_file_is_refused_by_name(change: dict[str, object], words: str, tmp_path: FilePath) -> None:
    content = json.loads((FOLDER / "r02_m1.json").read_text(encoding="utf-8"))
    (tmp_path / "r02_m1.json").write_text(json.dumps({**content, **change}), encoding="utf-8")
    with pytest.raises(InputError, match=words) as caught:
        pinned(tmp_path, 2)
    assert "r02_m1.json" in str(caught.value)


def test_a_file_that_is_no_json_is_refused(tmp_path: FilePath) -> None:
    (tmp_path / "r02_m1.json").write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match="not a pinned network"):
        pinned(tmp_path, 2)
