"""Ctrl-C and SIGTERM at any moment: the exit code says what happened, the message how to go on, and nothing is lost."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from fault_runs import Bench, Moment, every

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")]

HOW_TO_GO_ON: Final = {
    "study": "what is finished is in result; run the same study again to resume",
    "side by side": "what is finished is in result; run the same study again to resume",
    "paper": "what is finished is in result/pieces; run the same again to resume",
}
# A terminal sends Ctrl-C to all processes; who ends a command by SIGTERM sends it to the first one only.
MOMENTS: Final = {
    "study": (
        ("train gone: ", signal.SIGINT),
        ("plan: ", signal.SIGTERM),
        ("calibrate gone: ", signal.SIGINT),
        ("score gone: ", signal.SIGINT),
    ),
    "side by side": (
        ("train gone, train half: ", signal.SIGINT),
        ("learn gone own_learners:Pooled: ", signal.SIGINT),
        ("learn gone own_learners:Pooled: ", signal.SIGTERM),
    ),
    "paper": (("train1 a", signal.SIGINT), ("fit a svi-gp 1", signal.SIGTERM), ("plan a 1", signal.SIGINT)),
}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("signals"))


@pytest.mark.parametrize("name", every(MOMENTS, "study"))
def test_ctrl_c_and_sigterm_at_any_moment_say_how_to_go_on_and_nothing_is_lost(bench: Bench, name: str) -> None:
    """One after another, each goes on from what the one before it has left."""
    rng = np.random.default_rng([130, list(MOMENTS).index(name)])
    stopped = 0
    for words, number in MOMENTS[name]:
        to = "group" if number == signal.SIGINT else "main"
        ended = bench.stop(name, Moment(words, to=to), name, float(rng.uniform(0.0, 0.8)), number)
        assert "Traceback" not in ended.err, ended.err
        if ended.code == 0:
            continue  # it was faster
        stopped += 1
        assert ended.code == 128 + number, ended.err
        assert ended.out == ""
        if number == signal.SIGINT:
            assert ended.err.splitlines()[-2:] == [HOW_TO_GO_ON[name], "interrupted"]
        else:
            assert HOW_TO_GO_ON[name] in ended.err.splitlines()
    assert stopped > len(MOMENTS[name]) / 2
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


def test_ctrl_c_after_the_command_has_ended_changes_nothing(tmp_path: Path) -> None:
    """Python's own end takes a while after much was loaded, and resets what it does at Ctrl-C."""
    program, model = tmp_path / "late.py", tmp_path / "birth.sateen"
    model.write_text("species A = 0\n\nbirth: 0 -> A @ 1.0\n")
    program.write_text(
        "import builtins, os, sys\n"
        "from sateen.cli import main\n"
        "class Late:\n"
        "    def __del__(self, kill=os.kill, process=os.getpid()):\n"
        "        kill(process, 2)\n"
        "builtins.late = Late()  # one of the last objects to go\n"
        f"sys.argv = ['sateen', 'inspect', {str(model)!r}]\n"
        "main()\n"
    )
    ended = subprocess.run([sys.executable, program], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, ""), ended
