"""Checkpoints: one layout for all fits, which belongs to one fit and no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sateen as st
from sateen.files.container import read_container, write_container
from sateen.learning.checkpoint import Checkpoint

RECIPES: dict[str, Any] = {
    "ep-gp": st.EPGP(inducing=8),
    "svi-gp": st.SVIGP(inducing=8),
    "svi-bnn": st.SVIBNN(width=3, steps=20, pretraining=10, batch=8, draws=5),
    "laplace-net": st.LaplaceNet(nets=1, width=3, steps=20, draws=5),
    "ep-gp-faithful": st.EPGP.faithful(),
    "svi-gp-faithful": st.SVIGP.faithful(epochs=2, inducing=8),
}


def test_what_was_kept_is_read_back_by_the_same_fit_only(tmp_path: Path) -> None:
    file = tmp_path / "fit.safetensors"
    kept = Checkpoint.of(file, "learner", {"batch": 3, "memory": float("inf")}, 7)
    assert kept.read() is None
    kept.write({"step": 4}, {"values": np.arange(3.0)})
    content, arrays = Checkpoint.of(file, "learner", {"memory": float("inf"), "batch": 3}, 7).read() or ({}, {})
    assert content == {"step": 4}
    assert arrays["values"].tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(st.InputError, match=r"fit\.safetensors is a checkpoint of another fit: .*; delete it"):
        Checkpoint.of(file, "learner", {"batch": 3, "memory": float("inf")}, 8).read()


def test_without_a_file_nothing_is_kept() -> None:
    kept = Checkpoint.of(None, "learner")
    kept.write({"step": 4}, {})
    assert kept.read() is None


@pytest.mark.parametrize(("shift", "words"), [(1, "update sateen"), (-1, "make it again")])
def test_another_format_is_refused_in_one_sentence(shift: int, words: str, tmp_path: Path) -> None:
    file = tmp_path / "fit.safetensors"
    Checkpoint.of(file, "learner").write({}, {})
    kind, number, content, arrays = read_container(file)
    write_container(file, kind, number + shift, content, arrays)
    with pytest.raises(st.InputError, match=f"is of format {number + shift}, and this sateen reads .*{words}"):
        Checkpoint.of(file, "learner").read()


@pytest.mark.parametrize("name", RECIPES)
def test_every_learner_has_the_one_layout(name: str, tmp_path: Path) -> None:
    file = tmp_path / "fit.safetensors"
    counts = np.arange(20) % 7
    seen = st.Observations.from_counts(st.Space(beta=(0, 1)), np.linspace(0.01, 0.99, 20)[:, None], counts, [10] * 20)
    first = RECIPES[name].fit(seen, seed=3, checkpoint=file)
    kind, number, content, _ = read_container(file)
    assert (kind, number) == ("checkpoint", 2)
    assert len(content["fit"]) == 64
    again = RECIPES[name].fit(seen, seed=3, checkpoint=file)
    assert again.predict({"beta": 0.4}).mean == first.predict({"beta": 0.4}).mean
    with pytest.raises(st.InputError, match="another fit"):
        RECIPES[name].fit(seen, seed=4, checkpoint=file)
