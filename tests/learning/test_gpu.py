"""Every learner that takes a device, on a real GPU; without one these tests are skipped, and say so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import jax
import numpy as np
import pytest

import sateen as st
from known_functions import PLANE, observed

GPUS: Final = [device for device in jax.devices() if device.platform == "gpu"]
pytestmark = pytest.mark.skipif(not GPUS, reason="JAX finds no GPU here, so nothing was run on one; see docs/gpu.md")

RECIPES: Final[dict[str, Callable[[], Any]]] = {
    "svi-gp": lambda: st.SVIGP(inducing=40, length_scales=1.6),
    "svi-gp batches": lambda: st.SVIGP(inducing=40, length_scales=1.6, batch=500, passes=2, link="logit"),
    "svi-gp faithful": lambda: st.SVIGP.faithful(epochs=2, inducing=50),
    "svi-bnn": lambda: st.SVIBNN(steps=100, pretraining=100, precision="float64"),
    "laplace-net": lambda: st.LaplaceNet(nets=1, steps=100, precision="float64"),
}


@pytest.mark.parametrize("undecided", [0.0, 0.1])
@pytest.mark.parametrize("name", RECIPES)
def test_a_gpu_learns_what_a_cpu_learns(name: str, undecided: float, tmp_path: Path) -> None:
    """In double precision, and after few steps, before rounding has grown; and another device reads the file.

    The length scale is so long that NumPy too works in double precision.
    """
    seen, at, recipe = observed(PLANE, 4700, 30, 8, undecided=undecided), PLANE.grid(20), RECIPES[name]()
    here, there = (replace(recipe, device=device).fit(seen, seed=2) for device in ("cpu", "gpu"))
    wanted, found = here.predict(at), there.predict(at)
    for column in ("mean", "std", "lower", "upper"):
        assert getattr(found, column) == pytest.approx(getattr(wanted, column), rel=1e-5, abs=1e-7), column
    there.save(tmp_path / "fit.safetensors")
    loaded = st.load(tmp_path / "fit.safetensors")
    assert loaded.predict(at).mean.tobytes() == found.mean.tobytes()
    moved = replace(loaded, recipe=replace(loaded.recipe, device="cpu"))
    assert moved.predict(at).mean == pytest.approx(found.mean, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", RECIPES)
def test_the_same_gpu_gives_the_same_bits(name: str) -> None:
    seen, at, recipe = observed(PLANE, 4700, 30, 8), PLANE.grid(20), replace(RECIPES[name](), device="gpu")
    one, other = (recipe.fit(seen, seed=2).predict(at) for _ in range(2))
    assert one.mean.tobytes() == other.mean.tobytes()
    assert np.isfinite(one.mean).all()


@pytest.mark.parametrize("device", ["gpu", "auto"])
def test_the_record_names_the_gpu(device: Any) -> None:
    record = st.SVIGP(inducing=40, device=device).fit(observed(PLANE, 4700, 30, 8), seed=2).record
    assert f"by JAX on {GPUS[0].device_kind}, in double precision" in record.notes[-1]
