"""The paper's figures about guarantees, on configuration (a), each with the lift beside what the paper has.

1. How wide Bayesian, ICP and NICP bands are on average as the runs per point grow, beside the errors gen and emp.
2. The bands over the parameter, with the intervals of statistical model checking, and the Chernoff band.
3. Bounds on the mean error: PAC-Bayes, against the mean half-widths of ICP and NICP.

There are 500 training points and 200 calibration points; both, and the test, have independent runs. A planned lift
takes as many runs as that calibration, but at points and runs of its own choice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.prediction import Posterior, Prediction
from sateen.core.progress import SILENT, Progress
from sateen.core.space import Points
from sateen.core.types import FloatArray
from sateen.files.atomic import replacing
from sateen.guarantee.calibrate import calibrate
from sateen.guarantee.error_bound import bound_error
from sateen.guarantee.plan import plan
from sateen.paper.cases.configurations import Configuration, configuration
from sateen.sampling.observe import observe

__all__ = ["LEARNERS", "RUNS", "Bands", "Curves", "bands_and_widths", "error_bounds", "paper_figures"]

RUNS: Final = (10, 20, 50, 100, 200, 500)
_TRAINING_POINTS: Final = 500
_HELD_OUT_POINTS: Final = 200
_TEST: Final = (1000, 1000)  # points on a grid, and runs at each
_BAND_POINTS: Final = 200
_SHOWN_TEST_POINTS: Final = 30
_LEVEL: Final = 0.95
_CHERNOFF_LEVEL: Final = 0.9  # 1 - (0.05 + 0.05), as in the paper
_SPLIT: Final = 0.2  # of the training, on which a Gaussian process learns the prior of a PAC-Bayes bound


def _ep_gp(split: float | None) -> Any:
    from sateen.learning.gp.ep_gp import EPGP

    return EPGP(split=split)


def _svi_gp(split: float | None) -> Any:
    from sateen.learning.gp.svi_gp import SVIGP

    return SVIGP(split=split)


def _svi_bnn(split: float | None) -> Any:
    from sateen.learning.networks.svi_bnn import SVIBNN

    return SVIBNN()  # its prior, N(0, I), has seen nothing, and needs no split


LEARNERS: Final[Mapping[str, Callable[[float | None], Any]]] = MappingProxyType(
    {"EP-GP": _ep_gp, "SVI-GP": _svi_gp, "SVI-BNN": _svi_bnn}
)


@dataclass(frozen=True, slots=True)
class Curves:
    """Numbers by learner and name: a row for each of `runs`, a column for each training."""

    runs: tuple[int, ...]
    values: Mapping[str, Mapping[str, FloatArray]]

    def content(self) -> dict[str, Any]:
        """The numbers as plain data."""
        table = {learner: {name: rows.tolist() for name, rows in own.items()} for learner, own in self.values.items()}
        return {"runs": list(self.runs), "values": table}


@dataclass(frozen=True, slots=True)
class Bands:
    """The predictions of one learner by runs per point and by name, and test observations to draw beside them."""

    predictions: Mapping[int, Mapping[str, Prediction]]
    test: Observations


@dataclass(frozen=True, slots=True)
class _Experiment:
    """Where all numbers come from: a configuration, and seeds that are never used twice."""

    case: Configuration
    seed: int

    def observed(self, points: Points, runs: int, *key: int) -> Observations:
        """Runs at the points, of a seed of their own for each `key`."""
        return observe(self.case.model, self.case.formula, points, runs, seed=self.key(1, *key))

    def uniform(self, n: int, *key: int) -> Points:
        """Independent points, others for each `key`."""
        return self.case.space.uniform(n, seed=self.key(0, *key))

    def key(self, *key: int) -> int:
        """A seed for each `key`."""
        return int(np.random.SeedSequence(self.seed, spawn_key=key).generate_state(1, np.uint64)[0] >> 1)


def bands_and_widths(
    *,
    learners: Sequence[str] = tuple(LEARNERS),
    runs: Sequence[int] = RUNS,
    trainings: int = 5,
    seed: int = 1,
    progress: Progress = SILENT,
) -> tuple[Curves, Mapping[str, Bands]]:
    """Figures 1 and 2: mean widths over the test points, and by learner the bands of the first training."""
    experiment = _Experiment(configuration("a"), seed)
    space = experiment.case.space
    test = experiment.observed(space.grid(_TEST[0]), _TEST[1], 0)
    line = space.grid(_BAND_POINTS)
    shown = test[np.linspace(0, len(test) - 1, _SHOWN_TEST_POINTS).round().astype(int)]
    gathered: dict[str, dict[str, list[list[float]]]] = {}
    bands: dict[str, dict[int, dict[str, Prediction]]] = {}
    for learner, row, m, training in _cases(learners, runs, trainings, "widths of bands", progress):
        trained = experiment.observed(space.grid(_TRAINING_POINTS), m, 1, row, training)
        posterior = LEARNERS[learner](None).fit(trained, seed=experiment.key(2, row, training))
        predictors = _predictors(experiment, posterior, m, row, training)
        found = {name: float(predict(test.points).width.mean()) for name, predict in predictors.items()}
        found |= _errors(posterior, trained, test)
        for name, value in found.items():
            gathered.setdefault(learner, {}).setdefault(name, [[] for _ in runs])[row].append(value)
        if training == 0:
            bands.setdefault(learner, {})[m] = {name: predict(line) for name, predict in predictors.items()}
    return _curves(runs, gathered), {learner: Bands(own, shown) for learner, own in bands.items()}


def error_bounds(
    *,
    learners: Sequence[str] = tuple(LEARNERS),
    runs: Sequence[int] = RUNS,
    trainings: int = 5,
    seed: int = 1,
    progress: Progress = SILENT,
) -> Curves:
    """Figure 3: bounds on the mean error. PAC-Bayes needs independent training points and a prior that is not learned
    on them: the Gaussian processes learn theirs on a fifth of the training.
    """
    experiment = _Experiment(configuration("a"), seed)
    test = experiment.observed(experiment.case.space.grid(_TEST[0]), _TEST[1], 0)
    gathered: dict[str, dict[str, list[list[float]]]] = {}
    for learner, row, m, training in _cases(learners, runs, trainings, "bounds on errors", progress):
        trained = experiment.observed(experiment.uniform(_TRAINING_POINTS, 5, row, training), m, 5, row, training)
        posterior = LEARNERS[learner](_SPLIT).fit(trained, seed=experiment.key(6, row, training))
        held_out = experiment.observed(experiment.uniform(_HELD_OUT_POINTS, 7, row, training), m, 7, row, training)
        draws = experiment.key(8, row, training)
        found = {
            "PAC-Bayes (Catoni)": bound_error(posterior, method="catoni", seed=draws).value,
            "PAC-Bayes (Seeger)": bound_error(posterior, method="seeger", seed=draws).value,
            "betting": bound_error(posterior, held_out).value,
            "ICP": _half_width(calibrate(posterior, held_out, method="icp", level=_LEVEL), test),
            "NICP": _half_width(calibrate(posterior, held_out, method="nicp", level=_LEVEL), test),
            "lift": _half_width(_lifted(posterior, held_out), test),
            "Bayes": 0.5 * float(posterior.predict(test.points, level=_LEVEL).width.mean()),
            **_errors(posterior, trained, test),
        }
        for name, value in found.items():
            gathered.setdefault(learner, {}).setdefault(name, [[] for _ in runs])[row].append(value)
    return _curves(runs, gathered)


def paper_figures(
    folder: str | Path,
    *,
    learners: Sequence[str] = tuple(LEARNERS),
    runs: Sequence[int] = RUNS,
    trainings: int = 5,
    seed: int = 1,
    suffix: str = ".png",
    progress: Progress = SILENT,
) -> list[Path]:
    """Draw all three into a folder, and write their numbers; the paths of the files, the numbers last.

    The second figure is one file for each learner.
    """
    from sateen.plot.figures import save
    from sateen.plot.guarantee import bands_over_parameter, errors_by_runs, widths_by_runs

    _check(learners, runs, trainings)
    place = _folder(Path(folder))
    asked: dict[str, Any] = {"learners": learners, "runs": runs, "trainings": trainings, "seed": seed}
    widths, bands = bands_and_widths(**asked, progress=progress)
    errors = error_bounds(**asked, progress=progress)
    drawn = {"guarantee-widths": widths_by_runs(widths.runs, widths.values)}
    for learner, own in bands.items():
        drawn[f"guarantee-bands-{learner.lower()}"] = bands_over_parameter(learner, own.predictions, own.test)
    drawn["guarantee-errors"] = errors_by_runs(errors.runs, errors.values)
    files = [place / f"{name}{suffix}" for name in drawn]
    for file, figure in zip(files, drawn.values(), strict=True):
        save(figure, file)
    numbers = place / "guarantee-numbers.json"
    with replacing(numbers) as stream:
        about = {"seed": seed, "widths": widths.content(), "errors": errors.content()}
        stream.write(json.dumps(about).encode() + b"\n")
    return [*files, numbers]


def _folder(path: Path) -> Path:
    """The folder, made if it is not there; said to be impossible before the work, not after."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {path}: {error.strerror or error}") from None
    return path


def _predictors(
    experiment: _Experiment, posterior: Posterior, m: int, row: int, training: int
) -> dict[str, Callable[[Points], Prediction]]:
    """By name, whoever predicts with intervals: 95 % of all, but 90 % of the Chernoff band and its counterpart."""
    held_out = experiment.observed(experiment.uniform(_HELD_OUT_POINTS, 3, row, training), m, 3, row, training)
    chernoff: dict[str, Any] = {"method": "chernoff", "normaliser": "posterior", "level": _CHERNOFF_LEVEL}
    found: dict[str, Callable[[Points], Prediction]] = {
        "Bayes": lambda points: posterior.predict(points, level=_LEVEL),
        "ICP": calibrate(posterior, held_out, method="icp", level=_LEVEL).predict,
        "NICP": calibrate(posterior, held_out, method="nicp", level=_LEVEL).predict,
        "NICP + Chernoff, 90 %": calibrate(posterior, held_out, **chernoff).predict,
        "lift": _lifted(posterior, held_out).predict,
    }
    for number, (name, level) in enumerate({"lift, planned": _LEVEL, "lift, planned, 90 %": _CHERNOFF_LEVEL}.items()):
        planned = plan(posterior, budget=len(held_out) * m, level=level, confidence=None)
        points = experiment.uniform(planned.points, 4, number, row, training)
        fresh = experiment.observed(points, planned.runs, 4, number, row, training)
        found[name] = calibrate(posterior, fresh, plan=planned, normaliser=planned.normaliser).predict
    return found


def _lifted(posterior: Posterior, held_out: Observations) -> Any:
    """The lift of the same calibration set, marginal as ICP and NICP are."""
    return calibrate(posterior, held_out, level=_LEVEL, confidence=None, normaliser="predictive")


def _half_width(guarantee: Any, test: Observations) -> float:
    return 0.5 * float(guarantee.predict(test.points).width.mean())


def _errors(posterior: Posterior, trained: Observations, test: Observations) -> dict[str, float]:
    """The mean distances of the posterior mean from the frequencies of the test and of the training."""
    sets = {"gen": test, "emp": trained}
    return {
        name: float(np.abs(each.frequency - posterior.predict(each.points).mean).mean()) for name, each in sets.items()
    }


def _cases(learners: Sequence[str], runs: Sequence[int], trainings: int, label: str, progress: Progress) -> Any:
    """Learner, row, runs per point and number of the training, for all of them."""
    _check(learners, runs, trainings)
    progress.start(label, len(learners) * len(runs) * trainings, "fits")
    try:
        for learner in learners:
            for row, m in enumerate(runs):
                for training in range(trainings):
                    yield learner, row, m, training
                    progress.advance(1)
    finally:
        progress.finish()


def _check(learners: Sequence[str], runs: Sequence[int], trainings: int) -> None:
    if strangers := [learner for learner in learners if learner not in LEARNERS]:
        raise InputError(f"the paper has no learner {strangers[0]!r}; there are {', '.join(LEARNERS)}")
    if not learners or not runs or trainings < 1 or min(runs) < 1:
        raise InputError("a figure needs at least one learner, one number of runs, and one training")


def _curves(runs: Sequence[int], gathered: Mapping[str, Mapping[str, list[list[float]]]]) -> Curves:
    values = {learner: {name: np.array(rows) for name, rows in own.items()} for learner, own in gathered.items()}
    return Curves(tuple(runs), values)
