"""The paper's figures about guarantees, on configuration (a), each with the lift next to what the paper has.

1. How wide Bayesian, ICP and NICP bands are on average as the runs per point grow, next to the errors gen and emp.
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
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

import sateen as st
from sateen.paper.cases.configurations import configuration
from sateen.paper.forecast import guarantee_seconds
from sateen.paper.presets import FAST, label, learners_under, method_of
from sateen.paper.published import METHODS
from sateen.paper.reproduction import PaperRun
from sateen.paper.tables import Table, curves_table
from sateen.paper.tasks import prediction_content, prediction_from
from sateen.pipeline import SILENT, Progress, stream_seed, write_text
from sateen.pipeline.folder import read_checksummed, write_checksummed, write_json
from sateen.pipeline.tasks import RunContext, Save, Task, folder_task

Curves: TypeAlias = dict[str, dict[str, npt.NDArray[np.float64]]]  # by learner and name: a row for each of `runs`
Predict: TypeAlias = Callable[[st.Points], st.Prediction]
RUNS: Final = (10, 20, 50, 100, 200, 500)
_TRAINING_POINTS: Final = 500
_HELD_OUT_POINTS: Final = 200
_TEST: Final = (1000, 1000)  # points on a grid, and runs at each
_BAND_POINTS: Final = 200
_SHOWN_TEST_POINTS: Final = 30
_LEVEL: Final = 0.95
_CHERNOFF_LEVEL: Final = 0.9  # 1 - (0.05 + 0.05), as in the paper
_SPLIT: Final = 0.2  # of the training, on which a Gaussian process learns the prior of a PAC-Bayes bound
_SPLITTABLE: Final = ("ep-gp", "svi-gp")  # ours; the prior of a network, N(0, I), has seen nothing anyway


@dataclass(frozen=True, slots=True)
class _Trained:
    """What came out of one training: numbers, and for the first training of the second figure its bands."""

    values: Mapping[str, float]
    bands: Mapping[str, st.Prediction]

    def write(self, file: Path) -> None:
        """Write it as plain data."""
        bands = {name: prediction_content(band) for name, band in self.bands.items()}
        write_checksummed(file, {"values": self.values, "bands": bands})

    @classmethod
    def read(cls, file: Path) -> _Trained:
        """Read what `write` wrote."""
        content, line = read_checksummed(file), configuration("a").space.grid(_BAND_POINTS)
        return cls(content["values"], {name: prediction_from(band, line) for name, band in content["bands"].items()})


@dataclass(frozen=True, slots=True)
class _Training:
    """One training of a learner with this many runs per point, and seeds that are never used twice."""

    learner: str
    runs: int
    number: int
    seed: int

    def observed(self, points: st.Points, runs: int, *names: str) -> st.Observations:
        """Runs at the points, with a seed of their own for each name."""
        case = configuration("a")
        return st.observe(case.model, case.formula, points, runs, seed=self.key("runs", *names), progress=None)

    def uniform(self, n: int, *names: str) -> st.Points:
        """Independent points, others for each name."""
        return configuration("a").space.uniform(n, seed=self.key("points", *names))

    def key(self, *names: str) -> int:
        """A seed for each name; all learners have the same."""
        return stream_seed(self.seed, "guarantees", *names, self.runs, self.number)


class GuaranteeFigures(PaperRun):
    """All three figures in a folder: for some of the paper's learners under a preset, and for some numbers of runs per
    point, with this many trainings of each.

    The second figure is one file for each learner, of its first training. Results name learners by their labels.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        preset: str = FAST,
        learners: Sequence[str] = METHODS,
        runs: Sequence[int] = RUNS,
        trainings: int = 5,
        seed: int = 1,
        workers: int | None = None,
        progress: Progress = SILENT,
        pool: st.Pool | None = None,
    ) -> None:
        if strangers := [learner for learner in learners if learner not in METHODS]:
            raise st.InputError(f"the paper has no learner {strangers[0]!r}; there are {', '.join(METHODS)}")
        if not learners or not runs or trainings < 1 or min(runs) < 1:
            raise st.InputError("a figure needs at least one learner, one number of runs, and one training")
        self.learners = {label(name): name for name in learners_under([preset], learners)}
        self.preset, self.runs, self.trainings, self.seed = preset, tuple(runs), trainings, seed
        asked = {"preset": preset, "learners": tuple(learners), "runs": self.runs, "trainings": trainings, "seed": seed}
        super().__init__(folder, workers, progress, pool, **asked)

    @cached_property
    def test(self) -> Task[st.Observations]:
        """The test set, on a fine grid with many runs."""

        def make(context: RunContext) -> Save:
            points, runs = configuration("a").space.grid(_TEST[0]), _TEST[1]
            return _Training("", runs, 0, self.seed).observed(points, runs, "test").save

        inputs, read, suffix = {"seed": self.seed, "test": list(_TEST)}, st.Observations.load, ".safetensors"
        return folder_task(self.folder, "test guarantees", inputs, make, read=read, suffix=suffix, seconds=1.0)

    @cached_property
    def trained(self) -> Mapping[tuple[str, str, int, int], Task[_Trained]]:
        """By figure, "widths" or "errors", learner, runs per point and number of the training, what was computed."""
        return {
            (figure, learner, runs, number): self._task(figure, compute, _Training(name, runs, number, self.seed))
            for figure, compute in (("widths", _widths_and_bands), ("errors", _error_bounds))
            for learner, name in self.learners.items()
            for runs in self.runs
            for number in range(self.trainings)
        }

    @property
    def stages(self) -> Mapping[str, Sequence[Task[object]]]:
        """All tasks: the test set, then the trainings side by side."""
        return {"test set": [self.test], "fits and calibrations": list(self.trained.values())}

    def run(self) -> None:
        """Compute what is pending."""
        with self.folder.held():
            self.compute()

    def widths(self) -> Curves:
        """Figure 1: mean widths over the test points."""
        return self._curves("widths")

    def bands(self, learner: str) -> dict[int, Mapping[str, st.Prediction]]:
        """Figure 2: the bands of the first training of a learner, by runs per point and by name."""
        return {runs: self.trained["widths", learner, runs, 0].value().bands for runs in self.runs}

    def errors(self) -> Curves:
        """Figure 3: bounds on the mean error."""
        return self._curves("errors")

    def shown_test(self) -> st.Observations:
        """Some of the test observations, to draw next to the bands."""
        test = self.test.value()
        return test[np.linspace(0, len(test) - 1, _SHOWN_TEST_POINTS).round().astype(int)]

    def content(self) -> dict[str, object]:
        """The numbers of figures 1 and 3 as plain data."""

        def plain(curves: Curves) -> dict[str, object]:
            values = {learner: {name: rows.tolist() for name, rows in each.items()} for learner, each in curves.items()}
            return {"runs": list(self.runs), "values": values}

        curves = {"widths": plain(self.widths()), "errors": plain(self.errors())}
        return {"seed": self.seed, "preset": self.preset, **curves}

    def tables(self) -> list[Table]:
        """Figures 1 and 3 as tables."""
        over = f"means over {self.trainings} training{'s' * (self.trainings != 1)}, by runs per point"
        return [
            curves_table(
                f"Mean widths of bands, 95 % unless another level is given; {over}:", self.runs, self.widths()
            ),
            curves_table(f"Bounds on the mean error, and half-widths of bands; {over}:", self.runs, self.errors()),
        ]

    def draw(self, suffix: str = ".png") -> list[Path]:
        """Draw all three into the folder, and write their numbers; the paths of the files, the numbers last."""
        from sateen.plot.paper import bands_over_parameter, errors_by_runs, widths_by_runs

        drawn = {"guarantee-widths": widths_by_runs(self.runs, self.widths())}
        for learner, name in self.learners.items():
            drawn[f"guarantee-bands-{name}"] = bands_over_parameter(learner, self.bands(learner), self.shown_test())
        drawn["guarantee-errors"] = errors_by_runs(self.runs, self.errors())
        text, numbers = self.path / "guarantee-table.md", self.path / "guarantee-numbers.json"
        with self.folder.writing(text):
            write_text(text, "\n".join(table.markdown() for table in self.tables()))
        with self.folder.writing(numbers):
            write_json(numbers, self.content())
        return [*self.save(drawn, suffix), text, numbers]

    def _task(
        self, figure: str, compute: Callable[[_Training, st.Observations], _Trained], training: _Training
    ) -> Task[_Trained]:
        def make(context: RunContext) -> Save:
            return compute(training, self.test.value()).write

        return folder_task(
            self.folder,
            f"{figure} {training.learner} {training.runs} {training.number}",
            {},
            make,
            read=_Trained.read,
            needs=(self.test,),
            parallel=True,
            seconds=guarantee_seconds(training.learner, self.cores),
        )

    def _curves(self, figure: str) -> Curves:
        curves = {}
        for learner in self.learners:
            rows = [
                [self.trained[figure, learner, runs, number].value().values for number in range(self.trainings)]
                for runs in self.runs
            ]
            curves[learner] = {name: np.array([[one[name] for one in row] for row in rows]) for name in rows[0][0]}
        return curves


def _widths_and_bands(training: _Training, test: st.Observations) -> _Trained:
    """The mean widths of bands over the test points, and the bands of the first training along the parameter."""
    space = test.space
    trained = training.observed(space.grid(_TRAINING_POINTS), training.runs, "training")
    posterior = st.learn(trained, training.learner, seed=training.key("fit"), progress=None)
    predictors = _predictors(training, posterior)
    values = {name: float(predict(test.points).width.mean()) for name, predict in predictors.items()}
    drawn = predictors if training.number == 0 else {}
    bands = {name: predict(space.grid(_BAND_POINTS)) for name, predict in drawn.items()}
    return _Trained(values | _errors(posterior, trained, test), bands)


def _error_bounds(training: _Training, test: st.Observations) -> _Trained:
    """Bounds on the mean error. PAC-Bayes needs independent training points and a prior that is not learned on them:
    our Gaussian processes learn theirs on a fifth of the training. The paper's learn it on all, so they have no bound.
    """
    points = training.uniform(_TRAINING_POINTS, "training")
    trained = training.observed(points, training.runs, "independent training")
    learner, seed = with_own_prior(training.learner, _SPLIT), training.key("fit with a prior")
    posterior = st.learn(trained, learner, seed=seed, progress=None)
    held_out = _held_out(training, "bounds")
    draws = training.key("draws")
    values = {}
    if training.learner in _SPLITTABLE or method_of(training.learner) == "svi-bnn":
        values["PAC-Bayes (Catoni)"] = st.bound_error(posterior, method="catoni", seed=draws).value
        values["PAC-Bayes (Seeger)"] = st.bound_error(posterior, method="seeger", seed=draws).value
    values |= {
        "betting": st.bound_error(posterior, held_out).value,
        "ICP": _half_width(st.calibrate(posterior, held_out, method="icp", level=_LEVEL).predict, test),
        "NICP": _half_width(st.calibrate(posterior, held_out, method="nicp", level=_LEVEL).predict, test),
        "lift": _half_width(_lift(posterior, held_out), test),
        "Bayes": _half_width(partial(posterior.predict, level=_LEVEL), test),
    }
    return _Trained(values | _errors(posterior, trained, test), {})


def with_own_prior(learner: str, split: float) -> st.Learner:
    """The learner, whose prior is learned on a share of the training where that is possible."""
    return st.make_learner(learner, {"split": split} if learner in _SPLITTABLE else {})


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
