"""Ctrl-C: what is done is kept, nothing is counted twice or by half, and the same call goes on."""

from __future__ import annotations

import json
import math
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from threading import Event, Thread, Timer
from typing import Any

import numpy as np
import pytest

import sateen as st
from sateen.model.model import Model

DECAY = Model.parse("species A = 10\nA -> 0 @ mass_action(k)")
EMPTY = st.stl("F[0, 1] A == 0")
POINTS = st.Space(k=(0.5, 4.0)).uniform(30, seed=1)
TRIALS = 27  # of interrupts at any moment, one in each equal part of the time


class Impatient:
    """Presses Ctrl-C when so many chunks are done."""

    def __init__(self, after: int) -> None:
        self.left, self.finished = after, False

    def start(self, label: str, total: int, unit: str) -> None: ...

    def advance(self, n: int) -> None:
        self.left -= 1
        if self.left == 0:
            signal.raise_signal(signal.SIGINT)

    def note(self, text: str) -> None: ...

    def finish(self) -> None:
        self.finished = True


def observe(**options: Any) -> Any:
    given: dict[str, Any] = {"formula": EMPTY, "points": POINTS, "runs": 100, "seed": 2, "chunk": 70}
    return st.observe(DECAY, **given | options)


def prefix(partial: st.Observations) -> st.Observations:
    """The same trials asked for one by one: where a point was run in part, its first runs."""
    return observe(runs=partial.trials)


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("after", [1, 2, 17])
def test_without_a_store_the_runs_that_are_done_are_handed_over(workers: int, after: int) -> None:
    progress = Impatient(after)
    with pytest.raises(st.Interrupted, match=r"stopped after [\d,]+ of 3,000 runs; \.partial has them") as caught:
        observe(workers=workers, progress=progress)
    partial = caught.value.partial
    assert progress.finished
    assert 0 < partial.trials.sum() < 3000
    whole = partial.trials == 100
    assert np.array_equal(partial.satisfied[whole], observe().satisfied[whole])
    assert np.isnan(partial.frequency[partial.trials == 0]).all()
    if workers == 1:
        assert partial.fingerprint == prefix(partial).fingerprint


@pytest.mark.parametrize("workers", [1, 3])
def test_with_a_store_the_same_call_goes_on(tmp_path: Path, workers: int) -> None:
    store = tmp_path / "runs.db"
    with pytest.raises(st.Interrupted, match=r"the store .*runs\.db has them: run the same again"):
        observe(workers=workers, progress=Impatient(9), store=store)
    progress = Impatient(10**9)
    assert observe(workers=workers, progress=progress, store=store).fingerprint == observe().fingerprint
    assert 10**9 - progress.left < 40


def test_again_and_again_it_ends_with_the_same_counts(tmp_path: Path) -> None:
    for turn in range(100):
        try:
            obs = observe(workers=1 + turn % 3, progress=Impatient(4), store=tmp_path / "runs.db", chunk=30 + turn)
            break
        except st.Interrupted:
            continue
    assert turn > 3
    assert obs.fingerprint == observe().fingerprint


def test_a_chunk_that_is_being_run_is_waited_for_and_counted() -> None:
    begun, released = Event(), Event()

    def box(theta: dict[str, float], rng: np.random.Generator) -> bool:
        if theta["p"] == 0:  # the first point: its run goes on when Ctrl-C has been pressed
            begun.set()
            assert released.wait(60)
        else:
            assert begun.wait(60)
        return True

    class Late(Impatient):
        def advance(self, n: int) -> None:
            if self.left == 1:
                Timer(0.3, released.set).start()
            super().advance(n)

    with pytest.raises(st.Interrupted) as caught:
        st.observe(box, None, st.Space(p=(0, 1)).grid(50), 1, seed=1, workers=2, chunk=1, progress=Late(1))
    assert caught.value.partial.satisfied[0] == 1
    assert caught.value.partial.trials.sum() < 50


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer that sends signals")
@pytest.mark.parametrize("workers", [1, 2])
def test_at_whatever_moment_it_comes_the_store_and_the_partial_agree(tmp_path: Path, workers: int) -> None:
    rng = np.random.default_rng(8)
    longest = (
        math.inf
    )  # of the fastest of some, so that a moment of much load does not put all interrupts after the end
    for turn in range(3):
        start = time.perf_counter()
        reference = observe(runs=30, store=tmp_path / f"whole{turn}.db", workers=workers, chunk=10)
        longest = min(longest, time.perf_counter() - start)
    before = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    stopped = 0
    try:
        for trial in range(TRIALS):
            store = tmp_path / f"runs{trial}.db"
            try:
                signal.setitimer(signal.ITIMER_REAL, (trial + float(rng.uniform(0.0, 1.0))) / TRIALS * longest)
                observe(runs=30, store=store, workers=workers, chunk=10)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except st.Interrupted as stop:
                stopped += 1
                partial = stop.partial
                whole = partial.trials == 30
                assert np.array_equal(partial.satisfied[whole], reference.satisfied[whole])
                assert stored(store) == partial.trials.sum()
            except KeyboardInterrupt:
                pass  # before the first run, or after the last
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert stopped > 0


def stored(store: Path) -> int:
    connection = sqlite3.connect(store)
    try:
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        return int(connection.execute("SELECT total(stop - first) FROM chunk").fetchone()[0]) if tables else 0
    finally:
        connection.close()


def test_several_formulas_have_a_partial_each() -> None:
    formulas = {"a": EMPTY, "b": st.stl("F[0, 1] A <= 5")}
    with pytest.raises(st.Interrupted) as caught:
        observe(formula=formulas, progress=Impatient(3), workers=1)
    partial = caught.value.partial
    assert list(partial) == ["a", "b"]
    assert np.array_equal(partial["a"].trials, partial["b"].trials)


def test_a_black_box_is_stopped_in_the_middle_of_a_run() -> None:
    calls = []

    def slow(theta: dict[str, float], rng: np.random.Generator) -> bool:
        calls.append(1)
        if len(calls) == 30:
            signal.raise_signal(signal.SIGINT)
            time.sleep(3600)
        return True

    with pytest.raises(st.Interrupted) as caught:
        st.observe(slow, None, POINTS, 10, seed=1, chunk=4)
    assert len(calls) == 30
    assert caught.value.partial.trials.sum() == 28
    assert caught.value.partial.satisfied.sum() == 28


def test_ctrl_c_works_as_before_afterwards() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(st.Interrupted):
        observe(progress=Impatient(2), workers=2)
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_who_catches_every_exception_does_not_catch_it() -> None:
    assert issubclass(st.Interrupted, KeyboardInterrupt)
    assert not issubclass(st.Interrupted, Exception)


def test_it_may_be_called_from_another_thread() -> None:
    found: list[Any] = []
    thread = Thread(target=lambda: found.append(observe(workers=2)))
    thread.start()
    thread.join()
    assert found[0] == observe()


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT to a process")
@pytest.mark.parametrize("options", ["workers=1", "workers=2", "workers=2, store=sys.argv[1]"])
def test_a_signal_from_outside_ends_a_long_campaign_soon(tmp_path: Path, options: str) -> None:
    script = textwrap.dedent(f"""
        import json
        import sys
        import sateen as st

        class Progress:
            told = False
            def start(self, *how): ...
            def note(self, text): ...
            def finish(self): ...
            def advance(self, n):
                if not Progress.told and n > 1:
                    Progress.told = True
                    print("under way", flush=True)

        model = st.Model.parse("species A = 10\\nA -> 0 @ mass_action(k)")
        points = st.Space(k=(0.5, 4.0)).uniform(1000, seed=1)
        try:
            st.observe(model, st.stl("F[0, 1] A == 0"), points, 10**9, seed=2, progress=Progress(), {options})
        except st.Interrupted as stop:
            print(json.dumps([str(stop), int(stop.partial.trials.sum()), int(stop.partial.satisfied.sum())]))
    """)
    command = [sys.executable, "-c", script, str(tmp_path / "runs.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "under way\n"
        process.send_signal(signal.SIGINT)
        message, trials, satisfied = json.loads(process.communicate(timeout=300)[0])
    assert process.returncode == 0
    assert message.startswith(f"stopped after {trials:,} of 1,000,000,000,000 runs")
    assert 0 < satisfied < trials
    assert ("run the same again" in message) == (tmp_path / "runs.db").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT to a process")
def test_uncaught_it_ends_the_program_with_a_word_about_what_is_done() -> None:
    script = textwrap.dedent("""
        import signal
        import sateen as st

        def box(theta, rng):
            signal.raise_signal(signal.SIGINT)

        st.observe(box, None, st.Space(p=(0, 1)).grid(3), 5, seed=1)
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode != 0
    assert "stopped after 0 of 15 runs" in done.stderr
