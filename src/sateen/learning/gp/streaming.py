"""Variational inference from more rows than there is memory for, read in blocks or by mini-batches.

q(w) is kept as its natural parameters, the precision P and the shift P·mean. A sweep over rows asks, at the current q,
what their sites should be, and sums them; a step moves the natural parameters towards that sum, which is a step along
the natural gradient (Hensman et al. 2013). Sums over a batch of B rows stand for all N, scaled by N/B.
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
from sateen.learning.gp.variational import Variational, ascend
from sateen.learning.likelihood import Counts

Step: TypeAlias = Callable[[int], None]  # hears how many more rows were read
Sums: TypeAlias = tuple[Any, Any, Any]  # over rows: of the log-likelihood, of the shifts, and of the precisions
Add: TypeAlias = Callable[[Sums, FloatArray, Counts], Sums]  # adds those of a block
_WELL_SPREAD: Final = 1e-3  # of the variance: where each inducing point adds more, single precision is enough
_FIRST_STEP: Final = 0.5  # of mini-batches
_HELD: Final = 0.3  # of all steps are as long as the first


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
    """Rows of inputs and counts, read block by block through a basis; in single precision where that is safe.

    `adder` says for a basis and q how a block is added to sums; by default NumPy does it. `by` says which does.
    """

    basis: Basis
    x: FloatArray
    counts: Counts
    single: bool
    adder: Callable[[Basis, Whitened], Add] | None = None
    by: str = ""

    @classmethod
    def of(cls, basis: Basis, x: FloatArray, counts: Counts) -> Stream:
        """The stream of the rows, in the precision that suits the basis."""
        least = float(np.diag(basis.factor)[1:].min(initial=np.inf)) ** 2
        return cls(basis, x, counts, least > _WELL_SPREAD * basis.kernel.variance)

    def __len__(self) -> int:
        return len(self.x)

    @property
    def note(self) -> str:
        """How the rows are read."""
        return f"the data were read in blocks{self.by}, in {'single' if self.single else 'double'} precision"

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
        add = self.adder(self.basis, q) if self.adder else _adder(self.basis, q, self.single)
        size, count = len(q.mean), len(self) if rows is None else len(rows)
        sums: Sums = np.float64(0.0), np.zeros(size), np.zeros((size, size))
        for start in range(0, count, BLOCK):
            stop = min(start + BLOCK, count)
            block = slice(start, stop) if rows is None else rows[start:stop]
            sums = add(sums, self.x[block], self.counts[block])
            step(stop - start)
        likelihood, shift, precision = map(np.array, sums)
        precision *= weight
        precision[np.diag_indices_from(precision)] += 1.0
        return weight * float(likelihood), Natural(precision, weight * shift)


def _adder(basis: Basis, q: Whitened, single: bool) -> Add:
    """How a block is added to the sums at q."""
    chosen: Any = np.dtype(np.float32 if single else np.float64)
    solve: Any = strsm if single else dtrsm
    factor, root = (np.asfortranarray(matrix.astype(chosen)) for matrix in (basis.factor, q.root))
    points, mean, diagonal = basis.points.astype(chosen), q.mean.astype(chosen), basis.kernel.diagonal

    def add(sums: Sums, x: FloatArray, counts: Counts) -> Sums:
        features = basis.kernel.between(x.astype(chosen), points)
        features = solve(1.0, factor, features.T, lower=1, overwrite_b=1).T
        spare = diagonal - np.einsum("ij,ij->i", features, features, dtype=np.float64)
        turned = solve(1.0, root, features.T, lower=1).T
        known = np.einsum("ij,ij->i", turned, turned, dtype=np.float64)
        centre = (features @ mean).astype(np.float64)
        value, slope, bend = counts.expected(centre, known + np.maximum(spare, 0.0))
        asked = np.maximum(-bend, 0.0)
        likelihood, shift, precision = sums
        shift += (features.T @ (slope + asked * centre).astype(chosen)).astype(np.float64)
        features *= np.sqrt(asked).astype(chosen)[:, None]
        precision += features.T @ features
        return likelihood + value.sum(), shift, precision

    return add


@dataclass(frozen=True, slots=True, eq=False)
class Streamed:
    """The belief that streaming ended with, the ELBO met on the way, and how far another step would move it.

    `shift` is the mean square of that move over the directions of w, in deviations.
    """

    q: Whitened
    values: tuple[float, ...]
    shift: float
    interrupted: bool = False


def by_steps(
    stream: Stream, start: Whitened, *, tolerance: float, most: int, step: Callable[[float], None]
) -> Variational[Natural]:
    """As `converge`, from the sites that `start` asks for, with a sweep over all rows for every step."""

    def evaluate(natural: Natural) -> Variational[Natural]:
        q = natural.belief()
        likelihood, asked = stream.sweep(q)
        return Variational(q, likelihood - _divergence(q), natural, asked)

    return ascend(evaluate, stream.sweep(start)[1], tolerance, most, step)


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
