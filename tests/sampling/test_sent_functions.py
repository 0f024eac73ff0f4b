"""Functions on their way to other processes: what runs there is the file that was sent, never an older version."""

from __future__ import annotations

import importlib
import math
import pickle
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sateen as st
from one_place import OnePlace
from sateen.core.code import find_code, received, sendable


def coin(theta: dict[str, float], rng: np.random.Generator) -> bool:
    return bool(rng.random() < theta["p"])


class Pickling(OnePlace):
    """To which everything goes as bytes."""

    patience = 1.0

    def answer(self, work: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        return work(*pickle.loads(pickle.dumps(args)))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_the_file_that_is_sent_is_run_and_not_one_that_was_imported_before(folder: Path) -> None:
    file = folder / "sent_edited.py"
    answers = []
    for answer in (True, False):
        file.write_text(f"def f(theta, rng):\n    return {answer}\n")
        module = importlib.import_module("sent_edited")
        importlib.invalidate_caches()
        module = importlib.reload(module)
        sent = pickle.dumps(sendable(module.f))
        file.write_text("def f(theta, rng):\n    raise RuntimeError('the file of this machine')\n")
        answers.append(received(pickle.loads(sent))({}, None))
    assert answers == [True, False]


def test_in_the_same_process_it_is_the_function_itself(folder: Path) -> None:
    (folder / "sent_same.py").write_text("def f(theta, rng):\n    return True\n")
    module = importlib.import_module("sent_same")
    assert received(sendable(module.f)) is module.f


def test_imports_within_a_package_and_data_beside_the_file_are_those_of_the_worker(folder: Path) -> None:
    package = folder / "sent_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "helper.py").write_text("limit = 3\n")
    (package / "model.py").write_text(
        "from pathlib import Path\nfrom .helper import limit\n\n"
        "def f(theta, rng):\n    return limit, Path(__file__).with_name('data.txt').read_text()\n"
    )
    (package / "data.txt").write_text("beside")
    module = importlib.import_module("sent_package.model")
    sent = sendable(module.f)
    elsewhere = replace(sent, code=replace(sent.code, file="/nowhere/sent_package/model.py"))
    assert received(pickle.loads(pickle.dumps(elsewhere)))({}, None) == (3, "beside")


@pytest.mark.parametrize("thing", [coin, lambda theta, rng: True, math.sin, st.Space.grid, partial(coin, rng=None)])
def test_what_is_no_function_of_a_file_goes_as_it_is(thing: Any) -> None:
    assert (sendable(thing) is thing) == (thing is not coin)


def test_a_worker_that_lacks_what_the_file_imports_names_the_function(folder: Path) -> None:
    (folder / "sent_helper.py").write_text("limit = 3\n")
    (folder / "sent_needy.py").write_text("import sent_helper\n\ndef f(theta, rng):\n    return True\n")
    module = importlib.import_module("sent_needy")

    function = module.f
    (folder / "sent_helper.py").unlink()
    sys.modules.pop("sent_helper")
    importlib.invalidate_caches()
    points = st.Space(p=(0.0, 1.0)).grid(5)
    words = r"cannot run the black box: sent_needy:f cannot be run: ModuleNotFoundError: No module named 'sent_helper'"
    with pytest.raises(st.PoolError, match=words):
        st.observe(function, None, points, 20, seed=1, executor=Pickling())


def test_a_module_that_was_changed_after_it_was_run_here_is_not_taken_for_the_new_one(folder: Path) -> None:
    file = folder / "sent_learner.py"
    file.write_text("kind = 'old'\n")
    assert find_code("sent_learner:kind", folder).load() == "old"
    file.write_text("kind = 'new'\n")
    with pytest.raises(st.InputError, match=r"sent_learner\.py was changed after this process had run it; start"):
        find_code("sent_learner:kind", folder).load()
