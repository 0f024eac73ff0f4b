"""The Bayesian test of a probability: Zuliani, Platzer and Clarke's, by the Bayes factor under a Beta prior.

Before any run, P is assumed to be drawn from Beta(a, b). After k of n runs satisfied the formula it is Beta(a + k, b +
n - k). The Bayes factor of P > q is the odds of P > q after the runs over its odds before: how much the runs alone
speak for it. Runs are made until the factor is F or more, and P > q is accepted, or 1/F or less, and it is rejected.

Let o be the odds of P > q before. *Given the runs*, an accepted P > q is false with probability 1/(1 + F o) at most, a
rejected one true with 1/(1 + F/o) at most, for the factor is the ratio of the odds. What is believed after the runs
does not depend on why they were stopped; so this holds after every run, and on average over P, drawn from the prior,
and the runs. It is not a bound at a given P: near the threshold about half of the answers may be wrong, and only
the prior's word that P is seldom there makes the average small. Wald's test has a bound at every P beyond its
indifference.

Unless F is given, it is such that both probabilities are at most `error`: F = (1 - error)/error · max(o, 1/o).
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, betaincc, betaln, expit

from sateen.core.errors import InputError
from sateen.core.prediction import Claim
from sateen.core.types import FloatArray
from sateen.sampling.sequential import Bits, Decision, Tally, first_beyond

Prior: TypeAlias = tuple[float, float]
UNIFORM: Final[Prior] = (1.0, 1.0)
_LEAST, _MOST = 1e-6, 1e9  # that a and b may be
_TINY: Final = 1e-290  # below this a tail is computed in logarithms
_TERMS: Final = 10_000  # of a continued fraction, of which it needs a few dozen
_ROUNDING: Final = 1e-6  # of a logarithm, when blocks of runs are passed over
_BLOCK: Final = 64  # runs that are looked at together, where none of them can decide


@dataclass(frozen=True, slots=True)
class BayesTest:
    """The Bayesian test of P > threshold, run by run, under the prior Beta(a, b); `log_needed` is log F."""

    threshold: float
    prior: Prior
    log_needed: float

    @classmethod
    def of(
        cls, threshold: float, prior: Prior = UNIFORM, factor: float | None = None, error: float = 0.05
    ) -> BayesTest:
        """The test that needs the Bayes factor `factor`; by default the one with which it errs as seldom as `error`.

        >>> round(math.exp(BayesTest.of(0.5, error=0.05).log_needed), 6)
        19.0
        """
        if not 0.0 < threshold < 1.0:
            problem = f"a test asks about a threshold between 0 and 1, not {threshold:g}"
            raise InputError(problem, argument="test", remedy="choose another {test}, such as 'P > 0.3'")
        a_b = _checked_prior(prior)
        if factor is not None:
            if not 1.0 < factor < math.inf:
                problem = f"{{factor}} is a number above 1, which the Bayes factor has to reach, not {factor:g}"
                raise InputError(problem, argument="factor")
            return cls(threshold, a_b, math.log(factor))
        if not 0.0 < error < 0.5:
            raise InputError(f"{{error}} is a probability between 0 and 0.5, not {error:g}", argument="error")
        return cls(threshold, a_b, math.log1p(-error) - math.log(error) + abs(_odds_before(a_b, threshold)))

    def evidence(self, satisfied: npt.ArrayLike, violated: npt.ArrayLike) -> FloatArray:
        """The logarithm of the Bayes factor of P > threshold: it rises with `satisfied` and falls with `violated`."""
        a, b = self.prior
        after = log_odds_above(self.threshold, a + np.asarray(satisfied), b + np.asarray(violated))
        return after - _odds_before(self.prior, self.threshold)

    def first(self, bits: Bits, satisfied: int = 0, runs: int = 0) -> tuple[int, Decision | None]:
        """After how many of the next `bits` it decides, and how, or None; `satisfied` of `runs` came before.

        The evidence after any run of a block is at most that of all satisfactions up to its end with the violations
        before it alone, and at least the converse. Blocks for which neither reaches a bound are passed over, so that
        the very run that decides is found at little cost.
        """
        edges = np.append(np.arange(0, len(bits), _BLOCK), len(bits))
        counts = satisfied + np.append(0, np.cumsum(bits))[edges]
        others = runs + edges - counts
        most, least = self.evidence(counts[1:], others[:-1]), self.evidence(counts[:-1], others[1:])
        nearly = self.log_needed - _ROUNDING
        for block in np.flatnonzero((most >= nearly) | (least <= -nearly)):
            start, stop = edges[block], edges[block + 1]
            satisfactions = counts[block] + np.cumsum(bits[start:stop])
            violations = runs + np.arange(start + 1, stop + 1) - satisfactions
            after, decision = first_beyond(self.evidence(satisfactions, violations), self.log_needed)
            if decision is not None:
                return int(start) + after, decision
        return len(bits), None


@dataclass(frozen=True, slots=True)
class BayesAnswer:
    """What a Bayesian test found about the relation that was asked, such as P < 0.3; `claim` says what an answer means.

    From `log_factor_lower` to `log_factor_upper` is the natural logarithm of its Bayes factor: the two differ only
    where runs are undecided, which count against the relation for the one and for it for the other. `log_needed`
    is what it has to reach, or its negative. `prior` are a and b; `probability_before` is that of the relation under
    the prior, and the two others bound it given the runs.
    """

    prior: Prior
    log_needed: float
    log_factor_lower: float
    log_factor_upper: float
    probability_before: float
    probability_lower: float
    probability_upper: float
    claim: Claim

    def __str__(self) -> str:
        lower, upper = self.log_factor_lower, self.log_factor_upper
        factor, chance = _factor_text(lower), _probability_text(self.probability_lower)
        if lower != upper:
            factor = f"from {factor} to {_factor_text(upper)}"
            chance = f"from {chance} to {_probability_text(self.probability_upper)}"
        needed, against = _factor_text(self.log_needed), _factor_text(-self.log_needed)
        prior = f"under the prior {self.claim.measure}"
        return f"Bayes factor {factor} ({needed} or {against} decides), probability {chance} {prior}"

    @property
    def factor_lower(self) -> float:
        """The Bayes factor where undecided runs count against the relation; infinite above all floats."""
        return _exponential(self.log_factor_lower)

    @property
    def factor_upper(self) -> float:
        """The Bayes factor where undecided runs count for the relation; infinite above all floats."""
        return _exponential(self.log_factor_upper)

    def content(self) -> dict[str, object]:
        """The answer as plain data."""
        factors = {"factor_lower": self.factor_lower, "factor_upper": self.factor_upper}
        return {**asdict(self), **factors, "claim": self.claim.content()}


def answered(test: BayesTest, relation: str, counted: Tally) -> BayesAnswer:
    """What the counts say about P `relation` threshold, where the relation is one of >, >=, < and <=."""
    sign = 1.0 if ">" in relation else -1.0
    before = _odds_before(test.prior, test.threshold)
    most = counted.satisfied + counted.undecided
    counts = np.array([counted.satisfied, most])
    low, high = sorted((sign * test.evidence(counts, counted.runs - counts)).tolist())
    wrong = float(expit(abs(before) - test.log_needed))
    claim = Claim(
        "answer",
        "credible",
        1.0 - _rounded_up(wrong),
        f"Beta({test.prior[0]:g}, {test.prior[1]:g})",
        runs=counted.runs,
        by=f"P {relation} {test.threshold:g}",
    )
    return BayesAnswer(
        prior=test.prior,
        log_needed=test.log_needed,
        log_factor_lower=low,
        log_factor_upper=high,
        probability_before=float(expit(sign * before)),
        probability_lower=float(expit(low + sign * before)),
        probability_upper=float(expit(high + sign * before)),
        claim=claim,
    )


def log_odds_above(threshold: float, first: npt.ArrayLike, second: npt.ArrayLike) -> FloatArray:
    """The logarithm of P(X > q)/P(X <= q) for X ~ Beta(first, second), also where one of the two is below all floats.

    >>> float(log_odds_above(0.5, 10, 10)), round(float(log_odds_above(0.5, 1e7, 1)), 2)
    (0.0, 6931471.81)
    """
    a, b = np.broadcast_arrays(np.asarray(first, np.float64), np.asarray(second, np.float64))
    below, above = (np.asarray(tail(a, b, threshold), np.float64) for tail in (betainc, betaincc))
    logs = [math.log(threshold), math.log1p(-threshold)]
    log_below = _log_tail(below, a, b, threshold, *logs)
    log_above = _log_tail(above, b, a, 1.0 - threshold, *reversed(logs))
    return np.asarray(log_above - log_below)


def _log_tail(value: FloatArray, a: FloatArray, b: FloatArray, x: float, log_x: float, log_rest: float) -> FloatArray:
    """The logarithm of P(X <= x) for X ~ Beta(a, b), which is `value` unless that is nearly 0.

    There it is x^a (1-x)^b / (a B(a, b)) times a continued fraction, which converges fast, for x is far below the mean.
    """
    tiny = value < _TINY
    logs = np.array(np.log(np.where(tiny, 1.0, value)))
    if tiny.any():
        p, q = a[tiny], b[tiny]
        front = p * log_x + q * log_rest - np.log(p) - betaln(p, q)
        logs[tiny] = front + np.log(_fraction(p, q, x))
    return logs


def _fraction(a: FloatArray, b: FloatArray, x: float) -> FloatArray:
    """The continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method."""
    c = np.ones_like(a)
    d = 1.0 / (1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, _TERMS):
        steps = (
            m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0)),
        )
        before = value
        for step in steps:
            d, c = 1.0 / (1.0 + step * d), 1.0 + step / c
            value = value * c * d
        if np.allclose(value, before, rtol=1e-14, atol=0.0):
            break
    return value


def _odds_before(prior: Prior, threshold: float) -> float:
    return float(log_odds_above(threshold, *prior))


def _checked_prior(prior: object) -> Prior:
    try:
        a, b = (float(each) for each in prior)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        a = b = math.nan
    if not (_LEAST <= a <= _MOST and _LEAST <= b <= _MOST):
        problem = f"{{prior}} is a and b of Beta(a, b), two numbers from {_LEAST:g} to {_MOST:g}, not {prior!r}"
        raise InputError(problem, argument="prior")
    return a, b


def _exponential(logarithm: float) -> float:
    return math.exp(logarithm) if logarithm < 700.0 else math.inf


def _factor_text(log_factor: float) -> str:
    """A Bayes factor from its logarithm: 27.1, 1/27.1, or a power of ten where that is too long to read."""
    size = abs(log_factor)
    text = f"{math.exp(size):.4g}" if size < 12.0 else f"10^{size / math.log(10.0):.5g}"
    return text if log_factor >= 0.0 or text == "1" else f"1/{text}"


def _probability_text(probability: float) -> str:
    """A probability, of which something is still to be seen where it is nearly 1."""
    return f"1 - {1.0 - probability:.2g}" if 0.999 < probability < 1.0 else f"{probability:.4g}"


def _rounded_up(probability: float) -> float:
    """A probability with three digits that is no less, but for rounding; 0 stays 0."""
    if probability == 0.0:
        return 0.0
    digits = 2 - math.floor(math.log10(probability))
    return math.ceil(probability * 10.0**digits - 1e-6) / 10.0**digits
