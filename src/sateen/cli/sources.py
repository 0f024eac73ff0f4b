"""Where the command `learn` takes its observations from: a file of them, or a model that is observed first."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from sateen.cli.files import load, read_formula_on, reading, replacing, warn
from sateen.core.errors import InputError, Interrupted

if TYPE_CHECKING:
    from sateen.core.observations import Observations
    from sateen.core.space import Points, Range, Space

__all__ = ["DESIGNS", "observed", "stored_observations", "write_observations"]

DESIGNS = ("sobol", "uniform", "latin", "grid")
_MODELS = (".sateen", ".prism", ".sm")  # suffixes that no table has; .txt may be either
_SPACE = "--space 'beta=0.005:0.3,gamma=0.005:0.2:log'"


def stored_observations(file: str, given: Mapping[str, Range | float]) -> Observations:
    """The observations in a file that `save` or `to_csv` wrote, or in a table of another program with its space."""
    from zipfile import is_zipfile

    from sateen.core.observations import Observations
    from sateen.core.space import Space

    suffix = os.path.splitext(file)[1].lower()
    if suffix in _MODELS:
        raise click.UsageError(f"{file} is a model; say what to observe, with -p FORMULA and --vary beta=0.005:0.3")
    if suffix == ".safetensors":
        raise InputError(f"{file} is what was learned already; `sateen predict` and `sateen inspect` read it")
    if is_zipfile(file) and given:
        raise click.UsageError(f"--space: {file} tells its space itself")
    try:
        with reading(file):
            if is_zipfile(file):
                return Observations.load(file)
            return Observations.from_csv(file, Space(given) if given else None)
    except InputError as error:
        said = str(error).replace("pass it, from_csv(file, space)", f"give it, as in {_SPACE}")
        raise InputError(said.replace("or pass extrapolate=True", "or widen the range")) from None


def observed(
    model: str,
    text: str,
    vary: Mapping[str, Range],
    at: Mapping[str, float],
    *,
    end: float | None,
    design: str,
    points: int,
    runs: int,
    max_events: int,
    seed: int,
    file: str | None,
) -> Observations:
    """Observations of a model at points of a design; what an interrupted campaign has done is kept in `file`.

    The seeds of the design and of the runs are drawn from `seed`: no two stages share random numbers.
    """
    from numpy.random import SeedSequence

    from sateen.cli.progress import Bar
    from sateen.core.space import Space
    from sateen.sampling.observe import observe

    if twice := [name for name in at if name in vary]:
        raise click.UsageError(f"{twice[0]} is in --vary and in --at: either it varies or it is fixed")
    system = load(model)
    warn(system)
    for_design, for_runs = (int(child.generate_state(1)[0]) for child in SeedSequence(seed).spawn(2))
    chosen = _designed(Space({**vary, **at}), design, points, for_design)
    formula = read_formula_on(system, system.values(chosen[0]), text, end)
    try:
        return observe(system, formula, chosen, runs, seed=for_runs, max_events=max_events, progress=Bar())
    except Interrupted as stop:
        if file is not None and stop.partial is not None and stop.partial.trials.any():
            write_observations(stop.partial, file)
            click.echo(f"{file} has what was observed: {int(stop.partial.trials.sum()):,} runs", err=True)
        raise


def write_observations(observations: Observations, file: str) -> None:
    """Write them as a table if the name ends in .csv, and else as `save` does."""
    with replacing(file) as temporary:
        (observations.to_csv if file.lower().endswith(".csv") else observations.save)(temporary)


def _designed(space: Space, design: str, count: int, seed: int) -> Points:
    if design == "grid":
        return space.grid(count)
    drawn: Points = getattr(space, design)(count, seed=seed)
    return drawn
