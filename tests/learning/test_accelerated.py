"""SVIGP by JAX, on whatever device JAX has, against NumPy: the same sums, the same posterior, the same predictions.

`device="auto"` is the code that a GPU runs; here it runs on the CPU where there is no GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import sateen as st
from command_line import process
from known_functions import PLANE, observed
from sateen.core.errors import InputError
from sateen.core.types import FloatArray
from sateen.learning.gp import svi_gp
from sateen.learning.gp.accelerated import stream_of
from sateen.learning.gp.kernels import Kernel
from sateen.learning.gp.posterior import GPPosterior
from sateen.learning.gp.recipes import SVIGP
from sateen.learning.gp.sparse import Basis, choose_inducing
from sateen.learning.gp.streaming import Natural, Stream
from sateen.learning.inputs import Sample, inputs_of, sample_of
from sateen.learning.likelihood import Counts
from sateen.learning.networks.network import arithmetic
from watchers import Watcher

BY_JAX = "the data were read in blocks by JAX on "
# So smooth that the inducing points are not well spread, and NumPy too works in double precision.
GIVEN: dict[str, Any] = {"length_scales": 1.6, "variance": 1.5, "inputs": "log", "inducing": 40}
without_gpu = pytest.mark.skipif(
    any(device.platform == "gpu" for device in jax.devices()), reason="there is a GPU here"
)


@pytest.fixture
def on_jax() -> Iterator[None]:
    with arithmetic("auto", "float64"):
        yield


def sample(undecided: float) -> Sample:
    """Two blocks of rows, the second of them not full, with unequal trials."""
    trials = np.random.default_rng(3).integers(1, 60, 4300)
    seen = observed(PLANE, 4300, trials, 7, undecided=undecided)
    return sample_of(seen, inputs_of(seen, "log"))


def assert_same(found: tuple[float, Natural], wanted: tuple[float, Natural]) -> None:
    assert found[0] == pytest.approx(wanted[0], rel=1e-11)
    for name in ("shift", "precision"):
        one, other = getattr(found[1], name), getattr(wanted[1], name)
        assert one == pytest.approx(other, rel=1e-9, abs=1e-11 * np.abs(other).max()), name


@pytest.mark.parametrize(
    ("kernel", "link", "undecided"),
    [
        ("matern", "probit", 0.0),
        ("rbf", "logit", 0.2),
        pytest.param("matern", "probit", 0.2, marks=pytest.mark.slow),  # which takes long to compile
    ],
)
def test_rows_add_up_to_the_same_as_by_numpy(kernel: Any, link: Any, undecided: float, on_jax: None) -> None:
    """From the prior, where latent values vary widely, to where nearly all is known; all rows, and some of them.

    Kernel and link are computed one after the other and know nothing of each other: each is there once at least.
    """
    rows = sample(undecided)
    chosen = Kernel(kernel, (0.7, 1.3), 2.0)
    basis = Basis.of(chosen, choose_inducing(chosen, rows.x, 40))
    by_numpy, by_jax = Stream(basis, rows.x, Counts.of(rows, link), False), stream_of(basis, rows, link)
    prior = Natural(np.eye(40), np.zeros(40)).belief()
    wanted = by_numpy.sweep(prior)
    assert_same(by_jax.sweep(prior), wanted)
    known, some = wanted[1].belief(), np.arange(0, len(rows), 3)
    assert_same(by_jax.sweep(known), by_numpy.sweep(known))
    assert_same(by_jax.sweep(known, some, 3.0), by_numpy.sweep(known, some, 3.0))


def test_rows_without_inputs_add_up_too(on_jax: None) -> None:
    rows = replace(sample(0.0), x=np.zeros((4300, 0)))
    basis = Basis.of(Kernel("matern", (), 2.0), np.zeros((1, 0)))
    q = Natural(np.eye(1), np.zeros(1)).belief()
    by_numpy = Stream(basis, rows.x, Counts.of(rows, "probit"), False)
    assert_same(stream_of(basis, rows, "probit").sweep(q), by_numpy.sweep(q))


@cache
def pair(**settings: Any) -> tuple[GPPosterior, GPPosterior]:
    """What NumPy and what JAX makes of the same rows, more than a first belief is made of."""
    seen, recipe = observed(PLANE, 4700, 30, 8), SVIGP(**GIVEN, **settings)
    one, other = (replace(recipe, device=device).fit(seen, seed=2) for device in ("cpu", "auto"))
    assert isinstance(one, GPPosterior)
    assert isinstance(other, GPPosterior)
    return one, other


def assert_agree(found: GPPosterior, wanted: GPPosterior, at: FloatArray) -> None:
    (mean, variance), (exact, spread) = found.latent(at), wanted.latent(at)
    assert mean == pytest.approx(exact, rel=1e-9, abs=1e-9)
    assert variance == pytest.approx(spread, rel=1e-8, abs=1e-12)
    assert found.record.values == pytest.approx(wanted.record.values, rel=1e-9)


GRID = PLANE.to_unit(PLANE.grid(15).theta)


@pytest.mark.parametrize("settings", [{}, {"batch": 900, "passes": 2}], ids=["steps", "batches"])
def test_the_posterior_is_that_of_numpy(settings: dict[str, Any]) -> None:
    by_numpy, by_jax = pair(**settings)
    assert by_jax.record.notes[-1].startswith(BY_JAX)
    assert by_jax.record.notes[-1].endswith(", in double precision")
    assert by_jax.record.notes[:-1] == by_numpy.record.notes
    assert by_jax.record.verdict == by_numpy.record.verdict
    assert_agree(by_jax, by_numpy, GRID)


def test_the_posterior_is_that_of_numpy_when_rows_are_more_than_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(svi_gp, "_AT_ONCE", 1e3)
    by_numpy, by_jax = pair.__wrapped__()
    assert "in double precision; the ELBO is that before the last pass" in by_numpy.record.notes[-1]
    assert by_jax.record.notes[-1].startswith(BY_JAX)
    assert_agree(by_jax, by_numpy, GRID)


@pytest.mark.parametrize("points", [0, 1, 65, 9000])
@pytest.mark.parametrize("link", ["probit", "logit"])
def test_predictions_are_those_of_numpy(link: Any, points: int) -> None:
    """None, one, and more than a block."""
    seen = observed(PLANE, 200, 30, 8, undecided=0.1)
    by_numpy = SVIGP(**GIVEN, kernel="rbf", link=link).fit(seen, seed=2)
    by_jax = replace(by_numpy, recipe=replace(by_numpy.recipe, device="auto"))
    at = PLANE.uniform(points, seed=4) if points else PLANE.uniform(1, seed=4)[:0]
    found, wanted = by_jax.predict(at), by_numpy.predict(at)
    for name, tolerance in {"mean": 1e-9, "lower": 1e-8, "upper": 1e-8, "std": 1e-7}.items():
        assert getattr(found, name) == pytest.approx(getattr(wanted, name), rel=tolerance), name


def test_what_jax_fitted_is_the_same_after_a_file(tmp_path: Path) -> None:
    posterior, file = pair()[1], tmp_path / "fit.safetensors"
    posterior.save(file)
    loaded, at = st.load(file), PLANE.grid(9)
    assert loaded.recipe == posterior.recipe
    assert loaded.predict(at).std.tobytes() == posterior.predict(at).std.tobytes()
    assert loaded.gradient(at).tobytes() == posterior.gradient(at).tobytes()


@without_gpu
def test_a_gpu_that_is_missing_stops_a_fit_at_once_but_no_prediction(tmp_path: Path) -> None:
    watcher, page = Watcher(), Path(__file__).parents[2] / "docs" / "gpu.md"
    with pytest.raises(InputError, match="JAX finds no gpu here; take device='auto', or install JAX for it") as error:
        SVIGP(device="gpu").fit(observed(PLANE, 50, 30, 8), seed=1, progress=watcher)
    assert not watcher.updates
    assert " ".join(str(error.value).split()) in " ".join(page.read_text(encoding="utf-8").split())
    here, file = pair()[1], tmp_path / "fit.safetensors"
    replace(here, recipe=replace(here.recipe, device="gpu")).save(file)
    elsewhere, at = st.load(file), PLANE.grid(9)
    assert elsewhere.recipe.device == "gpu"
    assert elsewhere.predict(at).mean.tobytes() == here.predict(at).mean.tobytes()


def test_the_checkpoint_of_one_device_serves_another(tmp_path: Path) -> None:
    seen, file = observed(PLANE, 60, 30, 8), tmp_path / "fit.safetensors"
    first = SVIGP().fit(seen, seed=2, checkpoint=file)
    watcher = Watcher()
    second = SVIGP(device="auto").fit(seen, seed=2, checkpoint=file, progress=watcher)
    assert [label for label, *_ in watcher.told] == ["SVIGP: posterior"]  # the kernel was in the checkpoint
    assert second.mean.tobytes() == first.mean.tobytes()
    with pytest.raises(InputError, match="is a checkpoint of another fit"):
        SVIGP(kernel="rbf", device="auto").fit(seen, seed=2, checkpoint=file)


def test_jax_is_loaded_only_where_it_is_asked_for(tmp_path: Path) -> None:
    program = (
        "import sys, sateen as st\n"
        "space = st.Space(a=(0.0, 1.0))\n"
        "seen = st.Observations(space.grid(9), range(9), 0, 10, seed=1)\n"
        "for device in ('cpu', 'auto'):\n"
        "    posterior = st.SVIGP(device=device).fit(seen, seed=1)\n"
        "    posterior.predict(space.grid(3)), posterior.save('fit.safetensors'), st.load('fit.safetensors')\n"
        "    print('jax' in sys.modules)\n"
    )
    done = process(start=("-c", program), cwd=tmp_path)
    assert (done.stdout, done.returncode) == ("False\nTrue\n", 0), done.stderr


@pytest.mark.parametrize("device", ["cuda", "", None, 1])
def test_a_device_that_cannot_be_meant_is_refused(device: Any) -> None:
    with pytest.raises(InputError, match="device is 'auto', 'cpu' or 'gpu', not"):
        SVIGP(device=device)
