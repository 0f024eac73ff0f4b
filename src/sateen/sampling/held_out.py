"""Held-out observations: fresh, independent uniform points of a space, which guarantees rest on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack, overload

from sateen.core.observations import Observations
from sateen.core.seeds import stream_seed
from sateen.core.space import Space
from sateen.logic.formula import Formula
from sateen.model.model import Model
from sateen.sampling.blackbox import Function
from sateen.sampling.observe import ObserveOptions, check_seed, observe

__all__ = ["observe_held_out"]


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
    check_seed(seed)
    chosen = space.uniform(points, seed=stream_seed(seed, "held-out points"))
    return observe(model, formula, chosen, runs, seed=stream_seed(seed, "held-out runs"), **options)
