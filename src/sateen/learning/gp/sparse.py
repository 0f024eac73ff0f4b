"""The sparse Gaussian process that all Gaussian-process learners share.

A function is summarised by its values at m inducing points Z, whitened: with K_mm = L Lᵀ the prior of w = L⁻¹ g(Z) is
N(0, I), and at any x the process is

    g(x) = a(x)ᵀ w + an independent N(0, spare(x)),   a(x) = L⁻¹ k(Z, x),   spare(x) = k(x, x) - a(x)ᵀ a(x).

Tables of features have a row a(x)ᵀ for each point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cholesky, lapack
from scipy.linalg.blas import dtrsm

from sateen.core.counts import read_only
from sateen.core.errors import SateenError
from sateen.core.types import FloatArray
from sateen.learning.gp.kernels import Kernel

BLOCK: Final = 4096  # rows of features that are worked on at once: they stay near the processor
_JITTER: Final = 1e-6  # of the variance, on the diagonal of K_mm
_MOST_JITTER: Final = 1.0
_SPENT: Final = 1e-7  # of the variance: where less is left, another inducing point adds nothing
_INDUCING: Final = {0: 1, 1: 100, 2: 200}  # by dimension; 500 beyond


def inducing_for(dimension: int) -> int:
    """How many inducing points are enough, or affordable, in this many dimensions."""
    return _INDUCING.get(dimension, 500)


def choose_inducing(kernel: Kernel, x: FloatArray, most: int) -> FloatArray:
    """At most this many of the points, each the one whose value is the least known from those before it.

    It is the pivoted Cholesky factorisation of the covariance, stopped when no more than 1e-7 of any variance is left.
    Of equals the first is taken.
    """
    most = min(most, len(x))
    rows = np.empty((most, len(x)))
    left = np.full(len(x), kernel.variance)
    chosen: list[int] = []
    for _ in range(most):
        pivot = int(np.argmax(left))
        if left[pivot] <= _SPENT * kernel.variance:
            break
        known = rows[: len(chosen)]
        row = kernel.between(x[pivot : pivot + 1], x)[0] - kernel.constant
        row = (row - known[:, pivot] @ known) / np.sqrt(left[pivot])
        rows[len(chosen)] = row
        left = np.maximum(left - row * row, 0.0)
        left[pivot] = 0.0
        chosen.append(pivot)
    return x[chosen]


@dataclass(frozen=True, slots=True, eq=False)
class Basis:
    """Inducing points of a kernel, and the lower Cholesky factor of their covariance."""

    kernel: Kernel
    points: FloatArray
    factor: FloatArray
    jitter: float

    @classmethod
    def of(cls, kernel: Kernel, points: FloatArray) -> Basis:
        """The basis of a kernel and points; what rounding took from the diagonal of K_mm, jitter gives back."""
        K_mm = kernel.between(points, points)
        jitter = _JITTER * kernel.variance
        while jitter <= _MOST_JITTER * kernel.diagonal:
            try:
                factor = cholesky(K_mm + jitter * np.eye(len(points)), lower=True, check_finite=False)
            except LinAlgError:
                jitter *= 10.0
                continue
            return cls(kernel, read_only(points.copy()), read_only(np.asfortranarray(factor)), jitter)
        raise SateenError(f"the covariance of the inducing points cannot be factorised under {kernel}")

    def features(self, x: FloatArray) -> FloatArray:
        """The table of a(x)ᵀ, a row for each point."""
        return solve_rows(self.factor, self.kernel.between(x, self.points))

    def spare(self, features: FloatArray) -> FloatArray:
        """What is left of the prior variance at each point when the inducing values are known."""
        return np.asarray(np.maximum(self.kernel.diagonal - np.einsum("ij,ij->i", features, features), 0.0))

    def pull(
        self, x: FloatArray, features: FloatArray, by_features: FloatArray, by_diagonal: float, products: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Derivatives by the logs of the kernel, and by the inducing points, of a function of features and spares.

        `by_features` are its derivatives by the features, `by_diagonal` by the prior variance k(x, x), and `products`
        is the matrix by_featuresᵀ features: symmetric where the function does not depend on how w is turned.
        """
        by_K = solve_rows(self.factor, np.array(by_features), transposed=True)
        symmetric = np.asfortranarray(-0.25 * (products + products.T))
        half = dtrsm(1.0, self.factor, symmetric, lower=1, trans_a=1)
        by_K_mm = dtrsm(1.0, self.factor, np.asfortranarray(half.T), lower=1, trans_a=1)
        cross = self.kernel.pull(by_K, x, self.points)
        among = self.kernel.pull(by_K_mm, self.points, self.points)
        by_variance = cross.variance + among.variance + by_diagonal * self.kernel.variance
        by_variance += self.jitter * float(np.trace(by_K_mm))
        by_logs = np.append(cross.length_scales + among.length_scales, by_variance)
        return by_logs, cross.second + among.first + among.second


def solve_rows(factor: FloatArray, table: FloatArray, transposed: bool = False) -> FloatArray:
    """The table whose rows are F⁻¹ of its rows, or F⁻ᵀ of them, for a lower triangular F; in the same memory."""
    if not len(table) or not len(factor):
        return table
    solved: FloatArray = dtrsm(1.0, factor, table.T, lower=1, trans_a=int(transposed), overwrite_b=1).T
    return solved


@dataclass(frozen=True, slots=True, eq=False)
class Whitened:
    """A normal distribution of w: its mean, and the lower Cholesky factor R of its precision P = R Rᵀ."""

    mean: FloatArray
    root: FloatArray

    @classmethod
    def natural(cls, precision: npt.NDArray[np.float64], shift: FloatArray) -> Whitened:
        """The distribution with this precision, and with the mean precision⁻¹ shift."""
        root = np.asfortranarray(cholesky(precision, lower=True, check_finite=False))
        mean = lapack.dpotrs(root, shift, lower=1)[0]
        return cls(read_only(mean), read_only(root))

    @property
    def half_log_determinant(self) -> float:
        """Half of ln det P."""
        return float(np.log(np.diag(self.root)).sum())

    def spread(self, features: FloatArray) -> FloatArray:
        """The variance of a(x)ᵀ w for each row of features."""
        variance = np.empty(len(features))
        for start in range(0, len(features), BLOCK):
            turned = solve_rows(self.root, np.array(features[start : start + BLOCK]))
            np.einsum("ij,ij->i", turned, turned, out=variance[start : start + BLOCK])
        return variance

    def covariance(self) -> FloatArray:
        """P⁻¹."""
        inverse = lapack.dpotri(self.root, lower=1)[0]
        return np.asarray(np.tril(inverse) + np.tril(inverse, -1).T)
