"""Tasks: every file is known before anything runs, computed once, and the same however many processes compute it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from one_place import OnePlace
from sateen.core.errors import Interrupted, SateenError, StoreError
from sateen.pipeline.elsewhere import Elsewhere
from sateen.pipeline.folder import ResultFolder, read_checksummed, write_checksummed
from sateen.pipeline.tasks import Outcome, Pipeline, Rebuild, RunContext, Save, folder_task
from sateen.pools import messages
from task_pipelines import squares


class Notes:
    """A watcher that keeps the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def start(self, label: str, total: int, unit: str) -> None: ...

    def advance(self, n: int) -> None: ...

    def note(self, text: str) -> None:
        self.notes.append(text)

    def finish(self) -> None: ...


def run(pipeline: Pipeline, workers: int = 1, **options: Any) -> Outcome:
    with pipeline.folder.held():
        return pipeline.run(workers=workers, **options)


def total(pipeline: Pipeline) -> Any:
    return pipeline["sum"].value()


class Foreign(OnePlace):
    """A worker with another processor, whose file is there already."""

    def __init__(self, file: bytes) -> None:
        self.file = file

    def answer(self, work: Any, args: tuple[Any, ...]) -> bytes:
        words, _ = messages.unpacked(args[0])
        told = {**messages.machine(), "processor": "another one"}
        return messages.packed({"key": words["key"], "seconds": 1.5, "machine": told}, self.file)


def test_a_fit_of_another_processor_is_noted_and_its_last_digits_are_warned_of(tmp_path: Path) -> None:
    write_checksummed(tmp_path / "answer.json", {"x": 1.0})
    folder = ResultFolder(tmp_path / "out")

    def make(context: RunContext) -> Save:
        raise AssertionError("it is made elsewhere")

    elsewhere = Elsewhere("sateen.study.fits:fit_in", ())
    task = folder_task(folder, "learn x", {}, make, read=read_checksummed, parallel=True, elsewhere=elsewhere)
    notes = Notes()
    pool = Foreign((tmp_path / "answer.json").read_bytes())
    outcome = run(Pipeline(folder, (task,)), progress=notes, pool=pool)
    assert "learn x: computed by processor another one; its last digits may differ from those here" in notes.notes
    assert outcome.machines["learn x"]["processor"] == "another one"
    assert outcome.seconds["learn x"] == 1.5
    assert task.value() == {"x": 1.0}


@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_pending_is_computed_and_then_reused(tmp_path: Path, workers: int) -> None:
    pipeline = squares(str(tmp_path / "out"), (1, 2, 3))
    assert set(pipeline.states().values()) == {"pending"}
    assert not (tmp_path / "out").exists()
    outcome = run(pipeline, workers)
    assert set(outcome.states.values()) == {"computed"}
    assert outcome.seconds.keys() == outcome.states.keys()
    assert outcome.stage_seconds.keys() == {"square", "sum"}
    assert total(pipeline)["sum"] == 14
    by_others = {pipeline[f"square {n}"].value()["process"] != os.getpid() for n in (1, 2, 3)}  # type: ignore[index]
    assert by_others == {workers > 1}
    assert total(pipeline)["process"] == os.getpid()
    again = run(pipeline, workers)
    assert set(again.states.values()) == {"reused"} == set(pipeline.states().values())
    assert dict(again.seconds) == {}


def test_a_key_depends_on_the_inputs_and_on_what_is_needed(tmp_path: Path) -> None:
    first, second = (squares(str(tmp_path), numbers) for numbers in ((1, 2), (1, 3)))
    assert first["square 1"].key == second["square 1"].key
    assert first["sum"].key != second["sum"].key
    run(first)
    assert second.states() == {"square 1": "reused", "square 3": "pending", "sum": "pending"}
    elsewhere = squares(str(tmp_path / "other"), (1, 2))
    assert [task.key for task in elsewhere.tasks] == [task.key for task in first.tasks]


def test_what_a_deleted_file_needs_is_not_recomputed_nor_what_needs_it(tmp_path: Path) -> None:
    pipeline = squares(str(tmp_path), (1, 2))
    run(pipeline)
    pipeline["square 2"].file.unlink()
    assert run(pipeline).states == {"square 1": "reused", "square 2": "computed", "sum": "reused"}


@pytest.mark.parametrize("workers", [1, 2])
def test_checkpoints_and_stores_of_finished_tasks_are_cleared(tmp_path: Path, workers: int) -> None:
    pipeline = squares(str(tmp_path), (1, 2))
    run(pipeline, workers)
    left = pipeline["square 1"].file.with_suffix(".checkpoint")
    assert sorted(file.suffix for file in (tmp_path / "stages").iterdir()) == [".json"] * 3
    left.write_text("left by a run that was killed")
    run(pipeline)
    assert not left.exists()


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_ends_the_run_and_what_is_finished_stays(tmp_path: Path, workers: int) -> None:
    broken = squares(str(tmp_path), (1, 3, 2), "fail")
    with pytest.raises(ValueError, match="two cannot be squared"):
        run(broken, workers)
    assert broken.states()["square 2"] == broken.states()["sum"] == "pending"
    assert broken.states()["square 3"] == "reused" or workers > 1
    run(squares(str(tmp_path), (1, 3, 2)))
    assert total(broken)["sum"] == 14


@pytest.mark.parametrize("workers", [1, 2])
def test_a_task_without_memory_is_an_error_that_says_what_is_kept_and_what_next(tmp_path: Path, workers: int) -> None:
    greedy = squares(str(tmp_path), (1, 3, 2), "exhaust")
    needed = r"not enough memory to compute square\.2\.\w+\.json: Unable to allocate 8\.00 PiB"
    with pytest.raises(SateenError, match=rf"{needed}.*\n  what is finished is kept; run the same again with fewer"):
        run(greedy, workers)
    assert greedy.states()["square 2"] == greedy.states()["sum"] == "pending"
    run(squares(str(tmp_path), (1, 3, 2)))
    assert total(greedy)["sum"] == 14


def test_those_that_take_longest_begin_first_and_the_time_left_is_told(tmp_path: Path) -> None:
    watcher = Notes()
    run(squares(str(tmp_path), (1, 3, 2)), 2, progress=watcher)
    assert [note.split(": ", 1)[1] for note in watcher.notes] == ["square 3: n²", "square 2: n²", "square 1: n²", "sum"]
    assert watcher.notes[0].startswith("1 of 4, about 7 s left: ")


def test_tasks_of_a_group_are_computed_together(tmp_path: Path) -> None:
    folder, calls = ResultFolder(tmp_path), []
    files: dict[str, Path] = {}

    def make(context: RunContext) -> Save:
        missing = [name for name, file in files.items() if not file.exists()]
        calls.append(missing)

        def save(file: Path) -> None:
            for name in missing:
                write_checksummed(files[name], {"name": name})

        return save

    tasks = [folder_task(folder, name, {}, make, read=read_checksummed, group="all") for name in "abc"]
    files |= {task.name: task.file for task in tasks}
    pipeline = Pipeline(folder, tuple(tasks))
    write = make(RunContext(files["b"], 1, Notes()))
    calls.clear()
    with folder.held():
        write(files["b"])
    for name in "ac":
        files[name].unlink()
    watcher = Notes()
    assert run(pipeline, progress=watcher).states == {"a": "computed", "b": "reused", "c": "computed"}
    assert calls == [["a", "c"]]
    assert watcher.notes == ["b: reused", "a, c"]


def test_a_task_with_further_files_is_finished_when_all_are_there(tmp_path: Path) -> None:
    folder = ResultFolder(tmp_path)

    def make(context: RunContext) -> Save:
        def save(file: Path) -> None:
            write_checksummed(file, {})
            file.with_suffix(".txt").write_text("more")

        return save

    task = folder_task(folder, "both", {}, make, read=read_checksummed, extra=[".txt"])
    run(Pipeline(folder, (task,)))
    assert task.finished
    task.extra[0].unlink()
    assert not task.finished


def test_ctrl_c_says_how_to_resume(tmp_path: Path) -> None:
    def make(context: RunContext) -> Save:
        raise KeyboardInterrupt

    folder = ResultFolder(tmp_path / "out")
    with pytest.raises(Interrupted, match=rf"what is finished is in {tmp_path}/out; run the same again to resume"):
        run(Pipeline(folder, (folder_task(folder, "one", {}, make, read=read_checksummed),)))


def test_a_damaged_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    pipeline = squares(str(tmp_path), (1,))
    run(pipeline)
    pipeline["square 1"].file.write_text("{")
    with pytest.raises(StoreError, match=r"square\.1\.\w+\.json is damaged[^\n]*\n  delete the file and run"):
        pipeline["square 1"].value()


def test_a_task_comes_once_and_after_those_it_needs(tmp_path: Path) -> None:
    one, two, both = squares(str(tmp_path), (1, 2)).tasks
    for tasks in ((both, one, two), (one, one)):
        with pytest.raises(SateenError, match="occurs twice, or comes before one it needs"):
            Pipeline(ResultFolder(tmp_path), tasks)


def test_a_process_that_would_compute_something_else_refuses(tmp_path: Path) -> None:
    pipeline = squares(str(tmp_path), (1, 2))
    other = replace(pipeline, tasks=(replace(pipeline.tasks[0], key="0" * 64), *pipeline.tasks[1:2]))
    with pytest.raises(SateenError, match="was changed while it ran"):
        run(replace(other, rebuild=Rebuild(squares, (str(tmp_path), (1, 2)))), 2)


def test_a_task_without_its_file_is_an_error(tmp_path: Path) -> None:
    folder = ResultFolder(tmp_path)
    task = folder_task(folder, "none", {}, lambda context: lambda file: None, read=read_checksummed)
    with pytest.raises(SateenError, match="ended without its file"):
        run(Pipeline(folder, (task,)))


def test_many_results_that_are_reused_are_counted(tmp_path: Path) -> None:
    numbers = (1, 2, 3, 4, 5)
    run(squares(str(tmp_path), numbers))
    watcher = Notes()
    run(squares(str(tmp_path), numbers), progress=watcher)
    assert watcher.notes == ["5 results of square: reused", "sum: reused"]
