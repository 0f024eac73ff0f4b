"""Length scales and variance of a kernel, found by maximising the evidence, or a bound on it, with weak priors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np

from sateen.core.types import FloatArray
from sateen.learning.gp.kernels import Kernel
from sateen.learning.settings import KernelName

# The value for a kernel and inducing points, and its slopes by the logs of the kernel and by the points.
Objective: TypeAlias = Callable[[Kernel, FloatArray], tuple[float, FloatArray, FloatArray]]
_SCALE_PRIOR: Final = (0.3, 1.5)  # mean and deviation of the log of a length scale; inputs go from -1 to 1
_VARIANCE_PRIOR: Final = (1.0, 2.0)
_SCALE_BOUNDS: Final = (-3.5, 5.0)
_VARIANCE_BOUNDS: Final = (-3.0, 8.0)
_POINT_BOUNDS: Final = (-1.0, 1.0)
_UNUSABLE: Final = 1e10


def first_kernel(name: KernelName, dimension: int) -> Kernel:
    """Where the search for a kernel starts."""
    return Kernel(name, (0.5 * max(dimension, 1) ** 0.5,) * dimension, 2.0)


@dataclass(frozen=True, slots=True, eq=False)
class Climb:
    """The best kernel that was found, its score, the values on the way up, and whether the search came to rest.

    The `score` is the value of the objective plus the log-density of the priors, up to a constant. `points` are those
    that were moved along, if any were. `interrupted` marks a search that Ctrl-C ended.
    """

    kernel: Kernel
    score: float
    values: tuple[float, ...]
    rested: bool
    interrupted: bool = False
    points: FloatArray | None = None


def maximise(
    objective: Objective,
    start: Kernel,
    *,
    points: FloatArray | None = None,
    fixed: tuple[bool, bool] = (False, False),
    most: int = 40,
    relative_gain: float = 1e-6,
    first_step: float = np.inf,
    step: Callable[[], None] = lambda: None,
) -> Climb:
    """Climb from a kernel to the best one, by L-BFGS on the logarithms; `step` is called at each evaluation.

    `fixed` says whether the length scales, and whether the variance, stay as they are. Where inducing points are given,
    they move too, inside the box that inputs live in. The first step is of about `first_step` at most; else it may end
    at a far corner of the bounds, where an evaluation can take long. Ctrl-C ends the search with the best so far, if
    there is any.
    """
    from scipy.optimize import Bounds, minimize

    logs, dimension = start.logs, len(start.length_scales)
    free = np.array([not fixed[0]] * dimension + [not fixed[1]])
    centre = np.array([_SCALE_PRIOR[0]] * dimension + [_VARIANCE_PRIOR[0]])
    width = np.array([_SCALE_PRIOR[1]] * dimension + [_VARIANCE_PRIOR[1]])
    bounds = np.array([_SCALE_BOUNDS] * dimension + [_VARIANCE_BOUNDS])[free]
    moving = np.zeros((0, dimension)) if points is None else points
    bounds = np.concatenate([bounds, np.tile(_POINT_BOUNDS, (moving.size, 1))])
    values: list[float] = []
    best: list[Climb] = []
    unit = 1.0  # of what is minimised, whose slopes are the first step

    def fall(moved: FloatArray) -> tuple[float, FloatArray]:
        here = logs.copy()
        here[free] = moved[: free.sum()]
        kernel, places = start.at_logs(here), moved[free.sum() :].reshape(moving.shape)
        value, by_logs, by_points = objective(kernel, places)
        away = (here - centre) / width
        score = value - 0.5 * float(away[free] @ away[free])
        slopes = np.append((by_logs - away / width)[free], by_points if moving.size else ())
        if not (np.isfinite(score) and np.isfinite(slopes).all()):
            return _UNUSABLE, np.zeros(len(moved))
        if not best or score > best[0].score:
            best[:] = [Climb(kernel, score, (), True, points=None if points is None else places.copy())]
        values.append(value)
        step()
        return -score / unit, -slopes / unit

    rested, interrupted = True, False
    begin = np.append(logs[free], moving)
    try:
        if len(begin):
            if np.isfinite(first_step):
                unit = max(1.0, float(np.linalg.norm(fall(begin)[1])) / first_step)
            end = minimize(
                fall,
                np.clip(begin, *bounds.T),
                jac=True,
                method="L-BFGS-B",
                bounds=Bounds(*bounds.T),
                options={"maxfun": most, "maxiter": most, "ftol": relative_gain, "gtol": 1e-3 / unit},
            )
            rested = bool(end.status != 1)
        else:
            fall(begin)
    except KeyboardInterrupt:
        if not best:
            raise
        rested, interrupted = False, True
    if not best:  # no evaluation gave a number: stay where the search began
        return Climb(start, -np.inf, tuple(values), False, points=points)
    return replace(best[0], values=tuple(values), rested=rested, interrupted=interrupted)
