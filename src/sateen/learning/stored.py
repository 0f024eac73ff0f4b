"""Posteriors in files, and `load`, which reads every kind of file that sateen saves.

A posterior of sateen's own is kept whole: the recipe, the observations it learned from, and what it learned. A file
names its learner, and the registry says which classes that name stands for. A recipe is rebuilt through its class, so
what its class refuses is refused in a file too.

Any other posterior is kept as what made it, its learner, settings, observations and seed, and is fitted again when the
file is read. For that its learner is imported: by its registered name, or from the module whose address the file has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypedDict

import numpy as np

from sateen.core.errors import InputError
from sateen.core.posterior import CompletedPosterior, FullPosterior, complete, fit_learner
from sateen.core.prediction import Posterior, Training
from sateen.core.record import Objective, Record
from sateen.core.registry import load_object
from sateen.core.threads import on_one_thread
from sateen.core.types import Arrays, File
from sateen.files.container import read_container, write_container
from sateen.files.observations import check_array, observations_arrays, observations_content, observations_from
from sateen.files.observations import load as load_observations
from sateen.files.plain import FAULTS, converted, fault_text
from sateen.learning.inputs import Inputs
from sateen.learning.posterior import LearnedPosterior, Parts
from sateen.learning.registry import LEARNERS, learner_name, make_learner, settings_content, settings_from

KIND: Final = "posterior"
FORMAT: Final = 2
_READERS: Final = {  # by kind: the number of its format, and what reads its words and arrays
    KIND: ("sateen.learning.stored:FORMAT", "sateen.learning.stored:posterior_from_parts"),
    "guarantee": ("sateen.guarantee.archive:VERSION", "sateen.guarantee.archive:read_guarantee"),
    "observations": ("sateen.files.observations:FORMAT", "sateen.files.observations:observations_from"),
}
_SECTIONS: Final = ("training", "record", "learned")  # the first part of the name of an array


class _Record(TypedDict):
    """What a file tells of a record, besides its arrays."""

    objective: Objective
    verdict: str
    seconds: float
    interrupted: bool
    notes: list[str]


def load(file: File) -> Any:
    """The posterior, guarantee or observations that `save` wrote to a file; they predict the same to the last bit.

    Nothing in the file is run. A posterior of a learner that is not sateen's own is fitted again, which imports that
    learner from where the file says. A file that is damaged, foreign, or of another format is refused, with what it is.
    """
    formats = {kind: load_object(number) for kind, (number, _) in _READERS.items()}
    kind, _, content, arrays = read_container(file, formats)  # type: ignore[arg-type]
    if kind == KIND:
        return posterior_from_parts(content, arrays, str(file))
    read: Callable[..., object] = load_object(_READERS[kind][1])  # type: ignore[assignment]
    if kind == "guarantee":
        return read(content, arrays, partial(posterior_from_parts, where=str(file)), str(file))
    return load_observations(file)


def save(posterior: Posterior, file: File) -> None:
    """Write a posterior as one safe file, which `load` reads back."""
    write_container(file, KIND, FORMAT, *posterior_parts(posterior))


def posterior_parts(posterior: Posterior) -> Parts:
    """All that a file keeps of a posterior: words, and arrays."""
    whole = complete(posterior)
    observations = whole.training.observations
    content: dict[str, object] = {"training": observations_content(observations)}
    sections: dict[str, Arrays] = {"training": observations_arrays(observations)}
    if isinstance(whole, LearnedPosterior):
        learned, sections["learned"] = whole.parts()
        sections["record"] = whole.record.arrays()
        content |= {"learner": whole.kind, "recipe": settings_content(whole.recipe), "inputs": whole.inputs.content()}
        content |= {"record": whole.record.content(), "learned": learned}
    else:
        content["refit"] = _refit_content(whole)
    arrays = {f"{section}/{name}": array for section, part in sections.items() for name, array in part.items()}
    return content, arrays


@on_one_thread  # as in the fit: what a posterior works out from its parts may differ in the last bit on two
def posterior_from_parts(content: Mapping[str, Any], arrays: Arrays, where: str = "the file") -> FullPosterior:
    """The posterior that `posterior_parts` described; `where` names the file in an error."""
    try:
        counts, record, learned = (_section(arrays, name) for name in _SECTIONS)
        if "refit" in content:
            return _refitted(content, counts)
        recipe = make_learner(_native(content["learner"]), settings_from(content["recipe"]))
        observations = observations_from(content["training"], counts)
        inputs = Inputs.from_content(observations.space, content["inputs"])
        posterior_class: type[LearnedPosterior] = load_object(recipe.posterior_class)  # type: ignore[attr-defined, assignment]
        told = Record.from_content(converted(content["record"], _Record), record)
        for name in ("steps", "values"):
            check_array(f"record/{name}", record[name], (len(told.steps),), np.float64)
        common = recipe, Training(observations), inputs, told
        posterior = posterior_class.from_parts(common, content["learned"], learned)
        if posterior.kind != content["learner"]:
            raise ValueError(f"its parts are of {posterior.kind}, and it says {content['learner']}")
        return posterior
    except FAULTS as error:
        raise InputError(f"{where} holds no valid posterior: {fault_text(error)}") from error


def _native(name: str) -> str:
    """The name of a learner of sateen's own; it alone can be read without being fitted again."""
    if name not in LEARNERS.builtin:
        LEARNERS.address(name)  # refuses an unknown name
        raise ValueError(f"the learner {name} is not sateen's own, and its posterior is fitted again")
    return name


def _refit_content(posterior: FullPosterior) -> dict[str, object]:
    """How to fit the posterior again."""
    seed = posterior.seed if isinstance(posterior, CompletedPosterior) else None
    if seed is None:
        remedy = "fit it by st.learn(observations, learner=..., seed=...), or give its class a `save`"
        raise InputError(f"the posterior {posterior.kind} does not say with which seed it was fitted; {remedy}")
    learner = posterior.recipe
    settings, name = settings_content(learner), learner_name(learner)
    if "<locals>" in name:
        raise InputError(f"no file can name the learner {name}, a class inside a function; move it out of the function")
    return {"learner": name, "settings": settings, "seed": seed}


def _refitted(content: Mapping[str, Any], counts: Arrays) -> FullPosterior:
    """The posterior, fitted again as the file says."""
    again = content["refit"]
    learner = make_learner(again["learner"], settings_from(again["settings"]))
    posterior = fit_learner(learner, observations_from(content["training"], counts), seed=again["seed"])
    if not isinstance(posterior, CompletedPosterior):
        return posterior
    note = f"fitted again by {again['learner']} when its file was read"
    record = posterior.record
    return replace(posterior, fitted=replace(record, notes=(*record.notes, note)))


def _section(arrays: Arrays, name: str) -> Arrays:
    start = f"{name}/"
    return {key.removeprefix(start): array for key, array in arrays.items() if key.startswith(start)}
