"""The worked examples of SEMANTICS.md: a path, a formula, the verdict at time 0, and why."""

from __future__ import annotations

import json
from pathlib import Path as FilePath
from typing import Any

import pytest

from brute_force import verdict
from sateen.core.path import Path, Verdict
from sateen.logic.monitor import monitor
from sateen.logic.parser import stl

VECTORS = json.loads((FilePath(__file__).parent.parent / "data" / "stl_vectors.json").read_text(encoding="utf-8"))


def path_of(vector: dict[str, Any]) -> Path:
    times, states = vector["times"], [[value] for value in vector["x"]]
    return Path(times=times, states=states, species=("x",), end=vector["end"], absorbed=vector["absorbed"])


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: f"{vector['id']}: {vector['why']}")
def test_the_monitor_agrees_with_the_worked_example(vector: dict[str, Any]) -> None:
    assert monitor(stl(vector["formula"]), path_of(vector)) is Verdict.of(vector["verdict"]), vector["why"]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: str(vector["id"]))
def test_the_brute_force_agrees_with_the_worked_example(vector: dict[str, Any]) -> None:
    assert verdict(stl(vector["formula"]), path_of(vector)) is vector["verdict"], vector["why"]


def test_the_worked_examples_show_every_verdict() -> None:
    assert {vector["verdict"] for vector in VECTORS} == {True, False, None}
    assert len({vector["id"] for vector in VECTORS}) == len(VECTORS) >= 32
