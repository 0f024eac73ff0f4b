"""Ctrl-C and SIGTERM at any moment: the exit code says what happened, the message how to go on, and nothing is lost."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from fault_runs import Bench, Moment, every

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")]

HOW_TO_GO_ON: Final = {
    "study": "what is finished is in result; run the same study again to go on",
    "side by side": "what is finished is in result; run the same study again to go on",
    "paper": "what is finished is in result/pieces; run the same again to go on",
}
MOMENTS: Final = {
    "study": ("train gone: ", "test gone: ", "plan: ", "calibrate gone: ", "score gone: "),
    "side by side": ("train gone, train half: ", "learn gone own_learners:Pooled: "),
    "paper": ("train1 a", "fit a svi-gp 1", "plan a 1"),
}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("signals"))


@pytest.mark.parametrize("name", every(MOMENTS, "study"))
def test_ctrl_c_at_any_moment_says_how_to_go_on_and_nothing_is_lost(bench: Bench, name: str) -> None:
    shares = np.random.default_rng([130, list(MOMENTS).index(name)]).uniform(0.0, 1.0, len(MOMENTS[name]))
    stopped = 0
    for words, share in zip(MOMENTS[name], shares.tolist(), strict=True):
        # A terminal sends it to all processes.
        ended = bench.stop(name, Moment(words), name, share, signal.SIGINT)
        assert "Traceback" not in ended.err, ended.err
        if ended.code == 130:
            stopped += 1
            assert ended.err.splitlines()[-2:] == [HOW_TO_GO_ON[name], "interrupted"]
            assert ended.out == ""
        else:
            assert ended.code == 0, ended.err  # it was faster
    assert stopped > len(shares) / 2
    bench.check(name, name)


def test_ctrl_c_while_processes_start_is_one_message_and_no_traceback(bench: Bench) -> None:
    command = bench.begin("side by side", "start")

    def is_loading() -> bool:
        maps = [Path(f"/proc/{worker}/maps") for worker in command.workers()]
        return any("_multiarray_umath" in each.read_text() for each in maps if each.exists())  # of numpy

    assert command.until(is_loading)
    command.send(signal.SIGINT, to="group")
    ended = command.end()
    assert (ended.code, "Traceback" in ended.err) == (130, False), ended.err
    assert ended.err.splitlines()[-2:] == [HOW_TO_GO_ON["side by side"], "interrupted"]


@pytest.mark.parametrize("name", every(["study", "side by side"], "study"))
def test_sigterm_ends_all_processes_says_how_to_go_on_and_nothing_is_lost(bench: Bench, name: str) -> None:
    words = MOMENTS[name][-1]
    ended = bench.stop(name, Moment(words, to="main"), f"terminated {name}", 0.3, signal.SIGTERM)
    assert "Traceback" not in ended.err
    assert ended.code == 128 + signal.SIGTERM
    assert HOW_TO_GO_ON[name] in ended.err.splitlines()
    bench.check(name, f"terminated {name}")
