"""Tasks and pipelines: work whose every result is a file, computed once.

A task knows its file before anything runs: the name ends in the task's `key`, a fingerprint of all that decides the
result, which are its inputs, the keys of the tasks it needs, and the version of sateen. Times, workers and comments
have no part in it. So what is pending is known at once, and a run that was killed resumes with what is missing.
Later tasks read the files of earlier ones, never their memory: a run that was interrupted and one that was not see the
same bits. Tasks that run side by side do so in worker processes, which end when the process that called them does,
however that ends.

    def make(context):                      # computes, and returns what writes the file
        content = {"sum": sum(numbers)}
        return lambda file: write_checksummed(file, content)

    folder = ResultFolder(path)
    total = folder_task(folder, "total", {"numbers": numbers}, make, read=read_checksummed)
    pipeline = Pipeline(folder, (total,))
    pipeline.states()                       # {"total": "pending"}
    with folder.held():
        pipeline.run(workers=2)
    total.value()                           # {"sum": 6}
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import Final, Generic, Literal, TypeAlias, TypedDict, TypeVar, Unpack

from sateen.core.errors import SateenError, StoreError
from sateen.core.fingerprints import fingerprint
from sateen.core.interrupts import heeding_interrupts
from sateen.core.progress import SILENT, Progress, working
from sateen.core.text import duration_text
from sateen.core.threads import on_one_thread, processors
from sateen.core.version import VERSION
from sateen.pipeline.context import CHECKPOINT, STORE
from sateen.pipeline.context import RunContext as RunContext
from sateen.pipeline.elsewhere import Elsewhere, compute, order_of, save_answer
from sateen.pipeline.folder import CachedFile, ResultFolder
from sateen.pipeline.workers import KEPT, side_by_side, work_off
from sateen.pools.crew import Crew
from sateen.pools.messages import machine
from sateen.pools.pool import Pool

_Value_co = TypeVar("_Value_co", covariant=True)
_Item = TypeVar("_Item")
_Value = TypeVar("_Value")
State: TypeAlias = Literal["reused", "computed", "pending"]
Save: TypeAlias = "Callable[[FilePath], None]"  # writes the task's file, once it is certain that nothing cut it short
_LEFT_BEHIND: Final = (STORE, f"{STORE}-wal", f"{STORE}-shm", CHECKPOINT)  # next to a file, while it is computed
_MOST_NAMED: Final = 4  # tasks of a stage that are named one by one
_TELLING: Final = 0.2  # share of the work after which the pace of this machine shows


@dataclass(frozen=True, slots=True)
class Task(Generic[_Value_co]):
    """A piece of work with one result in one file; `folder_task` makes one.

    - `key` fixes the result, `needs` are the tasks whose results it reads.
    - `make` computes and returns what writes the file.
    - `extra` are further files that `make` writes; without them the task is not finished.
    - Tasks of one `group` are computed together: `make` of the first that is pending writes the files of all that are.
    - `elsewhere` is how a worker of a pool makes the task again; without it, a task is computed on this machine.
    - A `parallel` task runs next to others in a process of its own. One that is not has all workers for itself.
    - `stage` is the kind of work, `about` says what is done, `runs` how many runs of a model it makes, and `seconds`
      about how long it takes, 0 if that is not known.
    """

    name: str
    key: str
    file: FilePath
    make: Callable[[RunContext], Save]
    read: Callable[[FilePath], _Value_co]
    needs: tuple[Task[object], ...] = ()
    extra: tuple[FilePath, ...] = ()
    stage: str = ""
    group: str = ""
    parallel: bool = False
    about: str = ""
    runs: int = 0
    seconds: float = 0.0
    elsewhere: Elsewhere | None = None

    @property
    def finished(self) -> bool:
        """Whether its result is there."""
        try:
            return self.file.exists() and all(file.exists() for file in self.extra)
        except OSError as error:
            why = f"{error.strerror or error}\n  allow it, or choose another folder"
            raise StoreError(f"cannot read the folder {self.file.parent}: {why}") from None

    def value(self) -> _Value_co:
        """The result, read from the file; an error says how to recompute a damaged one."""
        return CachedFile(self.file, self.read).value()


class TaskOptions(TypedDict, total=False):
    """What a task may say of itself, besides what decides its result."""

    stage: str
    group: str
    parallel: bool
    about: str
    runs: int
    seconds: float
    elsewhere: Elsewhere | None


def folder_task(
    folder: ResultFolder,
    name: str,
    inputs: Mapping[str, object],
    make: Callable[[RunContext], Save],
    *,
    read: Callable[[FilePath], _Value_co],
    needs: Sequence[Task[object]] = (),
    suffix: str = ".json",
    extra: Sequence[str] = (),
    **options: Unpack[TaskOptions],
) -> Task[_Value_co]:
    """The task of this name in a folder; `inputs` is plain data. `extra` are the suffixes of its further files."""
    key = fingerprint({"sateen": VERSION, "task": name, "inputs": inputs, "needs": [task.key for task in needs]})
    file = folder.file(re.sub(r"[^\w.-]", "-", name.replace(" ", ".")), key, suffix)
    options.setdefault("stage", name.split()[0])
    return Task(name, key, file, make, read, tuple(needs), tuple(file.with_suffix(each) for each in extra), **options)


@dataclass(frozen=True, slots=True)
class Rebuild:
    """How another process rebuilds a pipeline: a function of a module, and plain arguments that can be hashed."""

    function: Callable[..., Pipeline]
    arguments: tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run did: the state of each task, the seconds of each that was computed, and of each stage by the clock;
    and of tasks that were computed elsewhere, by what: the processor and the versions of libraries."""

    states: Mapping[str, State]
    seconds: Mapping[str, float]
    stage_seconds: Mapping[str, float]
    machines: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Tasks in a folder, each after those it needs. With `rebuild`, parallel tasks run in processes side by side."""

    folder: ResultFolder
    tasks: tuple[Task[object], ...]
    rebuild: Rebuild | None = None
    _by_name: Mapping[str, Task[object]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        known: dict[str, Task[object]] = {}
        for task in self.tasks:
            if task.name in known or any(need.name not in known for need in task.needs):
                raise SateenError(f"the task {task.name!r} occurs twice, or comes before one it needs")
            known[task.name] = task
        object.__setattr__(self, "_by_name", MappingProxyType(known))

    def __getitem__(self, name: str) -> Task[object]:
        """The task with this name."""
        return self._by_name[name]

    def pending(self) -> tuple[Task[object], ...]:
        """The tasks whose results are not there."""
        return tuple(task for task in self.tasks if not task.finished)

    def states(self) -> dict[str, State]:
        """The state of every task now: its result would be "reused", or is "pending"."""
        return {task.name: "reused" if task.finished else "pending" for task in self.tasks}

    def run(self, *, workers: int | None = None, progress: Progress = SILENT, pool: Pool | None = None) -> Outcome:
        """Compute what is pending, in order; parallel tasks side by side, those that take longest first; with a pool,
        at its places.

        The folder must be held. An error of one task, or Ctrl-C, ends all; what is finished stays.
        """
        return _Run(self, workers, progress, pool).run()

    def compute(
        self, task: Task[object], workers: int | None = 1, progress: Progress = SILENT, pool: Pool | None = None
    ) -> float:
        """Compute one task now, and write its files; the seconds it took."""
        start = time.perf_counter()
        with self.folder.writing(task.file):
            with heeding_interrupts():
                save = on_one_thread(task.make)(RunContext(task.file, workers, progress, pool))
            save(task.file)
        return time.perf_counter() - start


class _Run:
    """One run of a pipeline: what is pending, what is done, and how long it took."""

    def __init__(self, pipeline: Pipeline, workers: int | None, progress: Progress, pool: Pool | None) -> None:
        self.pipeline, self.workers, self.progress, self.pool = pipeline, workers, progress, pool
        self.machines: dict[str, Mapping[str, str]] = {}
        self.pending = {task.name: task for task in pipeline.pending()}
        self.states: dict[str, State] = {
            task.name: "computed" if task.name in self.pending else "reused" for task in pipeline.tasks
        }
        self.count, self.begun = len(self.pending), 0
        expected = [task.seconds for task in self.pending.values()]
        self.expected, self.done = sum(expected) if all(expected) else 0.0, 0.0
        self.start = time.perf_counter()
        self.seconds: dict[str, float] = {}
        self.stage_seconds: dict[str, float] = {}

    def run(self) -> Outcome:
        rebuild, processes = self.pipeline.rebuild, self.workers or processors()

        def asked(task: Task[object]) -> tuple[object, ...]:
            return rebuild, task.name, task.key

        self._reuse()
        for task in self.pipeline.tasks:
            if task.name not in self.pending:
                continue
            start = time.perf_counter()
            batch = self._ready() if task.parallel else []
            if self.pool is not None and task.elsewhere is not None and batch:
                self._elsewhere(self.pool, [each for each in batch if each.elsewhere is not None])
            elif min(processes, len(batch)) > 1 and rebuild is not None:
                side_by_side(_compute_elsewhere, batch, asked, processes=processes, began=self._begin, ended=self._end)
            else:
                self._alone(task)
            passed = time.perf_counter() - start
            self.stage_seconds[task.stage] = self.stage_seconds.get(task.stage, 0.0) + passed
        return Outcome(self.states, self.seconds, self.stage_seconds, self.machines)

    def _reuse(self) -> None:
        """Say which results are reused, and remove what a run that was killed left next to them."""
        stages: dict[str, list[str]] = {}
        for task in self.pipeline.tasks:
            if task.name not in self.pending:
                _clear(task)
                stages.setdefault(task.stage, []).append(task.name)
        for stage, names in stages.items():
            shown = ", ".join(names) if len(names) <= _MOST_NAMED else f"{len(names):,} results of {stage}"
            tell(self.progress, f"{shown}: reused")

    def _ready(self) -> list[Task[object]]:
        """The parallel tasks that can run now; the longest first, so that none is left alone at the end for long."""
        ready = (task for task in self.pending.values() if not any(need.name in self.pending for need in task.needs))
        return sorted((task for task in ready if task.parallel), key=lambda task: -task.seconds)

    def _alone(self, task: Task[object]) -> None:
        together = [each for each in self.pending.values() if each.group == task.group] if task.group else [task]
        self._begin(*together)
        seconds = self.pipeline.compute(task, self.workers, self.progress, self.pool)
        for each in together:
            self._end(each, seconds)

    def _elsewhere(self, pool: Pool, batch: list[Task[object]]) -> None:
        """Have the places of a pool compute tasks, whose files come back and are written here."""

        def read(task: Task[object], answer: object) -> float:
            with self.pipeline.folder.writing(task.file):
                seconds, told = save_answer(task, answer)
            if told != machine() and told not in self.machines.values():
                others = ", ".join(f"{name} {text}" for name, text in told.items() if text != machine().get(name))
                tell(self.progress, f"{task.name}: computed by {others}; its last digits may differ from those here")
            self.machines[task.name] = told
            return seconds

        def note(text: str) -> None:
            tell(self.progress, text)

        crew: Crew[Task[object], float] = Crew(pool, read, kept=KEPT, most=self.workers, ahead=1, note=note)
        work_off(crew, batch, lambda task: (compute, order_of(task)), self._begin, self._end)

    def _begin(self, *tasks: Task[object]) -> None:
        self.begun += len(tasks)
        head = ""
        if self.expected:
            known = self.done > _TELLING * self.expected
            pace = (time.perf_counter() - self.start) / self.done if known else 1.0
            left = duration_text(max(pace * (self.expected - self.done), 1.0))
            head = f"{self.begun} of {self.count}, about {left} left: "
        about = f": {tasks[0].about}" if tasks[0].about else ""
        tell(self.progress, f"{head}{', '.join(task.name for task in tasks)}{about}")

    def _end(self, task: Task[object], seconds: float) -> None:
        if not task.finished:
            raise SateenError(f"the task {task.name!r} ended without its file {task.file}")
        del self.pending[task.name]
        _clear(task)
        self.done += task.seconds
        self.seconds[task.name] = seconds


def tell(progress: Progress, text: str) -> None:
    """Say one thing to a watcher, as a piece of work of its own."""
    with working(progress, text.partition(":")[0], 1, "task"):
        progress.note(text)
        progress.advance(1)


def _clear(task: Task[object]) -> None:
    """Remove what is next to the file of a finished task: of this run, or of one that was killed."""
    for suffix in _LEFT_BEHIND:
        task.file.with_suffix(suffix).unlink(missing_ok=True)


def _compute_elsewhere(rebuild: Rebuild, name: str, key: str) -> float:
    """Compute a task in this process, for another one."""
    pipeline = _rebuilt(rebuild)
    task = pipeline[name]
    if task.key != key:
        raise SateenError(f"a file that the task {name!r} depends on was changed while it ran\n  run the same again")
    return pipeline.compute(task)


@cache
def _rebuilt(rebuild: Rebuild) -> Pipeline:
    return rebuild.function(*rebuild.arguments)
