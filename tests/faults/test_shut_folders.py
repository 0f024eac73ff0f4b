"""Folders of another user, which may be read and not written, or not even read: an error that says so, and no change.

Root may write everywhere: so the command runs without that right, and what it may not write belongs to somebody else.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from fault_runs import PAPER, STUDY, Ended, contents, every, run
from small_studies import SMALL, changed

IS_ROOT: Final = os.name == "posix" and os.geteuid() == 0
WITHOUT_RIGHTS: Final = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search") if IS_ROOT else ()
NOBODY: Final = 65534
MODEL: Final = Path(__file__).resolve().parents[2] / "examples" / "birth_death.sateen"
# Commands that write into the folder `result`, and what they say if they may not.
SHUT: Final = {
    "run": (STUDY, "StoreError: cannot write to the folder result: Permission denied\n  allow it, or choose another"),
    "report": (("report", "result"), "InputError: cannot write result/report.html: Permission denied"),
    "figures": (
        ("report", "result", "-o", "page.html", "--figures", "result/figures"),
        "InputError: cannot write figures to result/figures: Permission denied",
    ),
    "csv": (
        ("simulate", str(MODEL), "--until", "5", "--csv", "result/run.csv"),
        "InputError: cannot write result/run.csv: Permission denied",
    ),
    "paper": (PAPER, "StoreError: cannot write to the folder result/pieces: Permission denied"),
}
_STORE: Final = "StoreError: the store result/stages/runs.db cannot be"
# Parts of a result, their mode if they cannot be read either, and what a run says.
SHUT_PARTS: Final = [
    ("stages", None, f"{_STORE} written\n  allow it"),
    ("stages", 0, "StoreError: cannot read the folder result/stages: Permission denied\n  allow it"),
    ("stages/runs.db", None, f"{_STORE} written\n  allow it"),
    ("stages/runs.db", 0, f"{_STORE} opened\n  look at the permissions"),
    (".lock", 0, "StoreError: cannot write to the folder result: Permission denied\n  allow it"),
]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="rights are those of Linux"),
    pytest.mark.skipif(IS_ROOT and not shutil.which("setpriv"), reason="root needs setpriv to give up its rights"),
]


def as_another(*arguments: object, folder: Path, **environment: str) -> Ended:
    """A command of a user who owns nothing that `shut` has shut."""
    return run(*arguments, folder=folder, before=WITHOUT_RIGHTS, environment=environment)


@pytest.fixture
def shut() -> Iterator[Callable[..., None]]:
    """Takes the right to write from files and folders, with all that is in them; or all rights, with mode=0."""
    opened: list[tuple[Path, int]] = []

    def close(path: Path, mode: int | None = None) -> None:
        for each in (path, *path.rglob("*")):
            if IS_ROOT:
                os.chown(each, NOBODY, NOBODY)
            else:
                opened.append((each, each.stat().st_mode))
                each.chmod(each.stat().st_mode & ~0o222)
        if mode is not None:
            opened.append((path, path.stat().st_mode))
            path.chmod(mode)

    yield close
    for each, mode in reversed(opened):
        each.chmod(mode)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the result of the small study."""
    folder = tmp_path_factory.mktemp("shut") / "whole"
    folder.mkdir()
    (folder.parent / "study.toml").write_text(SMALL)
    assert run(*STUDY, folder=folder).code == 0
    return folder


@pytest.fixture
def here(whole: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    folder = tmp_path / "here"
    shutil.copytree(whole, folder)
    (tmp_path / "study.toml").write_text(SMALL)
    return folder


@pytest.mark.parametrize("name", every(SHUT, "run", "report"))
def test_a_folder_of_another_is_told_and_left_as_it_is(name: str, here: Path, shut: Callable[..., None]) -> None:
    arguments, said = SHUT[name]
    before = contents(here / "result")
    shut(here / "result")
    ended = as_another(*arguments, folder=here)
    assert ended.code == 1
    assert said in ended.err
    assert "Traceback" not in ended.err
    assert contents(here / "result") == before


def test_what_may_be_read_can_be_reported_elsewhere_and_forecast(here: Path, shut: Callable[..., None]) -> None:
    page = (here / "result" / "report.html").read_bytes()
    shut(here / "result")
    assert as_another("report", "result", "-o", "page.html", folder=here).code == 0
    assert (here / "page.html").read_bytes() == page
    ended = as_another(*STUDY, "--dry-run", folder=here)
    assert (ended.code, ended.out.splitlines()[-1]) == (0, "nothing is left to simulate")


@pytest.mark.parametrize("case", every(SHUT_PARTS, *SHUT_PARTS[:2]))
def test_a_part_of_the_folder_that_is_shut_is_told_and_all_is_well_once_it_is_open(
    case: tuple[str, int | None, str], here: Path, shut: Callable[..., None]
) -> None:
    name, mode, said = case
    file = here / "result" / name
    study = changed(("points = 10, runs = 50", "points = 10, runs = 60"))
    (here.parent / "study.toml").write_text(study)
    before = file.stat().st_mode
    shut(file, mode)
    ended = as_another(*STUDY, folder=here)
    assert ended.code == 1
    assert said in ended.err
    assert "Traceback" not in ended.err
    file.chmod(before)
    done = run(*STUDY, folder=here) if IS_ROOT else None  # who has all rights
    assert done is None or done.code == 0, done


@pytest.mark.parametrize("mode", every([0o755, 0], 0))
def test_a_kernel_cache_of_another_costs_time_and_nothing_else(
    mode: int, whole: Path, tmp_path: Path, shut: Callable[..., None]
) -> None:
    (tmp_path / "study.toml").write_text(SMALL)
    cache, here = tmp_path / "cache", tmp_path / "here"
    cache.mkdir()
    here.mkdir()
    shut(cache, mode)
    ended = as_another(*STUDY, folder=here, SATEEN_CACHE_DIR=str(cache), TMPDIR=str(tmp_path))
    assert ended.code == 0, ended.err
    assert contents(here / "result") == contents(whole / "result")
