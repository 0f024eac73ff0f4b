"""The learners of the paper's tables by name, and the presets under which the paper's own three are fitted.

`fast` is ours. `faithful` has the settings in the paper's text, `as-run` those in its authors' scripts, as far as these
are known: their expectation propagation is the same under both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from sateen.paper.cases.models import unknown_name
from sateen.paper.published import METHODS, Method

FAST: Final = "fast"
PRESETS: Final = (FAST, "faithful", "as-run")
SPARSE_VI: Final = "sparse-vi"  # the baseline of Piho and Hillston, which the paper discusses
OURS: Final = "default"
ALL_LEARNERS: Final = (*METHODS, SPARSE_VI, OURS)

# By learner, the method of the paper that it is, and the preset.
_THEIRS: Final[Mapping[str, tuple[Method, str]]] = MappingProxyType(
    {f"{method}-faithful": (method, "faithful") for method in METHODS}
    | {f"{method}-as-run": (method, "as-run") for method in METHODS if method != "ep-gp"}
)


def learners_under(presets: Sequence[str], learners: Iterable[str]) -> tuple[str, ...]:
    """The learners under each of the presets, those of one method side by side; others are the same under all.

    >>> learners_under(["fast", "as-run"], ["svi-bnn", "default"])
    ('svi-bnn', 'svi-bnn-as-run', 'default')
    """
    for preset in presets:
        if preset not in PRESETS:
            raise unknown_name(f"there is no preset {preset!r}", preset, PRESETS)
    return tuple(dict.fromkeys(_under(preset, learner) for learner in learners for preset in presets))


def method_of(learner: str) -> Method | None:
    """The method of the paper that a learner is, under whatever preset; None if it is none.

    >>> method_of("svi-gp-faithful"), method_of("laplace-net")
    ('svi-gp', None)
    """
    return next((method for method in METHODS if method == learner), None) or _THEIRS.get(learner, (None, FAST))[0]


def preset_of(learner: str) -> str:
    """The preset that a learner belongs to."""
    return _THEIRS[learner][1] if learner in _THEIRS else FAST


def label(learner: str) -> str:
    """The heading of a learner: as the paper prints it, or its name.

    >>> [label(each) for each in ("ep-gp", "svi-bnn-as-run", "sparse-vi", "default", "laplace-net")]
    ['EP-GP', 'SVI-BNN as run', 'sparse VI', 'sateen', 'laplace-net']
    """
    if learner in _THEIRS:
        method, preset = _THEIRS[learner]
        return f"{method.upper()} {preset.replace('-', ' ')}"
    return {SPARSE_VI: "sparse VI", OURS: "sateen"}.get(learner, learner.upper() if learner in METHODS else learner)


def _under(preset: str, learner: str) -> str:
    if preset == FAST or learner not in METHODS:
        return learner
    name = f"{learner}-{preset}"
    return name if name in _THEIRS else f"{learner}-faithful"
