"""Requests: what a calibration or a plan is asked for, with every option checked and every default filled in.

`calibrate` and `plan` build one first, and so do the study file and the command line. An option that does not apply is
an error. Every InputError names its `argument`, so that each door words it in its own names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from sateen.core.errors import InputError, nearest
from sateen.core.text import percent, plural
from sateen.guarantee.methods import METHODS

if TYPE_CHECKING:
    from sateen.core.types import FloatArray
    from sateen.guarantee.plan import Plan

Default: TypeAlias = Literal["default"]
Density: TypeAlias = "Callable[[FloatArray], Any]"  # numbers, in any form that numpy reads
_LEVEL: Final = 0.9
_MOST_POINTS: Final = 10**9  # that a plan may ask for


@dataclass(frozen=True, slots=True)
class CalibrateRequest:
    """The requested guarantee. No normaliser, rank or split means that the method chooses."""

    method: str
    level: float
    confidence: float | None
    rank: int | None = None
    normaliser: str | None = None
    split: float | None = None
    density: Density | None = None
    allow_trivial: bool = False
    seed: int | None = None

    @property
    def miss(self) -> float:
        """ε: what the claim may miss."""
        return 1.0 - self.level

    @classmethod
    def of(
        cls,
        method: str = "lift",
        *,
        level: float | Default = "default",
        confidence: float | Default | None = "default",
        marginal: bool = False,
        rank: int | None = None,
        normaliser: str | None = None,
        split: float | None = None,
        density: Density | None = None,
        plan: Plan | PlanRequest | None = None,
        allow_trivial: bool = False,
        seed: int | None = None,
    ) -> CalibrateRequest:
        """The request with these options, each checked.

        `plan` is a Plan, or the PlanRequest of one that is still to be made. `marginal=True` is `confidence=None`, for
        doors that cannot say None.

        >>> CalibrateRequest.of("icp", level=0.95).confidence is None
        True
        """
        if not isinstance(method, str) or method not in METHODS:
            names = ", ".join(map(repr, METHODS.names()))
            raise InputError(f"{{method}} is one of {names}, not {method!r}", argument="method")
        options = {"rank": rank, "plan": plan, "seed": seed, "split": split, "normaliser": normaliser}
        for name, value in options.items():
            if value is not None:
                _check_applies(method, name)
        if marginal:
            if confidence not in ("default", None):
                problem = "a marginal guarantee has no {confidence}; leave out one of {confidence} and {marginal}"
                raise InputError(problem, argument="marginal")
            confidence = None
        if plan is not None:
            _check_agrees(plan, rank, seed, {"level": level, "confidence": confidence, "normaliser": normaliser})
            level, confidence, rank, normaliser = plan.level, plan.confidence, plan.rank, plan.normaliser
        _check_normaliser(method, normaliser)
        if seed is not None and normaliser is not None:
            problem = "{seed} applies only where cross-validation chooses the normaliser, and one is given"
            raise InputError(problem, argument="seed")
        if not isinstance(allow_trivial, bool):
            raise InputError(f"{{allow_trivial}} is True or False, not {allow_trivial!r}", argument="allow_trivial")
        return cls(
            method,
            check_share(_LEVEL if level == "default" else level, "level", "0.9"),
            _confidence(method, confidence, density),
            None if rank is None else _whole(rank, "rank", 1),
            normaliser,
            None if split is None else check_share(split, "split", "0.5"),
            density,
            allow_trivial,
            None if seed is None else _whole(seed, "seed", 0),
        )

    def check_points(self, points: int, *, exact: bool = False) -> None:
        """Refuse a number of held-out points that is too small for the level, before they are observed or computed."""
        # The conformal part alone, which is all that is left where labels are computed.
        enough = METHODS["icp" if exact else self.method].fewest_points(self)
        if enough is None or points < enough:
            self.refuse_trivial(points, enough)

    def refuse_trivial(self, points: int, enough: int | None) -> None:
        """Refuse points that give only the interval [0, 1], unless that is allowed; `enough` would suffice."""
        if self.allow_trivial:
            return
        ranked = f" and the rank {self.rank}" if (self.rank or 1) > 1 else ""
        many = "no number that can be observed" if enough is None else f"{enough:,}"
        goal = _goal(self.level, self.confidence)
        raise InputError(
            f"{plural(points, 'held-out point')} {'is' if points == 1 else 'are'} too few for {goal}{ranked}: "
            f"{many} would suffice",
            argument="points",
            remedy="observe more, lower the {level}, or pass {allow_trivial=True} for the interval [0, 1]",
        )


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """The request for a plan: the `budget` of a calibration by the lift, or the `width` of its intervals."""

    width: float | None
    budget: int | None
    level: float
    confidence: float | None
    normaliser: str | None
    seed: int | None
    fewest: int  # points that the level needs
    rank: None = None  # which the plan chooses

    @classmethod
    def of(
        cls,
        *,
        width: float | None = None,
        budget: int | None = None,
        level: float | Default = "default",
        confidence: float | Default | None = "default",
        marginal: bool = False,
        normaliser: str | None = None,
        seed: int | None = None,
    ) -> PlanRequest:
        """The request with these options, each checked. A study file gives no seed: it has its own.

        >>> PlanRequest.of(width=0.06).fewest
        29
        """
        if (width is None) == (budget is None):
            problem = "a plan is made for a width or for a budget; give one of {width=0.06} and {budget=100_000}"
            raise InputError(problem, argument="width")
        lift = CalibrateRequest.of(level=level, confidence=confidence, marginal=marginal, normaliser=normaliser)
        if width is not None:
            width = check_share(width, "width", "0.06")
        if budget is not None:
            budget = _whole(budget, "budget", 1, " of runs, such as 10_000")
        if seed is not None:
            seed = _whole(seed, "seed", 0)
        fewest = METHODS["lift"].fewest_points(lift)
        if fewest is None or fewest > _MOST_POINTS:
            problem = f"no number of points that can be observed gives the level {percent(lift.level)}; lower it"
            raise InputError(problem, argument="level")
        if budget is not None and budget < fewest:
            goal = _goal(lift.level, lift.confidence)
            raise InputError(
                f"a budget of {budget:,} runs is too small for {goal}, which needs {fewest:,} points",
                argument="budget",
                remedy="raise the {budget}, or lower the {level}",
            )
        return cls(width, budget, lift.level, lift.confidence, normaliser, seed, fewest)


def check_truth_options(request: CalibrateRequest) -> None:
    """Refuse what does not apply where the held-out labels are computed, and nothing is left to choose."""
    for name in ("rank", "seed"):
        if getattr(request, name) is not None:
            problem = f"{{{name}}} does not apply to computed labels, which leave nothing to choose; leave it out"
            raise InputError(problem, argument=name)
    if request.method != "lift":
        problem = f"{{method={request.method!r}}} is about runs, and computed labels have none; leave the method out"
        raise InputError(problem, argument="method")
    if request.normaliser == "predictive":
        problem = "the predictive {normaliser} is about runs, and computed labels have none"
        raise InputError(problem, argument="normaliser", remedy="pass {normaliser='posterior'} or 'constant'")


def check_share(value: object, name: str, example: str) -> float:
    """`value` as a number strictly between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 < float(value) < 1.0:
        problem = f"{{{name}}} is a number between 0 and 1, such as {example}, not {value!r}"
        raise InputError(problem, argument=name)
    return float(value)


def _whole(value: object, name: str, least: int, unit: str = "") -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        problem = f"{{{name}}} is a whole number{unit or f' from {least} up'}, not {value!r}"
        raise InputError(problem, argument=name)
    return int(value)


def _goal(level: float, confidence: float | None) -> str:
    sure = "" if confidence is None else f" with the confidence {percent(confidence)}"
    return f"the level {percent(level)}{sure}"


def _check_applies(method: str, option: str) -> None:
    if option not in METHODS[method].options:
        others = [f"{{method={name!r}}}" for name in METHODS.builtin if option in METHODS[name].options]
        problem = f"{{{option}}} does not apply to {{method={method!r}}}, only to {' and '.join(others)}; leave it out"
        raise InputError(problem, argument=option)


def _check_agrees(plan: Plan | PlanRequest, rank: object, seed: object, given: dict[str, object]) -> None:
    """Nothing that is given may contradict the plan."""
    if not all(hasattr(plan, name) for name in ("rank", *given)):
        raise InputError(f"{{plan}} is what st.plan gives, not a {type(plan).__name__}", argument="plan")
    if rank is not None:
        raise InputError("{rank} and {plan} both fix the rank; give one of them", argument="rank")
    if seed is not None:
        problem = "{seed} applies only where cross-validation chooses the normaliser, and the plan has chosen it"
        raise InputError(problem, argument="seed")
    for name, value in given.items():
        planned = getattr(plan, name)
        unsaid = value == "default" or (name == "normaliser" and value is None)
        if not unsaid and value != planned:
            problem = f"the plan was made for the {name} {planned}, not {value}; leave {{{name}}} out, or plan again"
            raise InputError(problem, argument=name)


def _check_normaliser(method: str, normaliser: object) -> None:
    allowed = METHODS[method].normalisers
    if normaliser is not None and normaliser not in allowed:
        names = ", ".join(map(repr, allowed))
        if method == "chernoff" and normaliser == "constant":
            hint = "; without a normaliser it is constant"
        else:
            hint = f"; {near}" if (near := nearest(str(normaliser), allowed)) else ""
        problem = f"the {{normaliser}} of {{method={method!r}}} is one of {names}, not {normaliser!r}{hint}"
        raise InputError(problem, argument="normaliser")


def _confidence(method: str, confidence: float | Default | None, density: object) -> float | None:
    """The confidence, by default the method's; a density allows only the marginal guarantee."""
    if density is not None and not callable(density):
        problem = f"{{density}} is a function of an (n, dimension) array of θ, not a {type(density).__name__}"
        raise InputError(problem, argument="density")
    if confidence == "default":
        return METHODS[method].confidence if density is None else None
    if confidence is None:
        return None
    share = check_share(confidence, "confidence", "0.95; None is marginal")
    if density is not None:
        problem = "with a density only the marginal guarantee is known to hold, and {confidence} asks for the PAC one"
        raise InputError(problem, argument="confidence", remedy="pass {confidence=None}")
    return share
