"""How long the paper's tasks take: figures measured once, on two cores of an AMD EPYC.

They are for the forecast alone. Another machine is faster or slower as a whole, which a run notices on the way. All
are seconds of the whole, in which `cores` tasks run side by side where each takes one core.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from sateen.paper.presets import method_of
from sateen.paper.published import DIMENSIONS
from sateen.paper.questions import Question, questions

_CORES: Final = 2  # that the runs were timed on
_LETTERS: Final = "abcdefghil"

# Microseconds of a run by two workers, by configuration and by number of rates.
_RUN: Final[Mapping[str, float]] = MappingProxyType(
    dict(zip(_LETTERS, (0.45, 0.26, 0.4, 114, 137, 0.3, 0.3, 0.3, 0.3, 0.37), strict=True))
    | dict(zip(map(str, DIMENSIONS), (3.9, 0.8, 0.2, 0.3, 0.6, 2.1, 2.7), strict=True))
)
_COMPILING: Final = MappingProxyType({"d": 3.0, "e": 3.0, "random": 3.5})  # shared by the sets of a question
_EXACT: Final = 0.034  # seconds of a point

# Seconds of a fit with the preset fast.
_FIT: Final[Mapping[str, Mapping[str, float]]] = MappingProxyType(
    {
        "ep-gp": dict(zip(_LETTERS, (0.3, 0.7, 2.5, 0.5, 2.5, 0.2, 1.2, 3.1, 3.1, 5), strict=True))
        | dict(zip(map(str, DIMENSIONS), (5, 12, 13, 17, 23, 19, 26), strict=True)),
        "svi-gp": dict(zip(_LETTERS, (0.3, 0.6, 2.0, 0.5, 2.0, 0.2, 1.1, 2.9, 2.6, 60), strict=True))
        | dict(zip(map(str, DIMENSIONS), (5, 10, 10, 12, 17, 16, 21), strict=True)),
        "ep-gp-faithful": dict(zip(_LETTERS, (0.6, 0.7, 7, 0.5, 7, 0.2, 3, 14, 35, 0.1), strict=True))
        | dict(zip(map(str, DIMENSIONS), (35, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1), strict=True)),  # beyond, it refuses
        "svi-bnn": dict(zip(_LETTERS, (4, 5, 5, 4, 5, 4, 4, 7, 8, 60), strict=True))
        | dict(zip(map(str, DIMENSIONS), (6, 5, 6, 9, 6, 8, 7), strict=True)),
        "default": dict(zip(_LETTERS, (0.3, 0.6, 2.0, 0.5, 2.0, 0.2, 1.1, 2.9, 2.6, 60), strict=True))
        | dict(zip(map(str, DIMENSIONS), (5, 10, 11, 20, 14, 18, 17), strict=True)),
    }
)
# The presets faithful and as-run: epochs, seconds of a step, and how those of the process grow with inducing points.
_BATCH: Final = 100
_NETWORK_EPOCHS: Final = MappingProxyType({"svi-bnn-faithful": 2500, "svi-bnn-as-run": 5500})
_NETWORK_STEP: Final = 0.0001
_NETWORK_COMPILING: Final = 3.0
_PROCESSES: Final = ("svi-gp-faithful", "svi-gp-as-run")
_PROCESS_EPOCHS: Final = 2000
_PROCESS_STEP: Final = 0.19
_PROCESS_POWER: Final = 2.7
_MOST_INDUCING: Final = 1000

_SEARCH: Final = 0.006  # seconds of a search for networks, times the third power of their rates
_PLAN: Final = 5.0  # fits: a plan makes some, to see how much a posterior errs
LIFT_SECONDS: Final = 1.0
_GUARANTEE: Final = 7.0  # a training for the figures about guarantees, with its calibrations, on one core


def search_seconds(rates: int, cores: int) -> float:
    """The search for three networks with this many rates; several run side by side."""
    return (3.0 + _SEARCH * rates**3) / cores


def run_seconds(question: Question, runs: int, cores: int) -> float:
    """This many runs of the question's model, shared by all cores."""
    return _COMPILING.get(question.part, 2.0) + 1e-6 * runs * _timed(_RUN, question) * _CORES / cores


def exact_seconds(question: Question) -> float:
    """The computation of the truth at the test points."""
    return _EXACT * question.test.points


def plan_seconds(question: Question, cores: int) -> float:
    """The plan of calibrations of our default."""
    return _PLAN * fit_seconds(question, "default", cores)


def guarantee_seconds(learner: str, cores: int) -> float:
    """A training for the figures about guarantees, with its calibrations, whose plan fits it a few times more."""
    asked = questions(["a"])[0]
    more = fit_seconds(asked, learner, 1) - fit_seconds(asked, method_of(learner) or learner, 1)
    return (_GUARANTEE + _PLAN * max(more, 0.0)) / cores


def fit_seconds(question: Question, learner: str, cores: int) -> float:
    """One training. A learner that was never timed is taken to be as fast as our default."""
    batches = -(-question.train.points // _BATCH)
    if learner in _NETWORK_EPOCHS:  # with the paper's settings: this many epochs of mini-batches
        alone = _NETWORK_COMPILING + _NETWORK_EPOCHS[learner] * batches * _NETWORK_STEP
    elif learner in _PROCESSES:
        slower = float(min(question.train.points / _MOST_INDUCING, 1.0) ** _PROCESS_POWER)
        alone = _PROCESS_EPOCHS * batches * _PROCESS_STEP * slower
    else:
        alone = 0.2 + _timed(_FIT.get(learner, _FIT["default"]), question) * question.share
    return alone / cores


def _timed(seconds: Mapping[str, float], question: Question) -> float:
    """What was measured for the question, or for the nearest number of rates; above all of these, it grows with it."""
    if question.part != "random":
        return seconds[question.part]
    nearest = min(DIMENSIONS, key=lambda rates: abs(rates - question.dimension))
    return seconds[str(nearest)] * max(question.dimension / DIMENSIONS[-1], 1.0)
