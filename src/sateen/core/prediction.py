"""What is known about f: a Prediction, the Claim its intervals carry, and the protocols of what predicts and learns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, get_args, runtime_checkable

import numpy as np

from sateen.core.counts import read_only
from sateen.core.display import paragraph, pictured
from sateen.core.errors import InputError
from sateen.core.registry import call_provider
from sateen.core.space import Points, Space
from sateen.core.text import html_table, percent, plural
from sateen.core.types import FloatArray

if TYPE_CHECKING:
    from sateen.core.observations import Observations

Target: TypeAlias = Literal["probability", "frequency", "mean error", "answer", "region", "regret", "reward"]
Mode: TypeAlias = Literal["credible", "frequentist", "asymptotic", "marginal", "pac", "sure"]
_COLUMNS: Final = ("mean", "std", "lower", "upper")
_SHOWN_ROWS: Final = 8  # of the table in a notebook


@dataclass(frozen=True, slots=True)
class Claim:
    """What an interval promises, and over which random draw; `str(claim)` is the promise as one sentence.

    `target` is what the interval is about: the probability f(θ), the frequency among `runs` fresh runs at θ, or the
    mean error over all θ. `mode` is the kind of promise: "credible" is a belief under a model; "marginal" holds on
    average over calibrations and over θ; "pac" holds for all but a share 1 - `confidence` of calibrations. `level` is
    the share of θ, drawn as `measure` says, for which the interval is right. `points` and `runs` are those of the
    calibration; `runs` is None if they differ between points. "frequentist" is about one given θ: a share `level` of
    the intervals that `measure` names is right; "asymptotic" says this only for many runs. The target "reward" is an
    expected reward at one θ. The target "answer" is not about an interval, but about the answer to the question `by`,
    under the prior `measure`.

    The target "region" says that the statement `by` holds at the parameters of `measure`, for a share `level` of them.
    The target "regret" says that f is at most `value` larger there than at the best point. A claim of mode "sure" was
    computed and holds for every parameter. One of mode "pac" with level 1 also holds for every parameter, but was
    tested by runs. `assuming` is what a claim rests on besides the data, such as declared monotonicity.

    >>> print(Claim("probability", "pac", 0.9, drawn_uniformly(Space(beta=(0, 1))), confidence=0.95))
    with probability 95 % over the calibration draw, the interval contains the true probability for at least 90 % of \
parameters drawn uniformly from the space (beta in [0, 1])
    """

    target: Target
    mode: Mode
    level: float | None
    measure: str
    confidence: float | None = None
    points: int | None = None
    runs: int | None = None
    by: str = ""
    value: float | None = None
    assuming: str = ""

    def __post_init__(self) -> None:
        if self.target not in get_args(Target) or self.mode not in get_args(Mode):
            known = f"about {get_args(Target)} and in one of the modes {get_args(Mode)}"
            raise InputError(f"a claim is {known}, not {self}")
        if (self.mode == "pac") != (self.confidence is not None):
            raise InputError(f"a claim has a confidence if and only if its mode is pac; this one is {self.mode}")
        if (self.mode == "asymptotic" or self.target == "reward") and self.mode not in ("frequentist", "asymptotic"):
            raise InputError(f"a claim about a reward is frequentist or asymptotic, not {self.mode}")
        if self.target == "answer" and self.mode != "credible":
            raise InputError(f"a claim about an answer is credible, not {self.mode}")
        if self.mode == "sure" and (self.target not in ("region", "regret", "probability") or self.level != 1.0):
            raise InputError("a claim is sure only about every parameter: its level is 1")
        bounds_error = self.target == "mean error"
        if (self.target in ("mean error", "regret")) != (self.value is not None) or bounds_error != (
            self.level is None
        ):
            raise InputError("a claim about the mean error has a value, one about regret both, every other one a level")

    def __str__(self) -> str:
        return self._sentence() + (f"; this assumes that {self.assuming}" if self.assuming else "")

    def _sentence(self) -> str:
        if self.target in ("region", "regret") or self.mode == "sure":
            return self._about_parameters()
        if self.target == "mean error":
            whose = f" of {self.by}" if self.by else ""
            promise = f"the mean error{whose} over parameters {self.measure} is at most {self.value:.4g}"
            return f"with probability {percent(self.confidence)} over the data, {promise}"
        if self.target == "answer":
            drawn = f"if the probability was drawn from {self.measure} before the runs"
            right = f"an answer to {self.by} is right with probability at least {percent(self.level)} given the runs"
            return f"{drawn}, {right}: a belief under this prior, which bounds no error at a given parameter"
        if self.mode == "credible":
            believer = f" of {self.by}" if self.by else ""
            belief = f"at each parameter the probability lies in the interval with probability {percent(self.level)}"
            return f"under the model{believer}, {belief}: a belief, which guarantees no coverage"
        if self.mode in ("frequentist", "asymptotic"):
            object_ = "the expected reward" if self.target == "reward" else "the true probability"
            if self.mode == "frequentist":
                contain = f"contain {object_} in at least {percent(self.level)} of cases"
                return f"at the given parameter, {self.measure} {contain}"
            contain = f"contain {object_} in {percent(self.level)} of cases as the number of runs grows"
            return f"at the given parameter, {self.measure} {contain}: an asymptotic claim, not one about these runs"
        object_ = "the true probability" if self.target == "probability" else self._frequency()
        contains = f"the interval contains {object_}"
        # What only the user can know: were they stopped by what was seen, nothing would be proven.
        differ = ", if the numbers of runs per point, which differ, were fixed before the runs were made"
        provided = differ if self.points is not None and self.runs is None else ""
        if self.mode == "pac":
            drawn = f"for at least {percent(self.level)} of parameters {self.measure}{provided}"
            return f"with probability {percent(self.confidence)} over the calibration draw, {contains} {drawn}"
        draw = f"over the calibration draw and a parameter {self.measure}"
        return f"with probability at least {percent(self.level)} {draw}, {contains}{provided}"

    def _about_parameters(self) -> str:
        """The sentence of a claim that a statement holds at parameters: at all of them, or at a share."""
        holds = self.by
        if self.target == "regret":
            holds = self.by or f"the probability is at most {self.value:.4g} above that at the best point"
        elif self.target == "probability":
            holds = "the interval contains the true probability"
        if self.mode == "sure":
            return f"for every parameter {self.measure}, {holds}: computed, not sampled"
        if self.mode == "credible":
            return (
                f"under the model, {holds} with probability {percent(self.level)}: a belief, which guarantees nothing"
            )
        if self.mode == "marginal":
            draw = f"over the calibration draw and a parameter {self.measure}"
            return f"with probability at least {percent(self.level)} {draw}, {holds}"
        sure = f"with probability {percent(self.confidence)} over the draw"
        if self.level == 1.0:
            return f"{sure}, {holds} for every parameter {self.measure}"
        share = f"for at least {percent(self.level)} of the parameters {self.measure}"
        return f"{sure}, {holds} {share}; it says nothing about one single parameter"

    def _frequency(self) -> str:
        runs = "as many" if self.runs is None else f"{self.runs:,}"
        return f"the frequency among {runs} fresh runs at the parameter (not the probability itself)"

    def content(self) -> dict[str, object]:
        """The claim as plain data, with its sentence."""
        return {**asdict(self), "sentence": str(self)}

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> Claim:
        """The claim that `content` describes."""
        return cls(**{name: value for name, value in content.items() if name != "sentence"})


def drawn_uniformly(space: Space) -> str:
    """How the parameters of a claim are drawn, in words: the uniform measure of a space, with its scales.

    >>> drawn_uniformly(Space(k=(1, 2)))
    'drawn uniformly from the space (k in [1, 2])'
    """
    ranges = space.ranges.items()
    axes = [f"{name} in {range_}" + (" on a log scale" if range_.scale == "log" else "") for name, range_ in ranges]
    return f"drawn uniformly from the space ({', '.join(axes) or 'a single point'})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Prediction:
    """f at points: `mean`, `std` and the interval [`lower`, `upper`], always with its `claim`.

    >>> points = Space(beta=(0, 1)).points({"beta": [0.2, 0.8]})
    >>> claim = Claim("probability", "credible", 0.95, "")
    >>> Prediction(points, [0.1, 0.5], [0.01, 0.02], [0.08, 0.46], [0.12, 0.54], 0.95, claim)
    <Prediction at 2 points: mean 0.1 to 0.5, intervals of width 0.06 at 95 %>
    """

    points: Points
    mean: FloatArray
    std: FloatArray
    lower: FloatArray
    upper: FloatArray
    level: float
    claim: Claim

    def __post_init__(self) -> None:
        for name in _COLUMNS:
            column = np.array(getattr(self, name), dtype=np.float64)
            if column.shape != (len(self.points),):
                raise InputError(f"{name} has the shape {column.shape}, for {len(self.points)} points")
            if not np.isfinite(column).all():
                raise InputError(f"{name} is not a number in row {int(np.argmin(np.isfinite(column)))}")
            object.__setattr__(self, name, read_only(column))
        if (wrong := self.lower > self.upper).any():
            raise InputError(f"the interval of row {int(np.argmax(wrong))} ends before it begins")

    @property
    def width(self) -> FloatArray:
        """The widths of the intervals."""
        return read_only(self.upper - self.lower)

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: Any) -> Prediction:
        """The rows of a slice, of a list of indices, or of a mask."""
        if isinstance(index, int | np.integer):
            raise InputError(f"one row of a prediction is a slice: write prediction[{index}:{index + 1 or ''}]")
        mean, std, lower, upper = (getattr(self, name)[index] for name in _COLUMNS)
        return Prediction(self.points[index], mean, std, lower, upper, self.level, self.claim)

    def frame(self) -> Any:
        """A pandas DataFrame: every parameter, then mean, std, lower and upper."""
        return self.points.frame().assign(**{name: getattr(self, name) for name in _COLUMNS})

    def plot(self, ax: object = None) -> object:
        """Draw the mean and the intervals over one parameter, the mean as colours over two, or a ranking over more.

        The ranking shows the points in the order of their means.
        """
        if not self.points.space.names:
            raise InputError("no parameter varies here, so there is nothing to draw")
        return call_provider("plot prediction", self, ax=ax)

    def __repr__(self) -> str:
        points = plural(len(self), "point")
        if not len(self):
            return f"<Prediction at {points}>"
        means = f"mean {self.mean.min():.4g} to {self.mean.max():.4g}"
        return f"<Prediction at {points}: {means}, intervals of width {self.width.mean():.3g} at {percent(self.level)}>"

    def _repr_html_(self) -> str:
        top = slice(_SHOWN_ROWS)
        table = np.column_stack([self.points.theta[top], *(getattr(self, name)[top] for name in _COLUMNS)])
        rows = [[f"{value:.4g}" for value in row] for row in table.tolist()]
        numbers = html_table(str(self.claim), (*self.points.space.names, *_COLUMNS), rows)
        if len(self) == 1:  # a picture of a single point would say less than its numbers
            ends = f"{self.lower[0]:.4g} to {self.upper[0]:.4g}"
            return paragraph(f"Mean {self.mean[0]:.4g}, {percent(self.level)} interval {ends}") + numbers
        if not self.points.space.names or not len(self):
            return numbers
        return pictured(self.plot, repr(self)[1:-1], numbers)


@dataclass(frozen=True, slots=True)
class Training:
    """What a posterior learned from."""

    observations: Observations

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the observations."""
        return self.observations.fingerprint


@runtime_checkable
class Predictor(Protocol):
    """Predicts f with intervals: a posterior, or a guarantee made from one."""

    @property
    def space(self) -> Space:
        """Where it predicts."""

    def predict(self, points: object) -> Prediction:
        """Mean, standard deviation and interval of f at points, a dict, an array or a data frame."""


@runtime_checkable
class Posterior(Predictor, Protocol):
    """A distribution over f, learned from observations: what the `fit` of every Learner returns.

    Only `space` and `predict` are required. `core.posterior.complete` adds a default, or a clear refusal, for each
    ability that it lacks: `sample`, `gradient`, `importance`, `kl`, `training`, `recipe`, `record`, `seconds_per_run`,
    `save`. `st.posterior_from` makes a posterior from a function that gives means and standard deviations, or draws.
    """

    def predict(self, points: object, *, level: float = 0.95) -> Prediction:
        """Mean, standard deviation and credible interval of f at points; sateen passes Points that lie in the space."""


@runtime_checkable
class Learner(Protocol):
    """Fits a posterior to observations; the built-in ones are EPGP, SVIGP, SVIBNN and LaplaceNet.

    `fit` may also take `progress`, to report how far it is, and `checkpoint`, a file to resume from; sateen passes
    them only to a `fit` that does. See docs/own-learner.md for how to write one.
    """

    def fit(self, observations: Observations, *, seed: int) -> Posterior:
        """The posterior over f; the same observations and seed give the same one."""
