"""Small pipelines for tests; in a module of its own, from which other processes can rebuild them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from sateen.pipeline.folder import ResultFolder, read_checksummed, write_checksummed
from sateen.pipeline.tasks import Pipeline, Rebuild, RunContext, Save, Task, folder_task


def squares(path: str, numbers: tuple[int, ...], how: str = "") -> Pipeline:
    """The squares of some numbers, computed in parallel, and their sum."""
    folder = ResultFolder(Path(path))

    def square(number: int) -> Task[dict[str, Any]]:
        def make(context: RunContext) -> Save:
            if how == "fail" and number == 2:
                raise ValueError("two cannot be squared")
            if how == "exhaust" and number == 2:
                np.empty(2**50)
            context.checkpoint.write_text("half")
            context.store.write_text("runs")
            time.sleep(0.01)
            content = {"square": number**2, "process": os.getpid()}
            return lambda file: write_checksummed(file, content)

        return folder_task(
            folder,
            f"square {number}",
            {"number": number},
            make,
            read=read_checksummed,
            parallel=True,
            about="n²",
            seconds=float(number),
        )

    tasks = [square(number) for number in numbers]

    def make(context: RunContext) -> Save:
        total = sum(task.value()["square"] for task in tasks)
        return lambda file: write_checksummed(file, {"sum": total, "process": os.getpid()})

    total = folder_task(folder, "sum", {}, make, read=read_checksummed, needs=tasks, seconds=1.0)
    return Pipeline(folder, (*tasks, total), Rebuild(squares, (path, numbers, how)))
