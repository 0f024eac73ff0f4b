"""The pieces of the paper's experiments: data sets, truths, fits and calibrations, each a file that is made once.

A piece knows its files before it is made: their names end in a fingerprint of all that decides what is in them, the
question, the numbers of the sets, the recipe with its settings and the version of sateen. So what is missing, and how
long it will take, is known before anything begins; and whoever goes on after an interruption makes what is not there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from math import nan
from pathlib import Path as FilePath
from typing import Any, Final, TypeAlias

import numpy as np

from sateen.assess.score import Score, score
from sateen.core.errors import InputError
from sateen.core.fingerprints import fingerprint
from sateen.core.observations import Observations
from sateen.core.prediction import Claim, Prediction
from sateen.core.progress import Progress
from sateen.core.space import Points
from sateen.core.types import FloatArray
from sateen.core.version import VERSION
from sateen.paper.questions import Question, Set
from sateen.paper.rows import Fit, Lift
from sateen.pipeline.folder import CachedFile, ResultFolder, read_checksummed
from sateen.study.planning import plan_from_content
from sateen.study.recipes import preset
from sateen.study.result import load_posterior

__all__ = ["Piece", "Pieces"]

Save: TypeAlias = "Callable[[], None]"
_LEVEL: Final = 0.9
_CONFIDENCE: Final = 0.95
_CALIBRATIONS: Final = 20
_BUDGET: Final = 20_000  # runs of each calibration
_FEWEST_BUDGET: Final = 2000
_COLUMNS: Final = ("mean", "std", "lower", "upper")
_DRAWN_DIMENSIONS: Final = 2  # up to so many parameters, the predictions are kept for the figures


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of the work: its files, and how they are made. `make` returns what writes them.

    `kind` is what is made, "data", "truth", "fit", "plan", "held-out" or "lift"; `runs` of the model, if it has any.
    """

    label: str
    kind: str
    question: Question
    files: tuple[FilePath, ...]
    make: Callable[[], Save]
    method: str = ""
    runs: int = 0

    @property
    def there(self) -> bool:
        """Whether it was made before."""
        return all(file.exists() for file in self.files)


@dataclass(frozen=True, slots=True)
class Pieces:
    """The pieces of questions in one folder, under one preset."""

    folder: ResultFolder
    preset: str
    workers: int | None
    progress: Progress

    def recipe(self, method: str) -> Any:
        """The recipe of a method; None for our default, where `learn` chooses."""
        if method == "default":
            return None
        faithful = self.preset == "faithful" and method != "ep-gp"
        return preset(f"{method}-faithful" if faithful else method)

    def observed(self, question: Question, role: Set, number: int = 0) -> Piece:
        """The observations of a set, for every function of the question."""
        design = question.train if role == "train" else question.test
        runs = question.truth_runs if role == "truth" else design.runs
        assert runs is not None  # a truth without runs is computed

        files = {name: kept.file for name, kept in self._data(question, role, number).items()}

        def make() -> Save:
            return self._simulate(question, question.points(role, number), runs, question.run_seed(role, number), files)

        said = {"train": f"training set {number}", "test": "test set", "truth": "truth"}[role]
        kind = "truth" if role == "truth" else "data"
        return Piece(f"{question.name}: {said}", kind, question, (*files.values(),), make, runs=runs * design.points)

    def truth(self, question: Question) -> Piece:
        """The probability at the test points, computed or from many runs."""
        if question.truth_runs is not None:
            return self.observed(question, "truth")
        kept = self._exact(question)

        def make() -> Save:
            from sateen.engine.exact import exact

            (formula,) = question.formulas.values()
            found = exact(question.model, formula, question.points("test"))
            return lambda: self.folder.write_checksummed(kept.file, {"probability": found.tolist()})

        return Piece(f"{question.name}: truth", "truth", question, (kept.file,), make)

    def fit(self, question: Question, function: str, method: str, number: int, *, keep: bool) -> Piece:
        """One training and its score, or why the method refuses; with `keep`, the posterior is kept too."""
        kept, posterior = self._fit(question, function, method, number), self._posterior(question, function, number)
        label = f"{function}: {method}, training set {number}"
        files = (kept.file, posterior.file) if keep else (kept.file,)
        checkpoint = kept.file.with_suffix(".checkpoint")

        def make() -> Save:
            seen = self._data(question, "train", number)[function].value()
            options: dict[str, Any] = {"seed": number, "progress": self.progress, "checkpoint": checkpoint}
            began = time.perf_counter()
            try:
                found = self._learned(seen, method, options)
            except InputError as error:
                if keep:
                    raise  # what comes after needs the posterior
                refusal = {"refused": str(error)}
                return lambda: self.folder.write_checksummed(kept.file, refusal)
            seconds = max(time.perf_counter() - began, found.record.seconds)  # the latter if it went on from before
            test = self._data(question, "test")[function].value()
            began = time.perf_counter()
            prediction = found.predict(test.points)
            evaluation = time.perf_counter() - began
            content = {
                "kind": found.kind,
                "score": asdict(score(prediction, test, self._probability(question, function))),
                "seconds": seconds,
                "evaluation": evaluation,
                "verdict": found.record.verdict,
                "notes": list(found.record.notes),
                "prediction": _content(prediction) if question.dimension <= _DRAWN_DIMENSIONS else None,
            }

            def save() -> None:
                if keep:
                    found.save(posterior.file)
                self.folder.write_checksummed(kept.file, content)
                checkpoint.unlink(missing_ok=True)

            return save

        return Piece(label, "fit", question, files, make, method=method)

    def lift(self, question: Question, function: str, number: int) -> tuple[Piece, Piece, Piece]:
        """The plan of the calibrations of our default, their runs, and how often they cover the truth."""
        plan, runs, kept = self._lift(question, function, number)
        trusted = self._posterior(question, function, number)
        budget = max(_FEWEST_BUDGET, round(_BUDGET * question.share))

        def make_plan() -> Save:
            from sateen.guarantee.plan import plan as planned

            seed = question.run_seed("held-out", 1)
            found = planned(trusted.value(), budget=budget, level=_LEVEL, confidence=_CONFIDENCE, seed=seed)
            return lambda: self.folder.write_checksummed(plan.file, replace(found, seconds=nan).content())

        def make_runs() -> Save:
            chosen = plan_from_content(plan.value())
            points = question.uniform(_CALIBRATIONS * chosen.points)
            seed = question.run_seed("held-out")
            return self._simulate(question, points, chosen.runs, seed, {function: runs.file})

        def make() -> Save:
            chosen = plan_from_content(plan.value())
            found = self._calibrations(question, function, trusted.value(), runs.value(), chosen)
            return lambda: self.folder.write_checksummed(kept.file, asdict(found))

        name, total = question.name, _CALIBRATIONS * budget
        return (
            Piece(f"{name}: plan of calibrations", "plan", question, (plan.file,), make_plan),
            Piece(f"{name}: calibration runs", "held-out", question, (runs.file,), make_runs, runs=total),
            Piece(f"{name}: {_CALIBRATIONS} calibrations", "lift", question, (kept.file,), make),
        )

    def found_fit(self, question: Question, function: str, method: str, number: int) -> Fit | str:
        """A fit that was made, or the reason why the method has refused to."""
        told = self._fit(question, function, method, number).value()
        if "refused" in told:
            return str(told["refused"])
        known = {key: told[key] for key in ("kind", "seconds", "evaluation", "verdict")}
        return Fit(function, method, number, score=Score(**told["score"]), **known)

    def found_prediction(self, question: Question, function: str, method: str, number: int) -> Prediction | None:
        """The prediction of a fit at the test points, which is kept for one or two parameters; None for a refusal."""
        told = self._fit(question, function, method, number).value().get("prediction")
        if told is None:
            return None
        columns = {name: told[name] for name in (*_COLUMNS, "level")}
        return Prediction(question.points("test"), **columns, claim=Claim.from_content(told["claim"]))

    def found_lift(self, question: Question, function: str, number: int) -> Lift:
        """The calibrations that were made."""
        told = self._lift(question, function, number)[2].value()
        return Lift(**{**told, "coverages": tuple(told["coverages"]), "widths": tuple(told["widths"])})

    def found_truth(self, question: Question, function: str) -> FloatArray:
        """The probability at the test points."""
        return self._probability(question, function)

    def found_test(self, question: Question, function: str) -> Observations:
        """The test set of a function."""
        return self._data(question, "test")[function].value()

    def _data(self, question: Question, role: Set, number: int = 0) -> Mapping[str, CachedFile[Observations]]:
        """The files of a set, by function."""
        design = question.train if role == "train" else question.test
        runs = question.truth_runs if role == "truth" else design.runs
        asked = {**self._about(question), "role": role, "number": number, "design": asdict(design), "runs": runs}
        numbered = f"{role}{number}" if role == "train" else role
        return {
            function: self._kept(f"{numbered}.{function}", {**asked, "formula": _told(formula)}, ".safetensors")
            for function, formula in question.formulas.items()
        }

    def _known(self, question: Question, function: str) -> CachedFile[Any]:
        """The file of the truth, computed or from runs."""
        return self._exact(question) if question.truth_runs is None else self._data(question, "truth")[function]

    def _exact(self, question: Question) -> CachedFile[dict[str, Any]]:
        asked = {**self._about(question), "role": "exact", "design": asdict(question.test)}
        (formula,) = question.formulas.values()
        return self._checksummed(f"exact.{question.name}", {**asked, "formula": _told(formula)})

    def _fit(self, question: Question, function: str, method: str, number: int) -> CachedFile[dict[str, Any]]:
        recipe = self.recipe(method)
        name = f"fit.{function}.{method}.{number}"
        about = {"method": method, "settings": recipe and asdict(recipe), "number": number}
        sets = [self._data(question, "train", number)[function].key, self._data(question, "test")[function].key]
        return self._checksummed(
            name, {"sateen": _version(), **about, "sets": [*sets, self._known(question, function).key]}
        )

    def _posterior(self, question: Question, function: str, number: int) -> CachedFile[Any]:
        """The file of what our default has learned."""
        key = self._data(question, "train", number)[function].key
        asked = {"sateen": _version(), "method": "default", "train": key, "number": number}
        return self._kept(f"posterior.{function}.{number}", asked, ".safetensors", load_posterior)

    def _lift(
        self, question: Question, function: str, number: int
    ) -> tuple[CachedFile[Any], CachedFile[Any], CachedFile[Any]]:
        """The files of the plan, of the runs and of the outcome of the calibrations."""
        promise = {"level": _LEVEL, "confidence": _CONFIDENCE, "budget": _BUDGET, "calibrations": _CALIBRATIONS}
        asked = {**promise, "share": question.share, "posterior": self._posterior(question, function, number).key}
        truth = self._known(question, function).key
        return (
            self._checksummed(f"plan.{function}.{number}", {**asked, "piece": "plan"}),
            self._kept(f"held-out.{function}.{number}", {**asked, "piece": "runs"}, ".safetensors"),
            self._checksummed(f"lift.{function}.{number}", {**asked, "piece": "lift", "truth": truth}),
        )

    def _about(self, question: Question) -> dict[str, Any]:
        return {"sateen": _version(), **question.content()}

    def _kept(
        self, name: str, asked: Mapping[str, Any], suffix: str, read: Callable[[FilePath], Any] = Observations.load
    ) -> CachedFile[Any]:
        key = fingerprint(asked)
        return CachedFile(self.folder.file(name.replace("/", "-"), key, suffix), key, read)

    def _checksummed(self, name: str, asked: Mapping[str, Any]) -> CachedFile[dict[str, Any]]:
        return self._kept(name, asked, ".json", read_checksummed)

    def _simulate(
        self, question: Question, points: Points, runs: int, seed: int, files: Mapping[str, FilePath]
    ) -> Save:
        """The runs of a set; a store keeps them while they are made, and goes when they are written."""
        from sateen.sampling.observe import observe

        store = next(iter(files.values())).with_suffix(".db")
        options: dict[str, Any] = {"workers": self.workers, "store": store, "progress": self.progress}
        found = observe(question.model, dict(question.formulas), points, runs, seed=seed, **options)

        def save() -> None:
            for name, file in files.items():
                found[name].save(file)
            for rest in store.parent.glob(f"{store.name}*"):
                rest.unlink()

        return save

    def _learned(self, seen: Observations, method: str, options: Mapping[str, Any]) -> Any:
        from sateen.learning.default import learn

        recipe = self.recipe(method)
        found = learn(seen, **options) if recipe is None else recipe.fit(seen, **options)
        if found.record.interrupted:
            raise KeyboardInterrupt
        return found

    def _calibrations(self, question: Question, function: str, posterior: Any, runs: Observations, chosen: Any) -> Lift:
        from scipy.stats import binom

        from sateen.guarantee.calibrate import calibrate

        points, known = question.points("test"), self._probability(question, function)
        coverages, widths = [], []
        for begin in range(0, len(runs), chosen.points):
            held_out = runs[begin : begin + chosen.points]
            band = calibrate(posterior, held_out, plan=chosen, normaliser=chosen.normaliser).predict(points)
            coverages.append(float(np.mean((band.lower <= known) & (known <= band.upper))))
            widths.append(float(band.width.mean()))
        found = Lift(_LEVEL, _CONFIDENCE, chosen.points, chosen.runs, tuple(coverages), tuple(widths), nan)
        return replace(found, p=float(binom.sf(found.failures - 1, len(coverages), 1 - _CONFIDENCE)))

    def _probability(self, question: Question, function: str) -> FloatArray:
        if question.truth_runs is None:
            return np.array(self._exact(question).value()["probability"])
        found = self._data(question, "truth")[function].value()
        if found.undecided.any():
            raise InputError(f"{found.undecided.sum()} runs behind the truth of {function} are undecided")
        return np.asarray(found.frequency)


def _told(formula: Any) -> list[Any]:
    return [str(formula), formula.end]


def _content(prediction: Prediction) -> dict[str, Any]:
    columns = {name: getattr(prediction, name).tolist() for name in _COLUMNS}
    return {**columns, "level": prediction.level, "claim": prediction.claim.content()}


def _version() -> str:
    return VERSION
