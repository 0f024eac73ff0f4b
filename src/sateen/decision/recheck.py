"""What a check of a certificate recomputes: every number, and a part of the runs.

A count of a point at a look is fixed by the seed of the look, the index of the point and the number of runs, so each
can be simulated again by itself. Nothing that a file says is believed: seeds, points, bets, looks, flags, the bound,
the volume and the sentence of the claim are all derived again from the predictor and the question.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sateen.core.errors import InputError, SateenError
from sateen.core.fingerprints import checksum
from sateen.core.posterior import training_of
from sateen.core.prediction import Claim
from sateen.core.progress import Progress
from sateen.core.seeds import stream, stream_seed
from sateen.core.text import percent, plural, shown
from sateen.decision.certificate import Certificate, CheckResult, claim_of, versions
from sateen.decision.certify import check_request, run_corners, run_fresh
from sateen.decision.corners import CornerTest, corner_trial, propose
from sateen.decision.evidence import Outcome, again
from sateen.decision.fresh import FreshTest, attempt_error, check_fresh_runs, fresh_seed, look_seed, looker
from sateen.decision.planning import forecast
from sateen.decision.regions import decide
from sateen.decision.rigour import CellTest
from sateen.files.plain import FAULTS, fault_text
from sateen.learning.stored import RefitPosterior

_NEAR = 1e-9  # relative: what other processors may round differently
_PLANNED = ("margin", "points", "alpha", "cap", "flags", "budget")


def check(
    certificate: Certificate, *, replay: int, all: bool, seed: int | None, progress: Progress, choice: int | None
) -> CheckResult:
    """What `Certificate.check` gives."""
    for name, value in (("replay", replay), ("seed", seed), ("choice", choice)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
            raise InputError(f"{{{name}}} is a whole number from 0 up, not {shown(value)}", argument=name)
    book = _Book()
    evidence = certificate.evidence
    posterior = certificate.regions.posterior
    made = dict(certificate.versions)
    book.lines.append("made with " + ", ".join(f"{name} {number}" for name, number in made.items()))
    if made != versions():
        book.lines.append("this is another version, which may make other runs from the same seeds")
    if isinstance(posterior, RefitPosterior) and not posterior.ready:
        book.lines.append(
            f"the region was not recomputed: the learner {posterior.kind} is not sateen's own, and it would run; if "
            "you trust it, call certificate.regions.posterior.predict(...) first, and check again"
        )
        known = False
    else:
        known = True
        book.attempt("the regions", lambda: _regions(book, certificate))
    book.attempt("the request", lambda: _request(book, certificate))
    missed: float | None = None
    if isinstance(evidence, CellTest):
        told = certificate.model, certificate.formula, certificate.undecided, progress
        book.attempt("the cells", lambda: evidence.recheck(book.agree, *told))
    else:
        if known:
            book.attempt("the draw", lambda: _draw(book, certificate, evidence))
        book.attempt("the looks", lambda: _looks(book, evidence))
        missed = 1.0
        if book.faults:
            book.lines.append("no run was repeated, because the other numbers disagree already")
        elif certificate.model is None:
            name = certificate.asked.model
            book.lines.append(f"no run was repeated: the {name} is a Python function, which a file cannot contain")
        else:
            missed = _replay(book, certificate, evidence, replay, all, choice, progress)
    if known:
        book.attempt("the claim", lambda: _claim(book, certificate))
    repeated = None if seed is None or book.faults else _repeat(book, certificate, seed, progress)
    return CheckResult(not book.faults, tuple(book.lines), tuple(book.faults), missed, repeated)


@dataclass(frozen=True, slots=True)
class _Book:
    """What agreed, and what did not."""

    lines: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def agree(self, agrees: bool, right: str, wrong: str) -> None:
        """Enter one comparison."""
        (self.lines if agrees else self.faults).append(right if agrees else wrong)

    def attempt(self, what: str, work: Callable[[], None]) -> None:
        """Do a part of the check; what cannot be computed at all does not agree."""
        try:
            work()
        except (SateenError, *FAULTS) as error:
            self.faults.append(f"{what} cannot be recomputed: {fault_text(error)}")


def _regions(book: _Book, certificate: Certificate) -> None:
    """The volumes of the regions, and what is believed of them."""
    told = certificate.regions
    side: dict[str, Any] = {told.side: told.threshold}
    new = decide(told.predictor, **side, level=told.level, seed=told.seed, points=told.points)
    volumes = [(told.above, new.above), (told.below, new.below), (told.undecided, new.undecided)]
    volumes += [(told.errors[name], new.errors[name]) for name in new.errors]
    same = all(_near(*pair, 1e-6) for pair in volumes) and told.claim == new.claim
    book.agree(same, "the volumes of the regions are as stated", "the regions have other volumes or another claim")


def _request(book: _Book, certificate: Certificate) -> None:
    """That it could be asked for so, of a posterior that was trained on the same question."""
    told = certificate
    check_request(told.regions, told.wrong, told.confidence, told.seed, told.attempt, None)
    training = training_of(told.regions.posterior)
    if training is not None:
        told.asked.check_same(training.observations)


def _draw(book: _Book, certificate: Certificate, evidence: FreshTest | CornerTest) -> None:
    """The seed of the draw, the points, and the bets: all follow from the region, the question and the attempt."""
    frozen, asked, attempt = evidence.frozen, certificate.asked, certificate.attempt
    told, fresh = evidence.outcome.trial, isinstance(evidence, FreshTest)
    error = attempt_error(certificate.confidence, attempt)
    book.agree(
        evidence.error == error, f"attempt {attempt} has the error {error:.4g}", "the error is not the attempt's"
    )
    more: tuple[object, ...] = () if isinstance(evidence, FreshTest) else (dict(evidence.monotone),)
    seed = fresh_seed(frozen, asked, attempt, *more)
    right = "the seed of the draw is the hash of the region, the question and the attempt"
    book.agree(evidence.seed == seed, right, "the seed of the draw is not the hash of the region and the question")
    if isinstance(evidence, FreshTest):
        _plan(book, certificate, evidence)
        points = frozen.draw(len(evidence.points), seed)
        what = f"the {plural(len(points), 'point')} follow from the seed, and lie in the region"
    else:
        points = propose(frozen, evidence.monotone, certificate.seed)
        what = f"the {plural(len(points), 'corner')} are those that the posterior proposes"
    same = points.theta.shape == evidence.points.theta.shape and np.allclose(
        points.theta, evidence.points.theta, rtol=1e-12, atol=0.0
    )
    book.agree(bool(same), what, "the points are not those that the region and the seed give")
    check_fresh_runs(frozen, asked, evidence.points, evidence.seed)
    book.lines.append("the posterior has seen none of the points and none of the seeds")
    if fresh:
        new = frozen.trial(evidence.points, told.alpha, told.cap, told.allowed, told.budget)
    else:
        new = corner_trial(frozen, evidence.points, error, told.budget)
    same = np.allclose(new.bet, told.bet, rtol=_NEAR, atol=0.0) and (new.alpha, new.cap) == (told.alpha, told.cap)
    book.agree(bool(same), "the bets follow from the posterior", "the bets are not those that the posterior gives")


def _plan(book: _Book, certificate: Certificate, evidence: FreshTest) -> None:
    """The plan, which the forecast gives again, and that the test is the planned one."""
    plan, told, frozen = certificate.plan, evidence.outcome.trial, evidence.frozen
    assert plan is not None  # a file without one is refused
    new = forecast(
        certificate.regions,
        wrong=certificate.wrong,
        error=plan.error,
        seed=certificate.seed,
        tolerance=frozen.tolerance,
        box=frozen.box,
        budget=plan.budget,
    )
    same = all(getattr(plan, name) == getattr(new, name) for name in _PLANNED)
    same = same and all(_near(getattr(plan, name), getattr(new, name), 1e-6) for name in ("volume", "runs", "chance"))
    book.agree(same, "the plan is what the forecast gives again", "the plan is not what the forecast gives")
    made = frozen.z, len(evidence.points), told.alpha, told.cap, told.allowed, told.budget, evidence.error
    planned = *(getattr(plan, name) for name in _PLANNED), plan.error
    book.agree(made == planned, "the test is the planned one", "the test is not the planned one")


def _looks(book: _Book, evidence: FreshTest | CornerTest) -> None:
    """Every look: its seed, and that the test asks for just these runs; then the evidence and the flags."""
    outcome = evidence.outcome
    seeds = [look_seed(evidence.seed, number) for number in range(len(outcome.looks))]
    same = seeds == [look.seed for look in outcome.looks]
    book.agree(
        same, "the seeds of the looks follow from that of the draw", "a look has another seed than the draw gives"
    )
    new: Outcome = again(outcome.trial, outcome.looks)
    flags, points = new.flags, plural(len(evidence.points), "point")
    book.lines.append(
        f"{plural(len(new.looks), 'look')} with {plural(new.runs, 'run')} are those that the test asks for, and leave "
        f"{flags} of {points} flagged"
    )


def _claim(book: _Book, certificate: Certificate) -> None:
    """The volume, and the claim with its sentence."""
    evidence = certificate.evidence
    volume = evidence.frozen.volume(evidence.seed) if isinstance(evidence, FreshTest) else evidence.volume
    right = f"the certified volume is {100.0 * volume:.4g} % of the space"
    book.agree(_near(certificate.volume, volume, 1e-6), right, "the certified volume is another")
    claim = claim_of(evidence, volume, certificate.confidence)
    told = f"the evidence proves: {claim}"
    book.agree(claim == certificate.claim, told, f"the claim is not what the evidence proves, which is: {claim}")
    if not certificate.holds:
        book.lines.append("the claim is less than what was asked for")


def _replay(
    book: _Book,
    certificate: Certificate,
    evidence: FreshTest | CornerTest,
    replay: int,
    all_: bool,
    choice: int | None,
    progress: Progress,
) -> float:
    """Make some of the counts again; the share that was not."""
    looks = evidence.outcome.looks
    entries = np.array([(k, i) for k, look in enumerate(looks) for i in np.flatnonzero(look.trials)]).reshape(-1, 2)
    count = len(entries) if all_ else min(replay, len(entries))
    if not count:
        return 1.0
    if choice is None:
        counts = {
            f"{k} {name}": getattr(look, name) for k, look in enumerate(looks) for name in ("trials", "satisfied")
        }
        choice, whose = (
            int(checksum("replay", counts)[:15], 16),
            "; a forger can know this choice: give one of your own",
        )
    else:
        whose = f" by the checker's choice {choice}"
    chosen = entries[np.sort(stream(choice, "replay").permutation(len(entries))[:count])]
    assert certificate.model is not None
    options = {"progress": progress}
    look = looker(certificate.model, certificate.formula, certificate.asked, evidence.points, evidence.seed, options)
    wrong = 0
    for number in np.unique(chosen[:, 0]).tolist():
        told = looks[number]
        rows = chosen[chosen[:, 0] == number, 1]
        runs = np.zeros_like(told.trials)
        runs[rows] = told.trials[rows]
        try:
            seen = look(number, runs)
        except SateenError as error:
            book.faults.append(f"the runs of look {number + 1} cannot be repeated: {error}")
            return 1.0
        differ = (seen.satisfied != told.satisfied) | (seen.undecided != told.undecided)
        wrong += int(np.count_nonzero(differ[rows]))
    missed = 1.0 - count / len(entries)
    share = f"an altered count would have been found with probability {percent(round(1.0 - missed, 4))}"
    right = f"{count:,} of {len(entries):,} counts were repeated and are as stated ({share}{whose if missed else ''})"
    book.agree(not wrong, right, f"{wrong:,} of {count:,} repeated counts are not as stated")
    return missed


def _repeat(book: _Book, certificate: Certificate, seed: int, progress: Progress) -> Claim | None:
    """The whole test again with points and runs of the checker's own."""
    evidence, model = certificate.evidence, certificate.model
    if isinstance(evidence, CellTest):
        book.lines.append("nothing was drawn at random, so there is no test to repeat with another seed")
        return None
    if model is None:
        book.lines.append("the test cannot be repeated without the black box")
        return None
    own = stream_seed(seed, "checker")
    frozen, asked, options = evidence.frozen, certificate.asked, {"progress": progress}
    question = model, certificate.formula, asked, options
    new: FreshTest | CornerTest
    if isinstance(evidence, FreshTest):
        assert certificate.plan is not None
        new = run_fresh(frozen, certificate.plan, own, *question)
        volume, found = frozen.volume(own), f"at most {percent(round(new.bound, 6))} of the region is wrong"
    else:
        signs, budget = evidence.monotone, evidence.outcome.trial.budget
        new = run_corners(frozen, signs, evidence.points, evidence.error, budget, own, *question)
        volume = new.volume
        found = f"{int(new.outcome.shown.sum())} of {plural(len(new.points), 'corner')} are shown"
    runs = plural(new.outcome.runs, "run")
    book.lines.append(f"the checker's own test with the seed {seed} and {runs} finds: {found}")
    return claim_of(new, volume, certificate.confidence)


def _near(one: float, other: float, share: float) -> bool:
    return bool(np.isclose(one, other, rtol=share, atol=1e-12))
