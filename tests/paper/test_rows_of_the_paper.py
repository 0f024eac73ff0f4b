"""The paper row by row, in docs/paper.md: every name in its tables exists, and every call and command runs.

A row names its place in the paper, what stands there, the names of sateen that are for it, one call or command that
runs it, and a status. Names are resolved, Python calls are evaluated on a small epidemic, `sateen paper` is asked for a
dry run, and other commands are run as they stand.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import shlex
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

import command_line
import sateen as st
from pages import table_cells

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "paper.md"
ROWS: Final = "The paper, row by row"
CLAIMS: Final = "Which of the paper's claims hold"
HEAD: Final = ("paper's place", "what it says", "in sateen", "how to run it", "status")
FEWEST_ROWS: Final = 95
REASON: Final = re.compile(r"\[different\]\(choices\.md#[\w-]+\)")  # whose heading tests/test_docs.py looks for
QUICK: Final = {"check", "simulate", "inspect"}  # commands that are run as they stand, and write nothing


class Row(NamedTuple):
    """A row of the tables, in the order of HEAD."""

    place: str
    says: str
    names: str
    run: str
    status: str


def section(heading: str) -> str:
    """The text under a heading of the page, up to the next of its rank."""
    (_, text) = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")
    return text.partition("\n## ")[0]


def cells(heading: str) -> Iterator[list[str]]:
    """The lines of all tables under a heading, cell by cell, without the lines below their heads."""
    for line in section(heading).splitlines():
        if line.startswith("|") and not line.startswith("|--"):
            yield table_cells(line)


def rows() -> list[Row]:
    return [Row(*each) for each in cells(ROWS) if tuple(each) != HEAD]


def code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def in_order(texts: Iterator[str]) -> list[str]:
    """Each text once."""
    return list(dict.fromkeys(texts))


NAMES: Final = in_order(name for row in rows() for name in code(row.names))
RUNS: Final = in_order(run for row in rows() for run in code(row.run))
COMMANDS: Final = [run for run in RUNS if run.startswith("sateen ")]
CALLS: Final = [run for run in RUNS if not run.startswith("sateen ")]


def resolved(name: str) -> object:
    """What a dotted name stands for: of the public names after `st.`, else of the longest part that is a module."""
    first, *rest = name.split(".")
    if first == "st":
        return reduce(getattr, rest, st)
    assert first == "sateen", f"{name} begins neither with st. nor with sateen."
    path, thing = first, importlib.import_module(first)
    for part in rest:
        path = f"{path}.{part}"
        if hasattr(thing, "__path__") and importlib.util.find_spec(path):
            thing = importlib.import_module(path)
        else:
            thing = getattr(thing, part)
    return thing


def test_the_tables_have_a_row_for_all_of_the_paper() -> None:
    assert all(len(each) == len(HEAD) for each in cells(ROWS))
    assert len(rows()) >= FEWEST_ROWS
    assert len(set(rows())) == len(rows())


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row.place}: {row.says}")
def test_a_row_has_all_of_its_cells_and_its_status_a_reason(row: Row) -> None:
    assert all(row)
    assert row.status in ("same", "both") or REASON.fullmatch(row.status), row.status
    assert code(row.names)
    assert re.fullmatch(r"`[^`]+`", row.run), "one call or command, and nothing else"
    assert "missing" not in " ".join(row).lower()


@pytest.mark.parametrize("name", NAMES)
def test_a_name_exists(name: str) -> None:
    if learner := re.fullmatch(r'"([\w-]+)"', name):
        assert callable(st.make_learner(learner[1]).fit)
    else:
        resolved(name)


@pytest.fixture
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the examples are; nothing is written there."""
    monkeypatch.chdir(ROOT)


@pytest.fixture(scope="module")
def yours() -> dict[str, Any]:
    """What the calls take: the epidemic of the paper, a few runs of it, and what was learned from these."""
    model, formula = st.Model.load(ROOT / "examples" / "sir.sateen"), st.stl("(I > 0) U[100, 120] (I == 0)")
    space, theta = st.Space(beta=(0.005, 0.3), gamma=0.05), {"beta": 0.12, "gamma": 0.05}

    def uniform(count: int, runs: Any, seed: int) -> st.Observations:
        return st.observe(model, formula, space.uniform(count, seed=seed), runs, seed=seed + 100)

    observed, test = uniform(128, 50, 1), st.observe(model, formula, space.grid(30), runs=1000, seed=2)
    posterior = st.SVIGP(split=0.3).fit(observed, seed=3)
    return {
        "st": st,
        "sateen": importlib.import_module("sateen"),
        "model": model,
        "formula": formula,
        "space": space,
        "theta": theta,
        "points": space.grid(5),
        "path": st.simulate(model, theta, until=120, seed=4),
        "observed": observed,
        "posterior": posterior,
        "prediction": posterior.predict(test.points),
        "held_out": uniform(60, 50, 5),
        "uneven": uniform(60, [20, 50] * 30, 6),
        "test": test,
    }


def test_the_page_says_what_the_calls_take(yours: dict[str, Any]) -> None:
    said = section(ROWS).partition("\n### ")[0]
    assert set(yours) - {"sateen"} <= set(code(said))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.usefixtures("at_the_root")
def test_a_call_runs(call: str, yours: dict[str, Any]) -> None:
    for name in re.findall(r"\bsateen(?:\.\w+)+", call):
        resolved(name)  # which imports its module
    assert eval(call, dict(yours)) is not None


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("at_the_root")
def test_a_command_is_one_that_the_command_line_accepts(command: str, tmp_path: Path) -> None:
    _, name, *arguments = shlex.split(command)
    if name == "paper":
        folder = tmp_path / "dry"
        command_line.sateen(name, *arguments, "--dry-run", "-o", folder)
        assert not folder.exists()
    else:
        assert name in QUICK, f"{name} is not run here: write a quicker command, or a call"
        command_line.sateen(name, *arguments)


def test_the_claims_rest_on_results_that_are_kept() -> None:
    head, *claims = cells(CLAIMS)
    assert head == ["claim", "holds?", "our figure"]
    assert claims
    for claim in claims:
        assert len(claim) == len(head), claim
        assert all(claim), claim
        for file in re.findall(r"[\w-]+\.json", claim[2]):
            assert (ROOT / "benchmarks" / "results" / file).is_file(), file


def test_nothing_is_left_to_fill_in() -> None:
    left = re.findall(r"TODO[^|]*", section(CLAIMS) + section(ROWS))
    assert not left, "\n".join(left)
