"""The tasks that label points: the parts of a study, and a calibration that is planned first.

What is planned for one level is used for another as far as it is enough. So its key has no level in it, but the `room`
that the plan must leave: the fewest points that the level needs, rounded up to a power of 2. A run looks for what is
there for any room, and is content with labels that have enough points. Only then the level is planned: computed labels
need no plan, and runs that are there are planned as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Final

from sateen.core.errors import InputError, SateenError
from sateen.core.observations import Observations
from sateen.core.posterior import FullPosterior
from sateen.core.text import duration_text, plural
from sateen.guarantee.methods import METHODS
from sateen.guarantee.request import CalibrateRequest
from sateen.model.model import Model
from sateen.pipeline.folder import ResultFolder, read_checksummed, write_checksummed
from sateen.pipeline.tasks import RunContext, Save, Task, folder_task
from sateen.study.file import toml_words
from sateen.study.given import GivenTraining
from sateen.study.loading import formulas_of, observe_stage, stage_question
from sateen.study.spec import Calibration, Design, GuaranteeSpec, StudySpec

if TYPE_CHECKING:
    from sateen.logic.formula import Formula
    from sateen.study.budget import Plans, Purchase
    from sateen.study.labels import Labels

AS_PLANNED: Final = "as many as the plan says"
ARRAYS: Final = ".safetensors"
_ROOMS: Final = tuple(2**power for power in range(31))  # which labels may have been planned for


@dataclass(frozen=True, slots=True)
class Planned:
    """The plans of all properties, and the labels that they are for."""

    plans: Task[Plans]
    labels: Mapping[str, Task[Labels]]

    @property
    def finished(self) -> bool:
        """Whether all labels are there."""
        return all(task.finished for task in self.labels.values())


@dataclass(frozen=True, slots=True)
class LabelTasks:
    """Makes the tasks that label points for a study in a folder."""

    study: StudySpec
    folder: ResultFolder

    def training(self) -> Mapping[str, Task[Observations]]:
        """The observations that are learned from, for every property."""
        train = self.study.train
        return self._given(train) if isinstance(train, GivenTraining) else self.of("train", train)

    def _given(self, train: GivenTraining) -> Mapping[str, Task[Observations]]:
        """The observations in the file of the study, kept in the folder of the result too."""
        study, file = self.study, self.study.given

        def make(context: RunContext) -> Save:
            assert file is not None
            observations = Observations.load(file)
            if observations.fingerprint != train.fingerprint:
                raise InputError(f"{file} was changed since the study was read", remedy="run the study again")
            return observations.save

        inputs = {**study.question(), "fingerprint": train.fingerprint}
        about = f"{plural(train.points, 'point')} of {train.file}"
        read = Observations.load
        return {
            name: folder_task(self.folder, f"train {name}", inputs, make, read=read, suffix=ARRAYS, about=about)
            for name in study.properties
        }

    def of(self, part: str, design: Design) -> dict[str, Task[Any]]:
        """The labels of a part, for every property: observations, or the truth."""
        inputs = {**self.study.question(), "design": asdict(design), "seeds": self.study.seeds(part)}
        total = design.total(self.study.space)
        about = f"exact at {plural(design.size(self.study.space), 'point')}" if design.exact else f"{total:,} runs"
        return self._tasks(part, inputs, lambda: design, about=about, runs=total)

    def _tasks(
        self,
        part: str,
        inputs: Mapping[str, object],
        design: Callable[[], Design],
        needs: tuple[Task[object], ...] = (),
        *,
        about: str,
        runs: int = 0,
    ) -> dict[str, Task[Any]]:
        """Those that are pending share one set of runs. What they need does not decide their key."""
        study = self.study
        tasks: dict[str, Task[Any]] = {}

        def make(context: RunContext) -> Save:
            pending = {name: formula for name, formula in study.properties.items() if not tasks[name].finished}
            labels = self._made(part, design(), pending, context)

            def save(file: FilePath) -> None:
                for name, label in labels.items():
                    label.save(tasks[name].file)

            return save

        for name, formula in study.properties.items():
            task = folder_task(
                self.folder,
                f"{part} {name}",
                {**inputs, "formula": formula and [str(formula), formula.end]},
                make,
                read=_load_labels,
                suffix=ARRAYS,
                group=part,
                about=about,
                runs=runs,
            )
            tasks[name] = replace(task, needs=needs)
        return tasks

    def _made(
        self, part: str, design: Design, pending: Mapping[str, Formula | None], context: RunContext
    ) -> Mapping[str, Labels]:
        from sateen.study.labels import compute_truths

        study = self.study
        if not design.exact:
            return observe_stage(study, self.folder, context, part, design, pending)
        assert isinstance(study.model, Model)
        points, *_ = stage_question(study, part, design)
        formulas = formulas_of(pending) or {}
        try:
            return compute_truths(
                study.model,
                formulas,
                points,
                checkpoint=context.checkpoint,
                workers=context.workers,
                progress=context.progress,
            )
        except InputError as error:
            raise InputError(f"{part}: {error.worded(toml_words)}") from error

    def purchase(
        self, spec: GuaranteeSpec, calibration: Calibration, trusted: Mapping[str, Task[FullPosterior]]
    ) -> Task[Purchase] | None:
        """What the seconds buy that the calibration may take, if seconds are given."""
        seconds = calibration.seconds
        exact = False if spec.normaliser == "predictive" else calibration.exact
        if seconds is None:
            return None

        def make(context: RunContext) -> Save:
            from sateen.study.budget import purchase

            model = self.study.model if isinstance(self.study.model, Model) else None
            formulas = {name: formula for name, formula in self.study.properties.items() if formula is not None}
            posteriors = {name: task.value() for name, task in trusted.items()}
            with of_the_calibration():
                bought = purchase(model, formulas, posteriors, seconds, exact)
            return lambda file: write_checksummed(file, bought.content())

        inputs = {"asked": seconds, "exact": exact}
        about = "as long as the training took" if seconds == "training" else duration_text(seconds)
        needs = tuple(trusted.values())
        return folder_task(self.folder, "budget", inputs, make, read=_load_purchase, needs=needs, about=about)

    def planned(
        self,
        spec: GuaranteeSpec,
        calibration: Calibration,
        trusted: Mapping[str, Task[FullPosterior]],
        bought: Task[Purchase] | None,
    ) -> Planned:
        """The plans of all properties, and what they plan, which other levels share if it is enough for them."""
        fewest = fewest_points(spec)

        def in_room(room: int) -> Planned:
            return self._in_room(room, spec, calibration, trusted, bought)

        own = in_room(_room(fewest))
        return own if own.finished else next(_enough(map(in_room, _ROOMS), fewest), own)

    def _in_room(
        self,
        room: int,
        spec: GuaranteeSpec,
        calibration: Calibration,
        trusted: Mapping[str, Task[FullPosterior]],
        bought: Task[Purchase] | None,
    ) -> Planned:
        """The labels with this room, and the plans of the level for them: to make them, or as they are there."""
        seed, fewest = self.study.seed_of("plan"), fewest_points(spec)
        needs = (*trusted.values(), *(() if bought is None else (bought,)))
        labels: dict[str, Task[Labels]] = {}

        def made() -> Plans:
            from sateen.study.budget import Plans, shared_plans

            there = next((task.value() for task in labels.values() if task.finished), None)
            if there is not None and not isinstance(there, Observations):
                return Plans({})
            cost = calibration
            if bought is not None:
                if there is None and bought.value().exact(fewest):
                    return Plans({})
                cost = Calibration(budget=bought.value().budget(fewest))
            posteriors = {name: task.value() for name, task in trusted.items()}
            return shared_plans(posteriors, cost, spec, _room(fewest), there, seed=seed)

        def make(context: RunContext) -> Save:
            with of_the_calibration():
                content = made().content()
            return lambda file: write_checksummed(file, content)

        plans = folder_task(
            self.folder,
            "plan",
            {"calibration": asdict(calibration), "guarantee": asdict(spec), "seed": seed, "room": room},
            make,
            read=_load_plans,
            needs=needs,
            about=f"of {spec.of}",
        )
        own = {"calibration": asdict(calibration), "room": room, "needs": [task.key for task in needs]}
        if calibration.width is not None:  # which another level reaches with other runs
            own["plan"] = plans.key
        inputs = {**self.study.question(), **own, "seeds": self.study.seeds("calibrate")}
        runs = calibration.budget or 0
        about = f"up to {runs:,} runs" if runs else AS_PLANNED
        chosen = partial(_chosen, plans, bought)
        labels.update(self._tasks("calibrate", inputs, chosen, (plans,), about=about, runs=runs))
        return Planned(plans, labels)


def fewest_points(spec: GuaranteeSpec) -> int:
    """The points that the level of a guarantee needs."""
    asked = CalibrateRequest.of(spec.method, level=spec.level, confidence=spec.confidence)
    enough: int | None = METHODS[spec.method].fewest_points(asked)
    return enough or 1


def _chosen(plans: Task[Plans], purchase: Task[Purchase] | None) -> Design:
    """The design that all plans share; without plans, the points at which the truth was bought."""
    first = next(iter(plans.value().by_name.values()), None)
    if first is not None:
        return Design(first.points, first.runs)
    assert purchase is not None
    return Design(purchase.value().points, exact=True)


def _room(fewest: int) -> int:
    """The least power of 2 that is not less.

    >>> [_room(fewest) for fewest in (10, 29, 59, 64)]
    [16, 32, 64, 64]
    """
    return 1 << max(fewest - 1, 0).bit_length()


def _enough(there: Iterable[Planned], fewest: int) -> Iterator[Planned]:
    """Those whose labels are there, and have enough points."""
    for each in there:
        with suppress(SateenError):  # what is damaged is of no use
            if each.finished and all(len(task.value()) >= fewest for task in each.labels.values()):
                yield each


@contextmanager
def of_the_calibration() -> Iterator[None]:
    """Errors in the words of a study file."""
    try:
        yield
    except InputError as error:
        raise InputError(f"calibrate: {error.worded(toml_words)}") from error


def _load_purchase(file: FilePath) -> Purchase:
    from sateen.study.budget import Purchase

    return Purchase.from_content(read_checksummed(file))


def _load_plans(file: FilePath) -> Plans:
    from sateen.study.budget import Plans

    return Plans.from_content(read_checksummed(file))


def _load_labels(file: FilePath) -> Labels:
    from sateen.study.labels import load_labels

    return load_labels(file)
