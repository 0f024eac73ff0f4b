"""A cluster of dask on this machine, for tests: a scheduler and workers, each a process of its own, to be killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

_QUIET = {
    "DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "error",
    "DASK_DISTRIBUTED__ADMIN__TICK__LIMIT": "60s",
    "DASK_DISTRIBUTED__SCHEDULER__WORK_STEALING": "False",
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0",  # the death of a worker is told at once
    "OMP_NUM_THREADS": "1",
}


class Cluster:
    """A scheduler on a free port, to which `add` adds workers; everything is killed at the end of the block."""

    def __init__(
        self, folder: Path, workers: int = 0, settings: Mapping[str, str] | None = None, protocol: str = "tcp"
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.environment = {**os.environ, **_QUIET, **(settings or {})}
        self.file = folder / "scheduler.json"
        self.processes: list[subprocess.Popen[bytes]] = []
        options = ["--protocol", protocol, "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-jupyter"]
        self.scheduler = self._begin("scheduler", [*options, "--scheduler-file", str(self.file)])
        wait_for(self.file.exists)
        self.workers = [self.add() for _ in range(workers)]

    @property
    def address(self) -> str:
        return f"dask:{self.file}"

    def add(
        self, *options: str, threads: int = 1, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """A further worker, which joins as soon as it has started."""
        given = ["--scheduler-file", str(self.file), "--nthreads", str(threads), "--no-nanny", "--no-dashboard"]
        return self._begin("worker", [*given, "--memory-limit", "0", *options], environment)

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """As `kill -9` does, with all that it has started."""
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self.processes):
            self.kill(process)

    def _begin(
        self, kind: str, options: list[str], environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        log = open(self.folder / f"{kind}-{len(self.processes)}.log", "wb")  # noqa: SIM115
        with log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", kind, *options],
                cwd=self.folder,
                env={**self.environment, **(environment or {})},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.processes.append(process)
        return process


def wait_for(condition: Callable[[], object], seconds: float = 150.0) -> None:
    """Until it holds."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)
