"""The tasks of the paper's experiments: data sets, truths, fits and calibrations, each a file that is computed once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path as FilePath
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

import sateen as st
from sateen.paper.forecast import LIFT_SECONDS, exact_seconds, fit_seconds, plan_seconds, run_seconds
from sateen.paper.networks import Found, with_network
from sateen.paper.presets import OURS
from sateen.paper.questions import Question, Set
from sateen.paper.rows import Fit, Lift
from sateen.pipeline import find_code
from sateen.pipeline.folder import ResultFolder, read_checksummed, write_checksummed
from sateen.pipeline.tasks import RunContext, Save, Task, folder_task

FloatArray: TypeAlias = npt.NDArray[np.float64]
Sets: TypeAlias = Mapping[str, st.Observations]  # by function
Truth: TypeAlias = Mapping[str, FloatArray]
Needed: TypeAlias = "tuple[Task[Sets], Task[Sets], Task[Truth]]"  # by a fit: training, test and truth
_Value = TypeVar("_Value")
_LEVEL: Final = 0.9
_CONFIDENCE: Final = 0.95
_CALIBRATIONS: Final = 20
_BUDGET: Final = 20_000  # runs of each calibration
_FEWEST_BUDGET: Final = 2000
_COLUMNS: Final = ("mean", "std", "lower", "upper")
_DRAWN_DIMENSIONS: Final = 2  # up to this many parameters, the predictions are kept for the figures
_ARRAYS: Final = ".safetensors"


@dataclass(frozen=True, slots=True)
class QuestionTasks:
    """The tasks of a question: its sets, its truth by function, the fits by function, learner and number of the
    training set, and the calibrations of the lift, if there are any: a plan, runs, and the outcome."""

    question: Question
    train: tuple[Task[Sets], ...]
    test: Task[Sets]
    truth: Task[Truth]
    fits: Mapping[tuple[str, str, int], Task[Fit | str]]
    plan: Task[st.Plan] | None = None
    held_out: Task[st.Observations] | None = None
    lift: Task[Lift] | None = None

    def finished(self) -> QuestionTasks | None:
        """The tasks without those that are pending; None if no fit is finished."""
        fits = {key: fit for key, fit in self.fits.items() if fit.finished and all(one.finished for one in fit.needs)}
        train = tuple(task for task in self.train if task.finished)
        rest = replace(self, train=train, fits=fits)
        lifted = self.lift and self.lift.finished and all(one.finished for one in self.lift.needs)
        return (rest if lifted else replace(rest, plan=None, held_out=None, lift=None)) if fits else None


def question_tasks(
    folder: ResultFolder,
    question: Question,
    numbers: Sequence[int],
    learners: Sequence[str],
    cores: int,
    search: Task[Found] | None = None,
) -> QuestionTasks:
    """The tasks of a question for some learners, and for training sets with these numbers; `search` finds its network
    if that is not known.

    The lift is calibrated for configurations, after what our default has learned from the first training set.
    """
    maker = _Maker(folder, question, cores, search)
    train = {number: maker.observed("train", number) for number in numbers}
    test = maker.observed("test")
    truth = maker.exact() if question.truth_runs is None else maker.estimated()
    lifted = question.part != "random" and OURS in learners
    fits = {}
    for function in question.formulas:
        for learner in learners:
            for number in numbers:
                keep = lifted and learner == OURS and number == numbers[0]
                task = maker.fit(function, learner, number, (train[number], test, truth), keep=keep)
                fits[function, learner, number] = task
    tasks = QuestionTasks(question, tuple(train.values()), test, truth, fits)
    return maker.with_lift(tasks, numbers[0]) if lifted else tasks


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes the tasks of a question in a folder, for this many cores; `search` finds its network."""

    folder: ResultFolder
    question: Question
    cores: int
    search: Task[Found] | None = None

    def observed(self, role: Set, number: int = 0) -> Task[Sets]:
        """The observations of a set, for every function of the question."""
        return self._runs(role, number, self._read)

    def estimated(self) -> Task[Truth]:
        """The probability at the test points, from many runs."""
        return self._runs("truth", 0, lambda file: {name: each.frequency for name, each in self._read(file).items()})

    def exact(self) -> Task[Truth]:
        """The probability at the test points, computed."""
        question = self.question
        model, formulas = question.asked
        ((name, formula),) = formulas.items()

        def make(context: RunContext) -> Save:
            probability = st.exact(model, formula, question.points("test"), progress=None).tolist()
            return lambda file: write_checksummed(file, {"probability": probability})

        return folder_task(
            self.folder,
            f"exact {question.name}",
            {**question.content(), "design": asdict(question.test)},
            make,
            read=lambda file: {name: np.array(read_checksummed(file)["probability"])},
            stage="the truth",
            seconds=exact_seconds(question),
        )

    def fit(self, function: str, learner: str, number: int, needs: Needed, *, keep: bool) -> Task[Fit | str]:
        """One training and its score, or why the learner refuses; with `keep`, the posterior is kept too."""
        train, test, truth = needs

        def make(context: RunContext) -> Save:
            data, kept = train.value()[function], context.checkpoint
            if ":" in learner:  # one that cannot be loaded is no learner that refuses
                find_code(learner, FilePath()).load()
            began, start = time.perf_counter(), time.process_time()
            try:
                posterior = st.learn(data, learner, seed=number, progress=context.progress, checkpoint=kept)
            except st.InputError as error:
                if keep:
                    raise  # what comes after needs the posterior
                refusal = {"refused": str(error)}
                return lambda file: write_checksummed(file, refusal)
            record = posterior.record
            if record.interrupted:
                raise KeyboardInterrupt
            seconds, wall = time.process_time() - start, time.perf_counter() - began
            seconds = record.seconds if record.seconds > wall else seconds  # a fit that resumed counts by the clock
            tested = test.value()[function]
            start = time.perf_counter()
            prediction = posterior.predict(tested.points)
            content = {
                "kind": posterior.kind,
                "evaluation": time.perf_counter() - start,
                "score": asdict(st.score(prediction, tested, truth.value()[function])),
                "seconds": seconds,
                "verdict": record.verdict,
                "prediction": prediction_content(prediction) if self._is_drawn else None,
            }

            def save(file: FilePath) -> None:
                if keep:
                    posterior.save(file.with_suffix(_ARRAYS))
                write_checksummed(file, content)

            return save

        def read(file: FilePath) -> Fit | str:
            content = read_checksummed(file)
            if "refused" in content:
                return str(content["refused"])
            points, kept = self.question.points("test") if self._is_drawn else None, content["prediction"]
            content["score"] = st.Score(**content["score"])
            content["prediction"] = prediction_from(kept, points) if points is not None else None
            return Fit(function, learner, number, **content)

        return folder_task(
            self.folder,
            f"fit {function} {learner} {number}",
            _code(learner),
            make,
            read=read,
            needs=needs,
            extra=[_ARRAYS] if keep else [],
            stage="fits",
            parallel=True,
            seconds=fit_seconds(self.question, learner, self.cores),
        )

    def with_lift(self, tasks: QuestionTasks, number: int) -> QuestionTasks:
        """The tasks with those of calibrations of our default: a plan, runs, and how often they cover the truth."""
        question, name = self.question, self.question.name
        fit = tasks.fits[name, OURS, number]
        budget = max(_FEWEST_BUDGET, round(_BUDGET * question.share))
        promise = {"level": _LEVEL, "confidence": _CONFIDENCE}

        def make_plan(context: RunContext) -> Save:
            posterior, seed = _posterior(fit), question.run_seed("held-out", 1)
            chosen = st.plan(posterior, budget=budget, level=_LEVEL, confidence=_CONFIDENCE, seed=seed)
            content = asdict(replace(chosen, seconds=0.0))  # which depends on the machine
            return lambda file: write_checksummed(file, content)

        plan = folder_task(
            self.folder,
            f"plan {name} {number}",
            {**promise, "budget": budget},
            make_plan,
            read=lambda file: st.Plan.from_content(read_checksummed(file)),
            needs=(fit,),
            stage="plans of calibrations",
            parallel=True,
            seconds=plan_seconds(question, self.cores),
        )

        def make_runs(context: RunContext) -> Save:
            chosen = plan.value()
            points = question.uniform(_CALIBRATIONS * chosen.points)
            observed = self._observe(points, chosen.runs, question.run_seed("held-out"), context)
            return observed[name].save

        held_out = folder_task(
            self.folder,
            f"held-out {name} {number}",
            {"calibrations": _CALIBRATIONS},
            make_runs,
            read=st.Observations.load,
            needs=(plan,),
            suffix=_ARRAYS,
            stage="runs for calibrations",
            runs=_CALIBRATIONS * budget,
            seconds=run_seconds(question, _CALIBRATIONS * budget, self.cores),
        )

        def make_lift(context: RunContext) -> Save:
            points, truth = question.points("test"), tasks.truth.value()[name]
            content = asdict(_calibrations(_posterior(fit), held_out.value(), plan.value(), points, truth))
            return lambda file: write_checksummed(file, content)

        lift = folder_task(
            self.folder,
            f"lift {name} {number}",
            promise,
            make_lift,
            read=lambda file: Lift(**read_checksummed(file)),
            needs=(fit, plan, held_out, tasks.truth),
            stage="calibrations",
            seconds=LIFT_SECONDS,
        )
        return replace(tasks, plan=plan, held_out=held_out, lift=lift)

    @property
    def _is_drawn(self) -> bool:
        return self.question.dimension <= _DRAWN_DIMENSIONS

    def _runs(self, role: Set, number: int, read: Callable[[FilePath], _Value]) -> Task[_Value]:
        """Runs at the points of a set."""
        question = self.question
        design = question.train if role == "train" else question.test
        runs = question.truth_runs if role == "truth" else design.runs
        assert runs is not None  # a truth without runs is computed

        def make(context: RunContext) -> Save:
            sets = self._observe(question.points(role, number), runs, question.run_seed(role, number), context)
            undecided = {name: int(each.undecided.sum()) for name, each in sets.items()}
            if role == "truth" and any(undecided.values()):
                raise st.InputError(f"some runs behind the truth are undecided: {undecided}")

            def save(file: FilePath) -> None:
                for name, suffix in self._suffixes.items():
                    sets[name].save(file.with_suffix(suffix))

            return save

        return folder_task(
            self.folder,
            f"{role}{number or ''} {question.name}",
            {**question.content(), "design": asdict(design), "runs": runs},
            make,
            read=read,
            needs=[self.search] if self.search else [],
            suffix=_ARRAYS,
            extra=list(self._suffixes.values())[1:],
            stage="the truth" if role == "truth" else "runs for data sets",
            runs=runs * design.points,
            seconds=run_seconds(question, runs * design.points, self.cores),
        )

    def _observe(self, points: st.Points, runs: int, seed: int, context: RunContext) -> Sets:
        model, formulas = with_network(self.question, self.search).asked
        return st.observe(
            model,
            formulas,
            points,
            runs,
            seed=seed,
            workers=context.workers,
            store=context.store,
            progress=context.progress,
            executor=context.pool,
        )

    @property
    def _suffixes(self) -> dict[str, str]:
        """How the file of each function ends: that of the task, and one next to it for every further function."""
        first, *others = self.question.formulas
        return {first: _ARRAYS, **{name: f".{name.rpartition('/')[2]}{_ARRAYS}" for name in others}}

    def _read(self, file: FilePath) -> Sets:
        return {name: st.Observations.load(file.with_suffix(suffix)) for name, suffix in self._suffixes.items()}


def prediction_content(prediction: st.Prediction) -> dict[str, object]:
    """A prediction as plain data, without its points."""
    columns = {name: getattr(prediction, name).tolist() for name in _COLUMNS}
    return {**columns, "level": prediction.level, "claim": prediction.claim.content()}


def prediction_from(content: Mapping[str, Any], points: st.Points) -> st.Prediction:
    """The prediction at the points that `prediction_content` made plain."""
    return st.Prediction(points, **{**content, "claim": st.Claim.from_content(content["claim"])})


def _code(learner: str) -> dict[str, object]:
    """What a fit depends on besides its needs: the code of a learner that is named by its address."""
    return {"code": find_code(learner, FilePath()).digest} if ":" in learner else {}


def _posterior(fit: Task[object]) -> st.Posterior:
    """What our default has learned."""
    posterior: st.Posterior = st.load(fit.extra[0])
    return posterior


def _calibrations(
    posterior: st.Posterior, runs: st.Observations, plan: st.Plan, points: st.Points, truth: FloatArray
) -> Lift:
    """How often the intervals of several calibrations contain the truth."""
    from scipy.stats import binom

    coverages, widths = [], []
    for begin in range(0, len(runs), plan.points):
        held_out = runs[begin : begin + plan.points]
        band = st.calibrate(posterior, held_out, plan=plan, normaliser=plan.normaliser).predict(points)
        coverages.append(float(np.mean((band.lower <= truth) & (truth <= band.upper))))
        widths.append(float(band.width.mean()))
    lift = Lift(_LEVEL, _CONFIDENCE, plan.points, plan.runs, coverages, widths, 1.0)
    return replace(lift, p=float(binom.sf(lift.failures - 1, len(coverages), 1 - _CONFIDENCE)))
