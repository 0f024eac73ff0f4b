"""From the tables of a study file to a Study: what they mean, checked before anything is run."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from sateen.core.errors import InputError, SateenError, SpaceError, TextError, nearest
from sateen.core.space import Range, Space
from sateen.guarantee.methods import NORMALISERS_OF
from sateen.logic.formula import Formula
from sateen.logic.parser import stl
from sateen.model.model import Model
from sateen.study.format import CalibrateTable, CapsTable, DesignTable, GuaranteeTable, ModelTable, Page, StudyTable
from sateen.study.recipes import METHODS, SettingError, recipe
from sateen.study.study import Calibration, Design, GuaranteeSpec, Study

if TYPE_CHECKING:
    from sateen.sampling.blackbox import Function

__all__ = ["read_study"]

Source: TypeAlias = "Model | Function"
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,59}")  # part of the names of files
_CONFIDENCE: Final = 0.95  # of the lift, where nothing is said
_MOST_RUNS: Final = 10**15  # of a stage, which no machine can make


def read_study(text: str, file: FilePath | None) -> Study:
    """The study that a text says; `file` is where it stands."""
    page = Page(text, "the study" if file is None else file.name)
    for name in ("study", "model", "space", "observe"):
        page.section(name)
    about = page.read(StudyTable, "study")
    _check_name(page, ("study", "name"), about.name)
    model, address, code = _model(page, FilePath() if file is None else file.parent)
    space = _space(page, model)
    caps = _caps(page, model)
    train = _design(page, space, "train", "sobol")
    if train is None:
        page.fail(("observe",), "train is missing", 'add train = { design = "sobol", points = 400, runs = 50 }')
    methods = _methods(page)
    calibration = _calibration(page)
    return Study(
        name=about.name,
        seed=about.seed,
        model=model,
        space=space,
        properties=MappingProxyType(_properties(page, model, space, address)),
        train=train,
        test=_design(page, space, "test", "uniform"),
        calibration=calibration,
        methods=MappingProxyType(methods),
        promise=_promise(page, calibration, methods),
        caps=MappingProxyType(caps),
        text=page.text,
        file=file,
        address=address,
        code=code,
    )


def _check_name(page: Page, path: tuple[str, ...], name: str) -> None:
    if not _NAME.fullmatch(name):
        page.fail(path, f"{name!r} cannot be part of the name of a file", "take letters, digits, _ and -, at most 60")


def _model(page: Page, folder: FilePath) -> tuple[Source, str, str]:
    """The model; or the callable, its address, and the hash of its file."""
    given = page.read(ModelTable, "model")
    ways = [name for name in ("text", "file", "callable") if getattr(given, name) is not None]
    if len(ways) != 1:
        said = f"{' and '.join(ways)} are both given" if ways else "there is no model"
        page.fail(
            ("model", *ways[1:2]), said, 'give one of text = """...""", file = "..." and callable = "file.py:name"'
        )
    path = ("model", ways[0])
    if given.constants is not None and given.file is None:
        page.fail(("model", "constants"), "constants are for models in a file, of a language that leaves some open")
    try:
        if given.callable is not None:
            from sateen.study.blackbox import find_function

            return (*_addressed(find_function(given.callable, folder), given.callable),)
        if given.file is not None:
            return Model.load(folder / given.file, constants=given.constants), "", ""
        return Model.parse(given.text or ""), "", ""
    except TextError as error:
        if given.file is not None and error.text:  # the line is one of that file
            raise type(error)(f"{given.file}: {error.message}", error.text, error.position, error.remedy) from None
        page.fail_inside(path, error, given.text or "")
    except InputError as error:
        page.fail(path, str(error))


def _addressed(found: tuple[Function, str], address: str) -> tuple[Function, str, str]:
    function, code = found
    return function, address, code


def _space(page: Page, model: Source) -> Space:
    """The space, each of whose names the model has, and which leaves no parameter without a value."""
    given: dict[str, Range | float] = {}
    for name, value in page.section("space").items():
        try:
            given[name] = _range_or_number(page, name, value)
        except SpaceError as error:
            page.fail(("space", name), str(error))
    if not isinstance(model, Model):
        return Space(given)
    known = [parameter.name for parameter in model.parameters]
    for name in given:
        if name not in known:
            hint = nearest(name, known) or f"its parameters are {', '.join(known) or 'none'}"
            page.fail(("space", name), "the model has no such parameter", hint)
    try:
        model.values(_lowest(given))
    except SateenError as error:
        page.fail(("space",), str(error))
    return Space(given)


def _range_or_number(page: Page, name: str, value: Any) -> Range | float:
    example = 'write [0.005, 0.3], { range = [0.005, 0.2], scale = "log" }, or a number that fixes it'
    scale = "linear"
    path: tuple[str | int, ...] = ("space", name)
    if isinstance(value, dict):
        if strangers := [key for key in value if key not in ("range", "scale")]:
            hint = nearest(strangers[0], ("range", "scale")) or "the keys here are range and scale"
            page.fail((*path, strangers[0]), "there is no such key", hint)
        if "range" not in value:
            page.fail(path, "range is missing", example)
        if value.get("scale", scale) not in ("linear", "log"):
            page.fail((*path, "scale"), f"scale is 'linear' or 'log', not {value['scale']!r}")
        value, scale = value["range"], value.get("scale", scale)
    elif _is_number(value):
        return float(value)
    if not (isinstance(value, list) and len(value) == 2 and all(map(_is_number, value))):
        page.fail(path, "a range has two numbers, its ends", example)
    return Range(float(value[0]), float(value[1]), "log" if scale == "log" else "linear")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _lowest(given: Mapping[str, Range | float]) -> dict[str, float]:
    """A point of the space."""
    return {name: own.low if isinstance(own, Range) else own for name, own in given.items()}


def _properties(page: Page, model: Source, space: Space, address: str) -> dict[str, Formula | None]:
    """The formulas by name; None for what a callable decides by itself, whose name is the callable's."""
    if address and not page.has("property"):
        name = address.rpartition(":")[2]
        return {name: None}
    given = page.section("property")
    if not given:
        page.fail(("property",), "there is no property", 'add one: dies_out = "(I > 0) U[100, 120] (I == 0)"')
    return {name: _formula(page, model, space, name, value) for name, value in given.items()}


def _formula(page: Page, model: Source, space: Space, name: str, value: Any) -> Formula:
    path: tuple[str, ...] = ("property", name)
    _check_name(page, path, name)
    end = None
    if isinstance(value, dict):
        if strangers := [key for key in value if key not in ("formula", "end")]:
            hint = nearest(strangers[0], ("formula", "end")) or "the keys here are formula and end"
            page.fail((*path, strangers[0]), "there is no such key", hint)
        end = value.get("end")
        if end is not None and not (_is_number(end) and end >= 0):
            page.fail((*path, "end"), f"end is a time from 0 on, not {end!r}")
        path, value = (*path, "formula"), value.get("formula")
    if not isinstance(value, str):
        page.fail(path, "a formula is text", 'write "F[0, 10] I == 0", or { formula = "...", end = 10 }')
    constants = {}
    if isinstance(model, Model):
        values = model.values(_lowest(dict(space.parameters)))
        constants = {one.name: values[one.name] for one in model.constants if math.isfinite(values[one.name])}
    try:
        formula = stl(value, constants=constants, end=None if end is None else float(end))
    except TextError as error:
        if "constants=" in error.remedy:
            error = type(error)(error.message, error.text, error.position, "name a constant of the model")
        page.fail_inside(path, error, value)
    if isinstance(model, Model):
        known = [one.name for one in model.variables]
        known += [one.name for one in model.parameters] + [one.name for one in model.constants]
        if strangers := [one for one in formula.species if one not in known]:
            hint = nearest(strangers[0], known) or f"it has {', '.join(known)}"
            page.fail(path, f"the model has no {strangers[0]}", hint)
    return formula


def _design(page: Page, space: Space, part: str, usual: Any) -> Design | None:
    if not page.has("observe", part):
        return None
    given = page.read(DesignTable, "observe", part)
    if given.design == "grid" and not space.names:
        page.fail(("observe", part, "design"), "no parameter varies, so there is no grid", "take design = 'uniform'")
    if given.design == "grid" and given.points < 2:
        page.fail(("observe", part, "points"), "a grid has both ends of each range, so at least 2 points per axis")
    design = Design(given.points, given.runs, given.design or usual)
    if design.total(space) > _MOST_RUNS:
        page.fail(("observe", part), f"{design.total(space):.3g} runs are more than any machine makes; take fewer")
    return design


def _caps(page: Page, model: Source) -> dict[str, Any]:
    table = page.read(CapsTable, "observe")
    names = ("max_events", "max_time", "max_population")
    caps = {name: value for name in names if (value := getattr(table, name)) is not None}
    if caps and not isinstance(model, Model):
        page.fail(("observe", next(iter(caps))), "this is for models; a callable ends its own runs")
    return caps


def _calibration(page: Page) -> Calibration | None:
    if not page.has("observe", "calibrate"):
        return None
    path = ("observe", "calibrate")
    table = page.read(CalibrateTable, *path)
    ways = [name for name in ("budget", "width") if getattr(table, name) is not None]
    by_hand = [name for name in ("points", "runs") if getattr(table, name) is not None]
    if len(ways) + bool(by_hand) != 1 or len(by_hand) == 1:
        remedy = "give one of { budget = 100000 }, { width = 0.05 } and { points = 200, runs = 500 }"
        page.fail(path, "how much may it cost?", remedy)
    return Calibration(table.budget, table.width, table.points, table.runs)


def _methods(page: Page) -> dict[str, Any]:
    """The recipes by the names of their methods."""
    if not page.has("learn"):
        return {"auto": None}
    table = page.section("learn")
    names = table.get("methods", ["auto"])
    if not (isinstance(names, list) and names and all(isinstance(name, str) for name in names)):
        page.fail(("learn", "methods"), "this is a list of methods", f"they are {', '.join(METHODS)}")
    for place, name in enumerate(names):
        if name not in METHODS:
            hint = nearest(name, METHODS) or f"they are {', '.join(METHODS)}"
            page.fail(("learn", "methods", place), f"there is no method {name!r}", hint)
        if name in names[:place]:
            page.fail(("learn", "methods", place), f"{name} is named twice")
    for name in table:
        if name != "methods" and name not in names:
            known = ["methods", *names]
            said = "it is not among the methods" if name in METHODS else "there is no such key"
            page.fail(("learn", name), said, nearest(name, known) or f"the keys here are {', '.join(known)}")
    found = {}
    for name in names:
        settings = table.get(name, {})
        if not isinstance(settings, dict):
            page.fail(("learn", name), "its settings are a table", f"write [learn.{name}]")
        try:
            found[name] = recipe(name, settings)
        except SettingError as error:
            page.fail(("learn", name, error.name) if error.name else ("learn", name), str(error))
    return found


def _promise(page: Page, calibration: Calibration | None, methods: Mapping[str, Any]) -> GuaranteeSpec | None:
    """The guarantee, where there is something to calibrate with; the lift, if nothing else is said."""
    if calibration is None:
        if page.has("guarantee"):
            page.fail(
                ("guarantee",),
                "a guarantee rests on runs of its own",
                "add calibrate = { budget = 100000 } to [observe]",
            )
        return None
    table = page.read(GuaranteeTable, "guarantee")
    lift = table.method == "lift"
    if table.confidence is not None and table.marginal:
        page.fail(("guarantee", "marginal"), "a marginal guarantee has no confidence; leave one of them out")
    if table.of is not None and table.of not in methods:
        hint = nearest(table.of, methods) or f"there are {', '.join(methods)}"
        page.fail(("guarantee", "of"), f"{table.of!r} is not among the methods of [learn]", hint)
    if table.normaliser is not None and table.normaliser not in NORMALISERS_OF[table.method]:
        allowed = ", ".join(NORMALISERS_OF[table.method])
        page.fail(
            ("guarantee", "normaliser"),
            f"{table.method} has no normaliser {table.normaliser!r}",
            f"it is one of {allowed}" if allowed else "leave it out",
        )
    for name, only in (("rank", "lift"), ("split", "chernoff")):
        if getattr(table, name) is not None and table.method != only:
            page.fail(("guarantee", name), f"this applies to method = {only!r} only; leave it out")
    planned = next((name for name in ("budget", "width") if getattr(calibration, name) is not None), None)
    if planned and not lift:
        remedy = "give { points = 200, runs = 500 }"
        page.fail(("observe", "calibrate", planned), f"plans are for the lift, not for {table.method}", remedy)
    if planned and table.rank is not None:
        page.fail(("guarantee", "rank"), f"the plan for the {planned} chooses the rank; leave it out")
    confidence = None if table.marginal else table.confidence or (_CONFIDENCE if lift else None)
    promise = GuaranteeSpec(
        table.of or next(iter(methods)),
        table.method,
        table.level,
        confidence,
        table.rank,
        table.normaliser,
        table.split,
        table.allow_trivial,
    )
    _check_enough(page, calibration, promise)
    return promise


def _check_enough(page: Page, calibration: Calibration, promise: GuaranteeSpec) -> None:
    """Too little for the level is refused before anything is observed, not after."""
    from sateen.core.text import percent
    from sateen.guarantee.conformal import fewest_points
    from sateen.guarantee.lift import fewest_lifted_points

    miss = 1.0 - promise.level
    if promise.method == "lift":
        enough = fewest_lifted_points(promise.rank or 1, miss, promise.confidence)
    else:
        left = (0.5 if promise.split is None else promise.split) if promise.method == "chernoff" else 1.0
        enough = fewest_points(left * miss, promise.confidence)
    key = "budget" if calibration.budget is not None else "points"
    given = calibration.budget or calibration.points
    if given is None or (enough is not None and given >= enough) or (promise.allow_trivial and key == "points"):
        return
    sure = "" if promise.confidence is None else f" with the confidence {percent(promise.confidence)}"
    many = "no number that can be observed" if enough is None else f"{enough:,}"
    said = f"{given:,} is too few for the level {percent(promise.level)}{sure}: {many} would do"
    page.fail(("observe", "calibrate", key), said, "give more, or lower the level")
