"""`optimise`: the parameters for which a property is most probable, the value there, and what may be better."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Unpack, get_args

from sateen.core.errors import InputError, nearest
from sateen.core.observations import Observations
from sateen.core.prediction import Learner
from sateen.core.progress import USUAL, Progress, watcher
from sateen.core.seeds import stream_seed
from sateen.core.space import Space
from sateen.core.text import finite, names_text, shown
from sateen.core.types import File
from sateen.decision.best import BestPoint, By, ConstraintResult, Task
from sateen.decision.claims import LEAST_SEARCH, Claims
from sateen.decision.goals import Optimum, check_inside
from sateen.decision.optimum import Limit, OptimumStrategy, Sense
from sateen.decision.refine import Caps, Running, run_search
from sateen.decision.rounds import Question
from sateen.logic.formula import Formula
from sateen.logic.parser import formula_of
from sateen.model.model import Model
from sateen.pools.pool import Executing, with_pool
from sateen.sampling.source import Function

__all__ = ["BestPoint", "ConstraintResult", "optimise"]

_SEARCHED: Final = 0.3  # of the gap is the expected regret at which the search ends
_ROOM: Final = 0.4, 0.2  # of the gap, and of a limit's distance to 0 and 1: how far inside the best point must be
_USUAL_SEARCH: Final = 5_000
_SEARCH_SHARES: Final = 0.25, 0.5  # of the budget is for the search, at least and at most
_FEWEST: Final = 4  # runs at a fresh design, at least
_RESERVE: Final = 12  # runs at each of the fresh designs, kept for the regret


@with_pool
def optimise(
    model: Model | Function,
    formula: Formula | str | Mapping[str, Formula | str] | None,
    space: Space,
    *,
    budget: int,
    gap: float = 0.01,
    wrong: float = 0.01,
    confidence: float = 0.95,
    seed: int,
    by: By = "fresh",
    within: Mapping[str, float] | None = None,
    worst: bool = False,
    subject_to: Mapping[str, Limit] | None = None,
    objective: str | None = None,
    minimise: bool = False,
    learner: Learner | None = None,
    start: Observations | Mapping[str, Observations] | tuple[int, int] | None = None,
    store: File | None = None,
    executor: Executing | None = None,
    workers: int | None = None,
    progress: Progress | None = USUAL,
    **caps: Unpack[Caps],
) -> BestPoint:
    """Find the θ for which the formula is most probable with at most `budget` runs, and claim what fresh runs show.

    A search (with the goal `Optimum`) spends at most half of the budget, and ends at an expected regret of 0.3 `gap`.
    The claims about its best point rest only on fresh runs that the search has not used:

    - the value there, with an interval whose half-width is about 0.4 `gap`;
    - the regret: elsewhere the probability is at most `gap` larger, for all but a share `wrong` of the space, by tests
      at fresh θ; with `by="cells"`, rigorous bounds on how much larger it is anywhere;
    - for each constraint, a one-sided bound.

    The error 1 - `confidence` is split evenly over the claims, so that all hold together. If the budget does not
    suffice, or the tests do not show it, nothing is claimed about the regret, and `reason` says so.

    For several properties, give a dict of formulas, all of which are decided on the same runs. `subject_to={"toxic":
    ("<=", 0.05)}` constrains some of them. The remaining one is optimised, or the one named by `objective`. With
    `within`, the best point allows for tolerances: half-widths as for `Optimum`. The mean over the box then counts, for
    the constraints too. Designs whose box leaves the space are not considered. With `worst`, the smallest value in the
    box counts (the largest, with `minimise`). Then `lower` is claimed for all but a share `wrong` of the box, and
    `upper` bounds f at the point of the box that is worst according to the posterior. The regret is then how far the
    smallest value of other designs may be above `lower`: at most 2 `gap`.

    With a `store`, a search that was stopped resumes when the same call is made again, and gives the same result.

    >>> chain = Model.parse("species A = 1, B = 0\\nA -> B @ mass_action(k)\\nB -> 0 @ mass_action(k)")
    >>> best = optimise(chain, "G[1, 1] B == 1", Space(k=(0.1, 4)), budget=100_000, gap=0.1, wrong=0.1, seed=1)
    >>> abs(best.theta["k"] - 1) < 0.5, best.regret  # k e^-k is largest at 1
    (True, 0.1)
    """
    progress = watcher(progress)
    formulas, name, limits = _asked(formula, subject_to, objective)
    for value, argument in ((gap, "gap"), (wrong, "wrong"), (confidence, "confidence")):
        check_inside(value, argument, "0.01" if argument != "confidence" else "0.95")
    if not isinstance(space, Space) or not space.names:
        problem = f"{{space}} is a Space in which some parameter varies, not {shown(space)}"
        raise InputError(problem, argument="space", remedy="to estimate one probability, use st.estimate")
    goal = Optimum(_SEARCHED * gap, minimise, within, worst)
    inner = {each: _tightened(limit, gap) for each, limit in limits.items()}
    task = Task(
        Question(model, formulas, space),
        OptimumStrategy(goal, space, objective=name, constraints=inner),
        limits,
        float(gap),
        float(wrong),
        1.0 - float(confidence),
        by,
        learner,
        Running(store, executor, workers, progress, caps),
        seed,
    )
    _check(task, budget)
    begin = _start(start, formulas)
    size = _searching(task, budget)
    outcome = run_search(
        task.question,
        task.strategy,
        learner,
        budget=size,
        seed=stream_seed(seed, "search"),
        start=begin,
        running=task.running,
    )
    given = int(begin[name].trials.sum()) if isinstance(begin, dict) else 0
    spent = int(outcome.observations[name].trials.sum()) - given
    return Claims(task, outcome, budget - spent, size - spent).made()


def _searching(task: Task, budget: int) -> int:
    """The runs of the search: what the forecast of the claims leaves of the budget, and half of it at most."""
    least, most = (int(share * budget) for share in _SEARCH_SHARES)
    left = budget - task.runs(0.5, _RESERVE)
    return max(min(max(left, least), most), LEAST_SEARCH)


def _check(task: Task, budget: object) -> None:
    """Refuse what cannot be asked, and a budget that cannot suffice whatever the runs say."""
    if task.by not in get_args(By):
        raise InputError(f"{{by}} is 'fresh' or 'cells', not {shown(task.by)}", argument="by")
    if isinstance(task.seed, bool) or not isinstance(task.seed, int) or task.seed < 0:
        raise InputError(f"{{seed}} is a whole number from 0 up, not {shown(task.seed)}", argument="seed")
    if task.by == "cells":
        fresh = "use {by='fresh'}"
        if task.limits or not task.tolerance.exact:
            what = "{subject_to}" if task.limits else "{within}"
            raise InputError(f"{{by='cells'}} bounds one property, without {what}", argument="by", remedy=fresh)
        if not isinstance(task.question.model, Model):
            raise InputError("{by='cells'} is for models, and this is a black box", argument="by", remedy=fresh)
    if task.tolerance.worst and task.limits:
        problem = "{worst} takes no {subject_to}: a constraint would have to hold at the worst of the box"
        raise InputError(problem, argument="worst", remedy="leave {worst} out: then the mean over the box counts")
    least = LEAST_SEARCH + task.runs(0.0, _FEWEST)
    if isinstance(budget, bool) or not isinstance(budget, int) or budget < least:
        usual = -(-2 * (_USUAL_SEARCH + task.runs(0.5, _RESERVE)) // 1000) * 1000
        problem = f"{{budget}} is a number of runs, at least {least:,} for these claims, not {shown(budget)}"
        remedy = f"about {usual:,} suffice in most cases; or allow a larger {{gap}} or {{wrong}}"
        raise InputError(problem, argument="budget", remedy=remedy)


def _asked(
    formula: object, subject_to: Mapping[str, Limit] | None, objective: str | None
) -> tuple[dict[str, Formula | None], str, dict[str, Limit]]:
    """The formulas by name, which of them is optimised, and the limits of others."""
    if not isinstance(formula, Mapping):
        if subject_to or objective:
            problem = "{subject_to} and {objective} name formulas, and there is only one, without a name"
            remedy = "give a dict: formula={'works': ..., 'toxic': ...}"
            raise InputError(problem, argument="subject_to", remedy=remedy)
        return {"": _read(formula)}, "", {}
    formulas = {str(name): _read(each) for name, each in formula.items()}
    limits = {str(name): _limit(str(name), limit) for name, limit in (subject_to or {}).items()}
    for name in [*limits, *([] if objective is None else [objective])]:
        if name not in formulas:
            argument = "subject_to" if name in limits else "objective"
            remedy = nearest(name, formulas) or f"the formulas are {names_text(list(formulas))}"
            raise InputError(
                f"{{{argument}}} has {name!r}, which no formula is called", argument=argument, remedy=remedy
            )
    free = [name for name in formulas if name not in limits] if objective is None else [objective]
    if len(free) != 1:
        many = f"{names_text(free)} have no limit" if free else "every formula has a limit"
        raise InputError(f"which formula is optimised? {many}", argument="objective", remedy="name it by {objective}")
    if free[0] in limits:
        raise InputError(f"{free[0]} is optimised, so it has no limit", argument="subject_to")
    asked = {name: each for name, each in formulas.items() if name in (free[0], *limits)}
    return asked, free[0], limits


def _read(formula: object) -> Formula | None:
    return None if formula is None else formula_of(formula)


def _limit(name: str, given: Any) -> Limit:
    """A constraint, checked."""
    try:
        sense, number = given
    except (TypeError, ValueError):
        sense, number = None, None
    limit = finite(number)
    if sense not in get_args(Sense) or limit is None or not 0.0 < limit < 1.0:
        problem = f"{{subject_to}} has {shown(given)} for {name}"
        remedy = "a limit is a comparison and a probability between 0 and 1, such as ('<=', 0.05)"
        raise InputError(problem, argument="subject_to", remedy=remedy)
    return sense, limit


def _tightened(limit: Limit, gap: float) -> Limit:
    """The limit in the search: a little inside, so that fresh runs can show that the constraint itself holds."""
    sense, most = limit
    room = min(_ROOM[0] * gap, _ROOM[1] * min(most, 1.0 - most))
    return sense, most - room if sense == "<=" else most + room


def _start(given: object, formulas: Mapping[str, Formula | None]) -> Any:
    """The observations to begin with by name, or what `refine` takes besides them."""
    if isinstance(given, Observations):
        given = {next(iter(formulas)): given}
    if not isinstance(given, Mapping):
        return given
    if missing := [name for name in formulas if name not in given]:
        problem = f"{{start}} has no observations of {missing[0]}"
        raise InputError(
            problem, argument="start", remedy="observe all formulas on the same runs: st.observe takes a dict"
        )
    return {name: given[name] for name in formulas}
