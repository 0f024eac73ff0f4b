"""The table [decide] of a study: what to decide about a property, and how it is read and checked.

Which keys apply depends on the goal: a threshold has `above` or `below`, a width and an error have their aims, an
optimum has what is allowed and what tolerances it must bear. A key of another goal is refused, not ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

from msgspec import Meta

from sateen.core.code import Code
from sateen.core.errors import InputError, nearest
from sateen.core.space import Space
from sateen.decision.goals import Error, Goal, Optimum, Threshold, Width, check_inside
from sateen.study.file import KeyPath, StudyFile

GoalName: TypeAlias = Literal["threshold", "width", "error", "optimum"]
Side: TypeAlias = Literal["above", "below"]
Comparison: TypeAlias = Literal["<=", ">="]
Way: TypeAlias = Literal["fresh", "cells"]
Runs: TypeAlias = Annotated[int, Meta(ge=1, le=10**15)]
_TABLE: Final = "decide"
_AIMS: Final[Mapping[str, tuple[str, ...]]] = {
    "threshold": ("above", "below", "undecided", "level", "certificate"),
    "width": ("width", "share", "level"),
    "error": ("error",),
    "optimum": ("gap", "minimise", "within", "worst", "subject_to", "certificate"),
}
_OF_REGRET: Final = ("by", "wrong", "confidence")  # what a certificate of the best point has
_OF_CELLS: Final = ("monotone", "cells", "undecided")
_OF_FRESH: Final = ("wrong", "confidence", "attempt", "budget")
_LEAST_BUDGET: Final = 200  # runs, with which a refinement can begin
_LIMIT: Final = re.compile(r"\s*(<=|>=)\s*(\S+)\s*")
_SEARCHED: Final = 0.3  # of the gap is the expected regret at which `optimise` ends its search
_CLOCK: Final = "the result of a study does not depend on the clock, so there is no seconds here"


@dataclass(frozen=True, slots=True)
class CertificateSpec:
    """The certificate that is asked for: `by` fresh points, or by cells, for which alone `cells` and `undecided` are.

    None stands for what `certify` takes by default.
    """

    by: Way = "fresh"
    wrong: float | None = None
    confidence: float | None = None
    tolerance: float = 0.0
    monotone: dict[str, Literal["+", "-"]] | None = None
    attempt: Annotated[int, Meta(ge=1, le=10**6)] = 1
    budget: Runs | None = None
    cells: Runs | None = None
    undecided: float | None = None


@dataclass(frozen=True, slots=True)
class BoundsSpec:
    """The rigorous map that is asked for: bounds at most `width` apart, or as near as this many `cells` bring them."""

    width: float = 0.05
    cells: Runs = 20_000


@dataclass(frozen=True, slots=True)
class DecideTable:
    """[decide] as it is written."""

    budget: Annotated[int, Meta(ge=_LEAST_BUDGET, le=10**15)]
    property: str | None = None
    goal: GoalName = "threshold"
    above: float | None = None
    below: float | None = None
    undecided: float = 0.05
    width: float | None = None
    share: float = 0.95
    error: float | None = None
    gap: float = 0.01
    level: float = 0.95
    minimise: bool = False
    within: dict[str, float] | None = None
    worst: bool = False
    subject_to: dict[str, str] | None = None
    certificate: object = None
    sensitivity: bool = True
    bounds: object = None


@dataclass(frozen=True, slots=True)
class DecideSpec:
    """What to decide: `about` which property, to which `goal`, with a `budget` of runs.

    `side` is that of a threshold. `level` is that of the bands. `gap` is what the best point may miss, and `limits` are
    what it must respect: a comparison and a number for each of the other properties that are named.
    """

    about: str
    goal: Goal
    budget: int
    level: float
    side: Side | None
    gap: float
    limits: dict[str, tuple[Comparison, float]]
    certificate: CertificateSpec | None
    sensitivity: bool
    bounds: BoundsSpec | None

    @property
    def threshold(self) -> float | None:
        """The threshold, where the goal is one."""
        return self.goal.probability if isinstance(self.goal, Threshold) else None

    @property
    def optimum(self) -> Optimum | None:
        """The goal, where it is an optimum."""
        return self.goal if isinstance(self.goal, Optimum) else None

    def goal_content(self) -> dict[str, object]:
        """The goal as plain data."""
        if (best := self.optimum) is not None:
            within = None if best.within is None else dict(best.within)
            goal = {"regret": best.regret, "minimise": best.minimise, "within": within, "worst": best.worst}
            limits = {name: list(limit) for name, limit in self.limits.items()}
            return {"goal": "optimum", **goal, "gap": self.gap, "subject_to": limits}
        kinds = {Threshold: "threshold", Width: "width", Error: "error"}
        fields = {name: getattr(self.goal, name) for name in type(self.goal).__dataclass_fields__}
        return {"goal": kinds[type(self.goal)], **fields, **({"side": self.side} if self.side else {})}

    def content(self) -> dict[str, object]:
        """All of it as plain data."""
        return {
            "property": self.about,
            **self.goal_content(),
            "budget": self.budget,
            "level": self.level,
            "certificate": None if self.certificate is None else asdict(self.certificate),
            "sensitivity": self.sensitivity,
            "bounds": None if self.bounds is None else asdict(self.bounds),
        }


def goal_from(content: Mapping[str, Any]) -> Goal:
    """The goal that `DecideSpec.content` describes."""
    if content["goal"] == "optimum":
        return Optimum(content["regret"], content["minimise"], content["within"], content["worst"])
    if content["goal"] == "threshold":
        return Threshold(content["probability"], content["undecided"], content["level"])
    return (
        Width(content["width"], content["share"], content["level"]) if "width" in content else Error(content["error"])
    )


def read_decide(toml: StudyFile, model: object, space: Space, properties: Mapping[str, object]) -> DecideSpec | None:
    """What [decide] asks, checked; None where there is no such table."""
    if not toml.has(_TABLE):
        return None
    table = toml.read(DecideTable, _TABLE)
    _check_keys(toml, table.goal)
    name = _property(toml, table, properties)
    goal = _goal(toml, table, space)
    certificate = _certificate(toml, table, model, space)
    bounds = _bounds(toml, model)
    return DecideSpec(
        about=name,
        goal=goal,
        budget=table.budget,
        level=table.level,
        side=None if table.goal != "threshold" else "above" if table.above is not None else "below",
        gap=table.gap,
        limits=_limits(toml, table, name, properties),
        certificate=certificate,
        sensitivity=table.sensitivity,
        bounds=bounds,
    )


def _check_keys(toml: StudyFile, goal: str) -> None:
    """Refuse a key that is for another goal."""
    others = {key for keys in _AIMS.values() for key in keys} - set(_AIMS[goal])
    for key in toml.section(_TABLE):
        if key in others:
            owners = " or ".join(f'"{each}"' for each, keys in _AIMS.items() if key in keys)
            toml.fail((_TABLE, key), f'it is for the goal {owners}, and the goal is "{goal}"', "change one of the two")


def _property(toml: StudyFile, table: DecideTable, properties: Mapping[str, object]) -> str:
    if table.property is None:
        if len(properties) > 1:
            toml.fail((_TABLE,), "about which property?", f'add property = "{next(iter(properties))}", or another one')
        return next(iter(properties))
    if table.property not in properties:
        hint = nearest(table.property, properties) or f"there are {', '.join(properties)}"
        toml.fail((_TABLE, "property"), f"{table.property!r} is not in the table [property]", hint)
    return table.property


def _goal(toml: StudyFile, table: DecideTable, space: Space) -> Goal:
    if table.goal == "threshold":
        return _threshold(toml, table)
    if table.goal == "optimum":
        return _optimum(toml, table, space)
    aim = getattr(table, table.goal)
    if aim is None:
        example = {"width": "width = 0.05", "error": "error = 0.01"}[table.goal]
        toml.fail((_TABLE,), f"{table.goal} is missing, the aim of this goal", f"add {example}")
    try:
        return Width(aim, table.share, table.level) if table.goal == "width" else Error(aim)
    except InputError as error:
        toml.fail_with((_TABLE, error.argument), error)


def _threshold(toml: StudyFile, table: DecideTable) -> Threshold:
    sides = [side for side in get_args(Side) if getattr(table, side) is not None]
    if len(sides) != 1:
        problem = "above and below are both given" if sides else "there is no threshold"
        remedy = "above = 0.1 asks where the probability is at least 0.1, and below = 0.1 where it is at most 0.1"
        toml.fail((_TABLE, *sides[1:]), problem, remedy)
    try:
        check_inside(getattr(table, sides[0]), sides[0], "0.1")
        return Threshold(getattr(table, sides[0]), table.undecided, table.level)
    except InputError as error:
        toml.fail_with((_TABLE, error.argument), error)


def _optimum(toml: StudyFile, table: DecideTable, space: Space) -> Optimum:
    _check_names(toml, (_TABLE, "within"), table.within, space)
    try:
        check_inside(table.gap, "gap", "0.01")
        return Optimum(_SEARCHED * table.gap, table.minimise, table.within, table.worst)
    except InputError as error:
        toml.fail_with((_TABLE, error.argument), error)


def _check_names(toml: StudyFile, path: KeyPath, given: Mapping[str, object] | None, space: Space) -> None:
    """Refuse the name of a parameter that does not vary."""
    for name in given or ():
        if name not in space.names:
            hint = nearest(name, space.names) or f"there are {', '.join(space.names) or 'none'}"
            toml.fail((*path, name), "no such parameter varies", hint)


def _limits(
    toml: StudyFile, table: DecideTable, objective: str, properties: Mapping[str, object]
) -> dict[str, tuple[Comparison, float]]:
    """What the best point must respect: of each property that is named, a comparison and a number."""
    limits: dict[str, tuple[Comparison, float]] = {}
    for name, text in (table.subject_to or {}).items():
        path = (_TABLE, "subject_to", name)
        others = [each for each in properties if each != objective]
        if name not in others:
            hint = nearest(name, others) or f"there are {', '.join(others) or 'none'}"
            problem = "it is what is optimised" if name == objective else "there is no such property"
            toml.fail(path, problem, hint)
        try:
            limits[name] = limit_in(text)
        except InputError as error:
            toml.fail(path, error.message)
    return limits


def limit_in(text: str) -> tuple[Comparison, float]:
    """The comparison and the number in a text.

    >>> limit_in("<= 0.05")
    ('<=', 0.05)
    """
    parts = _LIMIT.fullmatch(text)
    try:
        limit = float(parts[2]) if parts else -1.0
    except ValueError:
        limit = -1.0
    if parts is None or not 0.0 < limit < 1.0:
        raise InputError(f'a limit is "<=" or ">=" with a number between 0 and 1, such as "<= 0.05", not {text!r}')
    return ("<=" if parts[1] == "<=" else ">="), limit


def _certificate(toml: StudyFile, table: DecideTable, model: object, space: Space) -> CertificateSpec | None:
    if table.certificate is None:
        return None
    path = (_TABLE, "certificate")
    _refuse_seconds(toml, path, "give cells = 20000, how many bounds may be computed")
    spec = toml.read(CertificateSpec, *path)
    given = toml.section(_TABLE)["certificate"]
    assert isinstance(given, dict)
    if table.goal == "optimum" and (strangers := [key for key in given if key not in _OF_REGRET]):
        toml.fail((*path, strangers[0]), 'it is for the goal "threshold"', f"here are {', '.join(_OF_REGRET)}")
    if table.goal == "threshold":
        _check_way(toml, path, spec, given)
    if spec.by == "cells":
        _check_model(toml, (*path, "by"), model)
    _check_names(toml, (*path, "monotone"), spec.monotone, space)
    for key in ("wrong", "confidence", "undecided"):
        if (value := getattr(spec, key)) is not None:
            _check_inside(toml, (*path, key), value, {"wrong": "0.01", "confidence": "0.95", "undecided": "0.05"}[key])
    if spec.tolerance:
        _check_inside(toml, (*path, "tolerance"), spec.tolerance, "0.01")
    return spec


def _check_way(toml: StudyFile, path: tuple[str, ...], spec: CertificateSpec, given: Mapping[str, object]) -> None:
    """Refuse a key that is for certificates of the other kind; where cells fail, corners are tested by runs."""
    corners = spec.monotone is not None
    only = {"fresh": _OF_CELLS, "cells": ("wrong",) if corners else _OF_FRESH}[spec.by]
    if wrong := [key for key in given if key in only]:
        other = "cells" if spec.by == "fresh" else "fresh"
        toml.fail((*path, wrong[0]), f'it is for by = "{other}", and this is by = "{spec.by}"', "change one of the two")


def _bounds(toml: StudyFile, model: object) -> BoundsSpec | None:
    path = (_TABLE, "bounds")
    if not toml.has(*path):
        return None
    _refuse_seconds(toml, path, "give cells = 20000, into how many cells the space may be cut")
    spec = toml.read(BoundsSpec, *path)
    _check_model(toml, path, model)
    _check_inside(toml, (*path, "width"), spec.width, "0.05")
    return spec


def _refuse_seconds(toml: StudyFile, path: tuple[str, ...], remedy: str) -> None:
    if toml.has(*path, "seconds"):
        toml.fail((*path, "seconds"), _CLOCK, remedy)


def _check_model(toml: StudyFile, path: KeyPath, model: object) -> None:
    if isinstance(model, Code):
        toml.fail(path, "bounds are computed from the reactions of a model, and here is a callable")


def _check_inside(toml: StudyFile, path: KeyPath, value: float, example: str) -> None:
    try:
        check_inside(value, str(path[-1]), example)
    except InputError as error:
        toml.fail_with(path, error)
