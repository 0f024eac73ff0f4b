"""What the command `calibrate` calibrates with: observations in a file, or fresh ones of what the training observed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from sateen.cli.plan import CONFIDENCE, LEVEL, confidence_asked
from sateen.cli.sources import stored_observations, write_observations
from sateen.core.errors import InputError, Interrupted, SateenError

if TYPE_CHECKING:
    from sateen.core.observations import Observations
    from sateen.guarantee.plan import Plan
    from sateen.learning.posterior import LearnedPosterior
    from sateen.logic.formula import Formula
    from sateen.model.model import Model

__all__ = ["SEEDS", "WAYS", "Asked", "fresh", "in_file", "promise", "question", "seed_of"]

SEEDS: Final = 2**63
WAYS: Final = "--width W, --budget RUNS, --plan PLAN.json, or --points N with --runs M"
_THIRD_CHILD: Final = (2,)  # of a seed draws the points: the command `learn` has the first two
_REST: Final = ("origin", "provenance", "relevant", "reasons", "failures", "seconds")  # of observations


@dataclass(frozen=True, slots=True)
class Asked:
    """All that the command line says."""

    file: str
    held_out: str | None
    target: str
    method: Literal["lift", "icp", "nicp", "chernoff"]
    level: float | None
    confidence: float | None
    marginal: bool
    rank: int | None
    normaliser: Any
    split: float | None
    plan: str | None
    width: float | None
    budget: int | None
    points: int | None
    runs: int | None
    seed: int | None
    observations: str | None
    drawn_uniformly: bool
    allow_trivial: bool
    plot: str | None
    as_json: bool

    @property
    def planned(self) -> str | None:
        """The option that says how a plan is come by, if one does."""
        return next((f"--{name}" for name in ("width", "budget", "plan") if getattr(self, name) is not None), None)


def promise(asked: Asked) -> tuple[float, float | None]:
    """The level and the confidence, without a plan; the lift alone is PAC by default."""
    confidence = confidence_asked(asked.confidence, asked.marginal, CONFIDENCE if asked.method == "lift" else None)
    return LEVEL if asked.level is None else asked.level, confidence


def in_file(asked: Asked, posterior: LearnedPosterior) -> Observations:
    """The observations in the file; a table of another program is of the posterior's space."""
    from sateen.core.observations import Observations
    from sateen.core.space import Points

    file = str(asked.held_out)
    if file.lower().endswith(".sateen"):
        raise click.UsageError(f"{file} is a model, not observations; to observe what was learned, give one of {WAYS}")
    try:
        seen = stored_observations(file, {})
    except InputError as error:
        if "does not tell its space" not in str(error):
            raise
        seen = stored_observations(file, dict(posterior.space.parameters))
    if not asked.drawn_uniformly:
        return seen
    if seen.points.design != "given":
        raise click.UsageError(f"--drawn-uniformly: {file} says itself how it was drawn: {seen.points.design}")
    rest: dict[str, Any] = {name: getattr(seen, name) for name in _REST}
    points = Points(seen.theta, seen.space, "uniform")
    return Observations(points, seen.satisfied, seen.undecided, seen.trials, **rest)


def seed_of(asked: Asked, posterior: LearnedPosterior) -> int:
    """The seed of fresh observations: the one after the greatest of the training, if none is given."""
    used = posterior.training.observations.seeds
    if asked.seed is None:
        seed = (max(used, default=0) + 1) % SEEDS
        return next(number for number in range(seed, SEEDS) if number not in used)
    if asked.seed in used:
        raise InputError(
            f"--seed {asked.seed} is the training's, whose random numbers the runs would share\n"
            "  give another, or leave it out"
        )
    return asked.seed


def fresh(
    asked: Asked, posterior: LearnedPosterior, plan: Plan | None, question: tuple[Model, Formula], seed: int
) -> Observations:
    """Fresh observations at uniform points of what the training observed; kept, if asked, before anything is proven."""
    from numpy.random import SeedSequence

    from sateen.cli.progress import Bar
    from sateen.sampling.observe import observe

    points, runs = (plan.points, plan.runs) if plan else (asked.points or 0, asked.runs or 0)
    if plan is None:
        _check_enough(asked, points)
    asked_before = posterior.training.observations.provenance
    told = {name: asked_before.get(name) for name in ("max_events", "max_time", "max_population")}
    caps: dict[str, Any] = {name: cap for name, cap in told.items() if cap is not None}
    child = int(SeedSequence(seed, spawn_key=_THIRD_CHILD).generate_state(1)[0])
    chosen = posterior.space.uniform(points, seed=child)
    try:
        seen = observe(*question, chosen, runs, seed=seed, progress=Bar(), **caps)
    except Interrupted as stop:
        if asked.observations is not None and stop.partial is not None and stop.partial.trials.any():
            write_observations(stop.partial, asked.observations)
            done = f"{int(stop.partial.trials.sum()):,} runs"
            click.echo(f"{asked.observations} has what was observed: {done}", err=True)
        raise
    if asked.observations is not None:
        write_observations(seen, asked.observations)
    return seen


def _check_enough(asked: Asked, points: int) -> None:
    """Too few points for the level are refused before they are observed, not after."""
    from sateen.core.text import percent
    from sateen.guarantee.conformal import fewest_points
    from sateen.guarantee.lift import fewest_lifted_points

    level, confidence = promise(asked)
    miss = 1.0 - level
    if asked.method == "lift":
        enough = fewest_lifted_points(asked.rank or 1, miss, confidence)
    else:
        left = (0.5 if asked.split is None else asked.split) if asked.method == "chernoff" else 1.0
        enough = fewest_points(left * miss, confidence)
    if not asked.allow_trivial and (enough is None or points < enough):
        sure = "" if confidence is None else f" with the confidence {percent(confidence)}"
        many = "no number that can be observed" if enough is None else f"{enough:,}"
        raise InputError(
            f"--points {points} is too few for the level {percent(level)}{sure}: {many} would do\n"
            "  give more, lower the level, or say --allow-trivial for the interval [0, 1]"
        )


def question(training: Observations) -> tuple[Model, Formula]:
    """The model and the formula that the training observed, if its observations tell them whole."""
    import warnings

    from sateen.core.errors import ModelWarning
    from sateen.logic.parser import stl
    from sateen.model.model import Model

    text, asked, end = (training.provenance.get(key) for key in ("model", "formula", "end"))
    why = "its observations do not tell the model"
    if isinstance(text, str):
        why = f"it was a {text}" if text.startswith("black box") else "its model cannot be read back from its text"
    if isinstance(text, str) and isinstance(asked, str):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ModelWarning)
                model = Model.parse(text)
            formula = stl(asked, end=end)
        except SateenError:
            pass
        else:
            if (str(model), str(formula)) == (text, asked):
                return model, formula
    raise InputError(
        f"what the posterior was learned from cannot be observed again: {why}\n"
        "  observe uniform points yourself, and give the file as HELD_OUT"
    )
