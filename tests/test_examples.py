"""Every model in examples/ runs as its comments say, and what they claim is so; test_cli_run.py has the studies."""

from __future__ import annotations

import json
import math
import shlex
from pathlib import Path
from typing import Any

import pytest

import sateen as st
from command_line import sateen

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted(
    file
    for file in (ROOT / "examples").iterdir()  # not below: a study that was run leaves its result in a folder here
    if file.is_file() and file.suffix not in (".toml", ".py")  # studies have tests of their own
)
MODELS = [file for file in EXAMPLES if file.suffix != ".props"]
CONSTANTS = {"queue.prism": {"capacity": 10}}
SIR = ROOT / "examples" / "sir.sateen"
BIRTH_DEATH = ROOT / "examples" / "birth_death.sateen"


def commands(file: Path) -> list[list[str]]:
    """The command lines that the comments of a file give."""
    text = file.read_text(encoding="utf-8").splitlines()
    lines = (line.lstrip("#/ ") for line in text if line.startswith(("#", "//")))
    return [shlex.split(line)[1:] for line in lines if line.startswith("sateen ")]


def run(*command: str) -> dict[str, Any]:
    done = sateen(*command, "--json")
    assert done.stderr in ("", "compiling (once)\n")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_an_example_says_how_to_run_it_and_runs_so(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    given = commands(file)
    assert given, f"{file.name}: give a command line in a comment"
    for command in given:
        assert file.relative_to(ROOT).as_posix() in command
        found = run(*command)
        assert found.get("model", found.get("file")) == file.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("file", MODELS, ids=lambda file: file.name)
def test_an_example_raises_no_doubts(file: Path) -> None:
    assert st.Model.load(file, constants=CONSTANTS.get(file.name)).warnings == ()


def test_the_sir_model_is_the_one_in_the_documentation() -> None:
    documented = st.Model.parse("""
        species S = 95, I = 5, R = 0
        constant N = 100
        parameter gamma = 0.05
        infect:  S + I -> 2 I  @ beta * S * I / N
        recover: I -> R        @ gamma * I
    """)
    assert st.Model.load(SIR) == documented


def test_the_protein_has_the_mean_of_a_birth_death_process() -> None:
    model = st.Model.load(BIRTH_DEATH)
    time, runs = 4.0, 100
    counts = [st.simulate(model, until=time, seed=seed).at(time)["X"] for seed in range(runs)]
    # From 0 on, X is Poisson with mean make / decay (1 - exp(-decay t)); 4.9 standard errors are exceeded once in 10^6.
    mean = 100 * (1 - math.exp(-0.5 * time))
    assert abs(sum(counts) / runs - mean) < 4.9 * math.sqrt(mean / runs)
