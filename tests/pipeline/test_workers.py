"""Processes side by side: all is done, in order, and nobody outlives the one who called."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from crew_work import fail, locate, sleep, vanish, write
from sateen.core.errors import InputError, SateenError
from sateen.pipeline.workers import side_by_side


def do(work, folder: Path, names: str = "abcde", processes: int = 2, began=lambda name: None):
    ended: list[str] = []
    side_by_side(
        work,
        list(names),
        lambda name: (str(folder), name),
        processes=processes,
        began=began,
        ended=lambda name, value: ended.append(name),
    )
    return ended


def wait_for(condition, seconds: float = 150.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def is_alive(process: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):  # it may end while its status is read
        return False


def test_all_is_done_begun_in_order_by_no_more_processes_than_asked_for(tmp_path: Path):
    begun: list[str] = []
    ended = do(write, tmp_path, began=begun.append)
    assert begun == list("abcde")
    assert sorted(ended) == begun
    at_work = {file.read_text() for file in tmp_path.iterdir()}
    assert len(list(tmp_path.iterdir())) == 5
    assert len(at_work) <= 2
    assert str(os.getpid()) not in at_work


def test_processes_work_in_the_folder_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    do(locate, tmp_path, "ab")
    assert {file.read_text() for file in tmp_path.iterdir()} == {str(tmp_path)}


def test_an_error_ends_all_and_is_told(tmp_path: Path):
    with pytest.raises(InputError, match="a cannot be made"):
        do(fail, tmp_path, processes=1)


def test_a_process_that_vanishes_is_an_error_that_says_what_next(tmp_path: Path):
    with pytest.raises(SateenError, match=r"exited unexpectedly[^\n]*\n  run the same again with fewer workers"):
        do(vanish, tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_ctrl_c_ends_what_is_in_the_midst_of_its_work(tmp_path: Path):
    def press(name: str) -> None:
        if name == "b":
            wait_for(lambda: (tmp_path / "a").exists() and (tmp_path / "a").read_text())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        do(sleep, tmp_path, began=press)
    assert not is_alive(int((tmp_path / "a").read_text()))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_nobody_outlives_a_caller_that_is_killed(tmp_path: Path):
    code = (
        "from crew_work import sleep; from sateen.pipeline.workers import side_by_side\n"
        f"side_by_side(sleep, 'ab', lambda name: ({str(tmp_path)!r}, name), processes=2, began=print, ended=print)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    caller = subprocess.Popen([sys.executable, "-c", code], env=environment)
    try:
        wait_for(lambda: len([file for file in tmp_path.iterdir() if file.read_text()]) == 2)
    finally:
        caller.kill()
        caller.wait()
    at_work = [int(file.read_text()) for file in tmp_path.iterdir()]
    wait_for(lambda: not any(map(is_alive, at_work)))


def test_a_script_without_a_guard_is_not_run_again_by_its_workers(tmp_path: Path):
    script = tmp_path / "script.py"
    folder = tmp_path / "out"
    folder.mkdir()
    script.write_text(
        "from crew_work import write; from sateen.pipeline.workers import side_by_side\n"
        "print('begins')\n"
        f"side_by_side(write, 'ab', lambda name: ({str(folder)!r}, name), processes=2,\n"
        "    began=lambda name: None, ended=lambda name, value: None)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "begins\n"
    assert sorted(file.name for file in folder.iterdir()) == ["a", "b"]
