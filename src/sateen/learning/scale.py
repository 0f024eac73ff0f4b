"""On which scale a learner looks at the parameters: as the recipe says, or as the evidence decides."""

from __future__ import annotations

from functools import partial
from typing import Final

from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.seeds import stream
from sateen.core.space import Scale
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
    """Whether "auto" has anything to choose: a parameter that matters, and that has a logarithm."""
    return any(observations.space.ranges[name].low > 0 for name in observations.relevant)


@on_one_thread
def choose_inputs(
    observations: Observations, inputs: InputScale, seed: int
) -> tuple[Inputs, tuple[str, ...], Kernel | None]:
    """The inputs of a learner, notes about them, and the kernel that a comparison found for them.

    "log" and "linear" are used as given. "auto" fits a Gaussian process with either to at most 600 rows, drawn by
    the seed, and takes log unless linear wins the evidence by more than 5 nats.
    """
    notes = _left_out(observations)
    if inputs == "linear" or (inputs == "auto" and not scales_differ(observations)):
        return inputs_of(observations, "linear"), notes, None
    if inputs == "log":
        for name in observations.relevant:
            if (range_ := observations.space.ranges[name]).low <= 0:
                remedy = "use inputs='auto', or move its lower end above 0"
                raise InputError(f"inputs='log' needs positive parameters, and {name} goes from {range_}; {remedy}")
        return inputs_of(observations, "log"), notes, None
    climbs = {scale: _fitted(observations, scale, seed) for scale in ("log", "linear")}
    lead = climbs["log"].score - climbs["linear"].score
    scale: Scale = "linear" if lead < -_ADVANTAGE else "log"
    chosen = inputs_of(observations, scale)
    return chosen, (*notes, _verdict(chosen, lead)), climbs[scale].kernel


def _fitted(observations: Observations, scale: Scale, seed: int) -> Climb:
    """A Matérn process fitted to some of the rows, with inputs on a scale."""
    sample = sample_of(observations, inputs_of(observations, scale)).some(_ROWS, stream(seed, "scale"))
    start = first_kernel("matern", sample.x.shape[1])
    points = choose_inducing(start, sample.x, min(_INDUCING, inducing_for(sample.x.shape[1])))
    objective = objective_of(partial(evaluate_elbo, most=15), Counts.of(sample, "probit"), sample.x)
    climb = maximise(lambda kernel, _: objective(kernel, points), start, most=25, relative_gain=1e-5)
    if climb.interrupted:
        raise KeyboardInterrupt  # nothing is learned yet
    return climb


def _left_out(observations: Observations) -> tuple[str, ...]:
    names = [name for name in observations.space.names if name not in observations.relevant]
    if not names:
        return ()
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return (f"{listed} cannot affect the verdict and {'is' if len(names) == 1 else 'are'} left out",)


def _verdict(inputs: Inputs, lead: float) -> str:
    if "log" not in inputs.scales:
        return f"inputs on a linear scale, whose evidence is {-lead:.3g} nats above that of a log scale"
    straight = [name for name, scale in zip(inputs.names, inputs.scales, strict=True) if scale == "linear"]
    but = f" (but {', '.join(straight)} linear, with a range that is not positive)" if straight else ""
    if lead >= 0:
        return f"inputs on a log scale{but}, whose evidence is {lead:.3g} nats above that of a linear scale"
    return f"inputs on a log scale{but}: linear ones win the evidence by {-lead:.3g} nats only, not by {_ADVANTAGE:g}"
