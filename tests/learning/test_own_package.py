"""The example package examples/own_learner: own_learner.py and its pyproject.toml, found by its entry point."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import sateen as st
from known_functions import PLANE, observed, wave
from sateen.learning.registry import LEARNERS, learner_name, make_learner

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "own_learner"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package as an installer leaves it: its module, and the metadata that pyproject.toml describes."""
    pytest.importorskip("sklearn")
    described = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (group,) = described["entry-points"]
    points = "".join(f"{name} = {address}\n" for name, address in described["entry-points"][group].items())
    info = tmp_path / f"own_learner-{described['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {described['name']}\nVersion: {described['version']}\n"
    )
    (info / "entry_points.txt").write_text(f"[{group}]\n{points}")
    (tmp_path / "own_learner.py").write_text((EXAMPLE / "own_learner.py").read_text(encoding="utf-8"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_learner", raising=False)
    return tmp_path


def test_its_learner_is_found_by_its_name(installed: Path) -> None:
    assert "forest" in LEARNERS.names()
    learner = make_learner("forest", {"trees": 50})
    assert learner_name(learner) == "forest"
    with pytest.raises(st.InputError, match="did you mean forest"):
        make_learner("forrest")
    with pytest.raises(st.InputError, match="forest has no setting tress; did you mean trees"):
        make_learner("forest", {"tress": 5})


def test_it_learns_is_saved_and_is_fitted_again_in_another_process(installed: Path) -> None:
    posterior = st.learn(observed(PLANE, 200, 40, 11), learner="forest", seed=3)
    points = PLANE.uniform(300, seed=99)
    prediction = posterior.predict(points)
    assert posterior.kind == "forest"
    assert np.sqrt(np.mean((prediction.mean - wave(points)) ** 2)) < 0.12
    file = installed / "forest.safetensors"
    posterior.save(file)
    script = (
        f"import sys; sys.path.insert(0, {str(installed)!r})\n"
        f"import sateen as st\nposterior = st.load({str(file)!r})\n"
        "print(posterior.kind, posterior.predict({'beta': 0.5, 'gamma': 1.0}).mean[0].hex())"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["forest", posterior.predict({"beta": 0.5, "gamma": 1.0}).mean[0].hex()]
