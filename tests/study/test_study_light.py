"""Reading a study, and a dry run of it, cost next to nothing: no simulator, no learner's library, no drawing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from small_studies import changed, small

HEAVY = ("jax", "llvmlite", "scipy", "matplotlib")
BUDGET = ("points = 40, runs = 20", "budget = 1500")
ALL_LEARNERS = ('["svi-gp"]', '["svi-gp", "ep-gp", "svi-bnn", "laplace-net", "default"]')


def heavy_after(code: str, *arguments: str | Path) -> list[str]:
    """Which heavy libraries a program has loaded at its end."""
    program = f"import sys\n{code}\nprint(*(name for name in {HEAVY} if name in sys.modules))"
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1].split()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "decay.toml"
    file.write_text(changed(BUDGET, ALL_LEARNERS, ('normaliser = "constant"', "")))
    return file


def test_loading_a_study_is_light(file: Path) -> None:
    assert heavy_after("import sateen as st; st.Study.load(sys.argv[1])", file) == []


@pytest.mark.parametrize("done", [False, True])
def test_a_dry_run_is_light(file: Path, done: bool) -> None:
    if done:
        file.write_text(changed())
        small().run(file.parent / "decay-result")
    code = "import sateen as st; print({s.state for s in st.Study.load(sys.argv[1]).forecast().steps})"
    assert heavy_after(code, file) == []


@pytest.mark.parametrize("arguments", [("inspect",), ("run", "--dry-run")])
def test_the_commands_that_only_read_a_study_are_light(file: Path, arguments: tuple[str, ...]) -> None:
    code = "from sateen.cli import main; main(sys.argv[1:], standalone_mode=False)"
    assert heavy_after(code, arguments[0], file, *arguments[1:]) == []
