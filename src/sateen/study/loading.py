"""What the tasks of a study read: posteriors and guarantees in files, and the model with the store of its runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from sateen.core.code import Code
from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.posterior import FullPosterior
from sateen.core.space import Points
from sateen.pipeline.folder import ResultFolder
from sateen.pipeline.tasks import RunContext
from sateen.study.file import toml_words
from sateen.study.function import load_function
from sateen.study.spec import Design, StudySpec

if TYPE_CHECKING:
    from sateen.guarantee.guarantee import Guarantee
    from sateen.logic.formula import Formula
    from sateen.model.model import Model
    from sateen.sampling.parts import Part
    from sateen.sampling.source import Function


def observing(study: StudySpec, folder: ResultFolder, context: RunContext) -> tuple[Model | Function, dict[str, Any]]:
    """The model, or the callable, which is run now; and how it is observed: workers, store, progress and caps."""
    store = folder.stages / store_name(study)
    options: dict[str, Any] = {"workers": context.workers, "store": store, "progress": context.progress, **study.caps}
    if context.pool is not None:
        options["executor"] = context.pool
    return load_function(study.model) if isinstance(study.model, Code) else study.model, options


def store_name(study: StudySpec) -> str:
    """The name of the file with the runs."""
    # A store knows a function by its text alone; here it is identified by everything in its file.
    return f"runs-{study.code[:16]}.db" if study.code else "runs.db"


def stage_question(study: StudySpec, stage: str, design: Design) -> tuple[Points, int, int]:
    """The points of a stage, the runs at each, and the seed of the runs."""
    points_seed, runs_seed = study.seeds(stage).values()
    return design.drawn(study.space, points_seed), design.runs, runs_seed


def observe_stage(
    study: StudySpec,
    folder: ResultFolder,
    context: RunContext,
    stage: str,
    design: Design,
    properties: Mapping[str, Formula | None],
    part: Part | None = None,
) -> Mapping[str, Observations]:
    """What a stage of simulation observes of the properties, all of it or a part."""
    from sateen.sampling.observe import observe

    model, options = observing(study, folder, context)
    points, runs, seed = stage_question(study, stage, design)
    formulas = formulas_of(properties)
    try:
        observed = observe(model, formulas, points, runs, seed=seed, part=part, **options)
    except InputError as error:
        raise InputError(f"{stage}: {error.worded(toml_words)}") from error
    return {next(iter(properties)): observed} if isinstance(observed, Observations) else observed


def formulas_of(properties: Mapping[str, Formula | None]) -> dict[str, Formula] | None:
    """The formulas by name; None where a callable decides by itself."""
    return {name: formula for name, formula in properties.items() if formula is not None} or None


def load_posterior(file: FilePath) -> FullPosterior:
    """The posterior in the file of a task."""
    from sateen.learning.stored import load

    posterior = load(file)
    if not isinstance(posterior, FullPosterior):
        raise InputError(f"{file} has no posterior, but a {type(posterior).__name__}")
    return posterior


def load_guarantee(file: FilePath) -> Guarantee:
    """The guarantee in the file of a task."""
    from sateen.guarantee.guarantee import Guarantee
    from sateen.learning.stored import load

    guarantee = load(file)
    if not isinstance(guarantee, Guarantee):
        raise InputError(f"{file} has no guarantee, but a {type(guarantee).__name__}")
    return guarantee
