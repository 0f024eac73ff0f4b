"""`bound_error`: how large the error of a posterior is on average over θ, at most."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import Final, Literal, TypeAlias

from sateen.core.errors import InputError, nearest
from sateen.core.observations import Observations
from sateen.core.prediction import Claim, Posterior, drawn_uniformly
from sateen.core.threads import on_one_thread
from sateen.guarantee.betting import mean_upper_bound
from sateen.guarantee.checks import check_held_out, check_independent, check_posterior
from sateen.guarantee.conformal import distances
from sateen.guarantee.normaliser import centre
from sateen.guarantee.pac_bayes import catoni_bound, mean_error_of_draws, seeger_bound
from sateen.guarantee.request import check_share

__all__ = ["BoundMethod", "ErrorBound", "bound_error"]

BoundMethod: TypeAlias = Literal["betting", "catoni", "seeger"]
_PAC_BAYES: Final = {"catoni": catoni_bound, "seeger": seeger_bound}
_METHODS: Final = ("betting", *_PAC_BAYES)
_SHARE_OF_DRAWS: Final = 0.1  # of what may go wrong, left to the finite number of draws from the posterior
_OF_THE_MEAN: Final = "the posterior mean"
_OF_A_DRAW: Final = "a function drawn from the posterior, and so of the posterior mean"


@dataclass(frozen=True, slots=True, repr=False)
class ErrorBound:
    """What the mean error of a posterior over all θ is at most; `claim` says with which confidence, `float` the number.

    The error at θ is |f(θ) - f̂(θ)|. `empirical` is its counterpart on the data, |frequency - f̂|, averaged: it holds the
    noise of the frequencies too, on average, and so does `value`, which bounds both. `kl` is how far the posterior is
    from its prior, in nats, where the bound rests on that; `points` is how many observations it rests on.
    """

    value: float
    empirical: float
    method: BoundMethod
    claim: Claim
    points: int
    kl: float | None = None

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        return f"{self.claim}"

    def __repr__(self) -> str:
        divergence = "" if self.kl is None else f", {self.kl:.4g} nats from the prior"
        rest = f"empirical {self.empirical:.4g} at {self.points:,} points{divergence}"
        return f"<ErrorBound {self.method}: {self.value:.4g}, {rest}>"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}<br>{escape(str(self))}.</p>"


@on_one_thread
def bound_error(
    posterior: Posterior,
    held_out: Observations | None = None,
    *,
    method: BoundMethod = "betting",
    confidence: float = 0.95,
    seed: int | None = None,
) -> ErrorBound:
    """An upper bound on the mean error of a posterior over parameters drawn uniformly from its space.

    - "betting" needs `held_out` observations, at independent points that the posterior has not seen. It is by far the
      tightest, and bounds the error of the posterior mean.
    - "catoni" and "seeger" (PAC-Bayes) rest on the training observations themselves, which must then be at independent
      points, and on a prior that has not seen them: see the `split` of a Gaussian process. They bound the mean error of
      a function drawn from the posterior; `seed` is that of the draws with which it is computed.

    All three compare f̂ with frequencies, whose noise only makes the bound larger: E|L̄ - f̂| >= |f - f̂|. None of them
    says anything about one single θ.
    """
    check_posterior(posterior)
    check_share(confidence, "confidence", "0.95")
    if method not in _METHODS:
        hint = nearest(str(method), _METHODS) or f"there are {', '.join(_METHODS)}"
        raise InputError(f"there is no method {method!r} to bound the error; {hint}", argument="method")
    miss = 1.0 - confidence
    divergence = None
    if method == "betting":
        if held_out is None:
            problem = "betting bounds the error on held-out observations; give {held_out}, or use {method='catoni'} or "
            raise InputError(problem + "'seeger', which rest on the training", argument="held_out")
        if seed is not None:
            raise InputError("betting draws nothing at random; leave out the {seed}", argument="seed")
        check_held_out(held_out, posterior)
        errors = distances(held_out, centre(posterior.predict(held_out.points, level=0.95)))
        value, empirical, data, of = mean_upper_bound(errors, miss), float(errors.mean()), held_out, _OF_THE_MEAN
    else:
        if held_out is not None:
            problem = f"{method} bounds the error from the training observations; leave out {{held_out}}, or use "
            raise InputError(problem + "{method='betting'}, which is tighter", argument="held_out")
        if seed is None:
            raise InputError(f"{method} draws functions from the posterior; give it a {{seed}}", argument="seed")
        data, divergence = _prior_and_data(posterior, method)
        empirical, greatest = mean_error_of_draws(posterior, data, seed, _SHARE_OF_DRAWS * miss)
        value = _PAC_BAYES[method](greatest, divergence, len(data), (1.0 - _SHARE_OF_DRAWS) * miss)
        of = _OF_A_DRAW
    runs = {int(number) for number in data.trials}
    claim = Claim(
        "mean error",
        "pac",
        None,
        drawn_uniformly(posterior.space),
        confidence=confidence,
        points=len(data),
        runs=runs.pop() if len(runs) == 1 else None,
        by=of,
        value=value,
    )
    return ErrorBound(value, empirical, method, claim, len(data), divergence)


def _prior_and_data(posterior: Posterior, method: str) -> tuple[Observations, float]:
    """The training observations that the prior has not seen, and how far the posterior is from that prior."""
    if missing := [name for name in ("unseen_by_prior", "kl", "sample") if not hasattr(posterior, name)]:
        problem = f"{method} rests on the prior of the posterior and its training, and this posterior has no "
        remedy = "use {method='betting'} with held-out observations, which works for any posterior"
        raise InputError(problem + f"`{missing[0]}`", argument="method", remedy=remedy)
    training = posterior.unseen_by_prior
    if not len(training):
        raise InputError(f"no training observation is left that the prior has not seen, and {method} rests on those")
    check_independent(training, "the training")
    divergence = posterior.kl()
    if not (math.isfinite(divergence) and divergence >= 0):
        problem = f"the posterior says that it is {divergence} nats from its prior, of which no bound can be made"
        raise InputError(problem)
    return training, divergence
