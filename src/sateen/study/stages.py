"""The stages of a study: simulate, learn, calibrate, score; each kept under the fingerprint of what it depends on.

A fingerprint is a hash of inputs: of the question, the seeds and settings, and of the *content* of what earlier stages
found. It knows nothing of times, workers or comments. Later stages read what earlier ones have written, never what they
still have in memory: so a run that was interrupted and one that was not see the same bits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from math import nan
from pathlib import Path as FilePath
from typing import Any, Final, Literal, TypeAlias, TypeVar

from sateen.core.errors import InputError
from sateen.core.fingerprints import fingerprint
from sateen.core.interrupts import heeding_interrupts
from sateen.core.observations import Observations
from sateen.core.progress import Progress
from sateen.core.threads import on_one_thread
from sateen.core.version import VERSION
from sateen.guarantee.guarantee import Guarantee
from sateen.learning.posterior import LearnedPosterior
from sateen.pipeline.folder import CachedFile, ResultFolder, read_checksummed
from sateen.study.findings import property_findings
from sateen.study.planning import plan_from_content, shared_plans
from sateen.study.result import load_guarantee, load_posterior
from sateen.study.study import Calibration, Design, Study

__all__ = ["Step", "StudyRunner"]

_Value = TypeVar("_Value")
Save: TypeAlias = "Callable[[], None]"  # writes what was made, once it is certain that nothing cut it short
Part: TypeAlias = Literal["train", "test", "calibrate"]
_TAKEN: Final = "taken over"
_MADE: Final = "made"
_TO_DO: Final = "to do"


@dataclass(frozen=True, slots=True)
class Step:
    """A stage of a run: its name, and whether it was "taken over", "made", or is "to do"; `about` says what it is."""

    stage: str
    state: str
    about: str
    file: FilePath | None
    runs: int = 0


class StudyRunner:
    """One walk through the stages of a study; a `dry` one makes nothing, and finds out what is to do."""

    def __init__(
        self, study: Study, folder: ResultFolder, *, workers: int | None, progress: Progress, dry: bool = False
    ) -> None:
        self.study = study
        self.folder = folder
        self.workers = workers
        self.progress = progress
        self.dry = dry
        self.steps: list[Step] = []
        self.seconds: dict[str, float] = {}
        self.fits: dict[
            str, tuple[Any, Observations]
        ] = {}  # that are to do, by stage: the recipe, and what it will see

    def walk(self) -> dict[str, Any] | None:
        """All stages in order, and what they found as plain data; None if something is still to do."""
        study = self.study
        train = self._simulated("train", study.train)
        test = None if study.test is None else self._simulated("test", study.test)
        learned = {
            name: {method: self._learned(name, method, train[name]) for method in study.methods}
            for name in study.properties
        }
        plans, held_out, guarantees = self._calibrated(learned)
        found: dict[str, Any] = {}
        for name in study.properties:
            parts = {"train": train[name], "test": test and test[name], "calibrate": held_out and held_out[name]}
            own = self._scored(name, parts, learned[name], guarantees and guarantees[name])
            if own is not None:
                files = {part: kept.file for part, kept in parts.items() if kept is not None}
                files |= {f"learn.{method}": kept.file for method, kept in learned[name].items() if kept is not None}
                files |= {"guarantee": guarantees[name].file} if guarantees and guarantees[name] else {}
                plan = {"plan": None if plans is None else plans.value()[name]}
                plan |= {"of": study.promise and study.promise.of}
                found[name] = {**own.value(), **plan, "files": {key: file.name for key, file in files.items()}}
        return found if len(found) == len(study.properties) else None

    def _simulated(self, part: Part, design: Design) -> Mapping[str, CachedFile[Observations] | None]:
        """The observations of a part, for every property; those that are missing share one set of runs."""
        study = self.study
        seeds = {"points": study.seed_of(f"{part} points"), "runs": study.seed_of(f"{part} runs")}
        asked = {"stage": "observe", "sateen": _version(), **study.question(), **asdict(design), "seeds": seeds}
        kept: dict[str, CachedFile[Observations]] = {}
        for name, formula in study.properties.items():
            key = fingerprint({**asked, "formula": formula and [str(formula), formula.end]})
            kept[name] = CachedFile(self.folder.file(f"{part}.{name}", key, ".safetensors"), key, Observations.load)
        missing = {name: study.properties[name] for name, own in kept.items() if not own.file.exists()}
        total = design.total(study.space)
        for name, own in kept.items():
            state = _TAKEN if name not in missing else _TO_DO if self.dry else _MADE
            runs = total if name == next(iter(missing), None) else 0  # they are shared, and counted once
            self.steps.append(Step(f"{part} {name}", state, f"{total:,} runs", own.file, runs))
        if len(missing) < len(kept):
            self._tell(part, f"{_TAKEN} for {', '.join(name for name in kept if name not in missing)}")
        if missing:
            self._tell(part, f"{total:,} runs for {', '.join(missing)}")
        if missing and not self.dry:
            for name, one in self._observed(part, missing, design, seeds).items():
                with self.folder.writing(kept[name].file):
                    one.save(kept[name].file)
        return {name: None if self.dry and name in missing else own for name, own in kept.items()}

    def _observed(
        self, part: str, missing: Mapping[str, Any], design: Design, seeds: Mapping[str, int]
    ) -> dict[str, Observations]:
        from sateen.sampling.observe import observe

        study = self.study
        # A store knows a function by its own text alone; here it shall be known by all that stands in its file.
        store = self.folder.stages / (f"runs-{study.code[:16]}.db" if study.code else "runs.db")
        points = design.drawn(study.space, seeds["points"])
        options: dict[str, Any] = {"workers": self.workers, "store": store, "progress": self.progress, **study.caps}
        alone = list(missing.values()) == [None]
        try:
            found = observe(study.model, None if alone else missing, points, design.runs, seed=seeds["runs"], **options)
        except InputError as error:
            said = str(error).replace("pass formula=None", "leave out the table [property]")
            raise InputError(
                f"{part}: {said.replace('observe(model, formula, ...)', 'add it to [property]')}"
            ) from error
        return {next(iter(missing)): found} if isinstance(found, Observations) else found

    def _learned(
        self, name: str, method: str, train: CachedFile[Observations] | None
    ) -> CachedFile[LearnedPosterior] | None:
        """What a method learns of a property."""
        stage, recipe = f"learn {name} {method}", self.study.methods[method]
        if train is None:
            self._unknown(stage)
            return None
        seen, seed = train.value(), self.study.seed_of(f"learn {method}")
        settings = None if recipe is None else asdict(recipe)
        asked = {"stage": "learn", "sateen": _version(), "method": method, "settings": settings, "seed": seed}
        key = fingerprint({**asked, "training": seen.fingerprint, "relevant": list(seen.relevant)})
        file = self.folder.file(f"learn.{name}.{method}", key, ".safetensors")
        checkpoint = file.with_suffix(".checkpoint")
        if not file.exists():
            self.fits[stage] = recipe, seen
        elif not self.dry:
            checkpoint.unlink(missing_ok=True)  # of a run that was killed between the last two things it does here

        def make() -> Save:
            options: dict[str, Any] = {"seed": seed, "progress": self.progress, "checkpoint": checkpoint}
            if recipe is None:
                from sateen.learning.default import learn

                posterior = learn(seen, **options)
            else:
                posterior = recipe.fit(seen, **options)
            if posterior.record.interrupted:
                raise KeyboardInterrupt

            def save() -> None:
                posterior.save(file)
                checkpoint.unlink(missing_ok=True)

            return save

        return self._made(stage, CachedFile(file, key, load_posterior), make, f"{len(seen):,} points")

    def _calibrated(
        self, learned: Mapping[str, Mapping[str, CachedFile[LearnedPosterior] | None]]
    ) -> tuple[Any, Any, Any]:
        """The plans, if there are any, the held-out observations and the guarantees; None for what is not asked for."""
        promise, wanted = self.study.promise, self.study.calibration
        if promise is None or wanted is None:
            return None, None, None
        trusted = {name: own[promise.of] for name, own in learned.items()}
        plans = None
        if wanted.points is not None and wanted.runs is not None:
            design = Design(wanted.points, wanted.runs, "uniform")
        else:
            plans = self._planned(trusted, wanted)
            if plans is None:
                spent = wanted.budget or 0
                self._unknown("calibrate", f"{spent:,} runs" if spent else "as many runs as the plan says", spent)
                self._unknown("guarantee", f"{promise.method} of {promise.of}")
                return None, dict.fromkeys(trusted), dict.fromkeys(trusted)
            first = next(iter(plans.value().values()))
            design = Design(first["points"], first["runs"], "uniform")
        held_out = self._simulated("calibrate", design)
        guarantees = {name: self._guaranteed(name, trusted[name], held_out[name], plans) for name in trusted}
        return plans, held_out, guarantees

    def _planned(
        self, trusted: Mapping[str, CachedFile[LearnedPosterior] | None], wanted: Calibration
    ) -> CachedFile[dict[str, Any]] | None:
        """The plans of all properties, as plain data by property."""
        promise, seed = self.study.promise, self.study.seed_of("plan")
        assert promise is not None
        if any(kept is None for kept in trusted.values()):
            self._unknown("plan")
            return None
        asked = {"stage": "plan", "sateen": _version(), "wanted": asdict(wanted), "promise": asdict(promise)}
        keys = {name: kept.key for name, kept in trusted.items() if kept is not None}
        key = fingerprint({**asked, "seed": seed, "posteriors": keys})
        file = self.folder.file("plan", key, ".json")

        def make() -> Save:
            posteriors = {name: kept.value() for name, kept in trusted.items() if kept is not None}
            plans = shared_plans(posteriors, wanted, promise, seed=seed)
            # How long the runs would take is not kept: it differs from run to run.
            content = {name: replace(plan, seconds=nan).content() for name, plan in plans.items()}
            return lambda: self.folder.write_checksummed(file, content)

        return self._made("plan", CachedFile(file, key, read_checksummed), make, f"of {promise.of}")

    def _guaranteed(
        self,
        name: str,
        trusted: CachedFile[LearnedPosterior] | None,
        held_out: CachedFile[Observations] | None,
        plans: CachedFile[dict[str, Any]] | None,
    ) -> CachedFile[Guarantee] | None:
        from sateen.guarantee.calibrate import calibrate

        promise = self.study.promise
        assert promise is not None
        stage = f"guarantee {name}"
        if trusted is None or held_out is None:
            self._unknown(stage)
            return None
        seen = held_out.value()
        plan = None if plans is None else plan_from_content(plans.value()[name])
        asked = {
            "stage": "guarantee",
            "sateen": _version(),
            "promise": asdict(promise),
            "plan": plan and plan.content(),
        }
        key = fingerprint({**asked, "posterior": trusted.key, "held_out": seen.fingerprint})
        file = self.folder.file(f"guarantee.{name}", key, ".safetensors")

        def make() -> Save:
            options: dict[str, Any] = {"level": promise.level, "confidence": promise.confidence, "plan": plan}
            options |= {"rank": promise.rank, "normaliser": None if plan else promise.normaliser}
            options |= {"split": promise.split, "allow_trivial": promise.allow_trivial}
            made = calibrate(trusted.value(), seen, method=promise.method, **options)
            return lambda: made.save(file)

        return self._made(stage, CachedFile(file, key, load_guarantee), make, f"{promise.method} of {promise.of}")

    def _scored(
        self,
        name: str,
        parts: Mapping[str, CachedFile[Observations] | None],
        learned: Mapping[str, CachedFile[LearnedPosterior] | None],
        guarantee: CachedFile[Guarantee] | None,
    ) -> CachedFile[dict[str, Any]] | None:
        """Scores, predictions, claims and the verdict on a property, as plain data."""
        stage = f"score {name}"
        asked_for: list[CachedFile[Any] | None] = [*learned.values(), parts["train"]]
        asked_for += [parts["test"]] * (self.study.test is not None)
        asked_for += [guarantee, parts["calibrate"]] * (self.study.promise is not None)
        if any(kept is None for kept in asked_for):
            self._unknown(stage)
            return None
        seen = {part: kept.value().fingerprint for part, kept in parts.items() if kept is not None}
        keys = {method: kept.key for method, kept in learned.items() if kept is not None}
        asked = {"stage": "score", "sateen": _version(), "observations": seen, "posteriors": keys}
        key = fingerprint({**asked, "guarantee": guarantee and guarantee.key, "name": name})
        file = self.folder.file(f"score.{name}", key, ".json")

        def make() -> Save:
            observed = {part: None if kept is None else kept.value() for part, kept in parts.items()}
            posteriors = {method: kept.value() for method, kept in learned.items() if kept is not None}
            guarded = None if guarantee is None else guarantee.value()
            formula = self.study.properties[name]
            content = property_findings(name, formula, observed, posteriors, guarded)
            return lambda: self.folder.write_checksummed(file, content)

        return self._made(stage, CachedFile(file, key, read_checksummed), make, f"by {', '.join(learned)}")

    def _made(
        self, stage: str, kept: CachedFile[_Value], make: Callable[[], Save], about: str
    ) -> CachedFile[_Value] | None:
        """The stage, made if its file is not there; None in a dry walk if it would have to be."""
        there = kept.file.exists()
        self.steps.append(Step(stage, _TAKEN if there else _TO_DO if self.dry else _MADE, about, kept.file))
        self._tell(stage, _TAKEN if there else about)
        if there or self.dry:
            return kept if there else None
        start = time.perf_counter()
        with self.folder.writing(kept.file):
            with heeding_interrupts():
                save = on_one_thread(make)()
            save()
        self.seconds[stage] = time.perf_counter() - start
        return kept

    def _unknown(self, stage: str, about: str = "", runs: int = 0) -> None:
        """Enter a stage whose fingerprint is not known yet, for one before it is still to do."""
        self.steps.append(Step(stage, _TO_DO, about, None, runs))

    def _tell(self, stage: str, what: str) -> None:
        """Say which stage begins; a dry walk is silent."""
        if not self.dry:
            self.progress.start(stage, 1, "stage")
            try:
                self.progress.note(f"{stage}: {what}")
                self.progress.advance(1)
            finally:
                self.progress.finish()


def _version() -> str:
    return VERSION
