"""The store: what is done is done once, survives any end of the process, and is never counted twice."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as hs

import sateen as st
from sateen.model.model import Model
from sateen.sampling.ledger import Chunk, Ledger, Tally
from sateen.sampling.store import Store

DECAY = Model.parse("species A = 10\nA -> 0 @ mass_action(k)")
EMPTY = st.stl("F[0, 1] A == 0")
POINTS = st.Space(k=(0.5, 4.0)).uniform(30, seed=1)
CALLS: list[int] = []

PRELUDE = textwrap.dedent("""
    import json, os, signal, sys
    import numpy as np
    import sateen as st
    model = st.Model.parse("species A = 10\\nA -> 0 @ mass_action(k)")
    formula = st.stl("F[0, 1] A == 0")
    points = st.Space(k=(0.5, 4.0)).uniform(30, seed=1)
""")


def coin(theta: dict[str, float], rng: np.random.Generator) -> bool:
    CALLS.append(1)
    return bool(rng.random() < theta["p"])


def shaky(theta: dict[str, float], rng: np.random.Generator) -> bool:
    CALLS.append(1)
    if rng.random() < 0.3:
        raise ValueError("no")
    return True


class Counting:
    """Counts how many runs are made, and tells what was noted."""

    def __init__(self) -> None:
        self.runs, self.notes = 0, list[str]()

    def start(self, label: str, total: int, unit: str) -> None:
        self.total = total

    def advance(self, n: int) -> None:
        self.runs += n

    def note(self, text: str) -> None:
        self.notes.append(text)

    def finish(self) -> None: ...


def observe(store: Path | None, **options: Any) -> st.Observations:
    given: dict[str, Any] = {"formula": EMPTY, "points": POINTS, "runs": 100, "seed": 2, "workers": 1, "chunk": 250}
    return st.observe(DECAY, store=store, **given | options)


def rows(store: Path) -> list[tuple[int, int, int]]:
    connection = sqlite3.connect(store)
    found = connection.execute("SELECT campaign, first, stop FROM chunk ORDER BY campaign, first").fetchall()
    connection.close()
    return found


def run(script: str, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PRELUDE + textwrap.dedent(script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=True, **options)


@pytest.fixture(scope="module")
def reference() -> st.Observations:
    return observe(None)


class TestMemory:
    def test_a_campaign_that_is_stored_is_not_run_again(self, tmp_path: Path, reference: st.Observations) -> None:
        store = tmp_path / "runs.db"
        first, again = Counting(), Counting()
        assert observe(store, progress=first) == reference
        assert observe(store, progress=again, workers=3, chunk=None) == reference
        assert (first.runs, again.runs) == (3000, 0)

    def test_a_campaign_goes_on_where_it_was(self, tmp_path: Path, reference: st.Observations) -> None:
        store = tmp_path / "runs.db"

        class Enough(Counting):
            def advance(self, n: int) -> None:
                super().advance(n)
                if self.runs > 1000:
                    raise RuntimeError("enough")

        with pytest.raises(RuntimeError, match="enough"):
            observe(store, progress=Enough())
        progress = Counting()
        assert observe(store, progress=progress) == reference
        assert progress.total == progress.runs < 3000
        assert progress.notes[0] == f"{3000 - progress.runs:,} runs are in the store"

    def test_a_store_holds_many_campaigns(self, tmp_path: Path, reference: st.Observations) -> None:
        store = tmp_path / "runs.db"
        changes: list[dict[str, Any]] = [
            {},
            {"seed": 3},
            {"runs": 50},
            {"runs": [100] * 29 + [99]},
            {"points": POINTS[:29]},
            {"points": st.Space(k=(0.5, 5.0)).points({"k": POINTS.theta[:, 0]})},
            {"max_events": 5},
            {"max_time": 0.5},
        ]
        for change in changes:
            assert observe(store, **change) == observe(None, **change)
        campaigns = {number for number, _, _ in rows(store)}
        assert len(campaigns) == len(changes) - 1  # the extent of the space does not change a run
        assert observe(store) == reference

    def test_formulas_are_known_by_what_they_say_in_any_order(self, tmp_path: Path) -> None:
        store = tmp_path / "runs.db"
        half = st.stl("F[0, 1] A <= 5")
        one = observe(store, formula={"a": EMPTY, "b": half})
        progress = Counting()
        other = observe(store, formula={"x": half, "y": EMPTY, "z": half}, progress=progress)
        assert progress.runs == 0
        assert (other["x"], other["y"], other["z"]) == (one["b"], one["a"], one["b"])

    def test_undecided_runs_keep_their_reasons(self, tmp_path: Path) -> None:
        store = tmp_path / "runs.db"
        twice = [observe(store, max_events=5) for _ in range(2)]
        assert twice[0] == twice[1]
        assert np.array_equal(twice[0].reasons["max_events"], twice[1].reasons["max_events"])

    def test_a_black_box_is_known_by_its_text(self, tmp_path: Path) -> None:
        store, points = tmp_path / "runs.db", st.Space(p=(0, 1)).grid(4)
        CALLS.clear()
        one, other = (st.observe(coin, None, points, 25, seed=1, store=store) for _ in range(2))
        assert one == other
        assert len(CALLS) == 100

    def test_failures_of_a_black_box_are_kept(self, tmp_path: Path) -> None:
        store, points = tmp_path / "runs.db", st.Space(p=(0, 1)).grid(4)
        one, other = (st.observe(shaky, None, points, 25, seed=1, store=store, chunk=9) for _ in range(2))
        assert one.failures == other.failures
        assert len(one.failures) == one.reasons["failed"].sum() > 10

    def test_a_black_box_without_a_text_of_its_own_is_refused(self, tmp_path: Path) -> None:
        bound = 0.5

        def closed(theta: dict[str, float], rng: np.random.Generator) -> bool:
            return bool(rng.random() < bound)

        for box in (lambda theta, rng: True, closed, type("Box", (), {"__call__": coin})()):
            with pytest.raises(st.StoreError, match=r"a store cannot distinguish .* from other black boxes"):
                st.observe(box, None, st.Space(p=(0, 1)).grid(4), 5, seed=1, store=tmp_path / "runs.db")

    def test_the_seconds_of_all_sessions_add_up(self, tmp_path: Path) -> None:
        store = tmp_path / "runs.db"
        assert observe(store).seconds == pytest.approx(observe(store).seconds)

    def test_nothing_but_the_store_is_left_in_the_folder(self, tmp_path: Path) -> None:
        observe(tmp_path / "runs.db")
        assert [file.name for file in tmp_path.iterdir()] == ["runs.db"]


class TestInvariant:
    @settings(max_examples=40)
    @given(hs.lists(hs.tuples(hs.integers(0, 19), hs.integers(1, 8)), max_size=20), hs.integers(1, 2))
    def test_whatever_is_added_stored_intervals_are_disjoint(
        self, tmp_path_factory: pytest.TempPathFactory, wanted: list[tuple[int, int]], stores: int
    ) -> None:
        file = tmp_path_factory.mktemp("store") / "runs.db"
        campaigns = [Store(file, {"a": 1}, {"runs": np.array([20])}, "now") for _ in range(stores)]
        taken: set[int] = set()
        for turn, (first, length) in enumerate(wanted):
            stop = min(first + length, 20)
            tally = Tally(np.full((1, 1), stop - first), np.zeros((1, 1, 1), np.int64))
            added = campaigns[turn % stores].add(Chunk(first, stop, tally, 0.5))
            assert added == taken.isdisjoint(range(first, stop))
            taken |= set(range(first, stop)) if added else set()
        ledger = Ledger(np.array([20]), 1, ("x",))
        campaigns[-1].load(ledger)
        assert ledger.done == len(taken) == ledger.satisfied.sum()
        for campaign in campaigns:
            campaign.__exit__()

    def test_a_chunk_that_another_process_has_stored_is_not_counted_again(
        self, tmp_path: Path, reference: st.Observations
    ) -> None:
        store = tmp_path / "runs.db"

        class Rival(Counting):
            """When the first chunk is done, another campaign of the same name makes all the rest."""

            def advance(self, n: int) -> None:
                super().advance(n)
                if self.runs == 251:
                    assert observe(store, chunk=333) == reference

        progress = Rival()
        assert observe(store, progress=progress) == reference
        spans = [(first, stop) for _, first, stop in rows(store)]
        assert sum(stop - first for first, stop in spans) == 3000
        assert all(one[1] <= other[0] for one, other in itertools.pairwise(spans))
        assert progress.runs == 3000

    def test_processes_that_share_a_campaign_share_the_work(self, tmp_path: Path) -> None:
        script = """
            class Progress:
                runs = 0
                def start(self, *how): ...
                def advance(self, n): Progress.runs += n
                def note(self, text): ...
                def finish(self): ...
            obs = st.observe(model, formula, points, 3000, seed=2, store=sys.argv[1], chunk=int(sys.argv[2]),
                             progress=Progress(), workers=2)
            print(obs.fingerprint)
        """
        command = [sys.executable, "-c", PRELUDE + textwrap.dedent(script), tmp_path / "runs.db"]
        team = [
            subprocess.Popen([*command, str(size)], stdout=subprocess.PIPE, text=True) for size in (500, 777, 901, 64)
        ]
        said = [member.communicate(timeout=600)[0] for member in team]
        wanted = observe(None, runs=3000, chunk=None).fingerprint
        assert said == [wanted + "\n"] * 4
        spans = [(first, stop) for _, first, stop in rows(tmp_path / "runs.db")]
        assert sum(stop - first for first, stop in spans) == 90_000
        assert all(one[1] == other[0] for one, other in itertools.pairwise(spans))


class TestKilled:
    @pytest.mark.slow
    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    def test_a_campaign_killed_at_twenty_moments_and_resumed_has_the_same_counts(self, tmp_path: Path) -> None:
        # A child tells of each chunk through a pipe; after so many, at whatever moment that is, it is killed.
        script = """
            import warnings
            warnings.simplefilter("ignore")
            store, rng = sys.argv[1], np.random.default_rng(6)
            st.observe(model, formula, points[:2], 2, seed=1)  # the kernel is loaded before the forks
            alive = 0
            for life in range(20):
                inlet, outlet = os.pipe()
                child = os.fork()
                if child == 0:
                    class Progress:
                        def start(self, *how): ...
                        def advance(self, n): os.write(outlet, b".")
                        def note(self, text): ...
                        def finish(self): ...
                    st.observe(model, formula, points, 4000, seed=2, store=store, chunk=25, progress=Progress(),
                               workers=1 + life % 2)
                    os._exit(0)
                os.close(outlet)
                if life % 5:  # one in five dies while it opens the store, or soon after
                    for _ in range(int(rng.integers(1, 150))):
                        os.read(inlet, 1)
                os.kill(child, signal.SIGKILL)
                _, status = os.waitpid(child, 0)
                alive += os.WIFSIGNALED(status)
                os.close(inlet)
            import sqlite3
            connection = sqlite3.connect(store)
            (done,) = connection.execute("SELECT sum(stop - first) FROM chunk").fetchone()
            print(json.dumps([alive, done, connection.execute("PRAGMA integrity_check").fetchone()[0]]))
        """
        store = tmp_path / "runs.db"
        alive, done, integrity = json.loads(run(script, store).stdout)
        assert alive == 20
        assert 0 < done < 120_000
        assert integrity == "ok"
        progress = Counting()
        resumed = observe(store, runs=4000, chunk=None, workers=2, progress=progress)
        assert progress.runs == 120_000 - done
        assert resumed.fingerprint == observe(None, runs=4000, chunk=None).fingerprint


class TestFaults:
    @pytest.mark.parametrize(
        ("place", "words"),
        [
            (".", "is a folder\n  name a file in it"),
            ("none/runs.db", "there is no folder .*none\n  make it first"),
            ("file/runs.db", "there is no folder .*file\n  make it first"),
        ],
    )
    def test_a_place_where_no_file_can_be_is_said_before_any_run(self, tmp_path: Path, place: str, words: str) -> None:
        (tmp_path / "file").write_text("x")
        with pytest.raises(st.StoreError, match=words) as caught:
            observe(tmp_path / place)
        assert caught.value.partial is None

    @pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
    def test_a_folder_that_cannot_be_written_is_said(self) -> None:
        with pytest.raises(
            st.StoreError, match=r"the store /proc/runs\.db cannot be opened\n  look at the permissions"
        ):
            observe(Path("/proc/runs.db"))

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
    def test_a_device_is_no_store(self) -> None:
        with pytest.raises(st.StoreError, match="the store /dev/full"):
            observe(Path("/dev/full"))

    @pytest.mark.parametrize("content", [b"beta,satisfied\n1,2\n" * 100, b"\x80\x04K\x01.", b"x" * 5000])
    def test_a_file_that_is_no_store_is_not_touched(self, tmp_path: Path, content: bytes) -> None:
        file = tmp_path / "data.csv"
        file.write_bytes(content)
        with pytest.raises(st.StoreError, match="is not a store of sateen\n  it was not touched; choose another name"):
            observe(file)
        assert file.read_bytes() == content
        assert [each.name for each in tmp_path.iterdir()] == ["data.csv"]

    def test_a_database_of_another_program_is_not_touched(self, tmp_path: Path) -> None:
        file = tmp_path / "other.db"
        connection = sqlite3.connect(file)
        connection.execute("CREATE TABLE chunk (x)")
        connection.commit()
        connection.close()
        before = file.read_bytes()
        with pytest.raises(st.StoreError, match="is not a store of sateen"):
            observe(file)
        assert file.read_bytes() == before

    def test_a_store_of_a_later_version_is_refused(self, tmp_path: Path) -> None:
        store = tmp_path / "runs.db"
        observe(store)
        connection = sqlite3.connect(store)
        connection.execute("PRAGMA user_version = 3")
        connection.close()
        with pytest.raises(st.StoreError, match="is of version 3, not 2\n  update sateen"):
            observe(store)

    def test_an_empty_file_becomes_a_store(self, tmp_path: Path, reference: st.Observations) -> None:
        (tmp_path / "runs.db").touch()
        assert observe(tmp_path / "runs.db") == reference

    def test_a_damaged_store_is_refused_or_gives_the_right_counts(
        self, tmp_path: Path, reference: st.Observations
    ) -> None:
        whole = tmp_path / "whole.db"
        observe(whole, chunk=100)
        content = whole.read_bytes()
        rng = np.random.default_rng(3)
        refused: list[str] = []
        for case in range(120):
            damaged = bytearray(content)
            if case % 4:
                for place in rng.integers(0, len(content), int(rng.integers(1, 4))).tolist():
                    damaged[place] ^= 1 << int(rng.integers(8))
            elif case % 8:
                damaged = damaged[: int(rng.integers(len(content)))]
            else:
                first = int(rng.integers(len(content) - 600))
                damaged[first : first + 600] = rng.bytes(600)
            file = tmp_path / "damaged.db"
            file.write_bytes(damaged)
            try:
                assert observe(file) == reference
            except st.StoreError as error:
                refused.append(str(error))
            for each in tmp_path.glob("damaged.db*"):
                each.unlink()
        assert len(refused) > 30
        assert all("damaged.db" in words and "\n  " in words for words in refused)

    def test_a_store_that_refuses_runs_which_no_row_has_is_an_error_and_not_an_endless_loop(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # As one damaged page of the index did: the row was met when a chunk was added, and not when all were read.
        monkeypatch.setattr(Store, "add", lambda store, chunk: False)
        with pytest.raises(st.StoreError, match=r"runs\.db is damaged(.|\n)*refuses runs that none of its rows has"):
            observe(tmp_path / "runs.db")

    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE chunk SET first = first + 1 WHERE first = 1",
            "UPDATE chunk SET stop = stop - 1 WHERE first = 1",
            "UPDATE chunk SET content = (SELECT content FROM chunk WHERE first = 251) WHERE first = 1",
            "UPDATE chunk SET content = x'00' WHERE first = 1",
            "UPDATE chunk SET content = 'text' WHERE first = 1",
            "UPDATE chunk SET stop = 1000000 WHERE first = 2751",
        ],
    )
    def test_a_row_that_is_not_what_it_says_is_refused(self, tmp_path: Path, change: str) -> None:
        store = tmp_path / "runs.db"
        observe(store)
        connection = sqlite3.connect(store)
        assert connection.execute(change).rowcount == 1
        connection.commit()
        connection.close()
        with pytest.raises(st.StoreError, match=r"runs\.db is damaged\n  move it away"):
            observe(store)

    @pytest.mark.skipif(sys.platform == "win32", reason="needs a limit of the size of files")
    def test_on_a_full_disk_nothing_is_lost_and_the_campaign_goes_on_later(
        self, tmp_path: Path, reference: st.Observations
    ) -> None:
        script = """
            import resource
            ask = lambda: st.observe(model, formula, points, 100, seed=2, store=sys.argv[1], chunk=20, workers=1)
            st.observe(model, formula, points[:2], 2, seed=1)  # the kernel is loaded before the disk is full
            _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
            try:
                ask()
            except st.StoreError as error:
                print(json.dumps([str(error), error.partial.trials.tolist(), error.partial.satisfied.tolist()]))
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
            print(ask().fingerprint)
        """
        report, fingerprint = run(script, tmp_path / "runs.db").stdout.splitlines()
        message, trials, satisfied = json.loads(report)
        assert "full" in message
        assert "run the same again: what is stored is kept" in message
        assert 0 < sum(trials) < 3000
        done = np.array(trials) == 100
        assert np.array_equal(np.array(satisfied)[done], reference.satisfied[done])
        assert done.any()
        assert fingerprint == reference.fingerprint

    def test_a_store_that_another_process_holds_is_waited_for(self, tmp_path: Path, reference: st.Observations) -> None:
        import threading

        store = tmp_path / "runs.db"
        observe(store, runs=1)
        holder = sqlite3.connect(store, check_same_thread=False, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.5, lambda: holder.execute("COMMIT"))
        timer.start()
        assert observe(store) == reference
        timer.join()
        holder.close()

    def test_a_copy_of_the_store_is_a_store(self, tmp_path: Path, reference: st.Observations) -> None:
        observe(tmp_path / "runs.db")
        shutil.copy(tmp_path / "runs.db", tmp_path / "copy.db")
        progress = Counting()
        assert observe(tmp_path / "copy.db", progress=progress) == reference
        assert progress.runs == 0

    def test_a_run_that_cannot_go_on_leaves_what_is_done_in_the_store(self, tmp_path: Path) -> None:
        model = Model.parse("species A = 10\nA -> 0 @ k * A * (A - a)")
        space = st.Space(k=1.0, a=(-1.0, 6.0))
        points = space.points({"a": [-1.0] * 10 + [5.5]})
        with pytest.raises(st.SimulationError, match=r"point 10, run \d+"):
            st.observe(model, EMPTY, points, 20, seed=2, store=tmp_path / "runs.db", workers=1, chunk=20)
        assert sum(stop - first for _, first, stop in rows(tmp_path / "runs.db")) >= 180
