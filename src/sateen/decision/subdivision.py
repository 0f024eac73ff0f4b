"""Boxes that are halved again and again: where their corners are, how large they are, and along which axis to halve.

Corners are fractions of the root's ranges, on their scales: 0 is the low end, 1 the high end. Halving makes them whole
multiples of 2^-k, which doubles hold exactly, so volumes add up exactly and neighbours share their faces to the bit.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from sateen.core.errors import InputError, nearest
from sateen.core.space import Space
from sateen.core.text import plural
from sateen.core.types import FloatArray
from sateen.engine.enclosure import Enclosure

MOST_HALVINGS: Final = 40  # of one axis; so that sums of volumes stay exact enough and faces apart
_LATTICE: Final = {1: 33, 2: 21, 3: 8, 4: 6, 5: 4, 6: 3}  # points per axis of a first look, by the number of axes
_LEAST_SHARE: Final = 1e-3  # of the high end, below which a low end counts as this


@dataclass(frozen=True, slots=True)
class Limits:
    """What ends a subdivision before it is done: a number of bounds, of seconds, or cells that are too small."""

    cells: int | None
    seconds: float | None
    begin: float

    @staticmethod
    def from_now(cells: int | None, seconds: float | None) -> Limits:
        """Limits whose seconds begin now."""
        return Limits(cells, seconds, time.monotonic())

    def over(self, used: int, volume: float) -> str:
        """Which limit is reached after this many bounds, when the next cell has this volume; nothing if none is."""
        if self.cells is not None and used >= self.cells:
            return f"{plural(used, 'bound')} are computed"
        if self.seconds is not None and time.monotonic() - self.begin >= self.seconds:
            return f"{self.seconds:g} seconds are over"
        return "cells are too small to be halved any further" if volume <= 2.0 ** (2 - MOST_HALVINGS) else ""


@dataclass(frozen=True, slots=True)
class Root:
    """The box that is subdivided: a space, and the axes along which f changes."""

    space: Space
    relevant: tuple[int, ...]

    @staticmethod
    def of(enclosure: Enclosure, box: Space | None) -> Root:
        """The root of an enclosure: its space, or a box inside it."""
        space = enclosure.space if box is None else _checked(box, enclosure.space)
        return Root(space, tuple(space.names.index(name) for name in enclosure.relevant))

    def theta(self, corners: FloatArray) -> FloatArray:
        """The parameters at corners."""
        return self.space.from_unit(2.0 * corners - 1.0)

    def sizes(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """The widths of boxes of parameters along every axis, in log rates; 0 where f does not change."""
        widths = np.zeros(low.shape)
        for axis in self.relevant:
            a, b = low[:, axis], high[:, axis]
            positive = (a >= 0.0) & (b > 0.0)
            with np.errstate(all="ignore"):
                logs = np.log(b / np.maximum(a, _LEAST_SHARE * b))
                others = (b - a) / np.maximum(np.abs(a), np.abs(b))
            widths[:, axis] = np.where(positive, logs, np.where(b > a, others, 0.0))
        return widths

    def halves(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The corners of the two halves of every box, cut along the axis that is widest in log rates; first halves
        first. Boxes that no halving makes smaller are an error."""
        widths = self.sizes(self.theta(low), self.theta(high))
        widths[high - low <= 2.0**-MOST_HALVINGS] = -1.0
        axis = np.argmax(widths, axis=1)
        rows = np.arange(len(low))
        middle = 0.5 * (low[rows, axis] + high[rows, axis])
        first_high, second_low = high.copy(), low.copy()
        first_high[rows, axis], second_low[rows, axis] = middle, middle
        return np.concatenate([low, second_low]), np.concatenate([first_high, high])

    @property
    def corners(self) -> tuple[FloatArray, FloatArray]:
        """Those of the root itself."""
        return np.zeros((1, len(self.space))), np.ones((1, len(self.space)))


def volumes(low: FloatArray, high: FloatArray) -> FloatArray:
    """The shares of the root that boxes have."""
    return np.asarray(np.prod(high - low, axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class Lattice:
    """f at a lattice of Chebyshev's points, and between them by the polynomial through it: a guess without a posterior.

    f is an analytic function of the rates, so few points say much; `cosines` are the polynomial's coefficients.
    """

    root: Root
    cosines: FloatArray  # an axis for every relevant one

    @staticmethod
    def of(enclosure: Enclosure, root: Root, most: int | None = None) -> Lattice:
        """The lattice over a root, of at most this many points: one at least."""
        count = _LATTICE.get(len(root.relevant), 2)
        while most is not None and count > 1 and count ** len(root.relevant) > most:
            count -= 1
        angles = np.pi * (np.arange(count) + 0.5) / count
        shape = (count,) * len(root.relevant)
        points = np.full((int(np.prod(shape)), len(root.space)), 0.5)
        for axis, column in zip(root.relevant, np.indices(shape), strict=True):
            points[:, axis] = 0.5 + 0.5 * np.cos(angles)[column.ravel()]
        cosines = enclosure.values(root.theta(points)).reshape(shape)
        transform = np.cos(np.outer(np.arange(count), angles)) * (2.0 / count)
        transform[0] *= 0.5
        for axis in range(len(shape)):
            cosines = np.moveaxis(np.tensordot(transform, cosines, (1, axis)), 0, axis)
        return Lattice(root, cosines)

    def __call__(self, theta: FloatArray) -> FloatArray:
        """The guess at parameters."""
        unit = np.clip(self.root.space.to_unit(theta)[:, list(self.root.relevant)], -1.0, 1.0)
        guess = np.broadcast_to(self.cosines, (len(theta), *self.cosines.shape))
        for axis in range(unit.shape[1] - 1, -1, -1):
            orders = np.arange(self.cosines.shape[axis])
            basis = np.cos(np.arccos(unit[:, axis, np.newaxis]) * orders)
            guess = np.einsum("n...k,nk->n...", guess, basis)
        return np.clip(guess, 0.0, 1.0)


def collapsed(
    root: Root, low: FloatArray, high: FloatArray, upper: npt.NDArray[np.bool_], monotone: Mapping[str, str]
) -> tuple[FloatArray, FloatArray]:
    """Boxes of parameters without the axes along which f is declared monotone: there only the worst end is left.

    For an upper bound that is the end where f is largest, for a lower one where it is least.
    """
    low, high = low.copy(), high.copy()
    for name, sign in monotone.items():
        axis = root.space.names.index(name)
        at_high = upper == (sign == "+")
        end = np.where(at_high, high[:, axis], low[:, axis])
        low[:, axis] = high[:, axis] = end
    return low, high


def checked_monotone(monotone: Mapping[str, str] | None, names: Sequence[str]) -> dict[str, str]:
    """Which parameters f is declared monotone in, "+" where it increases; an error names what is wrong."""
    declared = dict(monotone or {})
    for name, sign in declared.items():
        if name not in names:
            hint = nearest(name, names) or f"there are {', '.join(names)}"
            raise InputError(f"{{monotone}} names {name}, which does not vary here", argument="monotone", remedy=hint)
        if sign not in ("+", "-"):
            remedy = "write '+' where the probability increases with it, '-' where it decreases"
            raise InputError(f"{{monotone}} has {sign!r} for {name}", argument="monotone", remedy=remedy)
    return declared


def _checked(box: Space, space: Space) -> Space:
    if not isinstance(box, Space) or box.names != space.names or dict(box.fixed) != dict(space.fixed):
        remedy = f"give a Space with a range for each of {', '.join(space.names)}, inside the ranges of the space"
        raise InputError(f"{{box}} must be a box in {space!r}, not {box!r}", argument="box", remedy=remedy)
    for name, allowed in space.ranges.items():
        inner = box.ranges[name]
        if not (allowed.low <= inner.low and inner.high <= allowed.high):
            remedy = "move the box inside"
            raise InputError(f"{{box}}: {name} in {inner} leaves {allowed}", argument="box", remedy=remedy)
        if inner.scale != allowed.scale:
            remedy = f"write Range({inner.low!r}, {inner.high!r}, scale={allowed.scale!r})"
            raise InputError(f"{{box}}: {name} is on another scale than in the space", argument="box", remedy=remedy)
    return box
