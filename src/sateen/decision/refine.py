"""`refine`: runs where they are most informative about a goal, until it is reached or the budget is spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any, Final, Literal, TypeAlias, TypedDict, Unpack, get_args

from sateen.core.display import pictured
from sateen.core.errors import InputError
from sateen.core.fingerprints import fingerprint
from sateen.core.observations import QUESTION, Observations
from sateen.core.posterior import FullPosterior
from sateen.core.prediction import Learner
from sateen.core.progress import SILENT, USUAL, Progress, watcher
from sateen.core.registry import call_provider
from sateen.core.seeds import stream_seed
from sateen.core.space import Space
from sateen.core.types import File, FloatArray, IntArray
from sateen.decision.costs import costs_of
from sateen.decision.goals import Error, Goal, Optimum, Threshold, Width
from sateen.decision.picks import Costs, candidates, figure_of, pick_round
from sateen.decision.rounds import Outcome, Question, Round, Search, Strategy
from sateen.learning.gp.recipes import SVIGP
from sateen.logic.formula import Formula
from sateen.logic.parser import formula_of
from sateen.model.model import Model
from sateen.pools.pool import Executing, with_pool
from sateen.sampling.notes import Notes
from sateen.sampling.observe import ObserveOptions
from sateen.sampling.source import Function

Cost: TypeAlias = Literal["runs", "time"]
_START: Final = {0: (1, 200), 1: (64, 20), 2: (128, 20)}  # points and runs to begin with, by the number of parameters
_START_BEYOND: Final = (256, 20)
_LEAST_BUDGET: Final = 200


class Caps(TypedDict, total=False):
    """Where runs of a model are stopped as undecided; see `observe`."""

    max_events: int
    max_time: float
    max_population: int | None


@dataclass(frozen=True, slots=True)
class Running:
    """How the runs of a search are made, kept and watched."""

    store: File | None = None
    executor: Executing | None = None
    workers: int | None = None
    progress: Progress = SILENT
    caps: Caps = field(default_factory=Caps)

    def __post_init__(self) -> None:
        if strangers := [name for name in self.caps if name not in Caps.__annotations__]:
            raise TypeError(f"there is no argument {strangers[0]!r}")

    @property
    def observing(self) -> ObserveOptions:
        """The options of `observe`."""
        options: ObserveOptions = {"workers": self.workers, "executor": self.executor}
        return {**options, **self.caps}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Refinement:
    """The result of `refine`: all observations, the posterior learned from them, the figures of each round, and why it
    ended.

    The points were chosen by earlier results, so their design is "active", and `calibrate` refuses them.
    """

    goal: Goal
    observations: Observations
    posterior: FullPosterior
    rounds: tuple[Round, ...]
    reached: bool
    reason: str

    @property
    def figure(self) -> float:
        """The figure of the goal at the end."""
        return self.rounds[-1].figure

    @property
    def runs(self) -> int:
        """The runs of all rounds, those of the start too."""
        return self.rounds[-1].runs

    def plot(self, ax: object = None) -> object:
        """Draw the figure of the goal against the runs."""
        return call_provider("plot refinement", self, ax=ax)

    def __str__(self) -> str:
        return f"{self.goal}: {self.reason}"

    def __repr__(self) -> str:
        return f"<Refinement, {len(self.rounds)} rounds: {self.reason}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{each.number}</td><td>{each.points:,}</td><td>{each.runs:,}</td><td>{each.figure:.4g}</td></tr>"
            for each in self.rounds
        )
        head = f"<tr><th>round</th><th>points</th><th>runs</th><th>{escape(self.goal.name)}</th></tr>"
        table = f"<table><caption>{escape(str(self))}</caption>{head}{rows}</table>"
        return pictured(self.plot, str(self), table, "Rounds")


@with_pool
def refine(
    model: Model | Function,
    formula: Formula | str | None,
    space: Space,
    *,
    goal: Goal,
    budget: int,
    seed: int,
    learner: Learner | None = None,
    start: Observations | tuple[int, int] | None = None,
    cost: Cost = "runs",
    store: File | None = None,
    executor: Executing | None = None,
    workers: int | None = None,
    progress: Progress | None = USUAL,
    **caps: Unpack[Caps],
) -> Refinement:
    """Run the model where runs are most informative about the goal, in rounds, until it is reached or `budget` runs are
    made.

    `start` = (points, runs) is the first design, which fills the space; or `start` has existing observations of the
    same question, whose runs do not count. Each round fits the `learner`, by default SVIGP, computes how far the goal
    is, and chooses points and numbers of runs. For Gaussian processes it uses their joint covariance, for other
    learners their draws.

    With `cost="time"`, a round prefers points where runs are cheap: it counts events for a model, and measures seconds
    for a black box. By default every run costs the same. With a `store`, a search that was stopped at any moment
    resumes when the same call is made again, and gives the same result. The other options are those of `observe`.

    >>> from sateen.model.model import Model
    >>> decay = Model.parse("species A = 10\\nA -> 0 @ mass_action(k)")
    >>> goal = Threshold(0.5, undecided=0.05)
    >>> refined = refine(decay, "F[0, 2] A == 0", Space(k=(0.1, 4)), goal=goal, budget=20_000, seed=1)
    >>> refined.reached, refined.observations.points.design
    (True, 'active')
    """
    progress = watcher(progress)
    formula = None if formula is None else formula_of(formula)
    running = Running(store, executor, workers, progress, caps)
    question = Question(model, {"": formula}, space)
    strategy = _strategy(goal, question, costs_for(question, cost, seed, running))
    given = {"": start} if isinstance(start, Observations) else start
    outcome = run_search(question, strategy, learner, budget=budget, seed=seed, start=given, running=running)
    return Refinement(
        goal, outcome.observations[""], outcome.posteriors[""], outcome.rounds, outcome.reached, outcome.reason
    )


def run_search(
    question: Question,
    strategy: Strategy,
    learner: Learner | None,
    *,
    budget: int,
    seed: int,
    start: Mapping[str, Observations] | tuple[int, int] | None,
    running: Running,
) -> Outcome:
    """The rounds of a strategy about a question, after a check of what is asked."""
    _check(question, budget, seed)
    if isinstance(start, Mapping):
        for name, observations in start.items():
            _check_start(question, name, observations)
    else:
        start = _design(question.space, budget, start)
    search = Search(
        question,
        strategy,
        SVIGP() if learner is None else learner,
        start=start,
        budget=int(budget),
        seed=int(seed),
        store=running.store,
        progress=running.progress,
        options=running.observing,
    )
    return search.run()


def costs_for(question: Question, cost: Cost, seed: int, running: Running) -> Costs | None:
    """What a run costs at each θ; None where all cost the same."""
    if cost not in get_args(Cost):
        raise InputError(f"{{cost}} is 'runs' or 'time', not {cost!r}", argument="cost")
    if cost == "runs":
        return None
    key = "" if running.store is None else fingerprint(["costs", question.identity(), seed])
    with Notes(running.store, key) as notes:
        return costs_of(question, seed, notes)


def _strategy(goal: object, question: Question, costs: Costs | None) -> Strategy:
    if isinstance(goal, Optimum):
        from sateen.decision.optimum import OptimumStrategy

        return OptimumStrategy(goal, question.space, costs=costs)
    if not isinstance(goal, Threshold | Width | Error):
        kinds = "st.Threshold, st.Width, st.Error or st.Optimum"
        raise InputError(f"{{goal}} is one of {kinds}, not a {type(goal).__name__}", argument="goal")
    return GoalStrategy(goal, question.space, costs)


@dataclass(frozen=True, slots=True)
class GoalStrategy:
    """Decides for a goal about the whole space: a threshold, a width or an error."""

    goal: Threshold | Width | Error
    space: Space
    costs: Costs | None = None

    @property
    def aim(self) -> float:
        """The figure at which the goal is reached."""
        return self.goal.aim

    def words(self, figure: float) -> str:
        """The figure in words."""
        return self.goal.words(figure)

    def identity(self) -> object:
        """What its decisions depend on."""
        return [type(self.goal).__name__, asdict(self.goal), self.costs is not None]

    def figure(self, posteriors: Mapping[str, FullPosterior], *, seed: int) -> float:
        """The figure of the goal, over points that fill the space."""
        (posterior,) = posteriors.values()
        return figure_of(self.goal, posterior, candidates(self.space, stream_seed(seed, "reference")))

    def choose(self, posteriors: Mapping[str, FullPosterior], budget: int, *, seed: int) -> tuple[FloatArray, IntArray]:
        """The points and runs of the next round."""
        (posterior,) = posteriors.values()
        return pick_round(self.goal, posterior, budget, seed=seed, costs=self.costs)


def _design(space: Space, budget: int, given: Any) -> tuple[int, int]:
    """The points and runs to begin with; by default at most half of the budget."""
    if given is None:
        points, runs = _START.get(len(space), _START_BEYOND)
        return points, max(1, min(runs, int(budget) // (2 * points)))
    try:
        points, runs = (int(number) for number in given)
    except (TypeError, ValueError):
        points = runs = 0
    if points < 1 or runs < 1 or points * runs > budget:
        raise InputError(
            f"{{start}} is (points, runs), with at most {{budget}} runs in all, or observations; not {given!r}",
            argument="start",
            remedy="such as (256, 20)",
        )
    return points, runs


def _check(question: Question, budget: object, seed: object) -> None:
    if not isinstance(question.space, Space):
        raise InputError(f"{{space}} is a Space, not a {type(question.space).__name__}", argument="space")
    if isinstance(budget, bool) or not isinstance(budget, int) or budget < _LEAST_BUDGET:
        problem = f"{{budget}} is a number of runs, at least {_LEAST_BUDGET}, not {budget!r}"
        raise InputError(problem, argument="budget", remedy="a few thousand are a start")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise InputError(f"{{seed}} is a whole number from 0 up, not {seed!r}", argument="seed")


def _check_start(question: Question, name: str, observations: Observations) -> None:
    """Observations to begin with are of the same space and question, as far as they say."""
    if observations.space != question.space:
        problem = f"{{start}} is from another space:\n  {observations.space!r}\n  {question.space!r}"
        raise InputError(problem, argument="start")
    formula = question.formulas[name]
    asked = {"formula": None if formula is None else str(formula), "end": None if formula is None else formula.end}
    if isinstance(question.model, Model):
        asked["model"] = str(question.model)
    for key in QUESTION:
        told = observations.provenance.get(key)
        if "model" in observations.provenance and key in asked and told != asked[key]:
            problem = f"{{start}} was observed with another {key}:\n  {told}\n  {asked[key]}"
            raise InputError(problem, argument="start", remedy="observe the same, or leave {start} out")
