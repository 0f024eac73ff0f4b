"""`bound_error`: how large the error of a posterior is on average over θ, at most.

*Betting* bounds the mean of held-out errors. Suppose the mean of values in [0, 1] is at least m. Then the bet that pays
1 - λ(x - m) on each of them, with 0 <= λ <= 1/(1 - m) fixed before x is seen, is fair at best. Starting with 1, such
bets reach 1/δ with probability at most δ (Ville). So an m against which they do is rejected, and the least m that is
rejected bounds the mean with confidence 1 - δ. How much to bet is learned from the values that went before
(Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", 2024). Neither normality nor many
values are needed.

*PAC-Bayes* bounds the mean error of functions drawn from the posterior, from the data it was trained on. For a prior π
that does not depend on n independent observations, with probability 1 - δ over them and for every posterior q at once,
the mean error gen of a function drawn from q is bounded by its mean error emp on the data:

    Catoni          gen <= emp + λ/(8n) + (KL[q‖π] + ln 1/δ) / λ                for a λ fixed beforehand
    Maurer, Seeger  kl(emp ‖ gen) <= (KL[q‖π] + ln(2√n/δ)) / n                  with kl that of two coins

The error at a point is |L̄ - f(θ)|, with L̄ the frequency there. The best λ depends on the data through KL, so Catoni's
bound is applied to all λ of a geometric grid at once, each with its share of δ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from sateen.core.display import paragraph
from sateen.core.errors import InputError, nearest
from sateen.core.observations import Observations
from sateen.core.posterior import FullPosterior, training_of
from sateen.core.prediction import Claim, Posterior, drawn_uniformly
from sateen.core.seeds import stream_seed
from sateen.core.space import Points
from sateen.core.threads import on_one_thread
from sateen.core.types import FloatArray, IntArray
from sateen.guarantee.checks import check_held_out, check_independent, check_posterior
from sateen.guarantee.conformal import distances
from sateen.guarantee.normaliser import centre
from sateen.guarantee.request import check_share
from sateen.guarantee.truth import Truth

BoundMethod: TypeAlias = Literal["betting", "catoni", "seeger"]
_METHODS: Final = ("betting", "catoni", "seeger")
_SHARE_OF_DRAWS: Final = 0.1  # of what may go wrong, left to the finite number of draws from the posterior
_OF_THE_MEAN: Final = "the posterior mean"
_OF_A_DRAW: Final = "a function drawn from the posterior, and so of the posterior mean"
_MOST_STAKED: Final = 0.99  # of the capital: a single value of 1 would lose a capital that is staked completely
_HALVINGS: Final = 40  # of an interval no longer than 1: to 1e-12
_DRAWS: Final = 1000  # functions drawn from the posterior
_BLOCK: Final = 500  # rows at which they are drawn jointly
_STEP: Final = math.sqrt(2.0)  # from one λ of the grid to the next


@dataclass(frozen=True, slots=True, repr=False)
class ErrorBound:
    """An upper bound on the mean error of a posterior over all θ; `claim` gives its confidence, and `float` the number.

    The error at θ is |f(θ) - f̂(θ)|. `empirical` is the mean of its counterpart on the data, |frequency - f̂|. It
    includes the noise of the frequencies, and so does `value`, which bounds both. `kl` is the divergence of the
    posterior from its prior, in nats, if the bound uses it. `points` is the number of observations it uses.
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
        return paragraph(f"{self!r}\n{self}.")


@on_one_thread
def bound_error(
    posterior: Posterior,
    held_out: Observations | None = None,
    *,
    truth: tuple[Points, npt.ArrayLike] | Truth | None = None,
    method: BoundMethod = "betting",
    confidence: float = 0.95,
    seed: int | None = None,
) -> ErrorBound:
    """An upper bound on the mean error of a posterior over parameters drawn uniformly from its space.

    - "betting" needs `held_out` observations, at independent points that the posterior has not seen, or the `truth` at
      such points, as in `calibrate`. It is by far the tightest bound, and is about the error of the posterior mean.
    - "catoni" and "seeger" (PAC-Bayes) use the training observations themselves, which must be at independent points,
      and a prior that does not depend on them: see the `split` of a Gaussian process. They bound the mean error of a
      function drawn from the posterior; `seed` fixes the draws with which the bound is computed.

    All three compare f̂ with frequencies, whose noise only makes the bound larger: E|L̄ - f̂| >= |f - f̂|. None of them
    says anything about one single θ.
    """
    whole = check_posterior(posterior)
    check_share(confidence, "confidence", "0.95")
    if method not in _METHODS:
        hint = nearest(str(method), _METHODS) or f"there are {', '.join(_METHODS)}"
        raise InputError(f"there is no method {method!r} to bound the error; {hint}", argument="method")
    miss = 1.0 - confidence
    divergence = None
    if method == "betting":
        if (held_out is None) == (truth is None):
            problem = "betting bounds the error on held-out observations; give {held_out}, or use {method='catoni'} or "
            raise InputError(problem + "'seeger', which rest on the training", argument="held_out")
        if seed is not None:
            raise InputError("betting draws nothing at random; leave out the {seed}", argument="seed")
        errors, made = _errors_of_the_mean(whole, held_out, truth)
        value, empirical, of = mean_upper_bound(errors, miss), float(errors.mean()), _OF_THE_MEAN
    else:
        if (given := "held_out" if held_out is not None else "truth" if truth is not None else "") != "":
            problem = f"{method} bounds the error from the training observations; leave out {{{given}}}, or use "
            raise InputError(problem + "{method='betting'}, which is tighter", argument=given)
        if seed is None:
            raise InputError(f"{method} draws functions from the posterior; give it a {{seed}}", argument="seed")
        data, divergence = _prior_and_data(whole, method)
        empirical, greatest = mean_error_of_draws(whole, data, seed, _SHARE_OF_DRAWS * miss)
        bound = catoni_bound if method == "catoni" else seeger_bound
        value = bound(greatest, divergence, len(data), (1.0 - _SHARE_OF_DRAWS) * miss)
        of, made = _OF_A_DRAW, data.trials
    runs = {int(number) for number in made}
    claim = Claim(
        "mean error",
        "pac",
        None,
        drawn_uniformly(posterior.space),
        confidence=confidence,
        points=len(made),
        runs=runs.pop() if len(runs) == 1 else None,
        by=of,
        value=value,
        assuming=training.observations.assumption if (training := training_of(posterior)) else "",
    )
    return ErrorBound(value, empirical, method, claim, len(made), divergence)


def _errors_of_the_mean(
    posterior: FullPosterior, held_out: Observations | None, truth: tuple[Points, npt.ArrayLike] | Truth | None
) -> tuple[FloatArray, IntArray]:
    """How far the posterior mean is from what was held out, at each point, and how many runs each rests on."""
    if held_out is not None:
        check_held_out(held_out, posterior)
        return distances(held_out, centre(posterior.predict(held_out.points))), held_out.trials
    assert truth is not None
    known = Truth.of(truth)
    known.check(posterior)
    errors = known.distances(centre(posterior.predict(known.points)))
    return np.minimum(errors, 1.0), np.zeros(len(known), np.int64)


def _prior_and_data(posterior: FullPosterior, method: str) -> tuple[Observations, float]:
    """The training observations that the prior has not seen, and how far the posterior is from that prior."""
    divergence = posterior.kl()  # refused by a posterior without a prior
    training = posterior.unseen_by_prior
    if not len(training):
        raise InputError(f"no training observation is left that the prior has not seen, and {method} rests on those")
    check_independent(training, "the training")
    if not (math.isfinite(divergence) and divergence >= 0):
        problem = f"the posterior says that it is {divergence} nats from its prior, which gives no bound"
        raise InputError(problem)
    return training, divergence


def mean_upper_bound(values: npt.ArrayLike, miss: float) -> float:
    """What the mean of independent values in [0, 1] exceeds with probability at most `miss`.

    The values need not have one distribution: then the bound is on any number that is at most the mean of each. They
    are bet on in their order, which must not have been chosen by looking at them.

    >>> round(mean_upper_bound(np.zeros(300), 0.05), 4)  # nothing but zeros leaves room for ln(1/0.05)/300
    0.0102
    """
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or not len(x) or not ((x >= 0) & (x <= 1)).all():
        raise InputError("a bound on a mean needs a column of values between 0 and 1, and at least one")
    goal = math.log(1.0 / miss)
    stakes = _stakes(x, goal)

    def rejected(mean: float) -> bool:
        shares = np.minimum(stakes, _MOST_STAKED / (1.0 - mean))
        capital = np.cumsum(np.log1p(-shares * (x - mean)))
        return bool(capital.max() >= goal)

    return least_true(rejected, 0.0, 1.0)


def least_true(test: Callable[[float], bool], low: float, high: float) -> float:
    """The least number from `low` to `high` at which a test that changes once, from false to true, is true.

    `high` is not tested: it is the answer where nothing below passes. Rounding is upwards.
    """
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if test(middle) else (middle, high)
    return high


def _stakes(x: FloatArray, goal: float) -> FloatArray:
    """λ for each value, from those before it: what would reach the goal soonest if they went on with that variance."""
    count = np.arange(1.0, len(x) + 1)
    mean = (0.5 + np.cumsum(x)) / (count + 1)
    variance = (0.25 + np.cumsum((x - mean) ** 2)) / (count + 1)
    before = np.concatenate([[0.25], variance[:-1]])
    return np.asarray(np.sqrt(2.0 * goal / (len(x) * before)))


def catoni_bound(empirical: float, divergence: float, points: int, miss: float) -> float:
    """Catoni's bound, the least over a grid of λ: at most 1.5 % above the best λ, but for the logarithm of its size.

    >>> round(catoni_bound(0.04, 20.0, 500, 0.05), 4)
    0.1997
    """
    # λ goes from the best one for KL = 0 to that from which on the bound says nothing.
    least, most = math.sqrt(8.0 * points * math.log(1.0 / miss)), 8.0 * points
    steps = max(0, math.ceil(math.log(most / least, _STEP)))
    grid = least * _STEP ** np.arange(steps + 1.0)
    price = divergence + math.log(len(grid) / miss)
    return min(1.0, empirical + float(np.min(grid / (8.0 * points) + price / grid)))


def seeger_bound(empirical: float, divergence: float, points: int, miss: float) -> float:
    """Maurer and Seeger's bound, which is much the tighter where the empirical error is small.

    >>> round(seeger_bound(0.04, 20.0, 500, 0.05), 4)
    0.1377
    """
    return greatest_mean(empirical, (divergence + math.log(2.0 * math.sqrt(points) / miss)) / points)


def greatest_mean(empirical: float, divergence: float) -> float:
    """The greatest p for which kl(empirical ‖ p) is at most `divergence`.

    >>> round(greatest_mean(0.0, 0.01), 6)  # 1 - exp(-0.01)
    0.00995
    """
    return least_true(lambda p: coin_divergence(empirical, p) > divergence, empirical, 1.0)


def coin_divergence(q: float, p: float) -> float:
    """The Kullback-Leibler divergence of a coin that shows heads with probability p from one with q, in nats."""
    heads = q * math.log(q / p) if q > 0 else 0.0
    tails = (1.0 - q) * math.log((1.0 - q) / (1.0 - p)) if q < 1 else 0.0
    return heads + tails


def mean_error_of_draws(
    posterior: FullPosterior, observations: Observations, seed: int, miss: float
) -> tuple[float, float]:
    """The mean error on the observations of a function drawn from the posterior: an estimate, and a bound on it.

    Draws are finitely many, so the estimate is uncertain too; the bound fails with probability `miss`.
    Only the marginals matter to it, so draws are joint within blocks of rows and independent between them.
    """
    errors = np.zeros(_DRAWS)
    for start in range(0, len(observations), _BLOCK):
        rows = observations[start : start + _BLOCK]
        drawn = posterior.sample(rows.points, _DRAWS, seed=stream_seed(seed, "error bound", "functions", start))
        errors += distances(rows, drawn).sum(axis=1)
    errors = np.clip(errors / len(observations), 0.0, 1.0)
    return float(errors.mean()), mean_upper_bound(errors, miss)
