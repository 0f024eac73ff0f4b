"""Pools: the same counts whatever the places do with the work, and words for everything that cannot be used."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as hs

import sateen as st
from sateen.pools import messages
from sateen.pools.crew import Crew, WrongAnswer
from sateen.pools.forecast import BEGIN, Crowd
from sateen.pools.pool import open_pool, parse_address
from sateen.sampling.campaign import Pace
from watchers import Watcher

DECAY = st.Model.parse("species A = 10\nA -> 0 @ mass_action(k)")
EMPTY = st.stl("F[0, 1] A == 0")
POINTS = st.Space(k=(0.5, 4.0)).uniform(30, seed=1)


class LostError(Exception):
    """What `Chaos` says when it loses work."""


class Chaos:
    """A pool that does the work late and in any order, does some of it twice, and loses, cuts or forges answers."""

    doubles = True

    def __init__(self, choices: list[int], places: int) -> None:
        self.choices, self.count = choices, places
        self.waiting: list[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = []
        self.asked, self.closed, self.made, self.bad = 0, False, 0, 0

    def submit(self, work: Callable[..., Any], /, *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append((future, work, args))
        while len(self.waiting) >= self.count:
            self._do(self._chosen(len(self.waiting)))
        return future

    def places(self) -> int:
        while self.waiting:
            self._do(self._chosen(len(self.waiting)))
        return self.count

    def lost(self, error: BaseException) -> bool:
        return isinstance(error, LostError)

    def close(self) -> None:
        self.closed = True

    def _chosen(self, many: int) -> int:
        self.asked += 1
        return self.choices[self.asked % len(self.choices)] % many

    def _do(self, place: int) -> None:
        future, work, args = self.waiting.pop(place)
        answer = work(*args)
        self.made += 1
        fate = self._chosen(12) if self.bad < 4 else 11  # four tries are never enough to give up
        self.bad += fate < 4
        if fate == 0:
            future.set_exception(LostError("gone"))
        elif fate == 1:
            future.set_result(answer[: len(answer) // 2])
        elif fate == 2:
            future.set_result(None)
        elif fate == 3:
            future.set_result(bytes([answer[0] ^ 1]) + answer[1:])
        else:
            assert fate != 5 or work(*args)[:4] is not None  # done twice
            future.set_result(answer)


@pytest.fixture(scope="module")
def reference() -> st.Observations:
    return st.observe(DECAY, EMPTY, POINTS, 200, seed=2, workers=1)


@settings(max_examples=25, deadline=None)
@given(
    choices=hs.lists(hs.integers(0, 59), min_size=1, max_size=40),
    places=hs.integers(1, 7),
    chunk=hs.sampled_from([None, 61, 500, 10_000]),
)
def test_a_pool_that_shuffles_loses_doubles_and_lies_makes_the_same_counts(
    reference: st.Observations, choices: list[int], places: int, chunk: int | None
) -> None:
    pool = Chaos(choices, places)
    with pytest.MonkeyPatch.context() as patch:  # with nothing to be had, places are counted again soon: that does work
        patch.setattr("sateen.pools.crew._LOOK_UP", 0.01)
        patch.setattr("sateen.pools.crew._LOOK_AT_PLACES", 0.01)
        assert st.observe(DECAY, EMPTY, POINTS, 200, seed=2, executor=pool, chunk=chunk) == reference
    assert not pool.closed  # who opens it closes it
    assert pool.made > 0


class Always:
    """A pool whose every answer is made from the true one; or that has no place at all."""

    patience = 1.0

    def __init__(self, answer: Callable[[bytes], Any], places: int = 1) -> None:
        self.answer, self.count = answer, places

    def submit(self, work: Callable[..., Any], /, *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(self.answer(work(*args)))
        except LostError as error:
            future.set_exception(error)
        return future

    def places(self) -> int:
        return self.count

    def lost(self, error: BaseException) -> bool:
        return isinstance(error, LostError)

    def close(self) -> None: ...


def more_verdicts(answer: bytes) -> bytes:
    """Counts that these runs cannot have, in a message that is whole."""
    import zlib

    words, (part,) = messages.unpacked(answer)
    counts = np.frombuffer(zlib.decompress(part), words["kind"])
    return messages.packed(words, zlib.compress(np.full_like(counts, np.iinfo(counts.dtype).max).tobytes()))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda answer: answer[:-3], "damaged: its checksum differs"),
        (lambda answer: {"satisfied": 3}, "damaged: it is a dict"),
        (more_verdicts, "counts that these runs cannot have: there are more verdicts than runs"),
        (lambda answer: messages.packed({"kind": "|u1"}, b""), "counts that these runs cannot have"),
        (lambda answer: messages.packed({"kind": "|O"}, b""), "counts that these runs cannot have"),
    ],
)
def test_a_worker_that_always_lies_is_told(answer: Callable[[bytes], Any], words: str, tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    with pytest.raises(st.PoolError, match=rf"lost 5 times with its worker; the last time: .*{words}") as caught:
        st.observe(DECAY, EMPTY, POINTS, 200, seed=2, executor=Always(answer), store=store)
    assert "what is stored is kept" in str(caught.value)
    assert caught.value.partial.trials.sum() == 1  # the one that was made here


def test_without_any_worker_the_wait_ends_in_words(tmp_path: Path) -> None:
    watcher = Watcher()
    options: dict[str, Any] = {"seed": 2, "executor": Always(bytes, places=0), "progress": watcher}
    with pytest.raises(
        st.PoolError, match=r"the Always has had no worker for \d+ s\n  there is no store, so the runs are"
    ):
        st.observe(DECAY, EMPTY, POINTS, 200, **options)
    assert "no worker; waiting for one, at most 1 s" in watcher.notes
    with pytest.raises(
        st.PoolError, match=r"no worker for \d+ s\n  what is stored is kept: run the same again to resume$"
    ):
        st.observe(DECAY, EMPTY, POINTS, 200, **options, store=tmp_path / "runs.db")


def test_the_reason_for_having_no_worker_is_told_and_nobody_waits_where_none_will_come() -> None:
    class Closed(Always):
        patience, ended, trouble = 600.0, True, "its scheduler is gone"

    began = time.monotonic()
    with pytest.raises(st.PoolError, match=r"the Closed has had no worker for \d+ s: its scheduler is gone\n"):
        st.observe(DECAY, EMPTY, POINTS, 200, seed=2, executor=Closed(bytes, places=0))
    assert time.monotonic() - began < 300


def test_work_that_is_lost_each_time_is_told_what_may_end_a_worker() -> None:
    def die(answer: bytes) -> Any:
        raise LostError("gone")

    words = "too little memory, or the work itself ends its process; there is no store"
    with pytest.raises(st.PoolError, match=f"lost 5 times with its worker; the last time: gone\n.*{words}") as caught:
        st.observe(DECAY, EMPTY, POINTS, 200, seed=2, executor=Always(die))
    assert type(caught.value) is st.PoolError


def test_a_worker_of_another_version_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    true = messages.identity()
    with pytest.raises(st.PoolError, match=r"is not the same as this process: sateen .* there, 9\.9 here") as caught:
        messages.check_identity({**true, "sateen": "9.9"})
    with pytest.raises(st.PoolError, match=f"source {true['source']} there, 0 here"):
        messages.check_identity({**true, "source": "0"})
    messages.check_identity(true)
    answer = messages.answering(lambda: messages.check_identity({}))()
    with pytest.raises(st.PoolError) as again:  # as it comes back
        messages.answer_of(answer)
    assert "install the same on both" in str(again.value)
    assert "install the same on both" in str(caught.value)


@pytest.mark.parametrize("error", [st.InputError("{level} is odd", argument="level", remedy="give {level=1}"),
                                   st.SimulationError("a rate below 0"), st.ModelError("no")])  # fmt: skip
def test_errors_come_back_as_they_were_said(error: st.SateenError) -> None:
    def fail() -> bytes:
        raise error

    with pytest.raises(type(error) if type(error) is not st.ModelError else st.InputError) as caught:
        messages.answer_of(messages.answering(fail)())
    assert str(caught.value) == str(error)


def test_an_error_that_is_not_ours_says_where_it_was() -> None:
    def fail() -> bytes:
        raise ZeroDivisionError("by nought")

    with pytest.raises(st.SimulationError, match=r"a worker, .*:\d+, failed: ZeroDivisionError: by nought"):
        messages.answer_of(messages.answering(fail)())


@given(hs.dictionaries(hs.text(), hs.integers() | hs.text()), hs.lists(hs.binary()))
def test_a_message_is_read_as_it_was_written(words: dict[str, object], parts: list[bytes]) -> None:
    message = messages.packed(words, *parts)
    assert messages.unpacked(message) == (words, parts)
    with pytest.raises(WrongAnswer):
        messages.unpacked(message[:-1])


class TestAddresses:
    @pytest.mark.parametrize("address", ["local:1", "tcp://127.0.0.1:8786", "tcp://[::1]:1", "tcp://localhost:1",
                                         "tls://cluster.example:8786", " local:4 "])  # fmt: skip
    def test_these_are_allowed(self, address: str) -> None:
        parse_address(address)

    @pytest.mark.parametrize("address", ["tcp://10.0.0.1:8786", "tcp://cluster.example:8786", "tcp://0.0.0.0:1"])
    def test_an_open_port_beyond_this_machine_is_refused(self, address: str, tmp_path: Path) -> None:
        with pytest.raises(st.InputError, match=r"is not encrypted, and beyond this machine.*\n  use tls://"):
            st.observe(DECAY, EMPTY, POINTS, 10, seed=1, executor=address)
        file = tmp_path / "scheduler.json"
        file.write_text(json.dumps({"address": address}))
        with pytest.raises(st.InputError, match="is not encrypted"):
            parse_address(f"dask:{file}")
        parse_address(address, insecure=True)

    @pytest.mark.parametrize("address", ["local:0", "local:", "local:x", "local:99999", "ws://a:1", "tcp://", "nowhere",
                                         "dask:nowhere.json", "", "tcp://[::1", "tcp://127.0.0.1", "tls://host",
                                         "tcp://127.0.0.1:x", "tcp://127.0.0.1:99999999"])  # fmt: skip
    def test_what_is_no_address_is_refused(self, address: str) -> None:
        with pytest.raises(st.InputError, match="executor"):
            parse_address(address)

    def test_a_file_without_an_address_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "a.json").write_text("[]")
        with pytest.raises(st.InputError, match="it has no address of a scheduler"):
            parse_address(f"dask:{tmp_path / 'a.json'}")

    def test_an_address_without_a_port_is_told(self) -> None:
        with pytest.raises(
            st.InputError, match=r"executor is 'tcp://127.0.0.1', without a port\n  local:4, tcp://host"
        ):
            st.observe(DECAY, EMPTY, POINTS, 10, seed=1, executor="tcp://127.0.0.1")

    def test_here_is_this_process(self) -> None:
        assert st.observe(DECAY, EMPTY, POINTS, 10, seed=1, executor="here") == st.observe(
            DECAY, EMPTY, POINTS, 10, seed=1
        )

    def test_what_is_no_executor_is_refused(self) -> None:
        with pytest.raises(st.InputError, match="a dask Client, a Pool or an address, not a float"):
            open_pool(0.5)


class TestPace:
    def test_pieces_are_larger_where_many_wait_for_one_scheduler(self) -> None:
        sizes = []
        for workers in (10, 1000, 100_000):
            pace = Pace(None, workers, first=10**6)
            pace.cost = 3e-3
            pace.learn(10**6, 1.0)
            pace.learn(10**6, 1.0)
            sizes.append(pace.size(10**15))
        assert sizes == [400_000, 3_333_333, 4_000_000]  # .4 s, W·c/.9, and at most four times the largest so far
        pace.learn(10**8, 100.0)
        assert pace.size(10**15) == 30_000_000  # 30 s

    def test_towards_the_end_a_piece_is_a_quarter_of_a_share_and_worth_handing_out(self) -> None:
        pace = Pace(None, 100, first=10**6)
        pace.cost = 3e-3
        pace.learn(10**6, 1.0)
        assert pace.size(400_000_000) == 400_000
        assert pace.size(1000) == 300_000  # W·c seconds: that is all of them


def test_a_late_job_is_begun_again_and_the_first_answer_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sateen.pools.crew._LEAST_LATE", 0.1)
    monkeypatch.setattr("sateen.pools.crew._LOOK_AT_PLACES", 0.05)
    futures: list[Future[Any]] = []

    class Slow(Always):
        patience = 60.0

        def submit(self, work: Callable[..., Any], /, *args: Any) -> Future[Any]:
            futures.append(Future())
            if len(futures) == 2:
                futures[1].set_result("second")
            return futures[-1]

    with Crew(Slow(bytes, places=2), lambda job, answer: (job, answer), kept="") as crew:
        known = [math.inf]
        crew.hand_out("job", str, expected=lambda: known[0])
        known[0] = 0.01  # as for the first pieces, once others have come back
        answers = []
        while crew.busy:
            answers += crew.answers()
    assert answers == [("job", ("job", "second"))]
    assert len(futures) == 2
    assert futures[0].cancelled()


def test_workers_that_answer_nothing_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sateen.pools.crew._LOOK_AT_PLACES", 0.05)

    class Dumb(Always):
        patience = 0.2

        def submit(self, work: Callable[..., Any], /, *args: Any) -> Future[Any]:
            return Future()

    with Crew(Dumb(bytes), lambda job, answer: answer, kept="go on") as crew:
        crew.hand_out("job", str, expected=lambda: 0.001)
        with pytest.raises(st.PoolError, match=r"the Dumb has workers, but has not answered for .*\n.*go on"):
            [list(crew.answers()) for _ in range(1000)]


@pytest.mark.parametrize("places", [1, 3])
def test_first_work_that_is_lost_without_a_word_is_handed_out_again(
    monkeypatch: pytest.MonkeyPatch, reference: st.Observations, places: int
) -> None:
    """No pace is known then, so nothing can be late; the patience is the bound."""
    monkeypatch.setattr("sateen.pools.crew._LOOK_AT_PLACES", 0.05)
    submitted, watcher, until = list[object](), Watcher(), time.monotonic() + 150

    class Forgetful(Always):
        patience = 0.25

        def submit(self, work: Callable[..., Any], /, *args: Any) -> Future[Any]:
            submitted.append(work)
            return Future() if len(submitted) <= 4 * places else super().submit(work, *args)

        def places(self) -> int:
            assert time.monotonic() < until
            return self.count

    pool = Forgetful(lambda answer: answer, places)
    assert st.observe(DECAY, EMPTY, POINTS, 200, seed=2, executor=pool, progress=watcher) == reference
    assert any("the same work is handed out once more" in note for note in watcher.notes)


def test_a_scheduler_that_is_too_busy_to_count_its_workers_has_those_it_had(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sateen.pools.crew._LOOK_AT_PLACES", 0.02)

    class Busy(Always):
        patience = 30.0

        def submit(self, work: Callable[..., Any], /, *args: Any) -> Future[Any]:
            time.sleep(0.03)
            self.count = 0
            return super().submit(work, *args)

    with Crew(Busy(lambda answer: answer), lambda job, answer: answer, kept="") as crew:
        answers = list[object]()
        for job in range(20):
            crew.hand_out(job, str, job)
            answers += crew.answers()
    assert answers == [(job, str(job)) for job in range(20)]
    assert crew.places == 1


def test_more_workers_are_advised_only_where_they_help() -> None:
    assert Crowd(4, 100 * BEGIN, 10).advice == "up to about 100 workers would make it faster"
    assert Crowd(200, 100 * BEGIN, 10).advice.startswith("more than 100 workers would not help")
    assert Crowd(4, 100 * BEGIN, 10).seconds == 26 * BEGIN
    assert "it is unknown how many" in Crowd(4, None, 10).advice
    assert Crowd(0, 1.0, 10).advice == "no worker is connected now"
    assert Crowd(0, 1.0, 10).seconds is None
    assert Crowd(4, 100 * BEGIN, 10, at_once=20).advice == "up to about 20 workers would make it faster"
    assert Crowd(20, 100 * BEGIN, 10, at_once=20).advice == "more than 20 workers would not help: there are 20 tasks"
    assert Crowd(4, 10 * BEGIN, 10, at_once=20).advice == "up to about 10 workers would make it faster"


def coin(theta: dict[str, float], rng: np.random.Generator) -> bool:
    return bool(rng.random() < theta["k"] / 4)


def test_a_black_box_makes_the_same_runs_on_threads_of_an_executor() -> None:
    with ThreadPoolExecutor(2) as executor:
        there = st.observe(coin, None, POINTS, 50, seed=2, executor=executor)
    assert there == st.observe(coin, None, POINTS, 50, seed=2)


def test_processes_make_the_same_runs_and_a_script_is_refused(reference: st.Observations) -> None:
    pool = st.open_pool("local:2")
    try:
        assert st.observe(DECAY, EMPTY, POINTS, 200, seed=2, executor=pool, chunk=999) == reference

        def local(theta: dict[str, float], rng: np.random.Generator) -> bool:
            return True

        with pytest.raises(st.InputError, match="the black box cannot be sent to other processes"):
            st.observe(local, None, POINTS, 5, seed=2, executor=pool)
        local.__module__ = "__main__"
        with pytest.raises(st.InputError, match="defined in the script that runs\n  define it in a module"):
            st.observe(local, None, POINTS, 5, seed=2, executor=pool)
    finally:
        pool.close()
