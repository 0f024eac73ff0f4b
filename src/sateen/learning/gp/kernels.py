"""Covariance functions: Matérn 5/2 and squared exponential, a length scale for each input, and a constant term."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar, get_args

import numpy as np
import numpy.typing as npt

from sateen.core.errors import InputError
from sateen.core.types import FloatArray
from sateen.learning.settings import KernelName, check_word

_Floats = TypeVar("_Floats", np.float64, np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Pull:
    """How a function of covariances changes with what they are made of.

    `length_scales` and `variance` are derivatives by the logarithms of those; `first` and `second` by the coordinates
    of the first and of the second points.
    """

    length_scales: FloatArray
    variance: float
    first: FloatArray
    second: FloatArray


@dataclass(frozen=True, slots=True)
class Kernel:
    """k(x, z) = constant + variance · c(r), where r is the distance of x and z in units of the length scales.

    c(r) = (1 + √5 r + 5r²/3) e^(-√5 r) for "matern" and e^(-r²/2) for "rbf". `constant` is the prior variance of the
    level of the function. Without inputs all points are the same, and k is a constant.

    >>> Kernel("rbf", (2.0,), variance=3.0, constant=4.0).between(np.zeros((1, 1)), np.array([[0.0], [2.0]]))
    array([[7.        , 5.81959198]])
    """

    name: KernelName
    length_scales: tuple[float, ...]
    variance: float
    constant: float = 4.0

    def __post_init__(self) -> None:
        check_word("kernel", self.name, get_args(KernelName))
        scales = tuple(float(scale) for scale in self.length_scales)
        if not all(0 < each < np.inf for each in (*scales, self.variance)) or not 0 <= self.constant < np.inf:
            raise InputError(f"length scales and variance are positive, the constant too or 0: not {self}")
        object.__setattr__(self, "length_scales", scales)

    @property
    def logs(self) -> FloatArray:
        """The logarithms of the length scales, and of the variance last."""
        return np.log([*self.length_scales, self.variance])

    def at_logs(self, logs: FloatArray) -> Kernel:
        """The kernel whose `logs` these are."""
        *scales, variance = np.exp(logs).tolist()
        return replace(self, length_scales=tuple(scales), variance=variance)

    @property
    def diagonal(self) -> float:
        """k(x, x), the same everywhere."""
        return self.constant + self.variance

    def between(self, x: npt.NDArray[_Floats], z: npt.NDArray[_Floats]) -> npt.NDArray[_Floats]:
        """The table of k(x_i, z_j), in the precision of x."""
        squares, log_variance = self._squares(x, z), x.dtype.type(np.log(self.variance))
        if self.name == "rbf":
            squares *= x.dtype.type(-0.5)
            squares += log_variance
            table = np.exp(squares, out=squares)
        else:
            root = np.sqrt(squares)
            root *= x.dtype.type(np.sqrt(5.0))
            squares *= x.dtype.type(5.0 / 3.0)
            squares += root
            squares += x.dtype.type(1.0)
            np.subtract(log_variance, root, out=root)
            table = np.multiply(squares, np.exp(root, out=root), out=squares)
        table += x.dtype.type(self.constant)
        return table

    def pull(self, adjoint: FloatArray, x: FloatArray, z: FloatArray) -> Pull:
        """The derivatives of Σ_ij adjoint_ij k(x_i, z_j)."""
        squares = self._squares(x, z)
        if self.name == "rbf":
            steepness = self.variance * np.exp(-0.5 * squares)
            by_variance = float(np.vdot(adjoint, steepness))
            steepness *= -0.5
        else:
            root = np.sqrt(5.0 * squares)
            decay = self.variance * np.exp(-root)
            root += 1.0
            by_variance = float(np.vdot(adjoint, (root + (5.0 / 3.0) * squares) * decay))
            steepness = np.multiply(root, decay, out=root)
            steepness *= -5.0 / 6.0
        steepness *= adjoint  # now the derivative by each r², of which the rest is linear algebra
        weights = np.array(self.length_scales, dtype=np.float64) ** -2.0
        by_row, by_column = steepness.sum(axis=1), steepness.sum(axis=0)
        across = steepness @ z
        spread = by_row @ x**2 + by_column @ z**2 - 2.0 * np.einsum("ij,ij->j", x, across)
        first = 2.0 * weights * (by_row[:, None] * x - across)
        second = 2.0 * weights * (by_column[:, None] * z - steepness.T @ x)
        return Pull(-2.0 * weights * spread, by_variance, first, second)

    def _squares(self, x: npt.NDArray[_Floats], z: npt.NDArray[_Floats]) -> npt.NDArray[_Floats]:
        """The table of r²; never below 0, which rounding could make of it."""
        inverse = (1.0 / np.array(self.length_scales, dtype=np.float64)).astype(x.dtype)
        left, right = x * inverse, z * inverse
        # |x|² - 2 x·z + |z|² as one product, for a pass over the table costs more than a column.
        left_squares, right_squares = (np.einsum("ij,ij->i", side, side)[:, None] for side in (left, right))
        longer_left = np.concatenate([left, left_squares, np.ones_like(left_squares)], axis=1)
        longer_right = np.concatenate([-2.0 * right, np.ones_like(right_squares), right_squares], axis=1)
        squares: npt.NDArray[_Floats] = longer_left @ longer_right.astype(x.dtype).T
        return np.maximum(squares, x.dtype.type(0.0), out=squares)
