"""What the tasks of a study read: posteriors and guarantees in files, and the model with the store of its runs."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from sateen.core.code import Code
from sateen.core.errors import InputError
from sateen.core.posterior import FullPosterior
from sateen.pipeline.folder import ResultFolder
from sateen.pipeline.tasks import RunContext
from sateen.study.function import load_function
from sateen.study.spec import StudySpec

if TYPE_CHECKING:
    from sateen.guarantee.guarantee import Guarantee
    from sateen.model.model import Model
    from sateen.sampling.source import Function


def observing(study: StudySpec, folder: ResultFolder, context: RunContext) -> tuple[Model | Function, dict[str, Any]]:
    """The model, or the callable, which is run now; and how it is observed: workers, store, progress and caps."""
    # A store knows a function by its text alone; here it shall be known by all that stands in its file.
    store = folder.stages / (f"runs-{study.code[:16]}.db" if study.code else "runs.db")
    options: dict[str, Any] = {"workers": context.workers, "store": store, "progress": context.progress, **study.caps}
    return load_function(study.model) if isinstance(study.model, Code) else study.model, options


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
