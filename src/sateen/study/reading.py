"""From the tables of a study file to a Study: what they mean, and what they name, checked before anything is run."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeGuard, TypeVar

from sateen.core.code import Code
from sateen.core.errors import InputError, SateenError, SpaceError, TextError, nearest
from sateen.core.prediction import Learner
from sateen.core.space import Range, Space
from sateen.guarantee.request import CalibrateRequest, PlanRequest, check_truth_options
from sateen.learning.registry import DEFAULT, LEARNERS, find_learner
from sateen.logic.formula import Formula
from sateen.logic.parser import stl
from sateen.model.model import Model
from sateen.pools.pool import beside
from sateen.study.decide_table import read_decide
from sateen.study.file import EXAMPLES, CapsTable, GuaranteeTable, ModelTable, RunTable, StudyFile, StudyTable
from sateen.study.function import find_function
from sateen.study.given import GivenTraining, read_given
from sateen.study.spec import Calibration, Design, GuaranteeSpec, StudySpec

Source: TypeAlias = Model | Code
_Study = TypeVar("_Study", bound=StudySpec)
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,59}")  # part of the names of files
_MOST_PROPERTIES: Final = 1000
_MOST_POINTS: Final = 10**8  # of a stage
_SOME_BUDGET: Final = 10**12  # runs, enough for any level
_MOST_RUNS: Final = 10**15  # of a stage, which no machine can make


def read_study(kind: type[_Study], text: str, file: FilePath | None) -> _Study:
    """The study in a text; `file` is where it stands."""
    toml = StudyFile(text, "the study" if file is None else file.name)
    for name in ("study", "model", "space", "observe"):
        toml.section(name)
    about = toml.read(StudyTable, "study")
    _check_name(toml, ("study", "name"), about.name)
    folder = FilePath() if file is None else file.parent
    model = _model(toml, folder)
    space = _space(toml, model)
    caps = _caps(toml, model)
    learners, settings = _learners(toml)
    calibration = _calibration(toml, model, space)
    properties = _properties(toml, model, space)
    train = _training(toml, model, space, folder, properties)
    test = _design(toml, model, space, "test")
    for part, given in (("calibrate", calibration), ("test", test)):
        if given is not None and given.exact:
            _check_form(toml, model, part, properties)
    return kind(
        name=about.name,
        seed=about.seed,
        model=model,
        space=space,
        properties=MappingProxyType(properties),
        train=train,
        test=test,
        calibration=calibration,
        learners=MappingProxyType(learners),
        settings=MappingProxyType(settings),
        guarantee=_guarantee(toml, calibration, learners),
        caps=MappingProxyType(caps),
        text=toml.text,
        file=file,
        decide=read_decide(toml, model, space, properties),
        on=_on(toml, file),
    )


def _on(toml: StudyFile, file: FilePath | None) -> str | None:
    """The address of the workers, which is looked at when the study runs; a file in it is next to the study."""
    on = toml.read(RunTable, "run").on if toml.has("run") else None
    if on is not None and not on.strip():
        toml.fail(("run", "on"), "the address is empty", 'write on = "local:4", or leave it out')
    return on if on is None or file is None else beside(on, file.parent)


def _check_name(toml: StudyFile, path: tuple[str, ...], name: str) -> None:
    if not _NAME.fullmatch(name):
        toml.fail(path, f"{name!r} cannot be part of the name of a file", "take letters, digits, _ and -, at most 60")


def _model(toml: StudyFile, folder: FilePath) -> Source:
    """The model; or the callable, which is not run."""
    given = toml.read(ModelTable, "model")
    ways = [name for name in ("text", "file", "callable") if getattr(given, name) is not None]
    if len(ways) != 1:
        problem = f"{' and '.join(ways)} are both given" if ways else "there is no model"
        remedy = 'give one of text = """...""", file = "..." and callable = "file.py:name"'
        toml.fail(("model", *ways[1:2]), problem, remedy)
    path = ("model", ways[0])
    if given.constants is not None and given.file is None:
        toml.fail(("model", "constants"), "constants are for models in a file, of a language that leaves some open")
    for key, asked in (("scale", given.scale is not None), ("split", not given.split)):
        if asked and given.file is None:
            toml.fail(("model", key), f"{key} is for models in a file, in SBML or Antimony")
    try:
        if given.callable is not None:
            return find_function(given.callable, folder)
        if given.file is not None:
            return Model.load(folder / given.file, constants=given.constants, scale=given.scale, split=given.split)
        return Model.parse(given.text or "")
    except TextError as error:
        if given.file is not None and error.text:  # the line is one of that file
            raise type(error)(f"{given.file}: {error.message}", error.text, error.position, error.remedy) from None
        toml.fail_inside(path, error, given.text or "")
    except InputError as error:
        toml.fail(path, str(error))


def _space(toml: StudyFile, model: Source) -> Space:
    """The space, each of whose names the model has, and which leaves no parameter without a value."""
    given: dict[str, Range | float] = {}
    for name, value in toml.section("space").items():
        try:
            given[name] = _range_or_number(toml, name, value)
        except SpaceError as error:
            toml.fail(("space", name), str(error))
    if not isinstance(model, Model):
        return Space(given)
    known = [parameter.name for parameter in model.parameters]
    for name in given:
        if name not in known:
            hint = nearest(name, known) or f"its parameters are {', '.join(known) or 'none'}"
            toml.fail(("space", name), "the model has no such parameter", hint)
    try:
        model.values(_lowest(given))
    except InputError as error:
        toml.fail_with(("space",), error)
    except SateenError as error:
        toml.fail(("space",), str(error))
    return Space(given)


def _range_or_number(toml: StudyFile, name: str, value: object) -> Range | float:
    example = 'write [0.005, 0.3], { range = [0.005, 0.2], scale = "log" }, or a number that fixes it'
    scale: object = "linear"
    path = ("space", name)
    if isinstance(value, dict):
        toml.check_keys(path, value, ("range", "scale"))
        if "range" not in value:
            toml.fail(path, "range is missing", example)
        scale, value = value.get("scale", scale), value["range"]
        if scale not in ("linear", "log"):
            toml.fail((*path, "scale"), f"scale is 'linear' or 'log', not {scale!r}")
    elif _is_number(value):
        return float(value)
    if not (isinstance(value, list) and len(value) == 2 and all(map(_is_number, value))):
        toml.fail(path, "a range has two numbers, its ends", example)
    return Range(float(value[0]), float(value[1]), "log" if scale == "log" else "linear")


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _lowest(given: Mapping[str, Range | float]) -> dict[str, float]:
    """A point of the space."""
    return {name: value.low if isinstance(value, Range) else value for name, value in given.items()}


def _properties(toml: StudyFile, model: Source, space: Space) -> dict[str, Formula | None]:
    """The formulas by name; None for what a callable decides by itself, whose name is the callable's."""
    if isinstance(model, Code) and not toml.has("property"):
        return {model.address.rpartition(":")[2]: None}
    given = toml.section("property")
    if not given:
        toml.fail(("property",), "there is no property", 'add one: dies_out = "(I > 0) U[100, 120] (I == 0)"')
    if len(given) > _MOST_PROPERTIES:
        toml.fail(("property",), f"there are {len(given):,} properties, and at most {_MOST_PROPERTIES:,} are read")
    return {name: _formula(toml, model, space, name, value) for name, value in given.items()}


def _formula(toml: StudyFile, model: Source, space: Space, name: str, value: object) -> Formula:
    path: tuple[str, ...] = ("property", name)
    _check_name(toml, path, name)
    end = None
    if isinstance(value, dict):
        toml.check_keys(path, value, ("formula", "end"))
        end = value.get("end")
        if end is not None and not (_is_number(end) and end >= 0):
            toml.fail((*path, "end"), f"end is a time from 0 on, not {end!r}")
        path, value = (*path, "formula"), value.get("formula")
    if not isinstance(value, str):
        toml.fail(path, "a formula is text", 'write "F[0, 10] I == 0", or { formula = "...", end = 10 }')
    constants = {}
    if isinstance(model, Model):
        values = model.values(_lowest(dict(space.parameters)))
        constants = {one.name: values[one.name] for one in model.constants if math.isfinite(values[one.name])}
    try:
        formula = stl(value, constants=constants, end=None if end is None else float(end))
    except TextError as error:
        toml.fail_inside(path, error, value)
    if isinstance(model, Model) and (strangers := [one for one in formula.species if model.meaning(one) is None]):
        hint = nearest(strangers[0], model.readable) or f"it has {', '.join(model.readable)}"
        toml.fail(path, f"the model has no {strangers[0]}", hint)
    return formula


def _design(toml: StudyFile, model: Source, space: Space, part: str) -> Design | None:
    if not toml.has("observe", part):
        return None
    design = toml.read(Design, "observe", part)
    _check_exact(toml, model, part, design.exact)
    if design.exact and toml.has("observe", part, "runs"):
        toml.fail(("observe", part, "runs"), "exact = true needs no runs", "leave one of the two out")
    if not design.exact and not design.runs:
        given = toml.has("observe", part, "runs")
        problem = "at least one run is needed" if given else "runs is missing"
        toml.fail(("observe", part, *(("runs",) if given else ())), problem, f"see {EXAMPLES['observe']}")
    if part == "train" and design.exact:
        toml.fail(("observe", part, "exact"), "learners learn from runs", "take exact = true for test or calibrate")
    if part == "train" and not toml.has("observe", part, "design"):
        design = replace(design, design="sobol")
    if design.design == "grid" and not space.names:
        toml.fail(("observe", part, "design"), "no parameter varies, so there is no grid", "take design = 'uniform'")
    if design.design == "grid" and design.points < 2:
        toml.fail(("observe", part, "points"), "a grid has both ends of each range, so at least 2 points per axis")
    _check_size(toml, part, design, space)
    return design


def _training(
    toml: StudyFile, model: Source, space: Space, folder: FilePath, properties: Mapping[str, Formula | None]
) -> Design | GivenTraining:
    """What is learned from: a design, or observations in a file."""
    if toml.has("observe", "train", "file"):
        return read_given(toml, model, space, folder, properties)
    train = _design(toml, model, space, "train")
    if train is None:
        toml.fail(("observe",), "train is missing", 'add train = { design = "sobol", points = 400, runs = 50 }')
    return train


def _check_size(toml: StudyFile, part: str, design: Design, space: Space) -> None:
    if design.total(space) > _MOST_RUNS:
        toml.fail(("observe", part), f"more than {_MOST_RUNS:.0e} runs, which no machine makes; take fewer")
    if design.size(space) > _MOST_POINTS:
        toml.fail(("observe", part), f"more than {_MOST_POINTS:,} points, which no memory holds; take fewer")


def _check_exact(toml: StudyFile, model: Source, part: str, exact: bool | None) -> None:
    if exact and not isinstance(model, Model):
        toml.fail(("observe", part, "exact"), "only a model can be computed; a callable can only be run")


def _check_form(toml: StudyFile, model: Source, part: str, properties: Mapping[str, Formula | None]) -> None:
    """Refuse what no chain decides, by the form of the formulas alone; how many states there are is found later."""
    from sateen.engine.progression import Question
    from sateen.engine.rewards import refuse_timed

    for name, formula in properties.items():
        assert isinstance(model, Model)
        assert formula is not None
        try:
            refuse_timed(model)
            Question.of(formula)
        except SateenError as error:
            remedy = "use runs instead of exact = true"
            toml.fail(("observe", part, "exact"), f"{name} cannot be computed: {error}", remedy)


def _caps(toml: StudyFile, model: Source) -> dict[str, int | float]:
    table = toml.read(CapsTable, "observe")
    names = ("max_events", "max_time", "max_population")
    caps = {name: value for name in names if (value := getattr(table, name)) not in (None, math.inf)}
    if caps and not isinstance(model, Model):
        toml.fail(("observe", next(iter(caps))), "this is for models; a callable ends its own runs")
    return caps


def _calibration(toml: StudyFile, model: Source, space: Space) -> Calibration | None:
    path = ("observe", "calibrate")
    if not toml.has(*path):
        return None
    cost = toml.read(Calibration, *path)
    _check_exact(toml, model, "calibrate", cost.exact)
    given = [name for name in ("budget", "width", "points", "runs", "seconds") if getattr(cost, name) is not None]
    if cost.exact and given not in (["points"], ["seconds"]):
        remedy = "give { exact = true, points = 200 } or { exact = true, seconds = 10 }, and no runs"
        toml.fail((*path, "exact"), "how much may be computed?", remedy)
    if not cost.exact and given not in (["budget"], ["width"], ["points", "runs"], ["seconds"]):
        remedy = "give one of { seconds = 10 }, { budget = 100000 }, { width = 0.05 } and { points = 200, runs = 500 }"
        toml.fail(path, "how much may it cost?", remedy)
    if isinstance(cost.seconds, float) and not math.isfinite(cost.seconds):
        toml.fail((*path, "seconds"), f"seconds is a finite number, not {cost.seconds}", "give seconds = 10")
    if cost.budget is not None and cost.budget > _MOST_RUNS:
        toml.fail((*path, "budget"), f"more than {_MOST_RUNS:.0e} runs, which no machine makes; take fewer")
    if cost.design is not None:
        _check_size(toml, "calibrate", cost.design, space)
    return cost


def _learners(toml: StudyFile) -> tuple[dict[str, Learner], dict[str, dict[str, object]]]:
    """The learners by name, and what the file sets of each."""
    table = toml.section("learn") if toml.has("learn") else {}
    if "methods" in table:
        toml.fail(("learn", "methods"), "methods is now called learners", "rename the key")
    names = table.get("learners", [DEFAULT[0]])
    if not (isinstance(names, list) and names and all(isinstance(name, str) for name in names)):
        toml.fail(("learn", "learners"), "this is a list of learners", f"they are {', '.join(_known_learners())}")
    for name in table:
        if name != "learners" and name not in names:
            known = ("learners", *names)
            problem = "it is not among the learners" if name in _known_learners() else "there is no such key"
            toml.fail(("learn", name), problem, nearest(name, known) or f"the keys here are {', '.join(known)}")
    learners: dict[str, Learner] = {}
    given: dict[str, dict[str, object]] = {}
    for place, name in enumerate(names):
        if name in learners:
            toml.fail(("learn", "learners", place), f"{name} is named twice")
        settings = table.get(name, {})
        if not isinstance(settings, dict):
            toml.fail(("learn", name), "its settings are a table", f"write [learn.{name}]")
        try:
            learners[name], given[name] = find_learner(name, settings), settings
        except InputError as error:
            named = ("learn", name, error.argument) if error.argument in settings else ("learn", "learners", place)
            toml.fail(named, str(error))
    return learners, given


def _known_learners() -> tuple[str, ...]:
    return (DEFAULT[0], *LEARNERS.names())


def _guarantee(
    toml: StudyFile, calibration: Calibration | None, learners: Mapping[str, Learner]
) -> GuaranteeSpec | None:
    """The guarantee, where there is something to calibrate with; by default the lift."""
    if calibration is None:
        if toml.has("guarantee"):
            remedy = "add calibrate = { budget = 100000 } to [observe]"
            toml.fail(("guarantee",), "a guarantee rests on runs of its own", remedy)
        return None
    table = toml.read(GuaranteeTable, "guarantee")
    if table.of is not None and table.of not in learners:
        hint = nearest(table.of, learners) or f"there are {', '.join(learners)}"
        toml.fail(("guarantee", "of"), f"{table.of!r} is not among the learners of [learn]", hint)
    try:
        request = _request(table, calibration)
    except InputError as error:
        costs = ("budget", "width", "points", "seconds")
        cost = next(name for name in costs if getattr(calibration, name) is not None)
        in_plan = error.argument in ("plan", "budget", "width", "points")
        toml.fail_with(("observe", "calibrate", cost) if in_plan else ("guarantee", error.argument), error)
    settled = {field.name: getattr(request, field.name) for field in fields(GuaranteeSpec) if field.name != "of"}
    return GuaranteeSpec(of=table.of or next(iter(learners)), **settled)


def _request(table: GuaranteeTable, calibration: Calibration) -> CalibrateRequest:
    """The checked request for `calibrate`; too few points for the level are refused before they are observed."""
    options: dict[str, Any] = {
        name: value for name, value in asdict(table).items() if name != "of" and value is not None
    }
    plan = None
    if calibration.exact:
        _check_by_truth(table)
    elif calibration.design is None:
        shared = {name: options[name] for name in ("level", "confidence", "marginal") if name in options}
        normaliser = table.normaliser if table.method == "lift" else None
        # What seconds will buy is not known yet; of a plan for a budget only the options are checked.
        budget = _SOME_BUDGET if calibration.seconds is not None else calibration.budget
        plan = PlanRequest.of(width=calibration.width, budget=budget, normaliser=normaliser, **shared)
    request = CalibrateRequest.of(**options, plan=plan)
    if calibration.points is not None:
        request.check_points(calibration.points, exact=bool(calibration.exact))
    return request


def _check_by_truth(table: GuaranteeTable) -> None:
    """Refuse options that computed labels leave no room for."""
    check_truth_options(CalibrateRequest.of(table.method, rank=table.rank, normaliser=table.normaliser))
