"""`observe` and `observe_held_out`: many runs at many points, and how many of them satisfy a formula."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Final, TypedDict, TypeGuard, Unpack, overload

import numpy as np
import numpy.typing as npt

from sateen.core.counts import counts_of
from sateen.core.errors import InputError, Interrupted, MissingValueError, PoolError, StoreError
from sateen.core.fingerprints import checksum
from sateen.core.observations import Observations
from sateen.core.progress import USUAL, Progress, watcher
from sateen.core.seeds import check_seed, stream_seed
from sateen.core.space import Points, Range, Space
from sateen.core.threads import processors
from sateen.core.types import File
from sateen.core.version import VERSION
from sateen.language.expression import LARGEST_WHOLE
from sateen.logic.formula import Formula
from sateen.logic.parser import formula_of
from sateen.model.given import check_model
from sateen.model.model import Model
from sateen.pools.pool import Executing, opened
from sateen.sampling.campaign import FIRST_SIZE, Campaign, Pace
from sateen.sampling.ledger import Ledger
from sateen.sampling.parts import Part, check_part
from sateen.sampling.remote import order_of
from sateen.sampling.source import BlackBox, Function, Simulated, Source, name_of, relevant
from sateen.sampling.store import Store

MAX_EVENTS: Final = 1_000_000
_CHECKED_AT_ONCE: Final = 1 << 17  # points


class ObserveOptions(TypedDict, total=False):
    """The optional arguments of `observe`."""

    workers: int | None
    executor: Executing | None
    store: File | None
    progress: Progress | None
    max_events: int
    max_time: float
    max_population: int | None
    chunk: int | None
    part: Part | None


@overload
def observe(
    model: Model | Function,
    formula: Formula | str | None,
    points: Points,
    runs: int | npt.ArrayLike,
    *,
    seed: int,
    **options: Unpack[ObserveOptions],
) -> Observations: ...
@overload
def observe(
    model: Model | Function,
    formula: Mapping[str, Formula | str],
    points: Points,
    runs: int | npt.ArrayLike,
    *,
    seed: int,
    **options: Unpack[ObserveOptions],
) -> dict[str, Observations]: ...
def observe(
    model: Model | Function,
    formula: Formula | str | Mapping[str, Formula | str] | None,
    points: Points,
    runs: int | npt.ArrayLike,
    *,
    seed: int,
    workers: int | None = None,
    executor: Executing | None = None,
    store: File | None = None,
    progress: Progress | None = USUAL,
    max_events: int = MAX_EVENTS,
    max_time: float = math.inf,
    max_population: int | None = None,
    chunk: int | None = None,
    part: Part | None = None,
) -> Observations | dict[str, Observations]:
    """Count how many of `runs` independent runs of the model satisfy the formula, at each of the points.

    The formula may be text. `runs` is a number, or one for each point. A run is fixed by (seed, point index, run
    index), so the counts are the same for any `workers`, `executor` and `chunk` (the number of runs that a worker gets
    at once). A dict of formulas is decided on one set of runs, and gives a dict of Observations.

    A run is undecided if it reaches `max_events` transitions, the time `max_time` or a count above `max_population`
    before its verdict is known. With `store`, the name of a file, every finished chunk is kept: a campaign that was
    stopped resumes where it was, and a complete one is not run again. Ctrl-C raises Interrupted, whose `partial` has
    the runs made so far. With `part=(3, 40)`, only the third of forty disjoint parts of the runs is made; `merge` joins
    the stores of all parts.

    `executor` says where the runs are made: an Executor of concurrent.futures, a dask Client, a Pool (see `open_pool`),
    or an address such as "local:4" or "tls://host:8786". `workers` limits how many of its places are used.

    Instead of a model, give a black box: a function `callable(theta: dict, rng: numpy Generator)` that returns a Path,
    or a bool with `formula=None`.

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
    progress = watcher(progress)
    named = _named(formula)
    _check(model, named, points, seed, workers, chunk)
    if part is not None and store is None:
        raise InputError("{part} needs {store}: parts are joined by merging their stores", argument="part")
    counts = counts_of(runs, len(points), "runs")
    order = _Order(model, named, points, int(seed), max_events, max_time, max_population)
    source = order.source()
    ledger = Ledger(counts, source.size, source.reasons, None if part is None else check_part(part))
    threads = workers or (1 if isinstance(source, BlackBox) else processors())

    def result() -> Observations | dict[str, Observations]:
        decided: dict[str, Formula | None] = {**named} or {"": None}
        observations = {name: order.observations(each, ledger) for name, each in decided.items()}
        return observations if isinstance(formula, Mapping) else observations[""]

    pace = Pace(chunk, threads, first=FIRST_SIZE if source.interruptible_soon else 1)
    arrays = {"theta": points.theta, "runs": ledger.runs}
    try:
        database: AbstractContextManager[Store | None] = nullcontext()
        if store is not None:
            database = Store(store, order.identity(source), arrays, _now())
        with database as stored, opened(executor) as pool:
            if stored:
                stored.load(ledger)
            told = b"" if pool is None else order_of(source)
            Campaign(source, points.theta, ledger, pace, pool, told, workers, progress, stored).run()
    except KeyboardInterrupt:
        asked = ledger.done + ledger.pending
        kept = ".partial has them" if store is None else f"the store {os.fspath(store)} has them: run the same again"
        raise Interrupted(f"stopped after {ledger.done:,} of {asked:,} runs; {kept}", result()) from None
    except (StoreError, PoolError) as error:
        error.partial = result() if ledger.done else None
        raise
    return result()


@overload
def observe_held_out(
    model: Model | Function,
    formula: Formula | str | None,
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
    formula: Mapping[str, Formula | str],
    space: Space,
    points: int,
    runs: int,
    *,
    seed: int,
    **options: Unpack[ObserveOptions],
) -> dict[str, Observations]: ...
def observe_held_out(
    model: Model | Function,
    formula: Formula | str | Mapping[str, Formula | str] | None,
    space: Space,
    points: int,
    runs: int,
    *,
    seed: int,
    **options: Unpack[ObserveOptions],
) -> Observations | dict[str, Observations]:
    """`observe` at a number of fresh points, drawn independently and uniformly from the space.

    Points and runs have separate random streams, derived from `seed` by name. So they share no random numbers with each
    other, nor with training observations made with the same seed.

    >>> from sateen import stl
    >>> model = Model.parse("species A = 10\\nA -> 0 @ mass_action(k)")
    >>> held_out = observe_held_out(model, stl("F[0, 2] A == 0"), Space(k=(0.1, 2.0)), points=5, runs=100, seed=1)
    >>> held_out.points.iid, held_out.trials.tolist()
    (True, [100, 100, 100, 100, 100])
    """
    check_seed(seed, of_runs=True)
    chosen = space.uniform(points, seed=stream_seed(seed, "held-out points"))
    return observe(model, formula, chosen, runs, seed=stream_seed(seed, "held-out runs"), **options)


def campaign_key(
    model: Model | Function,
    formula: Formula | str | Mapping[str, Formula | str] | None,
    points: Points,
    runs: int,
    *,
    seed: int,
    max_events: int = MAX_EVENTS,
    max_time: float = math.inf,
    max_population: int | None = None,
) -> str:
    """The key under which a store has what `observe` would make."""
    order = _Order(model, _named(formula), points, int(seed), max_events, max_time, max_population)
    arrays = {"theta": points.theta, "runs": counts_of(runs, len(points), "runs")}
    return checksum(order.identity(order.source()), arrays)


def is_about(
    key: str,
    words: Mapping[str, object],
    model: object,
    formula: Mapping[str, Formula | str] | None,
    points: Points,
    runs: int,
    *,
    seed: int,
    **caps: float,
) -> bool:
    """Whether a campaign in a store, by its key and what it says of itself, has the runs that `observe` would make.

    Unlike `campaign_key` this translates no model and loads no function: a black box is assumed to be the one in the
    store.
    """
    identity = {name: value for name, value in words.items() if name != "runs"}
    arrays = {"theta": points.theta, "runs": counts_of(runs, len(points), "runs")}
    asked: dict[str, object] = {"seed": seed, "sateen": VERSION}
    if isinstance(model, Model):
        asked |= {"model": str(model), "max_events": MAX_EVENTS, "max_time": math.inf, "max_population": None, **caps}
        asked["max_time"] = str(float(asked["max_time"]))  # type: ignore[arg-type]
    asked["formulas"] = [[str(each), each.end] for each in _distinct(_named(formula))]
    return all(identity.get(name) == value for name, value in asked.items()) and checksum(identity, arrays) == key


def _distinct(named: Mapping[str, Formula]) -> tuple[Formula, ...]:
    """The formulas, each once, in an order that does not depend on their names."""
    return tuple(sorted(set(named.values()), key=lambda each: (str(each), each.end is not None, each.end or 0.0)))


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
        return _distinct(self.named)

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
        """All that decides the counts besides the points, by which a store knows the campaign."""
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
            if self.model.assumptions:
                described["assuming"] = self.model.assumption
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


def _named(formula: Formula | str | Mapping[str, Formula | str] | None) -> dict[str, Formula]:
    """The formulas by name; a single one has the name "", and for None there is none."""
    named = dict(formula) if isinstance(formula, Mapping) else {} if formula is None else {"": formula}
    if isinstance(formula, Mapping) and not named:
        raise InputError("the dict of formulas is empty; name at least one")
    where = {name: f"{{formula}}[{name!r}]" if isinstance(formula, Mapping) else "{formula}" for name in named}
    return {name: formula_of(each, where[name]) for name, each in named.items()}


def _check(
    model: object,
    named: Mapping[str, Formula],
    points: object,
    seed: int,
    workers: object,
    chunk: object,
) -> None:
    check_model(model, or_callable=True)
    if isinstance(model, Model) and not named:
        raise InputError("a model needs a formula to decide its runs; formula=None is for black boxes that return bool")
    if not isinstance(points, Points):
        raise InputError(f"points are Points of a Space, not a {type(points).__name__}; write space.points(...)")
    given, known = dict(points.space.parameters), model.parameters if isinstance(model, Model) else ()
    missing = [each.name for each in known if each.default is None and each.name not in given]
    if missing and given.keys() <= {each.name for each in known}:
        remedy = f"give it a range or a number in the Space: Space(..., {missing[0]}=...)"
        raise MissingValueError(f"the parameter {missing[0]} has no value", remedy=remedy)
    check_seed(seed, of_runs=True)
    for name, value in (("workers", workers), ("chunk", chunk)):
        if value is not None and not (_whole(value) and value >= 1):
            raise InputError(f"{name} is a whole number from 1 up, not {value!r}")


def _whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _versions() -> dict[str, str]:
    """What the runs are made with."""
    libraries = {"numpy": np.__version__, "llvmlite": version("llvmlite")}
    return {"sateen": VERSION, **libraries, "python": platform.python_version()}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
