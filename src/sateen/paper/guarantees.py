"""The paper's figures about guarantees, on configuration (a), each with the lift beside what the paper has.

1. How wide Bayesian, ICP and NICP bands are on average as the runs per point grow, beside the errors gen and emp.
2. The bands over the parameter, with the intervals of statistical model checking, and the Chernoff band.
3. Bounds on the mean error: PAC-Bayes, against the mean half-widths of ICP and NICP.

There are 500 training points and 200 calibration points; both, and the test, have independent runs. A planned lift
takes as many runs as that calibration, but at points and runs of its own choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
import numpy.typing as npt

import sateen as st
from sateen.paper.cases.configurations import configuration
from sateen.paper.tasks import prediction_content, prediction_from
from sateen.pipeline import SILENT, Progress, processors, stream_seed
from sateen.pipeline.folder import ResultFolder, read_checksummed, write_checksummed, write_json
from sateen.pipeline.tasks import Pipeline, Rebuild, RunContext, Save, Task, folder_task

if TYPE_CHECKING:
    from sateen.plot.style import Figure

__all__ = ["LEARNERS", "RUNS", "Bands", "Curves", "GuaranteeFigures"]

Predict: TypeAlias = Callable[[st.Points], st.Prediction]
Numbers: TypeAlias = Mapping[str, object]
RUNS: Final = (10, 20, 50, 100, 200, 500)
_TRAINING_POINTS: Final = 500
_HELD_OUT_POINTS: Final = 200
_TEST: Final = (1000, 1000)  # points on a grid, and runs at each
_BAND_POINTS: Final = 200
_SHOWN_TEST_POINTS: Final = 30
_LEVEL: Final = 0.95
_CHERNOFF_LEVEL: Final = 0.9  # 1 - (0.05 + 0.05), as in the paper
_SPLIT: Final = 0.2  # of the training, on which a Gaussian process learns the prior of a PAC-Bayes bound
_SECONDS: Final = 7.0  # of a task, on one core of an AMD EPYC
_TASKS: Final = "pieces"  # the folder for their files, inside that of the figures

# By label, a learner whose prior is learned on a share of the training. That of SVI-BNN, N(0, I), has seen nothing.
LEARNERS: Final[Mapping[str, Callable[[float | None], st.Learner]]] = MappingProxyType(
    {
        "EP-GP": lambda split: st.EPGP(split=split),
        "SVI-GP": lambda split: st.SVIGP(split=split),
        "SVI-BNN": lambda split: st.SVIBNN(),
    }
)


@dataclass(frozen=True, slots=True)
class Curves:
    """Numbers by learner and name: a row for each of `runs`, a column for each training."""

    runs: tuple[int, ...]
    values: Mapping[str, Mapping[str, npt.NDArray[np.float64]]]

    def content(self) -> dict[str, object]:
        """The numbers as plain data."""
        table = {
            learner: {name: rows.tolist() for name, rows in by_name.items()} for learner, by_name in self.values.items()
        }
        return {"runs": list(self.runs), "values": table}


@dataclass(frozen=True, slots=True)
class Bands:
    """The predictions of one learner by runs per point and by name, and test observations to draw beside them."""

    predictions: Mapping[int, Mapping[str, st.Prediction]]
    test: st.Observations


@dataclass(frozen=True, slots=True)
class _Training:
    """One training of a learner with so many runs per point, and seeds that are never used twice."""

    learner: str
    runs: int
    number: int
    seed: int

    def observed(self, points: st.Points, runs: int, *names: str) -> st.Observations:
        """Runs at the points, with a seed of their own for each name."""
        case = configuration("a")
        return st.observe(case.model, case.formula, points, runs, seed=self.key("runs", *names))

    def uniform(self, n: int, *names: str) -> st.Points:
        """Independent points, others for each name."""
        return configuration("a").space.uniform(n, seed=self.key("points", *names))

    def key(self, *names: str) -> int:
        """A seed for each name; all learners have the same."""
        return stream_seed(self.seed, "guarantees", *names, self.runs, self.number)


class GuaranteeFigures:
    """All three figures in a folder: for some learners and runs per point, with so many trainings of each.

    The second figure is one file for each learner, of its first training.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        learners: Sequence[str] = tuple(LEARNERS),
        runs: Sequence[int] = RUNS,
        trainings: int = 5,
        seed: int = 1,
        workers: int | None = None,
        progress: Progress = SILENT,
    ) -> None:
        if strangers := [learner for learner in learners if learner not in LEARNERS]:
            raise st.InputError(f"the paper has no learner {strangers[0]!r}; there are {', '.join(LEARNERS)}")
        if not learners or not runs or trainings < 1 or min(runs) < 1:
            raise st.InputError("a figure needs at least one learner, one number of runs, and one training")
        self.path = Path(folder)
        self.learners, self.runs, self.trainings, self.seed = tuple(learners), tuple(runs), trainings, seed
        self.workers, self.progress = workers, progress
        self.folder = ResultFolder(self.path / _TASKS)

    @cached_property
    def test(self) -> Task[st.Observations]:
        """The test set, on a fine grid with many runs."""

        def make(context: RunContext) -> Save:
            points = configuration("a").space.grid(_TEST[0])
            return _Training("", _TEST[1], 0, self.seed).observed(points, _TEST[1], "test").save

        inputs = {"seed": self.seed, "test": list(_TEST)}
        read, seconds = st.Observations.load, _SECONDS
        return folder_task(
            self.folder, "test guarantees", inputs, make, read=read, suffix=".safetensors", seconds=seconds
        )

    @cached_property
    def trained(self) -> Mapping[tuple[str, str, int, int], Task[Numbers]]:
        """By figure, "widths" or "errors", learner, runs per point and number of the training, what was computed."""
        return {
            (figure, learner, runs, number): self._task(figure, compute, _Training(learner, runs, number, self.seed))
            for figure, compute in (("widths", _widths_and_bands), ("errors", _error_bounds))
            for learner in self.learners
            for runs in self.runs
            for number in range(self.trainings)
        }

    @cached_property
    def pipeline(self) -> Pipeline:
        """All tasks, finished or pending."""
        rebuild = Rebuild(_rebuilt, (self.path, self.learners, self.runs, self.trainings, self.seed))
        return Pipeline(self.folder, (self.test, *self.trained.values()), rebuild)

    def forecast(self) -> dict[str, float]:
        """About how many seconds the pending tasks take, by what is done."""
        pending = self.pipeline.pending()
        return {"guarantees": sum(task.seconds for task in pending)} if pending else {}

    def run(self) -> None:
        """Compute what is pending."""
        with self.folder.held():
            self.pipeline.run(workers=self.workers, progress=self.progress if self.pipeline.pending() else SILENT)

    def widths(self) -> Curves:
        """Figure 1: mean widths over the test points."""
        return self._curves("widths")

    def bands(self) -> Mapping[str, Bands]:
        """Figure 2: by learner the bands of the first training."""
        test, line = self.test.value(), configuration("a").space.grid(_BAND_POINTS)
        shown = test[np.linspace(0, len(test) - 1, _SHOWN_TEST_POINTS).round().astype(int)]
        bands = {}
        for learner in self.learners:
            contents = {runs: self.trained["widths", learner, runs, 0].value()["bands"] for runs in self.runs}
            predictions = {
                runs: {name: prediction_from(content, line) for name, content in by_name.items()}
                for runs, by_name in contents.items()
            }
            bands[learner] = Bands(predictions, shown)
        return bands

    def errors(self) -> Curves:
        """Figure 3: bounds on the mean error."""
        return self._curves("errors")

    def draw(self, suffix: str = ".png") -> list[Path]:
        """Draw all three into the folder, and write their numbers; the paths of the files, the numbers last."""
        from sateen.plot.figures import save
        from sateen.plot.paper import bands_over_parameter, errors_by_runs, widths_by_runs

        widths, errors = self.widths(), self.errors()
        drawn: dict[str, Figure] = {"widths": widths_by_runs(widths.runs, widths.values)}
        for learner, bands in self.bands().items():
            drawn[f"bands-{learner.lower()}"] = bands_over_parameter(learner, bands.predictions, bands.test)
        drawn["errors"] = errors_by_runs(errors.runs, errors.values)
        files = {self.path / f"guarantee-{name}{suffix}": figure for name, figure in drawn.items()}
        for file, figure in files.items():
            with self.folder.writing(file):
                save(figure, file)
        numbers = self.path / "guarantee-numbers.json"
        with self.folder.writing(numbers):
            write_json(numbers, {"seed": self.seed, "widths": widths.content(), "errors": errors.content()})
        return [*files, numbers]

    def _task(
        self, figure: str, compute: Callable[[_Training, st.Observations], Numbers], training: _Training
    ) -> Task[Numbers]:
        def make(context: RunContext) -> Save:
            return partial(_write, content=compute(training, self.test.value()))

        return folder_task(
            self.folder,
            f"{figure} {training.learner.lower()} {training.runs} {training.number}",
            {},
            make,
            read=read_checksummed,
            needs=(self.test,),
            parallel=True,
            seconds=_SECONDS / (self.workers or processors()),
        )

    def _curves(self, figure: str) -> Curves:
        curves = {}
        for learner in self.learners:
            table = [
                [self.trained[figure, learner, runs, number].value()["values"] for number in range(self.trainings)]
                for runs in self.runs
            ]
            curves[learner] = {name: np.array([[one[name] for one in row] for row in table]) for name in table[0][0]}
        return Curves(self.runs, curves)


def _write(file: Path, content: Numbers) -> None:
    write_checksummed(file, content)


def _rebuilt(path: Path, learners: tuple[str, ...], runs: tuple[int, ...], trainings: int, seed: int) -> Pipeline:
    """The pipeline that another process asked for."""
    figures = GuaranteeFigures(path, learners=learners, runs=runs, trainings=trainings, seed=seed, workers=1)
    return figures.pipeline


def _widths_and_bands(training: _Training, test: st.Observations) -> Numbers:
    """The mean widths of bands over the test points, and the bands of the first training along the parameter."""
    space = test.space
    trained = training.observed(space.grid(_TRAINING_POINTS), training.runs, "training")
    posterior = st.learn(trained, LEARNERS[training.learner](None), seed=training.key("fit"))
    predictors = _predictors(training, posterior)
    values = {name: float(predict(test.points).width.mean()) for name, predict in predictors.items()}
    line = space.grid(_BAND_POINTS)
    bands = (
        {name: prediction_content(predict(line)) for name, predict in predictors.items()} if not training.number else {}
    )
    return {"values": values | _errors(posterior, trained, test), "bands": bands}


def _error_bounds(training: _Training, test: st.Observations) -> Numbers:
    """Bounds on the mean error. PAC-Bayes needs independent training points and a prior that is not learned on them:
    the Gaussian processes learn theirs on a fifth of the training.
    """
    points = training.uniform(_TRAINING_POINTS, "training")
    trained = training.observed(points, training.runs, "independent training")
    posterior = st.learn(trained, LEARNERS[training.learner](_SPLIT), seed=training.key("fit with a prior"))
    held_out = _held_out(training, "bounds")
    draws = training.key("draws")
    values = {
        "PAC-Bayes (Catoni)": st.bound_error(posterior, method="catoni", seed=draws).value,
        "PAC-Bayes (Seeger)": st.bound_error(posterior, method="seeger", seed=draws).value,
        "betting": st.bound_error(posterior, held_out).value,
        "ICP": _half_width(st.calibrate(posterior, held_out, method="icp", level=_LEVEL).predict, test),
        "NICP": _half_width(st.calibrate(posterior, held_out, method="nicp", level=_LEVEL).predict, test),
        "lift": _half_width(_lift(posterior, held_out), test),
        "Bayes": _half_width(partial(posterior.predict, level=_LEVEL), test),
    }
    return {"values": values | _errors(posterior, trained, test)}


def _predictors(training: _Training, posterior: st.Posterior) -> dict[str, Predict]:
    """By name, what predicts with intervals: 95 % of all, but 90 % of the Chernoff band and its counterpart."""
    held_out = _held_out(training, "bands")
    chernoff = st.calibrate(posterior, held_out, method="chernoff", normaliser="posterior", level=_CHERNOFF_LEVEL)
    predictors: dict[str, Predict] = {
        "Bayes": partial(posterior.predict, level=_LEVEL),
        "ICP": st.calibrate(posterior, held_out, method="icp", level=_LEVEL).predict,
        "NICP": st.calibrate(posterior, held_out, method="nicp", level=_LEVEL).predict,
        "NICP + Chernoff, 90 %": chernoff.predict,
        "lift": _lift(posterior, held_out),
    }
    for name, level in {"lift, planned": _LEVEL, "lift, planned, 90 %": _CHERNOFF_LEVEL}.items():
        budget, seed = len(held_out) * training.runs, training.key("plan")
        plan = st.plan(posterior, budget=budget, level=level, confidence=None, seed=seed)
        # Both levels share points and runs as far as they go, so that they differ by the level and not by luck.
        fresh = training.observed(training.uniform(plan.points, "planned"), plan.runs, "planned")
        predictors[name] = st.calibrate(posterior, fresh, plan=plan, normaliser=plan.normaliser).predict
    return predictors


def _held_out(training: _Training, name: str) -> st.Observations:
    return training.observed(training.uniform(_HELD_OUT_POINTS, name), training.runs, name)


def _lift(posterior: st.Posterior, held_out: st.Observations) -> Predict:
    """The lift of the same calibration set, marginal as ICP and NICP are."""
    return st.calibrate(posterior, held_out, level=_LEVEL, confidence=None, normaliser="predictive").predict


def _half_width(predict: Predict, test: st.Observations) -> float:
    return 0.5 * float(predict(test.points).width.mean())


def _errors(posterior: st.Posterior, trained: st.Observations, test: st.Observations) -> dict[str, float]:
    """The mean distances of the posterior mean from the frequencies of the test and of the training."""
    sets = {"gen": test, "emp": trained}
    return {
        name: float(np.abs(each.frequency - posterior.predict(each.points).mean).mean()) for name, each in sets.items()
    }
