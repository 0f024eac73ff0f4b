"""Black boxes whose modules are edited while workers run: a worker never runs an older version without a word."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sateen as st
from clusters import Cluster, wait_for

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*:DeprecationWarning:distributed"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]
POINTS = st.Space(p=(0.0, 1.0)).grid(4)
CALLS = "import {0}\n\ndef f(theta, rng):\n    return {0}.answer\n"
OTHER = (
    r"has loaded another version of the module {}: sha256 \w+ there, sha256 \w+ here\n  a process imports a module once"
)
UNKNOWN = "had the module {} before this work, and its file was changed since the worker began"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def written(file: Path, text: str) -> None:
    """Write a module that this process imports when it needs it, as a new one would."""
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    sys.modules.pop(file.stem, None)
    importlib.invalidate_caches()


def satisfied(function: Any, pool: Any) -> int:
    return int(st.observe(function, None, POINTS, 3, seed=1, executor=pool, chunk=2).satisfied.sum())


def finding(folder: Path) -> dict[str, str]:
    """What makes workers find the modules in a folder."""
    return {"PYTHONPATH": os.pathsep.join(map(str, [folder, *sys.path]))}


@pytest.fixture(params=["local", "dask"])
def pool(request: pytest.FixtureRequest, folder: Path) -> Iterator[Any]:
    """One worker that lives on; it finds modules in the same folder."""
    if request.param == "local":
        pool = st.open_pool("local:1")
        yield pool
        pool.close()
        return
    pytest.importorskip("distributed")
    if sys.platform != "linux":
        pytest.skip("kills groups of processes")
    with Cluster(
        folder / "cluster", workers=1, settings={"PYTHONPATH": ":".join(map(str, [folder, *sys.path]))}
    ) as made:
        pool = st.open_pool(made.address)
        wait_for(pool.places)
        yield pool
        pool.close()


@pytest.mark.slow
def test_an_edited_module_is_refused_by_a_worker_that_has_the_old_one(pool: Any, folder: Path) -> None:
    helper = folder / "edited_helper.py"
    (folder / "edited_deep.py").write_text("def answer():\n    import edited_helper\n    return edited_helper.answer\n")
    (folder / "edited_box.py").write_text("from edited_deep import answer\n\ndef f(theta, rng):\n    return answer()\n")
    written(helper, "answer = True\n")
    box = importlib.import_module("edited_box")
    assert satisfied(box.f, pool) == 12
    written(helper, "answer = False\n")
    with pytest.raises(st.PoolError, match=OTHER.format("edited_helper")):
        satisfied(box.f, pool)
    written(helper, "answer = True\n")  # what the worker has
    assert satisfied(box.f, pool) == 12


@pytest.mark.slow
def test_an_edited_class_whose_object_is_called_is_refused(pool: Any, folder: Path) -> None:
    file, text = folder / "edited_class.py", "class Box:\n    def __call__(self, theta, rng):\n        return {}\n"
    written(file, text.format(True))  # after the worker has begun, and before it has loaded it
    assert satisfied(importlib.import_module("edited_class").Box(), pool) == 12
    written(file, text.format(False))
    with pytest.raises(st.PoolError, match=OTHER.format("edited_class")):
        satisfied(importlib.import_module("edited_class").Box(), pool)


@pytest.mark.slow
def test_an_edited_module_that_is_named_only_when_it_runs_is_refused(pool: Any, folder: Path) -> None:
    plugin = folder / "edited_plugin.py"
    (folder / "edited_loader.py").write_text(
        "import importlib\n\ndef f(theta, rng):\n    return importlib.import_module('edited_' + 'plugin').answer\n"
    )
    written(plugin, "answer = True\n")
    loader = importlib.import_module("edited_loader")
    assert satisfied(loader.f, pool) == 12
    written(plugin, "answer = False\n")
    with pytest.raises(st.PoolError, match=OTHER.format("edited_plugin")):
        satisfied(loader.f, pool)


@pytest.mark.slow
def test_a_worker_that_imported_a_module_for_somebody_else_is_not_believed(folder: Path) -> None:
    pytest.importorskip("distributed")
    written(folder / "edited_before.py", "answer = True\n")
    (folder / "edited_user.py").write_text(CALLS.format("edited_before"))
    user = importlib.import_module("edited_user")
    with Cluster(folder / "cluster", settings=finding(folder)) as made:
        made.add("--preload", "edited_before")
        pool = st.open_pool(made.address)
        try:
            wait_for(pool.places)
            written(folder / "edited_before.py", "answer = False\n")
            with pytest.raises(st.PoolError, match=UNKNOWN.format("edited_before")):
                satisfied(user.f, pool)
        finally:
            pool.close()


FORKS = """
import importlib, sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
import edited_fork
import sateen as st

def satisfied(processes):
    points = st.Space(p=(0.0, 1.0)).grid(4)
    there = st.observe(edited_fork.f, None, points, 3, seed=1, executor=processes, chunk=2)
    return int(there.satisfied.sum())

with ProcessPoolExecutor(1, get_context("fork")) as processes:
    print(satisfied(processes))
    Path("edited_forked.py").write_text("answer = False\\n")
    del sys.modules["edited_forked"]
    try:
        print(satisfied(processes))
    except st.PoolError as error:
        print(error)
importlib.invalidate_caches()
importlib.import_module("edited_forked")
with ProcessPoolExecutor(1, get_context("fork")) as processes:
    print(satisfied(processes))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
def test_a_forked_process_begins_with_what_this_one_has(tmp_path: Path) -> None:
    """In a process of its own, which has no threads of other tests."""
    (tmp_path / "edited_forked.py").write_text("answer = True\n")
    (tmp_path / "edited_fork.py").write_text(CALLS.format("edited_forked"))
    done = subprocess.run(
        [sys.executable, "-B", "-c", FORKS], env={**os.environ, **finding(tmp_path)}, cwd=tmp_path, capture_output=True,
        text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first, *error, last = done.stdout.splitlines()
    assert (first, last) == ("12", "0")
    assert re.search(OTHER.format("edited_forked"), "\n".join(error))


def test_in_the_same_process_a_black_box_is_what_is_in_memory(folder: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    helper = folder / "edited_memory.py"
    written(helper, "answer = True\n")
    (folder / "edited_thread.py").write_text(CALLS.format("edited_memory"))
    box = importlib.import_module("edited_thread")
    helper.write_text("answer = False\n")
    with ThreadPoolExecutor(1) as threads:
        assert satisfied(box.f, threads) == 12
