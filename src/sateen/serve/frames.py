"""A picture of a posterior for the page: values on a grid of one or two axes, as whole numbers of 16 bits.

A number stands for the square of its share of `STEPS`, times the largest value of its array: so small values keep
their digits beside large ones.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

import sateen as st
from sateen.core.errors import InputError, nearest
from sateen.core.posterior import FullPosterior
from sateen.core.seeds import stream_seed
from sateen.core.types import Array, FloatArray
from sateen.serve.clicks import simulated
from sateen.serve.documents import Question

LEVEL: Final = 0.95
ARRAYS: Final = ("mean", "lower", "upper")
STEPS: Final = 65_535
_SIZE: Final = {1: 201, 2: 61}  # points of an axis, by the number of axes
_MOST_SHOWN: Final = 2000  # training points
_PREVIEWED: Final = 32
_FEWEST: Final = 8  # points, below which there is nothing to show
_PREVIEW_RUNS: Final = 10
_PREVIEW_SECONDS: Final = 0.5
_MOST_EVENTS: Final = 20_000
_INDUCING: Final = 32


@dataclass(frozen=True, slots=True)
class View:
    """Which parameters are on the axes, and the values of the others; by default the middle of their ranges."""

    x: str
    y: str | None = None
    sliders: dict[str, float] = field(default_factory=dict)

    @classmethod
    def first(cls, space: st.Space) -> View:
        """The view to begin with."""
        return cls(space.names[0], space.names[1] if len(space) > 1 else None)

    def checked(self, space: st.Space) -> View:
        """The view, with a value for each parameter that is not on an axis; an InputError where it does not fit."""
        for name in (self.x, *(() if self.y is None else (self.y,)), *self.sliders):
            if name not in space.names:
                hint = nearest(name, space.names) or f"there are {', '.join(space.names)}"
                raise InputError(f"{name[:100]} is no parameter that varies; {hint}")
        if self.x == self.y:
            raise InputError(f"{self.x} is on both axes", remedy="choose two parameters, or leave y out")
        middle = {name: float(range_.from_unit(0.0)) for name, range_ in space.ranges.items()}
        rest = {name: self.sliders.get(name, value) for name, value in middle.items() if name not in (self.x, self.y)}
        space.points({**middle, **rest})
        return View(self.x, self.y, rest)


def grid_of(space: st.Space, view: View) -> tuple[st.Points, int, int]:
    """The points of a frame, row by row from low y to high, and how many there are along x and along y."""
    axes = [space.ranges[name] for name in (view.x, view.y) if name is not None]
    steps = np.linspace(-1.0, 1.0, _SIZE[len(axes)])
    columns = dict(zip((view.x, view.y), np.meshgrid(*(axis.from_unit(steps) for axis in axes)), strict=False))
    shape = next(iter(columns.values())).shape
    theta = np.empty((int(np.prod(shape)), len(space)))
    for place, name in enumerate(space.names):
        theta[:, place] = columns[name].ravel() if name in columns else view.sliders[name]
    return st.Points(theta, space, "grid"), shape[-1], shape[0] if len(axes) > 1 else 1


def frame_of(
    posterior: FullPosterior,
    observations: st.Observations,
    view: View,
    number: int,
    *,
    preview: bool = False,
    constant: str | None = None,
) -> bytes:
    """The bytes of a frame: the length of a header, the header in JSON, and the arrays."""
    space = posterior.space
    points, nx, ny = grid_of(space, view)
    predicted = posterior.predict(points, level=LEVEL)
    values = {"mean": predicted.mean, "lower": predicted.lower, "upper": predicted.upper}
    scale = {name: float(values[name].max()) or 1.0 for name in ARRAYS}
    header: dict[str, Any] = {
        "frame": number,
        "runs": 0 if preview else int(observations.trials.sum()),
        "points": 0 if preview else len(observations),
        "view": {"x": view.x, "y": view.y, "sliders": view.sliders},
        "nx": nx,
        "ny": ny,
        "x": _axis(space, view.x),
        "y": None if view.y is None else _axis(space, view.y),
        "arrays": ARRAYS,
        "scale": scale,
        "level": LEVEL,
        "train": _train(observations, view),
        "preview": preview,
        "constant": constant,
    }
    arrays = [_whole(values[name] / scale[name]) for name in ARRAYS]
    head = json.dumps(header, allow_nan=False).encode()
    head += b" " * (len(head) % 2)  # so that the arrays begin at an even place
    return len(head).to_bytes(4, "little") + head + b"".join(arrays)


def read_frame(frame: bytes) -> tuple[dict[str, Any], Mapping[str, FloatArray]]:
    """The header of a frame, and its values."""
    start = 4 + int.from_bytes(frame[:4], "little")
    header: dict[str, Any] = json.loads(frame[4:start])
    size = header["nx"] * header["ny"]
    table = np.frombuffer(frame[start:], "<u2").reshape(len(header["arrays"]), size) / STEPS
    return header, {name: row**2 * header["scale"][name] for name, row in zip(header["arrays"], table, strict=True)}


def _whole(values: Array) -> bytes:
    whole: Array = np.rint(np.sqrt(np.clip(values, 0.0, 1.0)) * STEPS).astype("<u2")
    return bytes(whole.tobytes())


def _axis(space: st.Space, name: str) -> dict[str, Any]:
    range_ = space.ranges[name]
    return {"name": name, "low": range_.low, "high": range_.high, "log": range_.scale == "log"}


def _train(observations: st.Observations, view: View) -> list[list[float | int | None]]:
    """The newest training points: where they lie on the axes, how many runs held, and how many there were."""
    rows = slice(max(len(observations) - _MOST_SHOWN, 0), None)
    names = observations.space.names
    theta = observations.theta[rows]
    columns = [
        [None] * len(theta) if name is None else theta[:, names.index(name)].tolist() for name in (view.x, view.y)
    ]
    counts = (observations.satisfied[rows].tolist(), observations.trials[rows].tolist())
    return [list(row) for row in zip(*columns, *counts, strict=True)]


def preview(question: Question, number: int, wanted: Callable[[], bool]) -> bytes | None:
    """The frame of what can be seen within half a second, while the engine is compiled, by runs that nothing counts.

    None for what the reference simulator cannot do so soon, and where the worker is `wanted` for something else.
    """
    model, formula = question.model, question.formula
    if not isinstance(model, st.Model) or formula is None or not math.isfinite(formula.horizon):
        return None
    points = question.space.sobol(_PREVIEWED, seed=stream_seed(question.document.seed, "serve preview"))
    counts = np.zeros((3, _PREVIEWED), dtype=np.int64)  # satisfied, undecided, all
    end = time.monotonic() + _PREVIEW_SECONDS
    for run in range(_PREVIEW_RUNS):
        for place, theta in enumerate(points):
            if time.monotonic() > end or wanted():
                break
            seed = stream_seed(question.document.seed, "serve preview", place, run)
            path = simulated(question, theta, seed, _MOST_EVENTS)
            verdict = st.monitor(formula, path)
            counts[:, place] += verdict is st.Verdict.TRUE, verdict is st.Verdict.UNKNOWN, 1
    seen = counts[2] > counts[1]
    if int(seen.sum()) < _FEWEST or wanted():
        return None
    satisfied, undecided, trials = counts[:, seen]
    made = st.Observations.from_counts(question.space, points.theta[seen], satisfied, trials, undecided)
    posterior = st.SVIGP(inducing=_INDUCING).fit(made, seed=1, progress=None)
    view = View.first(question.space).checked(question.space)
    return frame_of(posterior, made, view, number, preview=True)
