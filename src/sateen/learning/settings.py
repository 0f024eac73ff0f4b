"""What recipes share: the types of their settings, the checks of these, and `fit`. Light to import."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import fields, replace
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Literal,
    TypeAlias,
    TypeGuard,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from sateen.core.errors import InputError, SateenWarning, nearest
from sateen.core.observations import Observations
from sateen.core.progress import USUAL, Progress, watcher
from sateen.core.registry import load_object
from sateen.core.text import plural
from sateen.core.types import File

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from sateen.learning.posterior import LearnedPosterior

_FEW_RUNS: Final = 10  # with fewer the most that runs can tell is that f is not near 0, or not near 1
Activation: TypeAlias = Literal["silu", "leaky-relu", "tanh"]
Device: TypeAlias = Literal["auto", "cpu", "gpu"]
InputScale: TypeAlias = Literal["auto", "log", "linear"]
KernelName: TypeAlias = Literal["matern", "rbf"]
Link: TypeAlias = Literal["probit", "logit"]
Precision: TypeAlias = Literal["float32", "float64"]


class Recipe:
    """What the recipes of sateen's own learners share; each is a frozen dataclass of its settings.

    `inference` and `posterior_class` say where the inference and the class of the posterior are, as "module:name". They
    are imported when they are first needed, so that a recipe is light to import.
    """

    __slots__ = ()
    inference: ClassVar[str]
    posterior_class: ClassVar[str]

    def fit(
        self,
        observations: Observations,
        *,
        seed: int,
        progress: Progress | None = USUAL,
        checkpoint: File | None = None,
    ) -> LearnedPosterior:
        """The posterior over f; the same observations and seed give the same one, to the last bit.

        Ctrl-C ends the fit with the best so far, once there is any, and the record says so. `checkpoint` names a file,
        from which a later fit of the same observations and recipe with the same seed resumes, to the same result. A
        Gaussian process keeps its kernel there as soon as it is found; what is trained step by step is kept every ten
        seconds and in the end.
        """
        progress = watcher(progress)
        fit: Callable[..., LearnedPosterior] = load_object(self.inference)  # type: ignore[assignment]
        posterior = fit(self, observations, seed, progress, checkpoint)
        warn_of_little(observations)
        if not getattr(self, "floor", False):
            return posterior
        from sateen.learning.floor import floor_of

        return replace(posterior, floor=floor_of(posterior))


def warn_of_little(observations: Observations) -> None:
    """Warn where there is next to nothing to learn from."""
    runs = int(observations.trials.sum())
    if runs < _FEW_RUNS:
        few = f"{plural(runs, 'run')} at {plural(len(observations), 'point')} say next to nothing about the probability"
        message = f"{few}: what is learned is mostly the prior; observe more points, or more runs at each"
        warnings.warn(message, SateenWarning, stacklevel=3)


def check_settings(recipe: DataclassInstance, *, zero: tuple[str, ...] = (), apart: tuple[str, ...] = ()) -> None:
    """Make the fields of a frozen recipe plain, and refuse what their types do not allow, but for those `apart`.

    Numpy's numbers become plain ones and lists tuples, which files keep. A whole number is from 1 up, a number above 0
    and finite, or 0 where its name is in `zero`; a word is one of those of its type; None is allowed where the type is.
    """
    hints = get_type_hints(type(recipe))
    for field in fields(recipe):
        name, value = field.name, _plain(getattr(recipe, field.name))
        object.__setattr__(recipe, name, value)
        kinds = get_args(hints[name]) if isinstance(hints[name], UnionType) else (hints[name],)
        if name in apart or (value is None and NoneType in kinds):
            continue
        if kinds[0] is int:
            check_whole(value, name, 1)
        elif kinds[0] is float:
            check_number(name, value, zero=name in zero)
        elif kinds[0] is bool and not isinstance(value, bool):
            raise InputError(f"{name} is True or False, not {value!r}", argument=name)
        elif get_origin(kinds[0]) is Literal:
            check_word(name, value, get_args(kinds[0]))


def check_word(name: str, word: object, words: tuple[str, ...]) -> None:
    """Refuse a word that is none of those that a setting can be.

    >>> check_word("kernel", "mattern", ("matern", "rbf"))
    Traceback (most recent call last):
        ...
    sateen.core.errors.InputError: kernel is 'matern' or 'rbf', not 'mattern'; did you mean matern?
    """
    if word not in words:
        *others, last = map(repr, words)
        hint = nearest(str(word), words)
        what = f"{name} is {', '.join(others)} or {last}, not {word!r}"
        raise InputError(what + (f"; {hint}" if hint else ""), argument=name)


def check_whole(value: object, name: str, least: int) -> None:
    """Refuse what is not a whole number from `least` up."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} is a whole number from {least} up, not {value!r}", argument=name)


def check_number(name: str, value: object, *, zero: bool = False) -> None:
    """Refuse what is not a finite number above 0, or from 0 up."""
    if not is_number(value) or not (0 < value < float("inf") or (zero and value == 0)):
        raise InputError(f"{name} is a number {'from 0 up' if zero else 'above 0'}, not {value!r}", argument=name)


def is_number(value: object) -> TypeGuard[float]:
    """Whether a setting is a number, which True and False are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    return tuple(map(_plain, value)) if isinstance(value, list | tuple) else value
