"""Posteriors in files, and `load`, which reads every kind of file that sateen saves.

A posterior of sateen's own is kept whole: the recipe, the observations it learned from, and what it learned. A file
names its learner, and the registry says which classes that name stands for. A recipe is rebuilt through its class, so
what its class refuses is refused in a file too.

Any other posterior is kept as what made it, its learner, settings, observations and seed. Reading its file imports
nothing; the posterior is fitted again when it is first used. For that its learner is imported: by its registered name,
or from the module whose address the file has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypedDict

import numpy as np

from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.posterior import CompletedPosterior, FullPosterior, complete, fit_learner
from sateen.core.prediction import Learner, Posterior, Prediction, Training
from sateen.core.record import UNKNOWN, Objective, Record
from sateen.core.registry import load_object
from sateen.core.space import Space
from sateen.core.threads import on_one_thread
from sateen.core.types import Arrays, File, FloatArray
from sateen.files.container import read_container, write_container
from sateen.files.observations import check_array, observations_arrays, observations_content, observations_from
from sateen.files.observations import load as load_observations
from sateen.files.plain import FAULTS, converted, fault_text
from sateen.learning.inputs import Inputs
from sateen.learning.posterior import LearnedPosterior, Parts
from sateen.learning.registry import (
    LEARNERS,
    OwnLearner,
    find_learner,
    learner_name,
    make_learner,
    settings_content,
    settings_from,
)

KIND: Final = "posterior"
FORMAT: Final = 3
_READERS: Final = {  # by kind: the number of its format, and what reads its words and arrays
    KIND: ("sateen.learning.stored:FORMAT", "sateen.learning.stored:posterior_from_parts"),
    "guarantee": ("sateen.guarantee.archive:VERSION", "sateen.guarantee.archive:read_guarantee"),
    "certificate": ("sateen.decision.archive:VERSION", "sateen.decision.archive:read_certificate"),
    "truth": ("sateen.guarantee.truth:FORMAT", "sateen.guarantee.truth:truth_from"),
    "observations": ("sateen.files.observations:FORMAT", "sateen.files.observations:observations_from"),
}
_SECTIONS: Final = ("training", "record", "learned")  # the first part of the name of an array
_UNKNOWN: Final = Record("objective", np.empty(0), np.empty(0), UNKNOWN, math.nan)


class _Record(TypedDict):
    """What a file says of a record, besides its arrays."""

    objective: Objective
    verdict: str
    seconds: float | None
    interrupted: bool
    notes: list[str]


def load(file: File) -> Any:
    """The object that `save` wrote to a file (posterior, guarantee, certificate, observations, truth), the same to the
    last bit.

    No code is run. A posterior of a learner that is not sateen's own is a RefitPosterior, which imports that learner
    when it is first used. A damaged file, or one of another program or format, is refused with the reason.
    """
    formats = {kind: load_object(number) for kind, (number, _) in _READERS.items()}
    kind, _, content, arrays = read_container(file, formats)  # type: ignore[arg-type]
    if kind == KIND:
        return posterior_from_parts(content, arrays, str(file))
    read: Callable[..., object] = load_object(_READERS[kind][1])  # type: ignore[assignment]
    if kind in ("guarantee", "certificate"):
        return read(content, arrays, partial(posterior_from_parts, where=str(file)), str(file))
    return read(content, arrays, str(file)) if kind == "truth" else load_observations(file)


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
        record = whole.fitted if isinstance(whole, RefitPosterior) else whole.record
        if isinstance(record, Record):  # and not of a class of the user's
            content["record"], sections["record"] = record.content(), record.arrays()
    arrays = {f"{section}/{name}": array for section, part in sections.items() for name, array in part.items()}
    return content, arrays


@on_one_thread  # as in the fit: what a posterior works out from its parts may differ in the last bit on two
def posterior_from_parts(content: Mapping[str, Any], arrays: Arrays, where: str = "the file") -> FullPosterior:
    """The posterior that `posterior_parts` described; `where` names the file in an error."""
    try:
        counts, record, learned = (_section(arrays, name) for name in _SECTIONS)
        if "refit" in content:
            return _to_refit(content, counts, record)
        recipe = make_learner(_native(content["learner"]), settings_from(content["recipe"]))
        observations = observations_from(content["training"], counts)
        inputs = Inputs.from_content(observations.space, content["inputs"])
        posterior_class: type[LearnedPosterior] = load_object(recipe.posterior_class)  # type: ignore[attr-defined, assignment]
        common = recipe, Training(observations), inputs, _record(content, record)
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
    seed = posterior.seed if isinstance(posterior, CompletedPosterior | RefitPosterior) else None
    if seed is None:
        remedy = "fit it by st.learn(observations, learner=..., seed=...), or give its class a `save`"
        raise InputError(f"the posterior {posterior.kind} does not say with which seed it was fitted; {remedy}")
    learner = posterior.learner if isinstance(posterior, RefitPosterior) else posterior.recipe
    settings, name = settings_content(learner), learner_name(learner)
    if "<locals>" in name:
        raise InputError(f"no file can name the learner {name}, a class inside a function; move it out of the function")
    return {"learner": name, "settings": settings, "seed": seed}


def _to_refit(content: Mapping[str, Any], counts: Arrays, arrays: Arrays) -> FullPosterior:
    """The posterior that is fitted again, as the file says, once it is used."""
    again = content["refit"]
    learner = find_learner(again["learner"], settings_from(again["settings"]))
    observations, seed = observations_from(content["training"], counts), int(again["seed"])
    if not isinstance(learner, OwnLearner):
        return fit_learner(learner, observations, seed=seed)
    known = _record(content, arrays) if "record" in content else _UNKNOWN
    return RefitPosterior(learner, observations, seed, known)


def _record(content: Mapping[str, Any], arrays: Arrays) -> Record:
    """How a fit went, as a file describes it."""
    told = Record.from_content(converted(content["record"], _Record), arrays)
    for name in ("steps", "values"):
        check_array(f"record/{name}", arrays[name], (len(told.steps),), np.float64)
    return told


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RefitPosterior(FullPosterior):
    """A posterior that is known by what made it: its learner, which is not sateen's own, its training and its seed.

    What was written down of it, its training and its record, is there at once. All else fits it again, which runs the
    code of the learner.
    """

    learner: OwnLearner
    observations: Observations
    seed: int
    fitted: Record
    _again: list[FullPosterior] = field(default_factory=list, init=False)

    @property
    def posterior(self) -> FullPosterior:
        """The posterior itself; the learner is imported, and fits it again, when it is first asked for."""
        if not self._again:
            fit = on_one_thread(fit_learner)
            self._again.append(fit(self.learner, self.observations, seed=self.seed))
        return self._again[0]

    @property
    def ready(self) -> bool:
        """Whether it was fitted again already, by code that somebody chose to run."""
        return bool(self._again)

    @property
    def kind(self) -> str:
        """The name of the learner."""
        return self.learner.name

    @property
    def recipe(self) -> Learner:
        """The learner itself, imported now."""
        return self.learner.make()

    @property
    def training(self) -> Training:
        """What it learned from."""
        return Training(self.observations)

    @property
    def record(self) -> Record:
        """How the fit went, when it was saved."""
        note = f"{self.kind} fits it again when it is used"
        return replace(self.fitted, notes=(*self.fitted.notes, note))

    @property
    def space(self) -> Space:
        """Where it predicts."""
        return self.observations.space

    @property
    def seconds_per_run(self) -> float:
        """How long one simulated run took in training."""
        return self.posterior.seconds_per_run

    def predict(self, points: object, *, level: float = 0.95, extrapolate: bool = False) -> Prediction:
        """What the posterior predicts."""
        return self.posterior.predict(points, level=level, extrapolate=extrapolate)

    def sample(self, points: object, n: int, *, seed: int, extrapolate: bool = False) -> FloatArray:
        """The draws of the posterior."""
        return self.posterior.sample(points, n, seed=seed, extrapolate=extrapolate)

    def functions(self, n: int, *, seed: int) -> Callable[[object], FloatArray]:
        """Draws of the whole function."""
        return self.posterior.functions(n, seed=seed)

    def gradient(self, points: object, *, extrapolate: bool = False) -> FloatArray:
        """The derivatives of the mean."""
        return self.posterior.gradient(points, extrapolate=extrapolate)

    def importance(self) -> dict[str, float]:
        """Which parameters matter."""
        return self.posterior.importance()

    def kl(self) -> float:
        """How far the posterior is from its prior."""
        return self.posterior.kl()

    @property
    def unseen_by_prior(self) -> Observations:
        """The training observations that the prior of `kl` does not depend on."""
        return self.posterior.unseen_by_prior


def _section(arrays: Arrays, name: str) -> Arrays:
    start = f"{name}/"
    return {key.removeprefix(start): array for key, array in arrays.items() if key.startswith(start)}
