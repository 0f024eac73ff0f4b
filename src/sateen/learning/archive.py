"""Posteriors in files: the recipe, the observations it learned from, and what it learned, in one safetensors file.

A file names its learner, and the table here says which classes that name stands for; nothing else in a file can choose
what is run. A recipe is rebuilt through its class, so what its class refuses is refused in a file too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final, TypeAlias

import numpy.typing as npt

from sateen.core.errors import InputError, nearest
from sateen.core.prediction import Training
from sateen.core.threads import on_one_thread
from sateen.core.types import File
from sateen.files.container import write_container
from sateen.files.observations import observations_arrays, observations_content, observations_from
from sateen.learning.inputs import Inputs
from sateen.learning.posterior import LearnedPosterior, Parts
from sateen.learning.record import Record

__all__ = [
    "KIND",
    "LEARNERS",
    "VERSION",
    "classes_of",
    "posterior_from_parts",
    "posterior_parts",
    "write_posterior",
]

KIND: Final = "posterior"
VERSION: Final = 1
LEARNERS: Final = ("ep-gp", "svi-gp", "svi-gp-faithful", "svi-bnn", "laplace-net")
Classes: TypeAlias = tuple[type[Any], type[LearnedPosterior]]  # of the recipe, and of what it gives
Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]

_PLAIN: Final = (str, bool, int, float, type(None))
_NUMBER: Final = "number"  # the key of a number that is written as text
_SECTIONS: Final = ("training", "record", "learned")  # the first part of the name of an array


def classes_of(learner: str) -> Classes:
    """The classes of the recipe and of the posterior that a learner's name stands for; they are loaded only here.

    >>> [one.__name__ for one in classes_of("svi-gp")]
    ['SVIGP', 'GPPosterior']
    """
    if learner == "ep-gp":
        from sateen.learning.gp.ep_gp import EPGP
        from sateen.learning.gp.posterior import GPPosterior

        return EPGP, GPPosterior
    if learner == "svi-gp":
        from sateen.learning.gp.posterior import GPPosterior
        from sateen.learning.gp.svi_gp import SVIGP

        return SVIGP, GPPosterior
    if learner == "svi-gp-faithful":
        from sateen.learning.gp.faithful import FaithfulSVIGP
        from sateen.learning.gp.posterior import GPPosterior

        return FaithfulSVIGP, GPPosterior
    if learner == "svi-bnn":
        from sateen.learning.networks.svi_bnn import SVIBNN
        from sateen.learning.networks.svi_bnn_posterior import BNNPosterior

        return SVIBNN, BNNPosterior
    if learner == "laplace-net":
        from sateen.learning.networks.laplace_net import LaplaceNet
        from sateen.learning.networks.laplace_net_posterior import LaplacePosterior

        return LaplaceNet, LaplacePosterior
    hint = nearest(learner, LEARNERS) or f"it knows {', '.join(LEARNERS)}; a later sateen may know more"
    raise InputError(f"this sateen knows no learner {learner!r}; {hint}")


def write_posterior(posterior: LearnedPosterior, file: File) -> None:
    """Write the posterior as one safe file, which `sateen.load` reads back; it predicts the same to the last bit."""
    write_container(file, KIND, VERSION, *posterior_parts(posterior))


def posterior_parts(posterior: LearnedPosterior) -> Parts:
    """All that a file keeps of a posterior: words, and arrays."""
    learned, learned_arrays = posterior.parts()
    observed = posterior.training.observations
    content = {
        "learner": posterior.kind,
        "recipe": _recipe_content(posterior.recipe),
        "training": observations_content(observed),
        "inputs": posterior.inputs.content(),
        "record": posterior.record.content(),
        "learned": learned,
    }
    sections = dict(
        zip(_SECTIONS, (observations_arrays(observed), posterior.record.arrays(), learned_arrays), strict=True)
    )
    arrays = {f"{section}/{name}": array for section, own in sections.items() for name, array in own.items()}
    return content, arrays


@on_one_thread  # as in the fit: what a posterior works out from its parts may differ in the last bit on two
def posterior_from_parts(content: Mapping[str, Any], arrays: Arrays, where: str = "the file") -> LearnedPosterior:
    """The posterior that `posterior_parts` described; `where` names the file in what is said of a fault."""
    try:
        learner = content["learner"]
        recipe_class, posterior_class = classes_of(learner)
        recipe = _recipe(recipe_class, content["recipe"])
        counts, record, learned = (_section(arrays, name) for name in _SECTIONS)
        observed = observations_from(content["training"], counts)
        inputs = Inputs.from_content(observed.space, content["inputs"])
        inputs.unit(observed.theta[:1])  # fails if names and scales do not fit the space
        return posterior_class.from_parts(
            recipe,
            Training(observed),
            inputs,
            Record.from_content(content["record"], record),
            content["learned"],
            learned,
        )
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        said = f"{error} is missing" if isinstance(error, KeyError) else error
        raise InputError(f"{where} holds no posterior that makes sense: {said}") from error


def _section(arrays: Arrays, name: str) -> dict[str, Any]:
    start = f"{name}/"
    return {own.removeprefix(start): array for own, array in arrays.items() if own.startswith(start)}


def _recipe_content(recipe: Any) -> dict[str, Any]:
    """The settings of a recipe as plain data, by name."""
    content: dict[str, Any] = {}
    for field in fields(recipe):
        try:
            content[field.name] = _stored(getattr(recipe, field.name))
        except TypeError as error:
            raise InputError(f"{type(recipe).__name__}: {field.name} is {error}, which no file keeps") from None
    return content


def _stored(value: object) -> Any:
    """A setting as JSON has it; numbers that JSON cannot say are written as text."""
    if isinstance(value, tuple):
        return [_stored(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {_NUMBER: repr(value)}
    if isinstance(value, _PLAIN):
        return value
    raise TypeError(f"of type {type(value).__name__}")


def _setting(value: Any) -> Any:
    """What `_stored` wrote; recipes are frozen, so what JSON has as lists are tuples in them."""
    if isinstance(value, list):
        return tuple(map(_setting, value))
    return float(value[_NUMBER]) if isinstance(value, dict) else value


def _recipe(recipe_class: type[Any], settings: Mapping[str, Any]) -> Any:
    known = [field.name for field in fields(recipe_class)]
    if strangers := [name for name in settings if name not in known]:
        hint = nearest(strangers[0], known) or "a later sateen may know it"
        raise InputError(f"{recipe_class.__name__} has no setting {strangers[0]!r}; {hint}")
    return recipe_class(**{name: _setting(value) for name, value in settings.items()})
