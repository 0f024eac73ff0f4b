"""A full disk under each kind of file: an error that says what is kept, and an identical result once there is room.

The disk is a small tmpfs, which takes root to mount; a file fills it up, and is removed to make room.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from fault_runs import STUDY, contents, every, run
from small_disks import Disk, small_disk
from small_studies import SMALL, changed

pytestmark = pytest.mark.slow

PLANNED: Final = changed(("points = 40, runs = 20", "budget = 2000"), ('normaliser = "constant"', ""))
PAPER: Final = ("paper", "a", "--share", "0.02", "--seeds", "1", "-l", "svi-gp", "-o", "result", "--workers", "2")
SIR: Final = Path(__file__).resolve().parents[2] / "examples" / "birth_death.sateen"
KEPT: Final = "then run the same again: finished tasks are kept"
# For each kind of file: what is missing in the result, how many kB are free, and what is said.
STUDY_FILES: Final = {
    "store": ("stages/*", 0, ("StoreError: the store result/stages/runs.db ", "then run the same again: what is")),
    "store of runs that are known": (
        "stages/train*",
        0,
        ("StoreError: the store ", "run the same again: what is stored"),
    ),
    "posterior": ("stages/learn*", 0, ("StoreError: cannot write result/stages/learn.gone.svi-gp.", KEPT)),
    "plan": ("stages/plan*", 0, ("StoreError: cannot write result/stages/plan.", KEPT)),
    "guarantee": ("stages/guarantee*", 0, ("StoreError: cannot write result/stages/guarantee.gone.", KEPT)),
    "score": ("stages/score*", 0, ("StoreError: cannot write result/stages/score.gone.", KEPT)),
    "result.json": ("result.json", 8, ("StoreError: cannot write result/result.json: No space left on device", KEPT)),
    "report.html": (
        "report.html",
        1000,
        ("StoreError: cannot write result/report.html: No space left on device", KEPT),
    ),
}
PAPER_FILES: Final = {
    "table": ("table.*", 0, ("StoreError: cannot write result/table.txt: No space left on device", KEPT)),
    "figure": ("", 16, ("StoreError: cannot write result/paper-a.svg: No space left on device", KEPT)),
}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with small_disk(tmp_path / "disk") as disk:
        yield disk


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A folder with the result of a study, which is made once."""

    @cache
    def made(text: str) -> Path:
        folder = tmp_path_factory.mktemp("study") / "whole"
        folder.mkdir()
        (folder.parent / "study.toml").write_text(text)
        assert run(*STUDY, folder=folder).code == 0
        return folder

    return made


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small part of the paper."""
    folder = tmp_path_factory.mktemp("paper")
    assert run(*PAPER, folder=folder).code == 0
    return folder


def fails_and_goes_on(
    command: tuple[str, ...], whole: Path, disk: Disk, missing: str, free: int, said: tuple[str, str]
) -> None:
    """Run where something is missing and there is no room for it; then with room."""
    here = disk.folder / "here"
    shutil.copytree(whole, here)
    for file in here.glob(f"result/{missing}") if missing else ():
        file.unlink()
    before = {name: content for name, content in contents(here / "result").items() if not name.endswith(".db")}
    disk.fill(free)
    full = run(*command, folder=here)
    assert full.code == 1, full.err
    assert "Traceback" not in full.err
    assert all(words in full.err for words in said), full.err
    left = contents(here / "result")
    assert {name: left.get(name) for name in before} == before
    assert not [name for name in left if name.endswith(".part")]
    disk.empty()
    done = run(*command, folder=here)
    assert done.code == 0, done.err
    assert contents(here / "result") == contents(whole / "result")


@pytest.mark.parametrize("kind", every(STUDY_FILES, "store", "posterior", "result.json", "report.html"))
def test_a_study_on_a_full_disk_says_what_is_kept_and_goes_on_when_there_is_room(
    kind: str, whole: Callable[[str], Path], disk: Disk
) -> None:
    text = PLANNED if kind == "plan" else SMALL  # a plan takes longer than all the rest
    (disk.folder / "study.toml").write_text(text)
    fails_and_goes_on(STUDY, whole(text), disk, *STUDY_FILES[kind])


@pytest.mark.parametrize("kind", every(PAPER_FILES, "figure"))
def test_the_paper_on_a_full_disk_says_what_is_kept_and_goes_on_when_there_is_room(
    kind: str, paper: Path, disk: Disk
) -> None:
    fails_and_goes_on(PAPER, paper, disk, *PAPER_FILES[kind])


def test_the_paper_clears_what_was_half_written_when_it_was_killed(paper: Path) -> None:
    part = paper / "result" / ".table.txt.1-1.part"
    part.write_text("half")
    assert run(*PAPER, folder=paper).code == 0
    assert not part.exists()


def test_a_table_of_a_run_on_a_full_disk_leaves_the_old_one(disk: Disk) -> None:
    csv = disk.folder / "run.csv"
    csv.write_text("old")
    disk.fill(0)
    ended = run("simulate", SIR, "--until", "100", "--csv", csv)
    assert (ended.code, ended.err) == (1, f"InputError: cannot write {csv}: No space left on device")
    assert csv.read_text() == "old"


@pytest.mark.parametrize("free", every([4, 40], 40))
def test_a_full_kernel_cache_costs_time_and_nothing_else(free: int, whole: Callable[[str], Path], disk: Disk) -> None:
    study = whole(SMALL)
    (disk.folder / "cache").mkdir(mode=0o700)
    (disk.folder / "tmp").mkdir()
    disk.fill(free)
    here = study.parent / f"cache {free}"
    here.mkdir()
    environment = {"SATEEN_CACHE_DIR": str(disk.folder / "cache"), "TMPDIR": str(study.parent)}
    ended = run(*STUDY, folder=here, environment=environment)
    assert ended.code == 0, ended.err
    assert contents(here / "result") == contents(study / "result")
    assert not list((disk.folder / "cache").glob(".*"))
