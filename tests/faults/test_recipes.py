"""The lines of docs/scale.md for a laptop, as they stand there: a scheduler, workers, and a study that runs on them."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from clusters import wait_for
from command_line import USUAL
from small_studies import SMALL

pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="kills groups of processes"),
]
DOCS = Path(__file__).resolve().parents[2] / "docs" / "scale.md"


def begin(line: str, folder: Path) -> subprocess.Popen[str]:
    """A line of the page, in a group of its own."""
    environment = {**USUAL, "PYTHONPATH": os.pathsep.join(sys.path)}
    with open(folder / f"{'-'.join(shlex.split(line)[:2])}.log", "wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", *shlex.split(line)],
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
        )


def end(process: subprocess.Popen[str]) -> None:
    """Kill it, and all that it has started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(60)


def test_the_lines_for_a_laptop_run_a_study(tmp_path: Path) -> None:
    text = DOCS.read_text(encoding="utf-8").split("## A laptop")[1]
    scheduler_line, worker_line, run_line = re.findall(r"```text\n(.*?)```", text, re.DOTALL)[0].splitlines()
    (tmp_path / "study.toml").write_text(SMALL)
    processes = [begin(scheduler_line, tmp_path)]
    try:
        wait_for((tmp_path / "scheduler.json").exists)
        processes.append(begin(worker_line, tmp_path))
        study = begin(run_line, tmp_path)
        processes.append(study)
        assert study.wait(300) == 0, (tmp_path / "sateen-run.log").read_text()
        assert list(tmp_path.glob("*-result/result.json"))
    finally:
        for process in reversed(processes):
            end(process)
