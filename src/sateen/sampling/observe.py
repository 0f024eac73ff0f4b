"""`observe` and `observe_held_out`: many runs at many points, and how many of them satisfy a formula."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Mapping
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Final, TypedDict, TypeGuard, Unpack, overload

import numpy as np
import numpy.typing as npt

from sateen.core.counts import counts_of
from sateen.core.errors import InputError, Interrupted, StoreError
from sateen.core.observations import Observations
from sateen.core.progress import SILENT, Progress
from sateen.core.seeds import stream_seed
from sateen.core.space import Points, Range, Space
from sateen.core.threads import processors
from sateen.core.types import File
from sateen.core.version import VERSION
from sateen.language.expression import LARGEST_WHOLE
from sateen.logic.formula import Formula
from sateen.model.model import Model
from sateen.sampling.campaign import FIRST_SIZE, Campaign, Pace
from sateen.sampling.ledger import Ledger
from sateen.sampling.source import BlackBox, Function, Simulated, Source, name_of, relevant
from sateen.sampling.store import Store

MAX_EVENTS: Final = 1_000_000
_MOST_SEED: Final = 2**63
_CHECKED_AT_ONCE: Final = 1 << 17  # points


class ObserveOptions(TypedDict, total=False):
    """The optional arguments of `observe`."""

    workers: int | None
    executor: Executor | None
    store: File | None
    progress: Progress
    max_events: int
    max_time: float
    max_population: int | None
    chunk: int | None


@overload
def observe(
    model: Model | Function,
    formula: Formula | None,
    points: Points,
    runs: int | npt.ArrayLike,
    *,
    seed: int,
    **options: Unpack[ObserveOptions],
) -> Observations: ...
@overload
def observe(
    model: Model | Function,
    formula: Mapping[str, Formula],
    points: Points,
    runs: int | npt.ArrayLike,
    *,
    seed: int,
    **options: Unpack[ObserveOptions],
) -> dict[str, Observations]: ...
def observe(
    model: Model | Function,
    formula: Formula | Mapping[str, Formula] | None,
    points: Points,
    runs: int | npt.ArrayLike,
    *,
    seed: int,
    workers: int | None = None,
    executor: Executor | None = None,
    store: File | None = None,
    progress: Progress = SILENT,
    max_events: int = MAX_EVENTS,
    max_time: float = math.inf,
    max_population: int | None = None,
    chunk: int | None = None,
) -> Observations | dict[str, Observations]:
    """How many of `runs` independent runs of the model, at each of the points, satisfy the formula.

    `runs` is a number, or one for each point. A run is fixed by (seed, point index, run index), so the counts are the
    same for any `workers`, `executor` and `chunk` (the number of runs that are handed out at once). A dict of formulas
    is decided on one set of runs, and a dict comes back.

    A run that fires `max_events` transitions, or passes `max_time`, or in which a count passes `max_population`, before
    the verdict is known, is undecided. With `store`, the name of a file, every chunk is kept as it is done: a campaign
    that was stopped goes on where it was, and one that is complete is not run again. Ctrl-C raises Interrupted, which
    has what is done.

    In the place of the model a black box will do: `callable(theta: dict, rng: numpy Generator)` that returns a bool,
    with `formula=None`, or a Path.

    >>> from sateen import Space, stl
    >>> model = Model.parse('''
    ...     species A = 10
    ...     A -> 0 @ mass_action(k)
    ... ''')
    >>> points = Space(k=(0.1, 2.0)).grid(3)
    >>> obs = observe(model, stl("F[0, 2] A == 0"), points, runs=1000, seed=1)
    >>> bool(abs(obs.frequency[-1] - (1 - np.exp(-4.0)) ** 10) < 0.05)
    True
    """
    named = _named(formula)
    _check(model, named, points, seed, workers, executor, chunk)
    counts = counts_of(runs, len(points), "runs")
    order = _Order(model, named, points, int(seed), max_events, max_time, max_population)
    source = order.source()
    ledger = Ledger(counts, source.size, source.reasons)
    if workers is None:
        workers = 1 if executor is None and isinstance(source, BlackBox) else processors()

    def result() -> Observations | dict[str, Observations]:
        decided: dict[str, Formula | None] = {**named} or {"": None}
        observations = {name: order.observations(each, ledger) for name, each in decided.items()}
        return observations if isinstance(formula, Mapping) else observations[""]

    pace = Pace(chunk, workers, first=FIRST_SIZE if source.interruptible_soon else 1)
    arrays = {"theta": points.theta, "runs": ledger.runs}
    try:
        opened: AbstractContextManager[Store | None] = nullcontext()
        if store is not None:
            opened = Store(store, order.identity(source), arrays, _now())
        with opened as stored:
            if stored:
                stored.load(ledger)
            Campaign(source, points.theta, ledger, pace, executor, progress, stored).run()
    except KeyboardInterrupt:
        kept = ".partial has them" if store is None else f"the store {os.fspath(store)} has them: run the same again"
        raise Interrupted(f"stopped after {ledger.done:,} of {ledger.total:,} runs; {kept}", result()) from None
    except StoreError as error:
        error.partial = result() if ledger.done else None
        raise
    return result()


@overload
def observe_held_out(
    model: Model | Function,
    formula: Formula | None,
    space: Space,
    points: int,
    runs: int,
    *,
    seed: int,
    **options: Unpack[ObserveOptions],
) -> Observations: ...
@overload
def observe_held_out(
    model: Model | Function,
    formula: Mapping[str, Formula],
    space: Space,
    points: int,
    runs: int,
    *,
    seed: int,
    **options: Unpack[ObserveOptions],
) -> dict[str, Observations]: ...
def observe_held_out(
    model: Model | Function,
    formula: Formula | Mapping[str, Formula] | None,
    space: Space,
    points: int,
    runs: int,
    *,
    seed: int,
    **options: Unpack[ObserveOptions],
) -> Observations | dict[str, Observations]:
    """`observe` at a number of fresh points, drawn independently and uniformly from the space.

    The points and the runs have streams of their own, derived from `seed` by name. So they share no random numbers with
    each other, nor with training observations that were made with the same seed.

    >>> from sateen import stl
    >>> model = Model.parse("species A = 10\\nA -> 0 @ mass_action(k)")
    >>> held_out = observe_held_out(model, stl("F[0, 2] A == 0"), Space(k=(0.1, 2.0)), points=5, runs=100, seed=1)
    >>> held_out.points.iid, held_out.trials.tolist()
    (True, [100, 100, 100, 100, 100])
    """
    _check_seed(seed)
    chosen = space.uniform(points, seed=stream_seed(seed, "held-out points"))
    return observe(model, formula, chosen, runs, seed=stream_seed(seed, "held-out runs"), **options)


@dataclass(frozen=True, slots=True)
class _Order:
    """What is to be observed, and where runs of a model are stopped."""

    model: Model | Function
    named: Mapping[str, Formula]
    points: Points
    seed: int
    max_events: int
    max_time: float
    max_population: int | None

    @property
    def formulas(self) -> tuple[Formula, ...]:
        """The formulas, each once, in an order that does not depend on their names."""
        return tuple(
            sorted(set(self.named.values()), key=lambda each: (str(each), each.end is not None, each.end or 0.0))
        )

    def source(self) -> Source:
        """What makes the runs, after a check that it can make them at all of the points."""
        if not isinstance(self.model, Model):
            if (self.max_events, self.max_time, self.max_population) != (MAX_EVENTS, math.inf, None):
                raise InputError(
                    "max_events, max_time and max_population are for models; a black box ends its own runs"
                )
            return BlackBox(self.model, self.formulas, self.points.space, self.seed)
        most = self.max_population
        if most is not None and not (_whole(most) and 0 <= most < LARGEST_WHOLE):
            raise InputError(
                f"{{max_population}} is a count, from 0 to 2^53 - 1, not {most!r}", argument="max_population"
            )
        space = self.points.space
        typical = {name: each.low if isinstance(each, Range) else each for name, each in space.parameters}
        values = self.model.values(typical)  # an error if a name is unknown, or a value missing
        names = [parameter.name for parameter in self.model.parameters]
        columns = tuple(space.names.index(name) if name in space.names else values[name] for name in names)
        limits = (self.max_events, float(self.max_time), most)
        source = Simulated(self.model, self.formulas, columns, self.seed, *limits)
        for first in range(0, max(len(self.points), 1), _CHECKED_AT_ONCE):
            some = self.points.theta[first : first + _CHECKED_AT_ONCE]
            source.count(some, np.zeros((len(some), 3), np.int64))  # no run, but the checks before the first
        return source

    def identity(self, source: Source) -> dict[str, object]:
        """All that decides the counts beside the points, by which a store knows the campaign."""
        space = self.points.space
        return {
            "seed": self.seed,
            "sateen": VERSION,
            "names": space.names,
            "fixed": dict(space.fixed),
            **source.identity(),
        }

    def observations(self, formula: Formula | None, ledger: Ledger) -> Observations:
        """What the ledger has on one formula."""
        place = 0 if formula is None else self.formulas.index(formula)
        reasons = ledger.undecided(place)
        undecided = sum(reasons.values(), start=np.zeros(len(self.points), np.int64))
        names = self.points.space.names
        described: dict[str, object] = {}
        if isinstance(self.model, Model):
            limit = None if math.isinf(self.max_time) else self.max_time
            described = {"model": str(self.model), "max_events": self.max_events, "max_time": limit}
            described["max_population"] = self.max_population
            if formula is not None and not undecided.any():
                names = tuple(name for name in relevant(self.model, formula) if name in names)
        else:
            described["model"] = f"black box {name_of(self.model)}"
        asked = {"formula": None, "end": None} if formula is None else {"formula": str(formula), "end": formula.end}
        return Observations(
            self.points,
            ledger.satisfied[place],
            undecided,
            ledger.trials(),
            seed=self.seed,
            provenance={**described, **asked, "seed": self.seed, "versions": _versions(), "created": _now()},
            relevant=names,
            reasons=reasons,
            failures=ledger.failures,
            seconds=ledger.seconds,
        )


def _named(formula: Formula | Mapping[str, Formula] | None) -> dict[str, Formula]:
    """The formulas by name; a single one has the name "", and for None there is none."""
    named = dict(formula) if isinstance(formula, Mapping) else {} if formula is None else {"": formula}
    if isinstance(formula, Mapping) and not named:
        raise InputError("the dict of formulas is empty; name at least one")
    for name, each in named.items():
        if not isinstance(each, Formula):
            where = f"formula[{name!r}]" if isinstance(formula, Mapping) else "formula"
            advice = f"write stl({each!r})" if isinstance(each, str) else "make one with stl(...)"
            raise InputError(f"{where} is a {type(each).__name__}, not a Formula; {advice}")
    return named


def _check(
    model: object,
    named: Mapping[str, Formula],
    points: object,
    seed: int,
    workers: object,
    executor: object,
    chunk: object,
) -> None:
    if not isinstance(model, Model) and not callable(model):
        advice = "Model.parse(text) reads one" if isinstance(model, str) else "make a Model, or pass a callable"
        raise InputError(f"a model is needed, not a {type(model).__name__}; {advice}")
    if isinstance(model, Model) and not named:
        raise InputError("a model needs a formula to decide its runs; formula=None is for black boxes that return bool")
    if not isinstance(points, Points):
        raise InputError(f"points are Points of a Space, not a {type(points).__name__}; write space.points(...)")
    _check_seed(seed)
    for name, value in (("workers", workers), ("chunk", chunk)):
        if value is not None and not (_whole(value) and value >= 1):
            raise InputError(f"{name} is a whole number from 1 up, not {value!r}")
    if executor is not None and not hasattr(executor, "submit"):
        raise InputError(f"executor is a concurrent.futures.Executor, not a {type(executor).__name__}")


def _check_seed(seed: object) -> None:
    """Raise if `seed` is no seed of runs."""
    if not (_whole(seed) and 0 <= seed < _MOST_SEED):
        raise InputError(f"seed is a whole number from 0 to 2^63 - 1, not {seed!r}")


def _whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _versions() -> dict[str, str]:
    """What the runs are made with."""
    return {"sateen": VERSION, "numpy": np.__version__, "numba": version("numba"), "python": platform.python_version()}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
