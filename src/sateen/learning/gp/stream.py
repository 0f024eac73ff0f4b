"""Variational inference over data too many to hold the features of: in blocks, or by mini-batches.

The belief q(w) is kept as its natural parameters, the precision P and the shift P·mean. A sweep over rows asks, at the
current q, what their sites should be, and sums them; a step moves the natural parameters towards that sum, which is a
step along the natural gradient (Hensman et al. 2013). Sums over a batch of B rows stand for all N, scaled by N/B.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, solve_triangular
from scipy.linalg.blas import dtrsm, strsm

from sateen.core.types import FloatArray
from sateen.learning.gp.sparse import BLOCK, Basis, Whitened
from sateen.learning.likelihood import Counts

__all__ = ["Natural", "Step", "Stream", "Streamed", "Swept", "by_batches", "by_passes", "ignore"]

Step: TypeAlias = Callable[[int], None]  # hears how many more rows were read
_WELL_SPREAD: Final = 1e-3  # of the variance: where each inducing point adds more, single precision is enough
_FIRST_STEP: Final = 0.5  # of mini-batches
_HELD: Final = 0.3  # of all steps are as long as the first


def ignore(rows: int) -> None:
    """Nobody listens."""


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
class Swept:
    """What rows say at a belief: the mean of their log-likelihood, and the natural parameters they ask for."""

    likelihood: float
    asked: Natural


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
        step: Step = ignore,
    ) -> Swept:
        """What the rows, or all of them, say at q, each counted `weight` times; `step` hears of every block."""
        chosen: Any = np.dtype(np.float32 if self.single else np.float64)
        solve: Any = strsm if self.single else dtrsm
        factor, root = (np.asfortranarray(matrix.astype(chosen)) for matrix in (self.basis.factor, q.root))
        points, mean = self.basis.points.astype(chosen), q.mean.astype(chosen)
        size, diagonal = len(points), self.basis.kernel.diagonal
        precision, shift, likelihood = np.zeros((size, size)), np.zeros(size), 0.0
        count = len(self) if rows is None else len(rows)
        for start in range(0, count, BLOCK):
            stop = min(start + BLOCK, count)
            block: Any = slice(start, stop) if rows is None else rows[start:stop]
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
        return Swept(weight * likelihood, Natural(precision, weight * shift))


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
    stream: Stream, start: Whitened, passes: int, some: npt.NDArray[np.intp], step: Step = ignore
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
        return stream.sweep(belief, some, weight, step).asked

    try:
        for _ in range(2):
            q = ask(q).belief()
        for _ in range(passes):
            swept = stream.sweep(q, step=step)
            elbo = swept.likelihood - _divergence(q)
            if values and elbo < values[-1] - 1e-6 * abs(elbo):
                q = Natural.of(good).towards(Natural.of(q), 0.5).belief()
                continue
            values.append(elbo)
            good, q = q, swept.asked.belief()
            corrected = swept.asked.changed(ask(good), ask(q))
            shift, q = _shift(q, corrected), corrected
    except KeyboardInterrupt:
        return Streamed(q, tuple(values), shift, True)
    return Streamed(q, tuple(values), shift)


def by_batches(stream: Stream, batch: int, passes: int, rng: np.random.Generator, step: Step = ignore) -> Streamed:
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
            likelihood, order = 0.0, rng.permutation(count)
            for part in np.array_split(order, -(-count // batch)):  # of one size, so that none weighs more
                rows = np.sort(part)
                swept = stream.sweep(q, rows, count / len(rows), step)
                late = max(0.0, taken - _HELD * steps)
                natural = natural.towards(swept.asked, 1.0 / (1.0 / _FIRST_STEP + late))
                likelihood += swept.likelihood * len(rows) / count
                q, taken = natural.belief(), taken + 1
            values.append(likelihood - _divergence(q))
        swept = stream.sweep(q, step=step)
    except KeyboardInterrupt:
        return Streamed(q, tuple(values), np.inf, True)
    return Streamed(q, (*values, swept.likelihood - _divergence(q)), _shift(q, swept.asked.belief()))


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
