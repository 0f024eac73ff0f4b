"""Everything that a posterior can do, with a default or a clear refusal where its class cannot.

A user's own posterior needs only `space` and `predict`. `complete` gives it the other abilities, so that calibration,
planning, scoring, studies and reports can use any posterior alike; `fit_learner` does so with what a learner fits.
"""

from __future__ import annotations

import inspect
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, Final

import numpy as np

from sateen.core.display import paragraph, pictured
from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.prediction import Claim, Learner, Posterior, Prediction, Training, drawn_uniformly
from sateen.core.progress import SILENT, Progress
from sateen.core.proportions import beta_quantiles
from sateen.core.record import UNKNOWN, Record
from sateen.core.registry import call_provider
from sateen.core.seeds import stream
from sateen.core.space import Points, Scale, Space
from sateen.core.types import File, FloatArray

_IMPORTANCE_POINTS: Final = 1024
_STEP: Final = 1.0 / 256.0  # of a range, for differences
_BY_LEARN: Final = "fit it by st.learn(observations, learner=..., seed=...), which keeps it"
_LATENT_LEVEL: Final = 0.95  # of the intervals from which the default of `latent_moments` is computed
_LATENT_DRAWS: Final = 512
_LEAST_F, _MOST_F = 1e-300, 1.0 - 2.0**-53  # between which Φ⁻¹(f) is a number


class FullPosterior(ABC):
    """A posterior with every ability; a class of posteriors overrides the defaults that it can do better than."""

    __slots__ = ()

    @property
    @abstractmethod
    def kind(self) -> str:
        """The name of the learner in files and on the command line, such as "svi-gp"."""

    @property
    @abstractmethod
    def recipe(self) -> Learner:
        """The learner, with its settings; `recipe.fit(observations, seed=...)` fits it to others."""

    @property
    @abstractmethod
    def training(self) -> Training:
        """What it learned from: `training.observations`, and their `training.fingerprint`."""

    @property
    @abstractmethod
    def record(self) -> Record:
        """How the fit went."""

    @property
    @abstractmethod
    def space(self) -> Space:
        """Where it predicts."""

    @abstractmethod
    def predict(self, points: object, *, level: float = 0.95, extrapolate: bool = False) -> Prediction:
        """Mean, standard deviation and credible interval of f at points, a dict, an array or a data frame."""

    @property
    def seconds_per_run(self) -> float:
        """How long one simulated run took in training; NaN where that is not known."""
        training = training_of(self)
        runs = int(training.observations.trials.sum()) if training else 0
        if training is None or runs == 0 or training.observations.seconds <= 0:
            return math.nan
        return training.observations.seconds / runs

    def sample(self, points: object, n: int, *, seed: int, extrapolate: bool = False) -> FloatArray:
        """`n` joint draws of f at the points, a row each; the same seed gives the same draws.

        By default f at each point has the Beta distribution with the predicted mean and standard deviation, and a draw
        takes the same quantile at all points: as if f were everywhere too high or too low together.
        """
        check_draws(n)
        prediction = self.predict(points, extrapolate=extrapolate)
        shares = stream(seed, "sample").uniform(size=(n, 1))
        return beta_quantiles(prediction.mean, prediction.std, shares)

    def functions(self, n: int, *, seed: int) -> Callable[[object], FloatArray]:
        """`n` draws of the whole function f: what is returned gives them at points, a row each.

        By default they are those of `sample`. Where these depend on the points, ask for all points in one call.
        """
        check_draws(n)
        return lambda points: self.sample(points, n, seed=seed)

    def gradient(self, points: object, *, extrapolate: bool = False) -> FloatArray:
        """The derivatives of the mean by each varying parameter, a row for each point, a column for each name.

        By default they are differences over 1/128 of each range, on one side only at the ends of the range.
        """
        theta = self._points(points, extrapolate).theta
        slopes = np.zeros(theta.shape)
        for column, range_ in enumerate(self.space.ranges.values()):
            ends = []
            for sign in (-1.0, 1.0):
                moved = theta.copy()
                unit = range_.to_unit(theta[:, column]) + sign * 2.0 * _STEP
                moved[:, column] = range_.from_unit(unit if extrapolate else np.clip(unit, -1.0, 1.0))
                ends.append((moved[:, column], self.predict(moved, extrapolate=extrapolate).mean))
            (low, below), (high, above) = ends
            slopes[:, column] = (above - below) / (high - low)
        return slopes

    def latent_moments(self, points: object) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of g = Φ⁻¹(f) at each point.

        By default they are those of the normal distribution with the quantiles of the predicted intervals.
        """
        from scipy.special import ndtri

        prediction = self.predict(points, level=_LATENT_LEVEL)
        low, high = (ndtri(np.clip(end, _LEAST_F, _MOST_F)) for end in (prediction.lower, prediction.upper))
        return 0.5 * (low + high), (high - low) / (2.0 * float(ndtri(0.5 + 0.5 * _LATENT_LEVEL)))

    def latent_covariance(self, points: object, *, seed: int) -> FloatArray:
        """The joint covariance of g = Φ⁻¹(f) at the points; by default that of draws, which depend on the seed."""
        from scipy.special import ndtri

        draws = ndtri(np.clip(self.sample(points, _LATENT_DRAWS, seed=seed), _LEAST_F, _MOST_F))
        return np.atleast_2d(np.cov(draws, rowvar=False))

    def updated(self, observations: Observations, *, seed: int, progress: Progress = SILENT) -> FullPosterior:
        """The same learner fitted to other observations, which hold those of the training and more.

        A class may keep what is slow to learn and changes little; by default all is learned again.
        """
        return fit_learner(self.recipe, observations, seed=seed, progress=progress)

    def importance(self) -> dict[str, float]:
        """Which parameters matter, the most important first: how steeply the mean changes with each, on average.

        The root mean square, over a fixed design that fills the space, of the derivative of the mean by the parameter
        when its whole range, on the scale the learner uses, has the length 1. Nothing is drawn at random. Parameters
        that cannot affect the verdict have 0.
        """
        points = self.space.sobol(_IMPORTANCE_POINTS, seed=0) if self.space.names else self.space.points({})
        slopes, scales = self.gradient(points), self._scales()
        steepness = {}
        for column, (name, range_) in enumerate(self.space.ranges.items()):
            theta = points.theta[:, column]
            length = np.log(range_.high / range_.low) * theta if scales[name] == "log" else range_.high - range_.low
            steepness[name] = float(np.sqrt(np.mean((slopes[:, column] * length) ** 2)))
        return dict(sorted(steepness.items(), key=lambda item: -item[1]))

    def kl(self) -> float:
        """How far it is, in nats, from a prior that has not seen `unseen_by_prior`; refused where there is no prior."""
        raise InputError(
            f"{self.kind} has no prior for kl(); use bound_error(method='betting'), which needs none, or learn with "
            "SVIBNN, or with a Gaussian process and split=0.3"
        )

    @property
    def unseen_by_prior(self) -> Observations:
        """The training observations that the prior of `kl` does not depend on, which PAC-Bayes bounds rest on."""
        return self.training.observations[:0]

    def save(self, file: File) -> None:
        """Write one safe file (safetensors, with JSON inside), which `st.load` reads back."""
        call_provider("save posterior", self, file)

    def plot(self, ax: object = None) -> object:
        """Draw the mean and its 95 % intervals over one parameter, or the mean over two."""
        if len(self.space) not in (1, 2):
            raise InputError(f"a picture shows one or two parameters, and here {len(self.space)} vary: {self.space!r}")
        return self.predict(self.space.grid(200 if len(self.space) == 1 else 50)).plot(ax=ax)

    def _scales(self) -> dict[str, Scale]:
        """The scale of each parameter on which `importance` takes its range."""
        return {name: range_.scale for name, range_ in self.space.ranges.items()}

    def _points(self, points: object, extrapolate: bool) -> Points:
        """The points, checked; Points of the same space keep their design."""
        own = isinstance(points, Points) and not extrapolate and points.space == self.space
        if isinstance(points, Points) and own and self.space.contains(points.theta).all():
            return points
        return self.space.points(points, extrapolate=extrapolate)

    def __repr__(self) -> str:
        training, marks = training_of(self), "" if self.record.converged else f"; {self.record.verdict}"
        learned = f" from {len(training.observations):,} points{marks}" if training else ""
        return f"<Posterior {self.kind} over {self.space!r}{learned}>"

    def _repr_html_(self) -> str:
        ranked = ", ".join(f"{name} {share:.3g}" for name, share in self.importance().items())
        words = f"{repr(self)[1:-1]}\n{self.record}" + (f"\nsteepness by parameter: {ranked}" if ranked else "")
        if training_of(self) is None:
            return pictured(self.plot, words) if len(self.space) in (1, 2) else paragraph(words)
        return pictured(partial(call_provider, "plot posterior", self), words) if self.space.names else paragraph(words)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CompletedPosterior(FullPosterior):
    """A user's own posterior, `belief`, with what was known when it was fitted; its own abilities come first."""

    belief: Posterior
    learner: Learner | None = None
    observations: Observations | None = None
    seed: int | None = None
    name: str = ""
    fitted: Record | None = None

    @property
    def kind(self) -> str:
        """The name of the learner, or of the class of the posterior where no learner is known."""
        return self.name or str(getattr(self.belief, "kind", type(self.belief).__name__))

    @property
    def recipe(self) -> Learner:
        """The learner that fitted it; refused where it is not known."""
        recipe: Learner | None = getattr(self.belief, "recipe", self.learner)
        if recipe is None:
            raise InputError(f"the posterior {self.kind} does not say which learner fitted it; {_BY_LEARN}")
        return recipe

    @property
    def training(self) -> Training:
        """What it learned from; refused where it is not known."""
        training: Training | None = getattr(self.belief, "training", None)
        if training is None and self.observations is not None:
            training = Training(self.observations)
        if training is None:
            raise InputError(f"the posterior {self.kind} does not say what it learned from; {_BY_LEARN}")
        return training

    @property
    def record(self) -> Record:
        """How the fit went, as far as the learner says."""
        record: Record | None = getattr(self.belief, "record", self.fitted)
        return record or Record("objective", np.empty(0), np.empty(0), UNKNOWN, math.nan)

    @property
    def space(self) -> Space:
        """Where it predicts."""
        return self.belief.space

    @property
    def seconds_per_run(self) -> float:
        """How long one simulated run took in training; NaN where that is not known."""
        seconds = getattr(self.belief, "seconds_per_run", None)
        return super(CompletedPosterior, self).seconds_per_run if seconds is None else float(seconds)

    def predict(self, points: object, *, level: float = 0.95, extrapolate: bool = False) -> Prediction:
        """What the posterior predicts; a class whose `predict` takes no `extrapolate` is never asked outside."""
        check_level(level)
        where = self._points(points, extrapolate)
        options = {"extrapolate": True} if extrapolate and not self.space.contains(where.theta).all() else {}
        if options and not _accepts(self.belief.predict, "extrapolate"):
            raise InputError(f"the posterior {self.kind} does not predict outside its space; leave extrapolate out")
        prediction: object = self.belief.predict(where, level=level, **options)
        if not isinstance(prediction, Prediction):
            what = f"predict of {self.kind} returned a {type(prediction).__name__}, and a Prediction is needed"
            raise InputError(f"{what}; st.posterior_from makes one from means and standard deviations")
        return prediction

    def sample(self, points: object, n: int, *, seed: int, extrapolate: bool = False) -> FloatArray:
        """The posterior's own draws, or by default those that `FullPosterior.sample` describes."""
        method = getattr(self.belief, "sample", None)
        if method is None:
            return FullPosterior.sample(self, points, n, seed=seed, extrapolate=extrapolate)
        check_draws(n)
        return np.asarray(method(self._points(points, extrapolate), n, seed=seed), dtype=np.float64)

    def gradient(self, points: object, *, extrapolate: bool = False) -> FloatArray:
        """The posterior's own derivatives, or by default differences."""
        method = getattr(self.belief, "gradient", None)
        if method is None:
            return FullPosterior.gradient(self, points, extrapolate=extrapolate)
        return np.asarray(method(self._points(points, extrapolate)), dtype=np.float64)

    def importance(self) -> dict[str, float]:
        """The posterior's own ranking, or by default the mean steepness."""
        return dict(self._ability("importance")())

    def kl(self) -> float:
        """The posterior's own divergence from its prior; refused where it has none."""
        return float(self._ability("kl")())

    @property
    def unseen_by_prior(self) -> Observations:
        """The training observations that the prior of `kl` does not depend on."""
        unseen: Observations | None = getattr(self.belief, "unseen_by_prior", None)
        return self.training.observations[:0] if unseen is None else unseen

    def save(self, file: File) -> None:
        """Write one file, which `st.load` reads back: by the posterior's own `save`, or to be fitted again on load."""
        self._ability("save")(file)

    def _ability(self, name: str) -> Callable[..., Any]:
        """The posterior's own method of this name, or the default."""
        method: Callable[..., Any] | None = getattr(self.belief, name, None)
        return method or partial(getattr(FullPosterior, name), self)


def complete(posterior: Posterior) -> FullPosterior:
    """The posterior with every ability: itself if it has them all, else one that adds what it lacks."""
    if isinstance(posterior, FullPosterior):
        return posterior
    if not isinstance(posterior, Posterior):
        raise InputError(
            f"a posterior has `space` and `predict`, and a {type(posterior).__name__} does not; see st.learn"
        )
    return CompletedPosterior(posterior)


def training_of(posterior: Posterior) -> Training | None:
    """What a posterior learned from, or None where it does not say."""
    try:
        return complete(posterior).training
    except InputError:
        return None


def fit_learner(
    learner: Learner,
    observations: Observations,
    *,
    seed: int,
    progress: Progress = SILENT,
    checkpoint: File | None = None,
) -> FullPosterior:
    """What a learner fits to observations, with every ability; options that its `fit` does not take are left out."""
    if not isinstance(learner, Learner) or isinstance(learner, type):
        what = f"the class {learner.__name__}" if isinstance(learner, type) else f"a {type(learner).__name__}"
        raise InputError(f"a learner is an object with `fit`, such as st.SVIGP(), not {what}", argument="learner")
    options: dict[str, Any] = {"progress": progress, "checkpoint": checkpoint}
    accepted = {name: value for name, value in options.items() if _accepts(learner.fit, name)}
    began = time.perf_counter()
    posterior = learner.fit(observations, seed=seed, **accepted)
    record = Record("objective", np.empty(0), np.empty(0), UNKNOWN, time.perf_counter() - began)
    if isinstance(posterior, CompletedPosterior) and posterior.fitted is None:
        return replace(posterior, fitted=record)
    if isinstance(posterior, FullPosterior):
        return posterior
    if not isinstance(posterior, Posterior):
        what = f"fit of {type(learner).__name__} returned a {type(posterior).__name__}"
        raise InputError(f"{what}, and a posterior needs `space` and `predict`; see st.posterior_from")
    name = str(call_provider("learner name", learner))
    return CompletedPosterior(posterior, learner, observations, int(seed), name, record)


def _accepts(function: Callable[..., object], option: str) -> bool:
    """Whether a function takes a keyword argument of this name."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    return option in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())


def check_level(level: float) -> None:
    """Refuse what is not a level."""
    if not isinstance(level, Real) or not 0 < level < 1:
        raise InputError(f"level is a probability between 0 and 1, such as 0.95, not {level!r}")


def check_draws(n: int) -> None:
    """Refuse what is not a number of draws."""
    if isinstance(n, bool) or not isinstance(n, Integral) or n < 1:
        raise InputError(f"the number of draws is a whole number from 1 up, not {n!r}")


def credible(space: Space, level: float, kind: str, assuming: str = "") -> Claim:
    """The claim of a credible interval."""
    return Claim("probability", "credible", level, drawn_uniformly(space), by=kind, assuming=assuming)
