"""The learners by name, built in and of other packages, and learners from a name and settings. Light to import."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from types import NoneType
from typing import Any, Final, TypeAlias, get_args, get_type_hints

from sateen.core.errors import InputError, nearest
from sateen.core.prediction import Learner
from sateen.core.registry import Registry, load_object

# To add a learner of sateen's own: write its file, and a line here.
LEARNERS: Final[Registry[Callable[..., Learner]]] = Registry(
    "learner",
    "sateen.learners",
    {
        "ep-gp": "sateen.learning.gp.recipes:EPGP",
        "svi-gp": "sateen.learning.gp.recipes:SVIGP",
        "svi-bnn": "sateen.learning.networks.recipes:SVIBNN",
        "laplace-net": "sateen.learning.networks.recipes:LaplaceNet",
        "svi-gp-faithful": "sateen.learning.gp.recipes:FaithfulSVIGP",
        "svi-bnn-faithful": "sateen.learning.networks.recipes:SVIBNN.faithful",
    },
)
DEFAULT: Final = ("default", "auto")  # names of the automatic choice
Read: TypeAlias = Callable[[str, Any, Any, str], object]
_AUTOMATIC: Final = "sateen.learning.default:Automatic"
_PLAIN: Final = (str, bool, int, float, type(None))
_NUMBER: Final = "number"  # the key of a number that JSON cannot say, kept as text
_NONE: Final = "none"  # how files and command lines, which have no word for None, write it


def make_learner(name: str, settings: Mapping[str, object] | None = None, read: Read | None = None) -> Learner:
    """The learner with this name and these settings; "default" chooses by the observations.

    A name is built in, is registered by another package (entry points in the group "sateen.learners"), or is the
    address of a class, such as "my_package:MyLearner". `read` makes the value of a setting from what was given, by its
    name, the type that the learner declares for it, and that type as written. Unknown names and settings are
    InputErrors, whose `argument` is the setting.

    >>> make_learner("svi-gp", {"inducing": 200}).inducing
    200
    >>> make_learner("svi-pg")
    Traceback (most recent call last):
        ...
    sateen.core.errors.InputError: there is no learner 'svi-pg'; did you mean svi-gp?
    """
    given = dict(settings or {})
    if name in DEFAULT:
        if given:
            raise InputError(
                f"the learner {name} chooses for itself, so it takes no settings", argument=next(iter(given))
            )
        return load_object(_AUTOMATIC)()  # type: ignore[operator, no-any-return]
    make = _imported(name) if ":" in name else LEARNERS[name]
    known = _settings(make)
    for setting in given:
        if setting not in known:
            hint = nearest(setting, known) or (f"its settings are {', '.join(known)}" if known else "it has none")
            raise InputError(f"{name} has no setting {setting}; {hint}", argument=setting)
    values = {setting: (read or _value)(setting, value, *known[setting]) for setting, value in given.items()}
    try:
        if isinstance(make, type):
            learner: Learner = make(**values)
            return learner
        learner = make()  # a preset of a class, such as SVIBNN.faithful
        return replace(learner, **values) if values else learner  # type: ignore[type-var]
    except InputError as error:
        guilty = error.argument or next((setting for setting in values if setting in str(error)), "")
        raise InputError(f"{name}: {error}", argument=guilty) from None
    except TypeError as error:
        raise InputError(f"{name} cannot be made with these settings: {error}") from error


def learner_name(learner: Learner) -> str:
    """The name of a learner: the registered one, or the address of its class.

    >>> learner_name(make_learner("laplace-net", {"nets": 1}))
    'laplace-net'
    """
    address = f"{type(learner).__module__}:{type(learner).__qualname__}"
    if address == _AUTOMATIC:
        return DEFAULT[0]
    builtin = next((name for name, place in LEARNERS.builtin.items() if place == address), None)
    return builtin or next((name for name in LEARNERS.names() if LEARNERS.address(name) == address), address)


def settings_content(learner: Learner) -> dict[str, object]:
    """The settings of a learner as plain data, by name.

    They are the fields of a dataclass, what `get_params` gives (as scikit-learn's classes have it), or else the
    public attributes.
    """
    if is_dataclass(learner):
        values = {field.name: getattr(learner, field.name) for field in fields(learner) if field.init}
    elif hasattr(learner, "get_params"):
        values = dict(learner.get_params(deep=False))
    else:
        values = {name: value for name, value in getattr(learner, "__dict__", {}).items() if not name.startswith("_")}
    content = {}
    for name, value in values.items():
        try:
            content[name] = _stored(value)
        except TypeError as error:
            raise InputError(f"{type(learner).__name__}: {name} is {error}, which no file keeps") from None
    return content


def settings_from(content: Mapping[str, object]) -> dict[str, object]:
    """The settings that `settings_content` described; what JSON has as lists are tuples, as in a frozen recipe."""
    return {name: _setting(value) for name, value in content.items()}


def _imported(address: str) -> Callable[..., Learner]:
    """The class at an address; nothing else is called by a name that is not registered."""
    try:
        thing = load_object(address)
    except (ImportError, AttributeError, ValueError) as error:
        remedy = "install its package, or write package.module:Class"
        raise InputError(f"the learner {address} cannot be imported: {error}; {remedy}") from error
    if not (isinstance(thing, type) and callable(getattr(thing, "fit", None))):
        raise InputError(f"{address} is no learner: a learner is a class with `fit`")
    return thing


def _settings(make: Callable[..., Learner]) -> dict[str, tuple[object, str]]:
    """The settings that a learner takes, each with its type, and that type as written."""
    target = make if isinstance(make, type) else type(make())
    if not is_dataclass(target):
        target = target.__init__  # type: ignore[misc]
    try:
        hints: dict[str, object] = get_type_hints(target)
    except (NameError, TypeError):  # types that are imported for type checkers only
        hints = {}
    if is_dataclass(target):
        return {field.name: (hints.get(field.name, object), str(field.type)) for field in fields(target) if field.init}
    parameters = [one for one in inspect.signature(target).parameters.values() if one.name != "self"]
    named = [one for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
    return {one.name: (hints.get(one.name, object), _written(one.annotation)) for one in named}


def _written(annotation: object) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _value(name: str, value: object, hint: object, written: str) -> object:
    return None if value == _NONE and NoneType in get_args(hint) else value


def _stored(value: object) -> object:
    """A setting as JSON has it; numbers that JSON cannot say are written as text."""
    if hasattr(value, "tolist"):
        value = value.tolist()  # of numpy
    if isinstance(value, list | tuple):
        return [_stored(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {_NUMBER: repr(value)}
    if isinstance(value, _PLAIN):
        return value
    raise TypeError(f"of type {type(value).__name__}")


def _setting(value: object) -> object:
    if isinstance(value, list):
        return tuple(map(_setting, value))
    return float(value[_NUMBER]) if isinstance(value, dict) else value
