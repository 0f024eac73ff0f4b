"""Calibration by the truth: held-out labels that were computed, not counted.

Where a model is finite, `st.exact` gives f at every held-out point to ten decimals. Then no binomial bound is needed:
with the scores S_i = |f(θ_i) - f̂(θ_i)|/u(θ_i), the m-th largest T and a fresh θ, P(S > T) is what conformal.py says,
and f̂ ± Tu is the interval for f. All that the claim may miss goes into the rank m, the largest that it allows; this
depends on the number of points alone. *Proof.* The S_i and S are independent and alike, for f̂ and u are fixed by the
training; so the two statements of conformal.py hold for them as they are. ∎

A computed value may be off by `LABEL_ERROR`, which is added to every distance: the interval then covers f itself, and
is never a point. It is not joined with the credible interval, which here would only hide what was computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypedDict

import numpy as np
import numpy.typing as npt

from sateen.core.counts import read_only
from sateen.core.errors import InputError
from sateen.core.fingerprints import checksum
from sateen.core.posterior import FullPosterior, training_of
from sateen.core.space import Points
from sateen.core.types import Arrays, Content, File, FloatArray
from sateen.files.container import read_container, write_container
from sateen.files.observations import Parameter, check_array, parameters_of, space_of
from sateen.files.plain import FAULTS, converted, fault_text
from sateen.guarantee.checks import check_new, check_uniform
from sateen.guarantee.conformal import WeightedThreshold, conformal_rank, fewest_points, threshold_of
from sateen.guarantee.methods import Calibration
from sateen.guarantee.normaliser import centre, difficulty
from sateen.guarantee.request import check_truth_options

if TYPE_CHECKING:
    from sateen.guarantee.request import CalibrateRequest

LABEL_ERROR: Final = 1e-10  # of a computed probability
_LEAST_DEVIATION: Final = 1e-4  # added to the posterior's: scores are not divided by nearly 0
KIND: Final = "truth"
FORMAT: Final = 1


class _Known(TypedDict):
    """Everything of a truth but the columns."""

    space: list[Parameter]
    design: str
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """The computed probability f at `points`: `values` has one for each; `seconds` is how long it took."""

    points: Points
    values: FloatArray
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.points, Points):
            problem = f"{{truth}} is (points, values), with Points of a Space, not a {type(self.points).__name__}"
            raise InputError(
                problem, argument="truth", remedy="pass {truth=(points, st.exact(model, formula, points))}"
            )
        values = np.asarray(self.values)
        if values.dtype.kind not in "iuf":
            problem = f"{{truth}} has values of the type {values.dtype.name}, and probabilities are numbers"
            raise InputError(problem, argument="truth", remedy="give one probability for each point")
        values = np.array(values, dtype=np.float64)
        if values.shape != (len(self.points),):
            problem = f"{{truth}} has values of the shape {values.shape} for {len(self.points):,} points"
            raise InputError(problem, argument="truth", remedy="give one probability for each point")
        if (wrong := ~((values >= 0.0) & (values <= 1.0))).any():
            row = int(np.argmax(wrong))
            raise InputError(f"{{truth}} is {values[row]} in row {row}, which is not a probability", argument="truth")
        object.__setattr__(self, "values", read_only(values))

    @classmethod
    def of(cls, given: Truth | tuple[Points, npt.ArrayLike]) -> Truth:
        """A Truth from the `truth` argument of a call."""
        if isinstance(given, Truth):
            return given
        if not isinstance(given, tuple) or len(given) != 2:
            problem = f"{{truth}} is a pair, (points, values), not {type(given).__name__}"
            raise InputError(
                problem, argument="truth", remedy="pass {truth=(points, st.exact(model, formula, points))}"
            )
        return cls(given[0], np.asarray(given[1]))

    @property
    def fingerprint(self) -> str:
        """A hash of the points and the values."""
        ranges = [[name, str(range_), range_.scale] for name, range_ in self.points.space.ranges.items()]
        return checksum([KIND, ranges], {"theta": self.points.theta, "values": self.values})

    def __len__(self) -> int:
        return len(self.values)

    def distances(self, mean: FloatArray) -> FloatArray:
        """How far f can be from the mean at each point."""
        return np.abs(self.values - mean) + LABEL_ERROR

    def check(self, posterior: FullPosterior) -> None:
        """Refuse points that cannot support a guarantee: from another space, not independent, or used in training."""
        if self.points.space != posterior.space:
            spaces = f"  {self.points.space!r}\n  {posterior.space!r}"
            problem = f"{{truth}} is from another space than the posterior's, where it would prove nothing:\n{spaces}"
            raise InputError(problem, argument="truth")
        if not len(self):
            raise InputError(
                "{truth} has no points", argument="truth", remedy="compute it at space.uniform(200, seed=1)"
            )
        check_uniform(self.points, "{truth}", "compute it at space.uniform(n, seed=...)")
        training = training_of(posterior)
        if training is not None:
            check_new(self.points, training.observations.theta, "{truth}")

    def save(self, file: File) -> None:
        """Write one safe file, which `load` reads back."""
        content = {
            "space": parameters_of(self.points.space),
            "design": self.points.design,
            "seconds": self.seconds,
        }
        write_container(file, KIND, FORMAT, content, {"theta": self.points.theta, "values": self.values})

    @classmethod
    def load(cls, file: File) -> Truth:
        """The truth that `save` wrote; a damaged file, or one from another program, is refused."""
        *_, content, arrays = read_container(file, {KIND: FORMAT})
        return truth_from(content, arrays, str(file))


def truth_from(content: Content, arrays: Arrays, where: str) -> Truth:
    """The truth in a file, from its words and its arrays."""
    try:
        known = converted(content, _Known)
        space = space_of(known["space"])
        check_array("theta", arrays["theta"], (len(arrays["values"]), len(space)), np.float64)
        return Truth(Points(arrays["theta"], space, known["design"]), arrays["values"], known["seconds"])
    except FAULTS as error:
        raise InputError(f"{where} holds no valid truth: {fault_text(error)}") from error


def calibrate_by_truth(
    request: CalibrateRequest, posterior: FullPosterior, truth: Truth
) -> tuple[Calibration, WeightedThreshold | None]:
    """The threshold of the scores |f - f̂|/u; by default u is the posterior's deviation."""
    check_truth_options(request)
    normaliser = request.normaliser or "posterior"
    truth.check(posterior)
    rank = conformal_rank(len(truth), request.miss, request.confidence)
    if not rank and request.density is None:
        request.refuse_trivial(len(truth), fewest_points(request.miss, request.confidence))
    prediction = posterior.predict(truth.points, level=request.level)
    floor = 0.0 if normaliser == "constant" else _LEAST_DEVIATION
    scores = truth.distances(centre(prediction)) / difficulty(normaliser, prediction, 1, floor)
    threshold, weighted = threshold_of(request, truth.points, scores, rank, request.miss)
    calibration = Calibration(
        points=len(truth),
        runs=0,
        rank=rank if request.density is None and rank else None,
        threshold=threshold,
        miss=request.miss,
        normaliser=normaliser,
        normaliser_runs=1,
        fingerprint=truth.fingerprint,
        why="given" if request.normaliser else "the default",
        floor=floor,
    )
    return calibration, weighted
