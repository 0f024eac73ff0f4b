"""On which scale a learner looks at the parameters: as the recipe says, or as the evidence decides."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.seeds import stream
from sateen.core.threads import on_one_thread
from sateen.learning.gp.hyper import Climb, first_kernel, maximise
from sateen.learning.gp.kernels import Kernel
from sateen.learning.gp.sparse import choose_inducing, inducing_for
from sateen.learning.gp.variational import evaluate_elbo, objective_of
from sateen.learning.inputs import Inputs, inputs_of, sample_of
from sateen.learning.likelihood import Counts
from sateen.learning.settings import InputScale

_ROWS: Final = 600  # are enough to tell the scales apart
_INDUCING: Final = 150
_ADVANTAGE: Final = 5.0  # nats that linear inputs must win by: rates act by their ratios far more often than not


def scales_differ(observations: Observations) -> bool:
    """Whether "auto" has anything to choose: a parameter that matters and has a logarithm, not declared on a log scale.

    A range that is declared on a log scale is learned on one: part of a training has overruled that by 6 nats of
    evidence, at the price of half the coverage.
    """
    ranges = (observations.space.ranges[name] for name in observations.relevant)
    return any(range_.low > 0 and range_.scale != "log" for range_ in ranges)


@on_one_thread
def choose_inputs(
    observations: Observations, inputs: InputScale, seed: int, step: Callable[[], None] = lambda: None
) -> tuple[Inputs, tuple[str, ...], Kernel | None]:
    """The inputs of a learner, notes about them, and the kernel that a comparison found for them.

    "log" and "linear" are used as given. With "auto", ranges that are declared on a log scale are learned on one. For
    the others, a Gaussian process with either scale is fitted to at most 600 rows, drawn by the seed; they are log
    unless linear wins the evidence by more than 5 nats. `step` is called after each evaluation, and may raise.
    """
    notes = _left_out(observations)
    if inputs == "linear":
        return inputs_of(observations, "linear"), notes, None
    if inputs == "auto" and not scales_differ(observations):
        return inputs_of(observations, "declared"), notes, None
    if inputs == "log":
        for name in observations.relevant:
            if (range_ := observations.space.ranges[name]).low <= 0:
                remedy = "use inputs='auto', or move its lower end above 0"
                raise InputError(f"inputs='log' needs positive parameters, and {name} goes from {range_}; {remedy}")
        return inputs_of(observations, "log"), notes, None
    log, linear = inputs_of(observations, "log"), inputs_of(observations, "declared")
    climbs = [_fitted(observations, each, seed, step) for each in (log, linear)]
    lead = climbs[0].score - climbs[1].score
    straight = lead < -_ADVANTAGE
    return (linear if straight else log), (*notes, _verdict(log, linear, lead)), climbs[straight].kernel


def _fitted(observations: Observations, inputs: Inputs, seed: int, step: Callable[[], None]) -> Climb:
    """A Matérn process fitted to some of the rows."""
    sample = sample_of(observations, inputs).some(_ROWS, stream(seed, "scale"))
    start = first_kernel("matern", sample.x.shape[1])
    points = choose_inducing(start, sample.x, min(_INDUCING, inducing_for(sample.x.shape[1])))
    objective = objective_of(partial(evaluate_elbo, most=15), Counts.of(sample, "probit"), sample.x)
    climb = maximise(lambda kernel, _: objective(kernel, points), start, most=25, relative_gain=1e-5, step=step)
    if climb.interrupted:
        raise KeyboardInterrupt  # nothing is learned yet
    return climb


def _left_out(observations: Observations) -> tuple[str, ...]:
    names = [name for name in observations.space.names if name not in observations.relevant]
    if not names:
        return ()
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return (f"{listed} cannot affect the verdict and {'is' if len(names) == 1 else 'are'} left out",)


def _verdict(log: Inputs, linear: Inputs, lead: float) -> str:
    """Which of the two inputs were chosen, and by how much evidence."""
    straight = [name for name, scale in zip(log.names, log.scales, strict=True) if scale == "linear"]
    declared = [name for name, scale in zip(linear.names, linear.scales, strict=True) if scale == "log"]
    if lead < -_ADVANTAGE:
        but = f" (but {', '.join(declared)} on a log scale, as declared)" if declared else ""
        return f"inputs on a linear scale{but}, whose log evidence is {-lead:.3g} above that of a log scale"
    but = f" (but {', '.join(straight)} linear, with a range that is not positive)" if straight else ""
    if lead >= 0:
        return f"inputs on a log scale{but}, whose log evidence is {lead:.3g} above that of a linear scale"
    short = f"the log evidence of a linear scale is only {-lead:.3g} higher, and {_ADVANTAGE:g} is required"
    return f"inputs on a log scale{but}: {short}"
