"""The ledger: however the runs are cut, and in whatever order they come back, the sums are the same."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sateen.core.observations import Failure
from sateen.sampling.campaign import Pace
from sateen.sampling.ledger import MOST_FAILURES, Chunk, Ledger, Tally

RUNS = st.lists(st.integers(0, 9), min_size=1, max_size=12).map(lambda each: np.array(each, np.int64))


def cuts(total: int, data: st.DataObject) -> list[tuple[int, int]]:
    """Disjoint intervals that cover [0, total), in any order."""
    places = data.draw(st.sets(st.integers(1, total - 1), max_size=8)) if total > 1 else set()
    edges = [0, *sorted(places), total]
    return data.draw(st.permutations([(a, b) for a, b in itertools.pairwise(edges) if a < b]))


def tally(ledger: Ledger, interval: tuple[int, int]) -> Tally:
    """Runs that are satisfied if point + run is even, and undecided, for reason run % 2, if it is divisible by 3."""
    _, items = ledger.items(*interval)
    satisfied = np.zeros((1, len(items)), np.int64)
    undecided = np.zeros((1, 2, len(items)), np.int64)
    for row, (point, first, number) in enumerate(items.tolist()):
        for run in range(first, first + number):
            if (point + run) % 3 == 0:
                undecided[0, run % 2, row] += 1
            elif (point + run) % 2 == 0:
                satisfied[0, row] += 1
    return Tally(satisfied, undecided)


@given(RUNS, st.data())
def test_every_run_is_in_just_one_piece(runs: np.ndarray, data: st.DataObject) -> None:
    ledger = Ledger(runs, 1, ("a", "b"))
    seen: list[tuple[int, int]] = []
    for interval in cuts(ledger.total, data):
        points, items = ledger.items(*interval)
        assert items[:, 0].tolist() == list(range(points.start, points.stop))
        assert items[[0, -1], 2].min() > 0
        seen += [(point, run) for point, first, number in items.tolist() for run in range(first, first + number)]
        assert sum(items[:, 2].tolist()) == interval[1] - interval[0]
    assert sorted(seen) == [(point, run) for point in range(len(runs)) for run in range(runs[point])]


@given(RUNS, st.data())
def test_the_counts_depend_neither_on_the_cuts_nor_on_the_order(runs: np.ndarray, data: st.DataObject) -> None:
    whole, cut = Ledger(runs, 1, ("a", "b")), Ledger(runs, 1, ("a", "b"))
    if whole.total:
        whole.add(Chunk(0, whole.total, tally(whole, (0, whole.total)), 1.0))
    pieces = cuts(cut.total, data)
    for index, piece in enumerate(pieces):
        cut.add(Chunk(*piece, tally(cut, piece), 1.0))
        left = sorted(pieces[index + 1 :])
        assert sum(stop - first for first, stop in cut.gaps()) == cut.total - cut.done
        assert all(any(low <= first and stop <= high for low, high in cut.gaps()) for first, stop in left)
        done = np.zeros(len(runs), np.int64)
        for piece_done in pieces[: index + 1]:
            points, items = cut.items(*piece_done)
            done[points] += items[:, 2]
        assert cut.trials().tolist() == done.tolist()
    assert cut.gaps() == []
    assert np.array_equal(cut.satisfied, whole.satisfied)
    ours, theirs = cut.undecided(0), whole.undecided(0)
    assert ours.keys() == theirs.keys()
    assert all(np.array_equal(ours[reason], theirs[reason]) for reason in ours)
    assert cut.trials().tolist() == runs.tolist()


def test_an_empty_ledger_has_all_to_do_and_no_trials() -> None:
    ledger = Ledger(np.array([3, 0, 2]), 1, ())
    assert ledger.gaps() == [(0, 5)]
    assert ledger.trials().tolist() == [0, 0, 0]
    assert Ledger(np.array([], np.int64), 1, ()).gaps() == []


@pytest.mark.parametrize("again", [(3, 5), (2, 4), (4, 6), (0, 9), (4, 5)])
def test_a_run_that_is_entered_is_not_entered_again(again: tuple[int, int]) -> None:
    ledger = Ledger(np.array([9]), 1, ("a", "b"))
    ledger.add(Chunk(3, 5, tally(ledger, (3, 5)), 1.0))
    with pytest.raises(AssertionError, match="entered already"):
        ledger.add(Chunk(*again, tally(ledger, again), 1.0))
    assert ledger.done == 2


def test_a_piece_has_no_more_points_than_allowed() -> None:
    ledger = Ledger(np.array([5, 5, 5, 5]), 1, ())
    assert ledger.within(2, 20, most_points=2) == 10
    assert ledger.within(2, 7, most_points=2) == 7


def test_of_many_failures_the_first_are_kept_whatever_came_back_first() -> None:
    ledger = Ledger(np.array([300]), 1, ("failed",))
    for first in (200, 0, 100):
        failures = tuple(Failure({}, 1, 0, run, "no") for run in range(first, first + 100))
        counts = np.full((1, 1, 1), 100)
        ledger.add(Chunk(first, first + 100, Tally(np.zeros((1, 1), np.int64), counts, failures), 0.0))
    assert [failure.run for failure in ledger.failures] == list(range(MOST_FAILURES))
    assert ledger.undecided(0)["failed"].tolist() == [300]


class TestPace:
    def test_chunks_grow_until_they_take_their_time_and_then_stay(self) -> None:
        pace, sizes = Pace(None, workers=1, first=64), []
        for _ in range(12):
            sizes.append(pace.size(10**9))
            pace.learn(sizes[-1], sizes[-1] / 100_000)
        assert sizes[:4] == [64, 256, 1024, 4096]
        assert sizes[-1] == 40_000

    def test_chunks_shrink_at_once_where_runs_become_slow(self) -> None:
        pace = Pace(None, workers=1, first=64)
        for _ in range(12):
            pace.learn(pace.size(10**9), pace.size(10**9) / 100_000)
        pace.learn(40_000, 40.0)
        assert pace.size(10**9) == 400

    def test_the_last_runs_are_shared_between_the_workers(self) -> None:
        pace = Pace(None, workers=4, first=10_000)
        pace.learn(10_000, 1.0)
        assert pace.size(4000) == 500
        assert pace.size(8) == 500  # that is all of them: less would take longer to hand out than to run

    def test_a_run_slower_than_a_chunk_should_be_is_a_chunk(self) -> None:
        pace = Pace(None, workers=1, first=1)
        pace.learn(1, 60.0)
        assert pace.size(100) == 1

    def test_a_size_that_is_given_never_changes(self) -> None:
        pace = Pace(7, workers=2, first=64)
        pace.learn(7, 1e-9)
        assert pace.size(1000) == 7
