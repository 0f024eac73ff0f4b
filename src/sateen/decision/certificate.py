"""Certificates: what was claimed of a region, by which evidence, and what a check of it found."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

import numpy as np

from sateen.core.display import paragraph
from sateen.core.prediction import Claim
from sateen.core.progress import USUAL, Progress, watcher
from sateen.core.registry import call_provider
from sateen.core.space import Space
from sateen.core.text import percent, plural
from sateen.core.types import File
from sateen.decision.corners import CornerTest, assumption, corner_words
from sateen.decision.fresh import Asked, FreshTest
from sateen.decision.planning import CertificatePlan
from sateen.decision.regions import Regions
from sateen.decision.rigour import CellTest
from sateen.logic.formula import Formula
from sateen.model.model import Model
from sateen.sampling.source import Function

Evidence: TypeAlias = FreshTest | CornerTest | CellTest
_DIGITS: Final = 100_000  # parts of 1 to which the level of a claim is rounded down


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Certificate:
    """A claim about a region, with all that is needed to check it; `st.certify` makes it.

    `claim` says what was shown, and is valid in any case. `holds` says whether that is as much as was requested: for
    by="fresh", a wrong share of at most `wrong`; for by="cells", the requested share of the space, or the whole box.
    `volume` is the share of the space that is certified. `seed` was used for the forecast only. `evidence` has the
    points, counts and seeds of the runs, or the cells with their bounds.
    """

    by: Literal["fresh", "cells"]
    regions: Regions
    asked: Asked
    evidence: Evidence
    claim: Claim
    volume: float
    wrong: float
    confidence: float
    attempt: int
    seed: int
    plan: CertificatePlan | None
    undecided: float | None
    versions: Mapping[str, str]
    model: Model | Function | None = None
    formula: Formula | None = None

    @property
    def holds(self) -> bool:
        """Whether as much was shown as was requested."""
        if isinstance(self.evidence, FreshTest):
            return self.evidence.bound <= self.wrong
        if self.evidence.frozen.box is not None or self.undecided is None:
            return self.volume > 0.0
        return self.evidence.left(self.volume) <= self.undecided

    @property
    def runs(self) -> int:
        """The number of all runs; 0 if bounds were computed instead."""
        return 0 if isinstance(self.evidence, CellTest) else self.evidence.outcome.runs

    @property
    def tolerance(self) -> float:
        """By how much the threshold of the claim is relaxed."""
        return self.evidence.frozen.tolerance

    @property
    def box(self) -> Space | None:
        """The box that the claim is about, if it is about one."""
        return self.evidence.frozen.box

    def save(self, file: File) -> None:
        """Write one safe file, which `st.load` reads back and anyone can check."""
        call_provider("save certificate", self, file)

    def check(
        self,
        replay: int = 50,
        all: bool = False,
        seed: int | None = None,
        progress: Progress | None = USUAL,
        *,
        choice: int | None = None,
    ) -> CheckResult:
        """Recompute every number of the certificate, and repeat some of its runs.

        `replay` is the number of counts, each of one point at one look, that are simulated again; `all` repeats all of
        them. `choice`, a number that you choose, selects the counts. Without it, the selection follows from the
        certificate itself: this finds accidental errors, but a forger can predict it. `seed` repeats the whole test
        with fresh points and runs of your own. For cells, every bound and the cover are always recomputed. If the model
        is a Python function, which the file does not contain, no run is repeated, and the result says so.
        """
        progress = watcher(progress)
        options = {"replay": replay, "all": all, "seed": seed, "progress": progress, "choice": choice}
        return cast("CheckResult", call_provider("check certificate", self, **options))

    def __str__(self) -> str:
        sentence = str(self.claim)
        asked = "as asked" if self.holds else f"not what was asked for ({self._asked})"
        return f"{sentence[:1].upper()}{sentence[1:]}. This is {asked}. It rests on {self._grounds}."

    @property
    def _asked(self) -> str:
        if isinstance(self.evidence, FreshTest):
            return f"at most {percent(self.wrong)} wrong"
        return "the whole box" if self.box is not None else f"at most {percent(self.undecided)} left undecided"

    @property
    def _grounds(self) -> str:
        evidence = self.evidence
        if isinstance(evidence, CellTest):
            return evidence.words
        outcome = evidence.outcome
        doubt = f", {outcome.undecided:,} of them undecided, which count against the claim" if outcome.undecided else ""
        runs = f"{plural(outcome.runs, 'run')}{doubt}"
        number = f" (attempt {self.attempt})" if self.attempt > 1 else ""
        if isinstance(evidence, CornerTest):
            return f"{corner_words(evidence)}, and {runs}{number}"
        points, alpha = plural(len(evidence.points), "fresh point"), outcome.trial.alpha
        return f"{points} tested at the level {alpha:g}, of which {outcome.flags} were flagged, and {runs}{number}"

    def __repr__(self) -> str:
        verdict = "holds" if self.holds else "does not hold"
        return f"<Certificate by {self.by}, {percent(round(self.volume, 4))} of the space: {verdict}>"

    def _repr_html_(self) -> str:
        return paragraph(str(self))


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check found: whether all that was recomputed agrees, in `lines` what that was, in `faults` what does not.

    `chance_of_missing_an_altered_count` is the share of the counts that were not repeated: with this probability a
    single altered count would have gone unnoticed by the replay alone; None where there are no counts. `repeated` is
    the claim that the checker's own test came to, if one was asked for.
    """

    holds: bool
    lines: tuple[str, ...]
    faults: tuple[str, ...]
    chance_of_missing_an_altered_count: float | None
    repeated: Claim | None = None

    def __str__(self) -> str:
        verdict = "The certificate is valid." if self.holds else "The certificate is NOT valid."
        return "\n".join([verdict, *(f"- wrong: {fault}" for fault in self.faults), *(f"- {x}" for x in self.lines)])


def claim_of(evidence: Evidence, volume: float, confidence: float) -> Claim:
    """The claim that the evidence proves."""
    frozen = evidence.frozen
    if isinstance(evidence, FreshTest):
        level = max(math.floor((1.0 - evidence.bound) * _DIGITS) / _DIGITS, 0.0)
        return Claim("region", "pac", level, frozen.measure(volume), confidence=confidence, by=frozen.statement)
    measure, given = evidence.measure(volume), assumption(evidence.monotone) if evidence.monotone else ""
    if isinstance(evidence, CornerTest):
        by = frozen.statement
        return Claim("region", "pac", 1.0, measure, confidence=confidence, by=by, assuming=given)
    return Claim("region", "sure", 1.0, measure, by=frozen.statement, assuming=given)


def versions() -> dict[str, str]:
    """What a certificate is made with; another version may make other runs from the same seed."""
    import platform
    from importlib.metadata import version

    from sateen.core.version import VERSION

    libraries = {"numpy": np.__version__, "llvmlite": version("llvmlite")}
    return {"sateen": VERSION, **libraries, "python": platform.python_version()}
