"""What a reproduction and the figures about guarantees share: tasks in a folder, a forecast, a run, and files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Final

from sateen.pipeline import SILENT, Progress, processors
from sateen.pipeline.folder import ResultFolder
from sateen.pipeline.tasks import Pipeline, Rebuild, Task

if TYPE_CHECKING:
    from sateen.plot.style import Figure

__all__ = ["PaperRun"]

_TASKS: Final = "pieces"  # the folder for their files, inside that of the tables and figures


class PaperRun(ABC):
    """Tasks of the paper, whose files are in a folder beside its tables and figures."""

    def __init__(self, folder: str | FilePath, workers: int | None, progress: Progress) -> None:
        self.path = FilePath(folder)
        self.folder = ResultFolder(self.path / _TASKS)
        self.workers, self.progress = workers, progress
        self.cores = workers or processors()
        self.spent: Mapping[str, float] = {}  # seconds of the last run, by what was done

    @property
    @abstractmethod
    def stages(self) -> Mapping[str, Sequence[Task[object]]]:
        """All tasks by what is done, in the order in which they run."""

    @property
    @abstractmethod
    def rebuild(self) -> Rebuild:
        """How another process gets the same tasks."""

    @cached_property
    def pipeline(self) -> Pipeline:
        """All tasks, finished or pending."""
        return Pipeline(self.folder, tuple(task for some in self.stages.values() for task in some), self.rebuild)

    def forecast(self) -> dict[str, float]:
        """About how many seconds the pending tasks take, by what is done."""
        pending = {stage: [task for task in some if not task.finished] for stage, some in self.stages.items()}
        return {stage: sum(task.seconds for task in some) for stage, some in pending.items() if some}

    def compute(self) -> None:
        """Compute what is pending; the folder must be held."""
        watcher = self.progress if self.pipeline.pending() else SILENT
        self.spent = self.pipeline.run(workers=self.workers, progress=watcher).stage_seconds

    def save(self, figures: Mapping[str, Figure], suffix: str) -> list[FilePath]:
        """Write figures by name into the folder; the paths of the files."""
        from sateen.plot.figures import save

        files = {self.path / f"{name}{suffix}": figure for name, figure in figures.items()}
        for file, figure in files.items():
            with self.folder.writing(file):
                save(figure, file)
        return list(files)
