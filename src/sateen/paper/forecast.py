"""How long the pieces of the paper's experiments take: figures measured once, on two cores of an AMD EPYC.

They are for the forecast alone. Another machine is faster or slower as a whole, which the work notices while it goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from sateen.core.threads import processors
from sateen.paper.published import DIMENSIONS

if TYPE_CHECKING:
    from sateen.paper.pieces import Piece

__all__ = ["expected", "in_words"]

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
        "svi-bnn": dict(zip(_LETTERS, (4, 5, 5, 4, 5, 4, 4, 7, 8, 60), strict=True))
        | dict(zip(map(str, DIMENSIONS), (6, 5, 6, 9, 6, 8, 7), strict=True)),
        "default": dict(zip(_LETTERS, (0.3, 0.6, 2.0, 0.5, 2.0, 0.2, 1.1, 2.9, 2.6, 60), strict=True))
        | dict(zip(map(str, DIMENSIONS), (5, 10, 11, 20, 14, 18, 17), strict=True)),
    }
)
# The preset faithful: epochs, seconds of a step, and how those of the process grow with its inducing points.
_BATCH: Final = 100
_NETWORK_EPOCHS: Final = 2500
_NETWORK_STEP: Final = 0.0004
_NETWORK_COMPILING: Final = 7.0
_PROCESS_EPOCHS: Final = 2000
_PROCESS_STEP: Final = 0.48
_PROCESS_POWER: Final = 2.7
_MOST_INDUCING: Final = 1000

_PLAN: Final = 5.0  # fits: a plan makes some, to see how much a posterior errs
_LIFT: Final = 1.0


def expected(piece: Piece, preset: str, workers: int | None) -> float:
    """About how many seconds a piece takes of the whole, of which so many processors work on pieces side by side."""
    question, cores = piece.question, workers or processors()
    key = question.part if question.part != "random" else str(question.dimension)
    if piece.runs:
        return _COMPILING.get(question.part, 2.0) + 1e-6 * piece.runs * _RUN[key] * _CORES / cores
    if piece.kind == "truth":
        return _EXACT * question.test.points
    if piece.kind == "lift":
        return _LIFT
    return _alone(piece, key, preset) / cores


def _alone(piece: Piece, key: str, preset: str) -> float:
    """A fit or a plan, which one processor makes."""
    question = piece.question
    if piece.kind == "plan":
        return _PLAN * _fit("default", key, question.share)
    if preset == "faithful" and piece.method in ("svi-gp", "svi-bnn"):
        return _faithful(piece.method, question.train.points)
    return _fit(piece.method, key, question.share)


def _faithful(method: str, points: int) -> float:
    """A fit with the paper's settings: so many epochs of mini-batches."""
    batches = -(-points // _BATCH)
    if method == "svi-bnn":
        return _NETWORK_COMPILING + _NETWORK_EPOCHS * batches * _NETWORK_STEP
    slower = float(min(points / _MOST_INDUCING, 1.0) ** _PROCESS_POWER)
    return _PROCESS_EPOCHS * batches * _PROCESS_STEP * slower


def _fit(method: str, key: str, share: float) -> float:
    return 0.2 + _FIT[method][key] * share


def in_words(seconds: float) -> str:
    """A time as people say it.

    >>> [in_words(each) for each in (4, 100, 4000, 40_000, 2_000_000)]
    ['4 s', '2 min', '1.1 hours', '11 hours', '23 days']
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    hours = seconds / 3600
    if hours < 72:
        return f"{hours:.1f} hours" if hours < 10 else f"{hours:.0f} hours"
    return f"{hours / 24:,.0f} days"
