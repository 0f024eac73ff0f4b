"""`simulate`: one path of a model; or the states of many of its runs at given times, at one point or at several."""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, overload

import numpy as np
import numpy.typing as npt

from sateen.core.counts import counts_of, is_frame
from sateen.core.ensemble import Ensemble, check_times
from sateen.core.errors import InputError, Interrupted, SateenWarning, nearest
from sateen.core.path import Path
from sateen.core.progress import USUAL, Progress, watcher
from sateen.core.seeds import check_seed
from sateen.core.space import Points
from sateen.core.text import names_text, plural, shown
from sateen.core.threads import processors
from sateen.core.types import Array, FloatArray, IntArray
from sateen.engine import simulate as reference
from sateen.engine.lanes import LANES
from sateen.model.given import check_model
from sateen.model.model import Model
from sateen.sampling.campaign import FIRST_SIZE, Campaign, Pace
from sateen.sampling.ledger import Ledger, Tally

if TYPE_CHECKING:
    from sateen.core.types import DataFrame
    from sateen.engine.run import Runner

_MOST_EVENTS: Final = 10_000_000
_MOST_VALUES: Final = 2**33
_AT_ONCE: Final = 2**17  # values that the engine writes before they are packed: they should fit into a cache
_LEAST_RUNS: Final = 256  # but not fewer runs than keep its lanes busy
_TYPES: Final = ("uint8", "int16", "int32", "float64")  # each holds all that those before it hold


@overload
def simulate(
    model: Model,
    theta: Mapping[str, float] | None = None,
    *,
    until: float,
    seed: int,
    max_events: int = _MOST_EVENTS,
    progress: Progress | None = USUAL,
) -> Path: ...
@overload
def simulate(
    model: Model,
    theta: Mapping[str, float] | None = None,
    *,
    times: npt.ArrayLike,
    runs: int,
    seed: int,
    species: str | Sequence[str] | None = None,
    workers: int | None = None,
    max_events: int = _MOST_EVENTS,
    progress: Progress | None = USUAL,
) -> Ensemble: ...
@overload
def simulate(
    model: Model,
    theta: Points | Sequence[Mapping[str, float]] | DataFrame,
    *,
    times: npt.ArrayLike,
    runs: int,
    seed: int,
    species: str | Sequence[str] | None = None,
    workers: int | None = None,
    max_events: int = _MOST_EVENTS,
    progress: Progress | None = USUAL,
) -> tuple[Ensemble, ...]: ...
def simulate(
    model: Model,
    theta: Mapping[str, float] | Points | Sequence[Mapping[str, float]] | DataFrame | None = None,
    *,
    until: float | None = None,
    times: npt.ArrayLike | None = None,
    runs: int | None = None,
    seed: int,
    species: str | Sequence[str] | None = None,
    workers: int | None = None,
    max_events: int = _MOST_EVENTS,
    progress: Progress | None = USUAL,
) -> Path | Ensemble | tuple[Ensemble, ...]:
    """One path of the model on [0, until]; or an Ensemble, the states of many `runs` at `times`.

    A path is made by the reference simulator. When nothing can happen any more, it ends early and is marked as
    absorbed. After `max_events` jumps it stops unfinished: `path.end` is then less than `until`.

    An ensemble is made by the compiled engine, which keeps no paths. `theta` may then be Points, a list or a data
    frame, which gives a tuple with an Ensemble for each point. A run is fixed by (seed, point index, run index), the
    same for any `workers`, and `replay` shows it as a path. `species` chooses which species are kept. The states of a
    run after `max_events` jumps are unknown, and a warning says so. Ctrl-C raises Interrupted, whose `partial` has the
    first runs of each point.

    >>> sir = Model.parse('''
    ...     species S = 95, I = 5, R = 0
    ...     S + I -> 2 I @ beta * S * I / 100
    ...     I -> R       @ gamma * I
    ... ''')
    >>> path = simulate(sir, {"beta": 0.12, "gamma": 0.05}, until=150, seed=1)
    >>> path.at(0)
    {'S': 95.0, 'I': 5.0, 'R': 0.0}
    >>> simulate(sir, {"beta": 0.12, "gamma": 0.05}, times=[0, 50, 100], runs=1000, seed=1)
    <Ensemble: 1,000 runs of S, I, R at 3 times, 0 to 100>
    """
    check_model(model)
    check_seed(seed, of_runs=True)
    progress = watcher(progress)
    several = isinstance(theta, Points | Sequence) or is_frame(theta)
    if times is None:
        points = theta if several else None
        _check_alone(until, runs=runs, species=species, workers=workers, theta=points)
        assert until is not None
        known: Mapping[str, float] | None = theta  # type: ignore[assignment]
        return reference.simulate(model, known, until=until, seed=seed, max_events=max_events, progress=progress)
    if until is not None or runs is None:
        message = "{until} makes one path, {times} and {runs} make an ensemble"
        raise InputError(message, argument="times", remedy="pass {times} with {runs}, or {until} alone")
    cases = [model.values(each) for each in _thetas(theta)]
    for values in cases:
        model.initial(values)
    names = _names(model, species)
    kept = _States.planned(model, _watched(model, names), check_times(times), len(cases), runs, seed, max_events)
    rows = np.array([[each[p.name] for p in model.parameters] for each in cases], np.float64)
    ledger = Ledger(counts_of(runs, len(cases), "runs", least=1), 0, ())
    pace = Pace(None, _whole("workers", processors() if workers is None else workers), FIRST_SIZE, LANES)
    campaign = Campaign(
        kept, rows.reshape(len(cases), len(model.parameters)), ledger, pace, None, b"", None, progress, None, "simulate"
    )

    def result(first: Sequence[int]) -> Ensemble | tuple[Ensemble, ...]:
        made = tuple(
            Ensemble(kept.times, _columns(model, names, kept.taken(point, number), values), names, values, seed, point)
            for point, (number, values) in enumerate(zip(first, cases, strict=True))
        )
        return made if several else made[0]

    try:
        campaign.run()
    except KeyboardInterrupt:
        message = f"stopped after {ledger.done:,} of {ledger.total:,} runs; .partial has the first runs of each point"
        raise Interrupted(message, result(_prefixes(ledger))) from None
    if kept.cut:
        message = (
            f"{plural(len(kept.cut), 'run')} reached max_events = {max_events:,}; what follows is unknown, and NaN"
        )
        warnings.warn(f"{message}\n  raise max_events, or end times earlier", SateenWarning, stacklevel=2)
    return result([runs] * len(cases))


@dataclass(frozen=True, slots=True)
class _States:
    """The states of all runs, point after point, as far as they are made: what a campaign makes instead of counts.

    They are kept in the smallest type that holds them: counts up to 255 take a byte each.
    """

    runner: Runner
    times: FloatArray
    runs: int
    seed: int
    max_events: int
    kept: list[Array]  # one array, which may give way to one of a wider type
    cut: list[tuple[int, int]]  # point and number of the runs that max_events cut short
    lock: threading.Lock
    interruptible_soon: ClassVar[bool] = True

    @staticmethod
    def planned(
        model: Model, species: tuple[str, ...], times: FloatArray, points: int, runs: int, seed: int, max_events: int
    ) -> _States:
        """Room for the states of this many runs at every point."""
        from sateen.engine.run import Runner  # LLVM is loaded now

        shape = (points * _whole("runs", runs), len(times), len(species))
        whole = all(variable.whole for variable in model.variables if variable.name in species)
        try:
            if math.prod(shape) > _MOST_VALUES:
                raise MemoryError
            room = np.empty(shape, _TYPES[0 if whole else -1])
        except MemoryError:
            sizes = f"{points * runs:,} runs at {len(times):,} times, {plural(len(species), 'value')} each"
            remedy = "keep fewer {species} or {times}, or make the {runs} in parts, each with its own {seed}"
            raise InputError(f"{sizes}, are too many to be held", argument="runs", remedy=remedy) from None
        runner = Runner(model, (), watched=species)
        return _States(runner, times, runs, seed, max_events, [room], [], threading.Lock())

    @property
    def needs_compile(self) -> bool:
        return not self.runner.is_compiled

    def count(self, theta: FloatArray, items: IntArray) -> Tally:
        """Makes and keeps the runs of the items; there is nothing to count."""
        most = max(_LEAST_RUNS, _AT_ONCE // (len(self.times) * max(len(self.runner.watched), 1)))
        for rows, some in _blocks(items, most):
            states = self.runner.states(theta[rows], some, self.times, seed=self.seed, max_events=self.max_events)
            self._keep(int(some[0, 0]) * self.runs + int(some[0, 1]), states)
        return Tally(np.zeros((0, len(items)), np.int64), np.zeros((0, 0, len(items)), np.int64))

    def raise_if_hopeless(self, ledger: Ledger) -> None:
        """Never: each run is as good as any other."""

    def taken(self, point: int, number: int) -> Array:
        """The first runs of a point."""
        first = point * self.runs
        return self.kept[0][first : first + number]

    def _keep(self, begin: int, states: FloatArray) -> None:
        low, high = (float(states.min()), float(states.max())) if states.size else (0.0, 0.0)
        with self.lock:  # the array must not give way to another while it is written
            room = self.kept[0]
            if room.dtype.kind != "f" and not _holds(room.dtype, low, high):
                wider = next(each for each in map(np.dtype, _TYPES) if _holds(each, low, high))
                self.kept[0] = room = room.astype(wider)
            room[begin : begin + len(states)] = states
            if low != low:
                rows = np.flatnonzero(np.isnan(states).any(axis=(1, 2)))
                self.cut.extend(divmod(begin + row, self.runs) for row in rows.tolist())


def _blocks(items: IntArray, most: int) -> Iterator[tuple[list[int], IntArray]]:
    """The items, cut and joined so that at most this many runs are made at once, and the rows of theta they go with."""
    rows: list[int] = []
    some: list[tuple[int, int, int]] = []
    room = most
    for row, (point, first, number) in enumerate(items.tolist()):
        while number:
            taken = min(room, number)
            rows.append(row)
            some.append((point, first, taken))
            first, number, room = first + taken, number - taken, room - taken
            if not room:
                yield rows, np.array(some, np.int64)
                rows, some, room = [], [], most
    if some:
        yield rows, np.array(some, np.int64)


def _holds(kind: np.dtype[np.generic], low: float, high: float) -> bool:
    """Whether a type has all counts from `low` to `high`; what is not a number only floats have."""
    return kind.kind == "f" or (np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)  # type: ignore[type-var]


def _prefixes(ledger: Ledger) -> list[int]:
    """How many runs of each point are made before the first that is not."""
    gaps, ends = ledger.gaps(), np.cumsum(ledger.runs).tolist()
    found = []
    for end, runs in zip(ends, ledger.runs.tolist(), strict=True):
        missing = next((begin for begin, stop in gaps if stop > end - runs), end)
        found.append(min(max(missing - (end - runs), 0), runs))
    return found


def _thetas(
    theta: Mapping[str, float] | Points | Sequence[Mapping[str, float]] | DataFrame | None,
) -> list[Mapping[str, float] | None]:
    """Each θ of one or several."""
    several: Iterable[object] = theta if isinstance(theta, Points | Sequence) else [theta]
    if is_frame(theta):
        several = theta.to_dict("records")  # type: ignore[union-attr]
    found: list[Mapping[str, float] | None] = []
    for each in several:
        if each is not None and not isinstance(each, Mapping):
            known = "a mapping of parameters to values, Points, a data frame or a list of mappings"
            raise InputError(f"{{theta}} is {known}, not {shown(each)}", argument="theta")
        found.append(each)
    return found


def _names(model: Model, chosen: str | Sequence[str] | None) -> tuple[str, ...]:
    """The species and observables to show, in the order in which they are given."""
    known = (*model.species, *(observable.name for observable in model.observables))
    if not isinstance(chosen, Iterable | None):
        raise InputError(f"{{species}} are names, not {shown(chosen)}", argument="species")
    names = known if chosen is None else (chosen,) if isinstance(chosen, str) else tuple(chosen)
    for name in names:
        if name not in known:
            hint = nearest(str(name), known) or f"it has {names_text(known)}"
            raise InputError(f"the model has no species {name}; {hint}", argument="species")
    if len(set(names)) < len(names) or not names:
        raise InputError("{species} are names, each once, and at least one", argument="species")
    return names


def _watched(model: Model, names: Sequence[str]) -> tuple[str, ...]:
    """The species among the names, and those that the observables among them read."""
    read = {name for each in model.observables if each.name in names for name in each.value.names}
    shown = [name for name in names if name in model.species]
    return (*shown, *(name for name in model.species if name in read and name not in shown))


def _columns(model: Model, names: Sequence[str], states: Array, values: Mapping[str, float]) -> Array:
    """The states with a column for each name, computed where it is an observable."""
    watched = _watched(model, names)
    if watched == tuple(names):
        return states
    columns = {name: states[..., place].astype(np.float64) for place, name in enumerate(watched)}
    environment = {**values, **columns}
    for observable in model.observables:
        if observable.name in names:
            columns[observable.name] = np.broadcast_to(observable.value.evaluate(environment), states.shape[:2])
    return np.stack([columns[name] for name in names], axis=-1)


def _whole(name: str, value: object) -> int:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise InputError(f"{{{name}}} is a whole number from 1 up, not {value!r}", argument=name)
    return int(value)


def _check_alone(until: float | None, **others: object) -> None:
    """Refuse what one path has no use for."""
    if until is None:
        raise InputError("how long? pass {until} for one path, or {times} and {runs} for many", argument="until")
    if given := [name for name, value in others.items() if value is not None]:
        message = f"{{{given[0]}}} is for many runs, which also need {{times}}; {{until}} makes one path"
        raise InputError(message, argument=given[0])
