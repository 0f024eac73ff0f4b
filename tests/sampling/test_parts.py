"""Parts of a campaign: disjoint, complete, of one size; and stores of parts that are merged give the whole campaign."""

from __future__ import annotations

import os
import shutil
import sqlite3
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as hs

import sateen as st
from sateen.sampling.ledger import Chunk, Ledger, Tally
from sateen.sampling.merge import Row, clusters, joined
from sateen.sampling.parts import common, gaps_between, length, part_runs, union

DECAY = st.Model.parse("species A = 10\nA -> 0 @ mass_action(k)")
EMPTY = st.stl("F[0, 1] A == 0")
POINTS = st.Space(k=(0.5, 4.0)).uniform(30, seed=1)


def shaky(theta: dict[str, float], rng: np.random.Generator) -> bool:
    if rng.random() < 0.5:
        raise ValueError("no")
    return bool(rng.random() < theta["k"])


def observe(store: Path | None, model: Any = DECAY, **options: Any) -> st.Observations:
    given: dict[str, Any] = {"formula": EMPTY if model is DECAY else None, "points": POINTS, "runs": 100, "seed": 2}
    return st.observe(model, store=store, workers=1, **given | options)


def rows(store: Path) -> list[tuple[int, int]]:
    with sqlite3.connect(store) as connection:
        return connection.execute("SELECT first, stop FROM chunk ORDER BY first").fetchall()


@pytest.fixture(scope="module")
def whole() -> st.Observations:
    return observe(None)


class TestDivision:
    @given(hs.integers(0, 5000), hs.integers(1, 60))
    def test_parts_are_disjoint_complete_and_of_one_size(self, total: int, parts: int) -> None:
        dealt = [part_runs(total, (number, parts)) for number in range(1, parts + 1)]
        runs = sorted(interval for part in dealt for interval in part)
        assert union(runs) == ([(0, total)] if total else [])
        assert length(runs) == total
        sizes = [length(part) for part in dealt]
        assert max(sizes) - min(sizes) <= 1
        assert all(part == union(part) for part in dealt)

    @pytest.mark.parametrize("cost", [lambda x: x, lambda x: 1 - x, lambda x: x * x, lambda x: x > 0.7])
    def test_parts_cost_the_same_where_cost_changes_along_the_campaign(self, cost: Any) -> None:
        total, parts = 64_000, 40
        runs = cost(np.arange(total) / total).astype(float)
        costs = [sum(runs[first:stop].sum() for first, stop in part_runs(total, (i + 1, parts))) for i in range(parts)]
        assert max(costs) < 1.05 * np.mean(costs)

    @given(
        hs.lists(hs.tuples(hs.integers(0, 60), hs.integers(0, 60))),
        hs.lists(hs.tuples(hs.integers(0, 60), hs.integers(0, 60))),
    )
    def test_intervals_are_sets_of_runs(self, some: list[tuple[int, int]], others: list[tuple[int, int]]) -> None:
        def runs(intervals: list[tuple[int, int]]) -> set[int]:
            return {run for first, stop in intervals for run in range(first, stop)}

        assert runs(union(some)) == runs(some)
        assert runs(common(union(some), union(others))) == runs(some) & runs(others)
        assert runs(gaps_between(60, some)) == set(range(60)) - runs(some)

    @pytest.mark.parametrize("part", [(0, 4), (5, 4), (1, 0), (-1, 4), (1, 100_001), "1/4", (1,), (1.0, 4), None])
    def test_what_is_no_part_is_refused(self, tmp_path: Path, part: Any) -> None:
        if part is not None:
            with pytest.raises(st.InputError, match=r"is not a part(.|\n)*\(1, 40\)"):
                observe(tmp_path / "runs.db", part=part)
        with pytest.raises(st.InputError, match="part needs store"):
            observe(None, part=(1, 2))


class TestObservedInParts:
    def test_a_part_has_its_runs_and_no_others(self, tmp_path: Path, whole: st.Observations) -> None:
        part = observe(tmp_path / "part.db", part=(2, 3))
        assert union(rows(tmp_path / "part.db")) == part_runs(3000, (2, 3))
        assert part.trials.sum() == 1000
        assert (part.satisfied <= whole.satisfied).all()
        assert observe(tmp_path / "part.db", part=(2, 3)) == part

    def test_parts_in_one_store_are_the_campaign(self, tmp_path: Path, whole: st.Observations) -> None:
        for number in (3, 1, 2):
            last = observe(tmp_path / "runs.db", part=(number, 3))
        assert last == whole

    def test_merged_stores_are_the_campaign_and_merging_again_changes_nothing(
        self, tmp_path: Path, whole: st.Observations
    ) -> None:
        stores = [tmp_path / f"{number}.db" for number in (1, 2, 3, 4)]
        for number, store in enumerate(stores, start=1):
            observe(store, part=(number, 4), chunk=70 + number)
        before = [store.read_bytes() for store in stores]
        into = tmp_path / "all.db"
        some = st.merge(stores[2:], into=into)
        assert not some.complete
        assert list(some.has.values()) == [1500]
        every = st.merge(reversed([*stores, stores[0]]), into=into)  # type: ignore[arg-type]
        assert (every.complete, every.added) == (True, 1500)
        assert repr(every) == f"<Merged into {into}: 3,000 of 3,000 runs, 1,500 of them new>"
        assert st.merge(stores, into=into).added == 0
        assert [store.read_bytes() for store in stores] == before
        count = len(rows(into))
        assert observe(into) == whole
        assert len(rows(into)) == count  # no run was made

    def test_failures_of_a_black_box_are_those_of_the_whole(self, tmp_path: Path) -> None:
        points = st.Space(k=(0.1, 0.9)).uniform(5, seed=1)
        asked: dict[str, Any] = {"points": points, "runs": 90}
        alone = observe(None, shaky, **asked)
        assert len(alone.failures) == 100
        for number in (1, 2, 3):
            observe(tmp_path / f"{number}.db", shaky, part=(number, 3), chunk=20, **asked)
        observe(tmp_path / "4.db", shaky, chunk=33, **asked)  # all of it again, cut otherwise
        st.merge([tmp_path / f"{number}.db" for number in (4, 2, 3, 1)], into=tmp_path / "all.db")
        together = observe(tmp_path / "all.db", shaky, **asked)
        assert together == alone
        assert together.failures == alone.failures

    def test_divisions_may_be_mixed_and_cut_in_any_way(self, tmp_path: Path, whole: st.Observations) -> None:
        parts = [(1, 2), (2, 3), (3, 3), (4, 5)]
        stores = []
        for number, parts_of in parts:
            stores.append(tmp_path / f"{number}-{parts_of}.db")
            observe(stores[-1], part=(number, parts_of), chunk=30 * number)
        merged = st.merge(stores, into=tmp_path / "all.db")
        there = union(run for part in parts for run in part_runs(3000, part))
        # Where two rows overlap in the middle of a point, one of them is left out, and its runs are made again.
        assert 0.8 * length(there) < sum(merged.has.values()) <= length(there)
        assert observe(tmp_path / "all.db") == whole

    def test_a_row_that_contradicts_is_named_and_nothing_is_merged(self, tmp_path: Path) -> None:
        one, other, into = (tmp_path / name for name in ("one.db", "other.db", "all.db"))
        observe(one, part=(1, 2), chunk=100)
        observe(other, seed=3)  # one that does not matter
        observe(other, part=(1, 2), chunk=60)
        changed = falsified(other, place=2)
        with pytest.raises(st.StoreError) as caught:
            st.merge([one, other], into=into)
        text = str(caught.value)
        assert str(other) in text
        assert str(one) in text
        assert "have different results" in text
        assert f"{changed[0]:,} to {changed[1]:,}" in text
        assert rows(into) == []
        assert st.merge([one], into=into).added == 1500
        with pytest.raises(st.StoreError, match="have different results"):
            st.merge([other], into=into)

    def test_a_damaged_row_is_named_with_its_store(self, tmp_path: Path) -> None:
        observe(tmp_path / "one.db", part=(1, 2), chunk=100)
        with sqlite3.connect(tmp_path / "one.db") as connection:
            connection.execute("UPDATE chunk SET content = substr(content, 1, 40) WHERE first = 0")
        with pytest.raises(st.StoreError, match=r"one\.db is damaged(.|\n)*the row of the runs 0 to"):
            st.merge([tmp_path / "one.db"], into=tmp_path / "all.db")
        assert rows(tmp_path / "all.db") == []

    def test_a_campaign_that_lies_about_its_size_is_refused(self, tmp_path: Path) -> None:
        observe(tmp_path / "one.db", part=(1, 2))
        for runs in ("[[1000000000, 1]]", "[[1, 9223372036854775807]]", "[[-1, 5]]", "7"):
            with sqlite3.connect(tmp_path / "one.db") as connection:
                connection.execute(f"UPDATE campaign SET asked = json_set(asked, '$.runs', json('{runs}'))")
            with pytest.raises(st.StoreError, match=r"all\.db is damaged|one\.db is damaged"):
                st.merge([tmp_path / "one.db"], into=tmp_path / "all.db")

    def test_stores_that_were_begun_and_no_more_have_no_runs(self, tmp_path: Path) -> None:
        (tmp_path / "nothing.db").touch()
        with sqlite3.connect(tmp_path / "log.db") as connection:
            connection.execute("PRAGMA journal_mode = WAL")
        observe(tmp_path / "one.db", part=(1, 2))
        stores = [tmp_path / name for name in ("nothing.db", "log.db", "one.db")]
        assert st.merge(stores, into=tmp_path / "all.db").added == 1500

    def test_a_store_in_a_folder_that_cannot_be_written_is_read(self, tmp_path: Path) -> None:
        folder = tmp_path / "shut"
        folder.mkdir()
        observe(folder / "one.db", part=(1, 2))
        (folder / "one.db").chmod(0o400)
        folder.chmod(0o500)
        try:
            assert st.merge([folder / "one.db"], into=tmp_path / "all.db").added == 1500
        finally:
            folder.chmod(0o700)
        assert os.listdir(folder) == ["one.db"]

    def test_what_cannot_be_merged_is_refused_in_words(self, tmp_path: Path) -> None:
        observe(tmp_path / "one.db", part=(1, 2))
        (tmp_path / "text.db").write_text("not a store, but a text")
        cases: list[tuple[Any, str, str]] = [
            ([], "all.db", "sources are the folders, or the stores, to merge: give a list"),
            (str(tmp_path / "one.db"), "all.db", "give a list"),
            ([tmp_path / "two.db"], "all.db", "there is no folder or store"),
            ([tmp_path / "one.db"], "one.db", "one.db is the target itself"),
            ([tmp_path / "one.db", tmp_path], "all.db", "one.db is a file, and others are folders"),
            ([tmp_path / "text.db"], "all.db", "is not a store of sateen"),
        ]
        for sources, into, words in cases:
            with pytest.raises(st.SateenError, match=words):
                st.merge(sources, into=tmp_path / into)


def falsified(store: Path, place: int) -> tuple[int, int]:
    """Count one run more as satisfied in a row of the last campaign of a store."""
    import zlib

    with sqlite3.connect(store) as connection:
        found = connection.execute(
            "SELECT campaign, first, stop, content FROM chunk "
            "WHERE campaign = (SELECT max(campaign) FROM chunk) ORDER BY first"
        ).fetchall()
        campaign, first, stop, content = found[place]
        text, _, counts = zlib.decompress(content).partition(b"\n")
        table = np.frombuffer(counts, "<i8").copy()
        table[0] += 1 if table[0] == 0 else -1
        packed = zlib.compress(text + b"\n" + table.tobytes())
        connection.execute("UPDATE chunk SET content = ? WHERE campaign = ? AND first = ?", (packed, campaign, first))
    return int(first), int(stop)


# A campaign in small: what each of its runs came to, and rows of it, which may overlap in any way.
RUNS = hs.lists(hs.integers(0, 6), min_size=1, max_size=6).filter(any)


@hs.composite
def campaigns(draw: hs.DrawFn) -> tuple[Ledger, np.ndarray, list[tuple[int, int]], int]:
    runs = np.array(draw(RUNS))
    total = int(runs.sum())
    verdicts = np.array(draw(hs.lists(hs.integers(0, 2), min_size=total, max_size=total)))
    places = hs.integers(0, total)
    cuts = sorted(set(draw(hs.lists(places)))) if total else []
    kept = [(a, b) for a, b in zip(cuts[::2], cuts[1::2], strict=False)]
    pairs = draw(hs.lists(hs.tuples(places, places).map(lambda pair: (min(pair), max(pair))), max_size=8))
    return Ledger(runs, 1, ("x",)), verdicts, [*kept, *(pair for pair in pairs if pair[0] < pair[1])], len(kept)


def chunk(ledger: Ledger, verdicts: np.ndarray, first: int, stop: int) -> Chunk:
    """What the runs [first, stop) truly came to."""
    _, items = ledger.items(first, stop)
    begin = np.cumsum(ledger.runs) - ledger.runs
    some = [verdicts[begin[p] + a : begin[p] + a + n] for p, a, n in items.tolist()]
    satisfied, undecided = (np.array([(each == what).sum() for each in some]) for what in (1, 2))
    return Chunk(first, stop, Tally(satisfied[None], undecided[None, None]), 1.0)


def joined_rows(ledger: Ledger, rows: list[Row]) -> list[Chunk]:
    ordered = sorted(rows, key=lambda row: (row.chunk.first, row.chunk.stop, not row.kept))
    groups = clusters([(row.chunk.first, row.chunk.stop) for row in ordered])
    return [each for group in groups for each in joined(ledger, ordered[group], "it")]


class TestJoining:
    @settings(max_examples=400)
    @given(campaigns())
    def test_what_is_joined_is_true_disjoint_and_leaves_out_no_row_that_is_free(self, campaign: Any) -> None:
        ledger, verdicts, intervals, kept = campaign
        rows = [
            Row(f"store {place}", chunk(ledger, verdicts, *interval), place < kept)
            for place, interval in enumerate(intervals)
        ]
        found = joined_rows(ledger, rows)
        taken = [*intervals[:kept], *((each.first, each.stop) for each in found)]
        assert length(taken) == length(union(taken))
        assert set(common(union(taken), union(intervals))) == set(union(taken))
        for each in found:
            truth = chunk(ledger, verdicts, each.first, each.stop)
            assert np.array_equal(each.tally.satisfied, truth.tally.satisfied)
            assert np.array_equal(each.tally.undecided, truth.tally.undecided)
        for first, stop in intervals[kept:]:
            others = [interval for interval in intervals if interval != (first, stop)]
            if not common([(first, stop)], union(others)):
                assert common([(first, stop)], union(taken)) == [(first, stop)]

    @settings(max_examples=200)
    @given(RUNS, hs.data())
    def test_two_whole_copies_cut_in_any_way_are_checked_to_the_last_run(self, runs: list[int], data: Any) -> None:
        ledger = Ledger(np.array(runs), 1, ("x",))
        total = sum(runs)
        verdicts = np.array(data.draw(hs.lists(hs.integers(0, 2), min_size=total, max_size=total)))

        def copy(name: str, kept: bool) -> list[Row]:
            cuts = sorted({0, total, *data.draw(hs.lists(hs.integers(0, total)))})
            pieces = pairwise(cuts)
            return [Row(name, chunk(ledger, verdicts, first, stop), kept) for first, stop in pieces]

        one, other = copy("one", data.draw(hs.booleans())), copy("other", False)
        found = joined_rows(ledger, [*one, *other])
        assert length([(each.first, each.stop) for each in found]) == (0 if one[0].kept else total)
        wrong = data.draw(hs.integers(0, len(other) - 1))
        tally = other[wrong].chunk.tally
        changed = tally.satisfied.copy()
        changed[0, 0] += 1
        bad = Chunk(other[wrong].chunk.first, other[wrong].chunk.stop, Tally(changed, tally.undecided), 1.0)
        other[wrong] = Row("other", bad, False)
        with pytest.raises(st.StoreError, match=r"of it have different results in .*other"):
            joined_rows(ledger, [*one, *other])

    def test_what_two_rows_differ_in_is_known(self) -> None:
        ledger = Ledger(np.array([150]), 1, ())
        tallies = [Tally(np.array([[count]]), np.zeros((1, 0, 1), np.int64)) for count in (60, 50)]
        rows = [Row("one", Chunk(0, 150, tallies[0], 1.0), False), Row("other", Chunk(0, 100, tallies[1], 1.0), True)]
        (found,) = joined_rows(ledger, rows)
        assert (found.first, found.stop, found.tally.satisfied.tolist()) == (100, 150, [[10]])
        wrong = Tally(np.array([[120]]), np.zeros((1, 0, 1), np.int64))
        with pytest.raises(st.StoreError, match="the runs 0 to 150 of it have different results"):
            joined_rows(ledger, [Row("one", Chunk(0, 150, wrong, 1.0), False), rows[1]])


def test_a_copy_of_a_store_adds_nothing(tmp_path: Path) -> None:
    observe(tmp_path / "one.db", part=(1, 2))
    shutil.copy(tmp_path / "one.db", tmp_path / "two.db")
    assert st.merge([tmp_path / "one.db", tmp_path / "two.db"], into=tmp_path / "all.db").added == 1500
