"""EPGP.faithful() against the expectation propagation of pyCheck, on which the paper's EP-GP builds; configuration (a).

    python benchmarks/ep_peer.py smoothedMC.py [--quick]        prints ratios and writes results/ep_peer.json

`smoothedMC.py` is the file smothed/smoothedMC.py of github.com/simonesilvetti/pyCheck, not a part of sateen. Only its
regression is run; what the file imports to simulate and to draw, and is not installed, is replaced by nothing.

Both have the same training set, 500 points of 50 runs, inputs scaled to [-1, 1], one thread and one process. Two
questions:

1. With the same kernel, of variance 1, which pyCheck has fixed: how far are the two apart in the mean and the variance
   of g at the 1000 test points, and in the evidence? pyCheck adds 1e-4 to the diagonal of the covariance, so that it
   has a Cholesky factor; it is run with 1e-8 too.
2. As they come, with their search for the kernel, which pyCheck ends at the least evidence: which error, which time?

pyCheck computes ln Φ number by number in Python, which takes most of its time. So it is also run with scipy's ln Φ for
whole arrays in that place ("vectorised"). Times are CPU seconds: of the fastest of three fits for ours, of one fit for
pyCheck.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeVar

import learning_data
import machine
import numpy as np
from scipy.special import log_ndtr, ndtr
from sklearn.gaussian_process.kernels import RBF
from threadpoolctl import threadpool_limits

import sateen as st
from sateen.core.types import FloatArray
from sateen.learning.gp.posterior import GPPosterior
from sateen.learning.inputs import Sample, inputs_of, sample_of
from sateen.learning.networks.network import log_ways

CORRECTIONS: Final = (1e-4, 1e-8)  # on the diagonal; the first is pyCheck's
DAMPING: Final = 0.5  # pyCheck's
FOR_MODELS: Final = (
    *("stochpy", "pyDOE", "pycheck", "pycheck.semantics", "pycheck.semantics.STL", "pycheck.series"),
    *(f"pycheck.semantics.STL.{name}" for name in ("BooleanSemantics", "STLLexer", "STLParser")),
    "pycheck.series.TimeSeries",
)
Result = TypeVar("Result")
Latent = tuple[FloatArray, FloatArray]


class Absent(ModuleType):
    """A module that has whatever is imported from it, as None."""

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


class PyCheck:
    """The regression of smoothedMC.py, for one training set."""

    def __init__(self, file: Path, sample: Sample) -> None:
        for name in FOR_MODELS:
            sys.modules.setdefault(name, Absent(name))
        spec = importlib.util.spec_from_file_location("smoothedMC", file)
        if spec is None or spec.loader is None:
            raise SystemExit(f"{file} is no Python file")
        self.code: Any = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.code)
        self.x, self.runs = sample.x, float(sample.trials[0])
        self.y = (sample.satisfied / sample.trials)[:, None]

    def vectorise(self) -> None:
        """Have it compute the likelihood of all counts at once."""
        self.code.logprobitpow = lambda g, k, rest: k * log_ndtr(g) + rest * log_ndtr(-g)

    def train(self, length: float, correction: float) -> None:
        """With a given kernel."""
        self.code.kernel = RBF(length)
        self.code.doTraining(self.x, self.y, self.runs, correction, 1, DAMPING)

    def evidence(self, length: float, correction: float) -> float:
        """Its log, but for the numbers of ways in which the counts can come about."""
        self.code.kernel = RBF(length)
        end = self.code.expectationPropagation(1e-6, self.x, self.y, self.runs, correction, 1, DAMPING)
        return float(np.squeeze(end.logZ))

    def fit(self) -> float:
        """As it comes; the length scale that its search ends with."""
        with contextlib.redirect_stdout(io.StringIO()):
            self.code.fit(self.x, self.y, self.runs, CORRECTIONS[0], 1, DAMPING)
        return float(np.squeeze(self.code.kernel.length_scale))

    def latent(self, x: FloatArray) -> Latent:
        """Mean and variance of g."""
        mean, variance = self.code.latentPrediction(x, self.x)
        return np.ravel(mean), np.ravel(variance)


def timed(work: Callable[[], Result], rounds: int = 1) -> tuple[Result, float]:
    """The result, and the CPU seconds of the fastest of so many rounds."""
    seconds = []
    for _ in range(rounds):
        began = time.process_time()
        result = work()
        seconds.append(time.process_time() - began)
    return result, min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="smoothedMC.py of pyCheck")
    parser.add_argument("--folder", type=Path, help="where the data are kept; see learning_data.py")
    parser.add_argument("--quick", action="store_true", help="a fifth of the points, and nothing written")
    options = parser.parse_args()
    about = machine.note("sateen", "numpy", "scipy", "scikit-learn")
    print(f"{about['processor']}, {about['cores']} cores, load {about['load']}, {about['versions']}")
    problem = learning_data.problem("a")
    seen = learning_data.training(problem, 1, folder=options.folder)
    truth = learning_data.truth(problem, folder=options.folder)
    if options.quick:
        seen = seen[::5]
    inputs = inputs_of(seen, "linear")
    sample, x = sample_of(seen, inputs), inputs.unit(truth.points.theta)
    with threadpool_limits(1):
        peer = PyCheck(options.file, sample)
        result = {"machine": about, "points": len(sample), "runs": int(sample.trials[0])}
        result["same_kernel"] = same_kernel(peer, seen, sample, x)
        result["as_they_come"] = as_they_come(peer, seen, x, truth.probability)
        peer.vectorise()
        print("with pyCheck's likelihood vectorised:")
        result["vectorised"] = {
            "same_kernel": same_kernel(peer, seen, sample, x),
            "as_they_come": as_they_come(peer, seen, x, truth.probability),
        }
    if not options.quick:
        print(machine.write("ep_peer", result))


def same_kernel(peer: PyCheck, seen: st.Observations, sample: Sample, x: FloatArray) -> dict[str, Any]:
    """Both with the length scale that we find for the variance 1."""
    found = fitted(st.EPGP.faithful(variance=1.0), seen)
    length = float(found.kernel.length_scales[0])
    posterior, seconds = timed(lambda: fitted(st.EPGP.faithful(variance=1.0, length_scales=length), seen), 3)
    own, ways = posterior.latent(x), log_ways(sample)
    rows: dict[str, Any] = {}
    print(f"the same kernel, length scale {length:.4g} and variance 1: ours {seconds:.3g} s")
    for correction in CORRECTIONS:
        _, other_seconds = timed(lambda correction=correction: peer.train(length, correction))  # type: ignore[misc]
        other = peer.latent(x)
        row = {
            "mean": float(np.abs(own[0] - other[0]).max()),
            "deviation": float(np.abs(np.sqrt(own[1]) - np.sqrt(np.maximum(other[1], 0.0))).max()),
            "largest_deviation": float(np.sqrt(own[1].max())),
            "evidence": abs(float(posterior.record.values[-1]) - ways - peer.evidence(length, correction)),
            "seconds": other_seconds,
            "times_ours": other_seconds / seconds,
        }
        rows[f"{correction:g}"] = row
        print(
            f"    pyCheck with {correction:g} on the diagonal: mean of g apart by {row['mean']:.2g}, its deviation by "
            f"{row['deviation']:.2g} of at most {row['largest_deviation']:.2g}, log evidence by {row['evidence']:.2g}; "
            f"{other_seconds:.3g} s, {row['times_ours']:.0f} times ours",
            flush=True,
        )
    return {"length_scale": length, "seconds": seconds, "pycheck": rows}


def as_they_come(peer: PyCheck, seen: st.Observations, x: FloatArray, truth: FloatArray) -> dict[str, Any]:
    """Both with their search for the kernel."""
    posterior, seconds = timed(lambda: fitted(st.EPGP.faithful(), seen), 3)
    length, other_seconds = timed(peer.fit)
    rows = {
        "ours": errors(posterior.latent(x), truth)
        | {"length_scale": float(posterior.kernel.length_scales[0]), "variance": posterior.kernel.variance}
        | {"seconds": seconds},
        "pycheck": errors(peer.latent(x), truth) | {"length_scale": length, "variance": 1.0, "seconds": other_seconds},
        "times_ours": other_seconds / seconds,
    }
    print("as they come:")
    for name in ("ours", "pycheck"):
        print("    " + name + ": " + ", ".join(f"{key} {value:.3g}" for key, value in rows[name].items()), flush=True)
    print(f"    pyCheck takes {rows['times_ours']:.0f} times as long")
    return rows


def errors(latent: Latent, truth: FloatArray) -> dict[str, float]:
    """The root mean square error of the mean of f = Φ(g), and the mean width of its intervals at 95 %."""
    mean, variance = latent[0], np.maximum(latent[1], 0.0)
    width = ndtr(mean + 1.96 * np.sqrt(variance)) - ndtr(mean - 1.96 * np.sqrt(variance))
    rmse = float(np.sqrt(np.mean((ndtr(mean / np.sqrt(1.0 + variance)) - truth) ** 2)))
    return {"rmse": rmse, "width": float(width.mean())}


def fitted(recipe: Any, seen: st.Observations) -> GPPosterior:
    posterior: GPPosterior = recipe.fit(seen, seed=1)
    return posterior


if __name__ == "__main__":
    main()
