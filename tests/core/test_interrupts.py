"""Ctrl-C: when it is heard, and that it is not lost."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from sateen.core.interrupts import deferring_interrupts, heeding_interrupts


def press() -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def _usual_handler():
    """Where the tests run in the background, SIGINT may be ignored from birth."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler


def test_deferred_it_comes_after_the_block_is_done() -> None:
    done = []

    def work() -> None:
        with deferring_interrupts():
            press()
            done.append(1)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == [1]


def test_deferred_it_does_not_hide_an_error() -> None:

    def work() -> None:
        with deferring_interrupts():
            press()
            _ = 1 / 0

    with pytest.raises(ZeroDivisionError):
        work()


def test_heeded_it_comes_at_once_and_again_at_the_end_if_somebody_caught_it() -> None:
    heard = []

    def work() -> None:
        with heeding_interrupts():
            try:
                press()
            except KeyboardInterrupt:
                heard.append("at once")
            heard.append("went on")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert heard == ["at once", "went on"]


def test_deferred_within_heeded_is_heard_by_both() -> None:
    heard = []

    def work() -> None:
        with heeding_interrupts():
            try:
                with deferring_interrupts():
                    press()
                    heard.append("done")
            except KeyboardInterrupt:
                heard.append("inside")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert heard == ["done", "inside"]


@pytest.mark.parametrize("context", [deferring_interrupts, heeding_interrupts])
def test_without_ctrl_c_nothing_happens_and_nothing_stays(context) -> None:
    before = signal.getsignal(signal.SIGINT)
    reached = []
    with context():
        reached.append("inside")
        assert signal.getsignal(signal.SIGINT) is not before  # it listens, so the next line is a real test
    reached.append("after")
    assert reached == ["inside", "after"]
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(KeyboardInterrupt):  # and Ctrl-C works as it did
        press()


@pytest.mark.parametrize("context", [deferring_interrupts, heeding_interrupts])
def test_in_another_thread_nothing_is_touched(context, monkeypatch) -> None:
    before = signal.getsignal(signal.SIGINT)
    changes = []
    monkeypatch.setattr(signal, "signal", lambda *arguments: changes.append(arguments))

    def work() -> tuple[bool, object]:
        with context():
            return threading.current_thread() is threading.main_thread(), signal.getsignal(signal.SIGINT)

    with ThreadPoolExecutor(1) as pool:
        in_main_thread, within = pool.submit(work).result()
    monkeypatch.undo()
    assert not in_main_thread
    assert within is before
    assert changes == []


def test_where_ctrl_c_is_ignored_it_stays_so() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with deferring_interrupts(), heeding_interrupts():
            press()
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_heeded_it_comes_in_the_place_of_an_error_that_was_made_of_it() -> None:
    def work() -> None:
        with heeding_interrupts():
            try:
                press()
            except KeyboardInterrupt:
                raise RuntimeError("a compiler that was interrupted") from None

    with pytest.raises(KeyboardInterrupt):
        work()


def test_an_error_without_ctrl_c_is_that_error() -> None:
    def work() -> None:
        with heeding_interrupts():
            raise RuntimeError("something else")

    with pytest.raises(RuntimeError, match="something else"):
        work()


def test_sigterm_with_a_handler_waits_as_ctrl_c_does_and_is_the_signal_that_comes() -> None:
    heard = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        with deferring_interrupts():
            signal.raise_signal(signal.SIGTERM)
            assert heard == []
        assert heard == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_sigterm_without_a_handler_stays_with_the_system() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with deferring_interrupts():
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)
