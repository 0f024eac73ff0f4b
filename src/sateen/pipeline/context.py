"""What a task gets when it is computed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Final

from sateen.core.progress import Progress
from sateen.pools.pool import Pool

CHECKPOINT: Final = ".checkpoint"
STORE: Final = ".db"


@dataclass(frozen=True, slots=True)
class RunContext:
    """What a task gets when it is computed: its file, how many `workers` it may use (None: all), who watches, and the
    `pool` that makes its runs, None for this process."""

    file: FilePath
    workers: int | None
    progress: Progress
    pool: Pool | None = None

    @property
    def checkpoint(self) -> FilePath:
        """Where the task may keep what is half done; removed once its file is there."""
        return self.file.with_suffix(CHECKPOINT)

    @property
    def store(self) -> FilePath:
        """Where the task may keep runs while they are made; removed once its file is there."""
        return self.file.with_suffix(STORE)
