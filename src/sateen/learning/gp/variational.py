"""Variational inference of the latent function, by conjugate computations (Khan & Lin 2017).

The approximation q(w) has for each observation a normal site exp(-t s²/2 + b s) of s = a(x)ᵀ w, with a precision t and
a shift b, so that its own precision is P = I + Σ t a aᵀ. With lnL the log-likelihood of the observation, the best q has
t = -E[lnL''] and b = E[lnL'] + t E[g]. A step towards that is a step along the natural gradient of

    ELBO = Σ E[lnL] - KL[q || N(0, I)],

and is shortened whenever the ELBO would fall.

Where data are too many to hold the features of, they are read in blocks, or by mini-batches. Then q(w) is kept as its
natural parameters, the precision P and the shift P·mean. A sweep over rows asks, at the current q, what their sites
should be, and sums them; a step moves the natural parameters towards that sum, which is a step along the natural
gradient (Hensman et al. 2013). Sums over a batch of B rows stand for all N, scaled by N/B.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, solve_triangular
from scipy.linalg.blas import dtrsm, strsm

from sateen.core.types import FloatArray
from sateen.learning.gp.hyper import Objective
from sateen.learning.gp.kernels import Kernel
from sateen.learning.gp.sparse import BLOCK, Basis, Whitened
from sateen.learning.likelihood import Counts

_SHORTEST: Final = 1e-3  # step
# What is found for a kernel: the value, its slopes by the kernel and by the inducing points, and the last sites.
Evaluation: TypeAlias = "tuple[float, FloatArray, FloatArray, Sites]"
Inference: TypeAlias = "Callable[[Counts, Basis, FloatArray, Sites], Evaluation]"
Step: TypeAlias = Callable[[int], None]  # hears how many more rows were read
_WELL_SPREAD: Final = 1e-3  # of the variance: where each inducing point adds more, single precision is enough
_FIRST_STEP: Final = 0.5  # of mini-batches
_HELD: Final = 0.3  # of all steps are as long as the first


@dataclass(frozen=True, slots=True, eq=False)
class Sites:
    """The normal site of each observation: its precision and its shift."""

    precision: FloatArray
    shift: FloatArray

    @classmethod
    def guess(cls, counts: Counts) -> Sites:
        """What the counts alone suggest, at half their weight."""
        latent, curvature = counts.guess()
        return cls(0.5 * curvature, 0.5 * curvature * latent)

    @classmethod
    def asked_by(cls, counts: Counts, mean: FloatArray, variance: FloatArray) -> Sites:
        """The best sites for latent values of this mean and variance."""
        _, slope, bend = counts.expected(mean, variance)
        precision = np.maximum(-bend, 0.0)
        return cls(precision, slope + precision * mean)

    def towards(self, other: Sites, step: float) -> Sites:
        """A part of the way to other sites."""
        rest = 1.0 - step
        return Sites(rest * self.precision + step * other.precision, rest * self.shift + step * other.shift)

    def gather(self, features: FloatArray) -> Whitened:
        """The distribution of w that they make of the prior."""
        size = features.shape[1]
        precision, root = np.zeros((size, size)), np.sqrt(self.precision)[:, None]
        table = np.empty((min(BLOCK, len(features)), size))
        for start in range(0, len(features), BLOCK):
            block = features[start : start + BLOCK]
            weighted = np.multiply(block, root[start : start + BLOCK], out=table[: len(block)])
            precision += weighted.T @ weighted
        precision[np.diag_indices_from(precision)] += 1.0
        return Whitened.natural(precision, features.T @ self.shift)


@dataclass(frozen=True, slots=True, eq=False)
class Variational:
    """q(w) with what is known at it: the ELBO, the sites it was made of, and the sites that it asks for.

    `slopes` are the E[lnL']. `gain` is what the last step added to the ELBO. `interrupted` marks a q that Ctrl-C kept
    from being improved.
    """

    q: Whitened
    elbo: float
    sites: Sites
    asked: Sites
    slopes: FloatArray
    gain: float = np.inf
    interrupted: bool = False


def converge(
    counts: Counts,
    features: FloatArray,
    spare: FloatArray,
    sites: Sites,
    *,
    tolerance: float = 1e-4,
    most: int = 50,
    step: Callable[[float], None] = lambda elbo: None,
) -> Variational:
    """The best q, found from given sites, until a step adds less than `tolerance` nats; `step` hears each ELBO.

    Ctrl-C ends it with the best so far.
    """
    now = _evaluate(counts, features, spare, sites)
    length = 1.0
    try:
        for _ in range(most):
            tried = _evaluate(counts, features, spare, now.sites.towards(now.asked, length))
            while not tried.elbo >= now.elbo - 1e-9 * abs(now.elbo) and length > _SHORTEST:
                length *= 0.5
                tried = _evaluate(counts, features, spare, now.sites.towards(now.asked, length))
            gain = tried.elbo - now.elbo
            if not gain >= 0.0:  # rounding, or a step so short that it does not matter
                return replace(now, gain=0.0)
            now = replace(tried, gain=gain)
            step(now.elbo)
            if gain < tolerance * length:
                break
            length = min(1.0, 2.0 * length)
    except KeyboardInterrupt:
        return replace(now, interrupted=True)
    return now


def _evaluate(counts: Counts, features: FloatArray, spare: FloatArray, sites: Sites) -> Variational:
    q = sites.gather(features)
    mean, known = features @ q.mean, q.spread(features)
    value, slope, bend = counts.expected(mean, known + spare)
    asked = np.maximum(-bend, 0.0)
    # tr P⁻¹ - m = -Σ t aᵀ P⁻¹ a, since P⁻¹ P = I.
    divergence = 0.5 * (float(q.mean @ q.mean) - float(sites.precision @ known)) + q.half_log_determinant
    return Variational(q, float(value.sum()) - divergence, sites, Sites(asked, slope + asked * mean), slope)


def evaluate_elbo(counts: Counts, basis: Basis, x: FloatArray, sites: Sites, most: int = 50) -> Evaluation:
    """The ELBO at the best q, found roughly, with its slopes."""
    features = basis.features(x)
    best = converge(counts, features, basis.spare(features), sites, tolerance=1e-2, most=most)
    if best.interrupted:
        raise KeyboardInterrupt
    return best.elbo, *elbo_slopes(best, basis, x, features), best.sites


def objective_of(inference: Inference, counts: Counts, x: FloatArray) -> Objective:
    """What an inference says of kernels and inducing points; each evaluation begins with the sites of the last."""
    sites = [Sites.guess(counts)]

    def objective(kernel: Kernel, points: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        value, by_logs, by_points, sites[0] = inference(counts, Basis.of(kernel, points), x, sites[0])
        return value, by_logs, by_points

    return objective


def elbo_slopes(best: Variational, basis: Basis, x: FloatArray, features: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Derivatives of the ELBO at its best q: by the logs of the kernel, and by the inducing points.

    They are the derivatives with q(w) held fixed; the way through q adds nothing where q is best.
    """
    precision, size = best.asked.precision, len(basis.points)
    known = np.eye(size) - best.q.covariance()
    weighted = features * precision[:, None]
    gathered = weighted.T @ features
    by_features = weighted @ known
    by_features += np.multiply.outer(best.slopes, best.q.mean)
    products = known @ gathered + np.multiply.outer(best.q.mean, features.T @ best.slopes)
    return basis.pull(x, features, by_features, -0.5 * float(precision.sum()), products)


@dataclass(frozen=True, slots=True, eq=False)
class Natural:
    """A normal distribution of w by its precision and its shift, the precision times the mean."""

    precision: FloatArray
    shift: FloatArray

    @classmethod
    def of(cls, q: Whitened) -> Natural:
        """The natural parameters of q."""
        precision = q.root @ q.root.T
        return cls(precision, precision @ q.mean)

    def towards(self, other: Natural, step: float) -> Natural:
        """A part of the way to other parameters."""
        rest = 1.0 - step
        return Natural(rest * self.precision + step * other.precision, rest * self.shift + step * other.shift)

    def changed(self, before: Natural, after: Natural) -> Whitened:
        """The distribution whose parameters differ from these as `after` does from `before`, or these if none does."""
        precision = self.precision + (after.precision - before.precision)
        try:
            return Natural(precision, self.shift + (after.shift - before.shift)).belief()
        except LinAlgError:
            return self.belief()

    def belief(self) -> Whitened:
        """The distribution itself."""
        return Whitened.natural(self.precision, self.shift)


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """Rows of inputs and counts, read block by block through a basis; in single precision where that is safe."""

    basis: Basis
    x: FloatArray
    counts: Counts
    single: bool

    @classmethod
    def of(cls, basis: Basis, x: FloatArray, counts: Counts) -> Stream:
        """The stream of the rows, in the precision that suits the basis."""
        least = float(np.diag(basis.factor)[1:].min(initial=np.inf)) ** 2
        return cls(basis, x, counts, least > _WELL_SPREAD * basis.kernel.variance)

    def __len__(self) -> int:
        return len(self.x)

    def sweep(
        self,
        q: Whitened,
        rows: npt.NDArray[np.intp] | None = None,
        weight: float = 1.0,
        step: Step = lambda rows: None,
    ) -> tuple[float, Natural]:
        """The mean of the log-likelihood of the rows, or of all, at q, and the natural parameters that they ask for.

        Each row is counted `weight` times; `step` hears of every block.
        """
        chosen: Any = np.dtype(np.float32 if self.single else np.float64)
        solve: Any = strsm if self.single else dtrsm
        factor, root = (np.asfortranarray(matrix.astype(chosen)) for matrix in (self.basis.factor, q.root))
        points, mean = self.basis.points.astype(chosen), q.mean.astype(chosen)
        size, diagonal = len(points), self.basis.kernel.diagonal
        precision, shift, likelihood = np.zeros((size, size)), np.zeros(size), 0.0
        count = len(self) if rows is None else len(rows)
        for start in range(0, count, BLOCK):
            stop = min(start + BLOCK, count)
            block = slice(start, stop) if rows is None else rows[start:stop]
            features = self.basis.kernel.between(self.x[block].astype(chosen), points)
            features = solve(1.0, factor, features.T, lower=1, overwrite_b=1).T
            spare = diagonal - np.einsum("ij,ij->i", features, features, dtype=np.float64)
            turned = solve(1.0, root, features.T, lower=1).T
            known = np.einsum("ij,ij->i", turned, turned, dtype=np.float64)
            centre = (features @ mean).astype(np.float64)
            value, slope, bend = self.counts[block].expected(centre, known + np.maximum(spare, 0.0))
            asked = np.maximum(-bend, 0.0)
            likelihood += float(value.sum())
            shift += (features.T @ (slope + asked * centre).astype(chosen)).astype(np.float64)
            features *= np.sqrt(asked).astype(chosen)[:, None]
            precision += features.T @ features
            step(stop - start)
        precision *= weight
        precision[np.diag_indices_from(precision)] += 1.0
        return weight * likelihood, Natural(precision, weight * shift)


@dataclass(frozen=True, slots=True, eq=False)
class Streamed:
    """The belief that streaming ended with, the ELBO met on the way, and how far another step would move it.

    `shift` is the mean square of that move over the directions of w, in deviations.
    """

    q: Whitened
    values: tuple[float, ...]
    shift: float
    interrupted: bool = False


def by_passes(
    stream: Stream, start: Whitened, passes: int, some: npt.NDArray[np.intp], step: Step = lambda rows: None
) -> Streamed:
    """Natural-gradient steps: two with `some` of the rows standing for all, then `passes` over all of them.

    After each of these, what all rows asked for is corrected by how much `some` of them change their minds at the new
    belief. That is worth nearly another pass, but costs as little as `some` are few. A pass that finds the ELBO fallen
    goes half of the way back. Ctrl-C ends it with the best so far.
    """
    q, good, shift = start, start, np.inf
    values: list[float] = []
    weight = len(stream) / len(some)

    def ask(belief: Whitened) -> Natural:
        return stream.sweep(belief, some, weight, step)[1]

    try:
        for _ in range(2):
            q = ask(q).belief()
        for _ in range(passes):
            likelihood, asked = stream.sweep(q, step=step)
            elbo = likelihood - _divergence(q)
            if values and elbo < values[-1] - 1e-6 * abs(elbo):
                q = Natural.of(good).towards(Natural.of(q), 0.5).belief()
                continue
            values.append(elbo)
            good, q = q, asked.belief()
            corrected = asked.changed(ask(good), ask(q))
            shift, q = _shift(q, corrected), corrected
    except KeyboardInterrupt:
        return Streamed(q, tuple(values), shift, True)
    return Streamed(q, tuple(values), shift)


def by_batches(
    stream: Stream, batch: int, passes: int, rng: np.random.Generator, step: Step = lambda rows: None
) -> Streamed:
    """Stochastic natural-gradient steps, by mini-batches in a new random order in every pass.

    Steps are of a constant length while q is far off; in the last 70 % they get shorter so that the natural parameters
    become the average of what these batches ask for. A last pass finds the ELBO, and how far a full step would move q.
    Ctrl-C ends it with what there is.
    """
    count, size = len(stream), len(stream.basis.points)
    natural, taken, values = Natural(np.eye(size), np.zeros(size)), 0, []
    q, steps = natural.belief(), passes * -(-count // batch)
    try:
        for _ in range(passes):
            total, order = 0.0, rng.permutation(count)
            for part in np.array_split(order, -(-count // batch)):  # of one size, so that none weighs more
                rows = np.sort(part)
                likelihood, asked = stream.sweep(q, rows, count / len(rows), step)
                late = max(0.0, taken - _HELD * steps)
                natural = natural.towards(asked, 1.0 / (1.0 / _FIRST_STEP + late))
                total += likelihood * len(rows) / count
                q, taken = natural.belief(), taken + 1
            values.append(total - _divergence(q))
        likelihood, asked = stream.sweep(q, step=step)
    except KeyboardInterrupt:
        return Streamed(q, tuple(values), np.inf, True)
    return Streamed(q, (*values, likelihood - _divergence(q)), _shift(q, asked.belief()))


def _shift(before: Whitened, after: Whitened) -> float:
    """2 KL[after || before], for each direction: the squared move of the mean in deviations, if only that moves."""
    moved = before.root.T @ (after.mean - before.mean)
    widened = solve_triangular(after.root, before.root, lower=True, check_finite=False)
    logs = 2.0 * (after.half_log_determinant - before.half_log_determinant)
    return max(0.0, float((widened**2).sum()) - len(moved) + logs + float(moved @ moved)) / len(moved)


def _divergence(q: Whitened) -> float:
    """KL[q || N(0, I)]."""
    inverse = solve_triangular(q.root, np.eye(len(q.mean)), lower=True, check_finite=False)
    squares = float((inverse**2).sum() + q.mean @ q.mean)
    return 0.5 * (squares - len(q.mean)) + q.half_log_determinant
