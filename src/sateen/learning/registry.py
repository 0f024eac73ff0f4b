"""The learners by name, built in and of other packages, and learners from a name and settings. Light to import."""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path as FilePath
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, get_args, get_type_hints

from sateen.core.code import Code, definition, find_code
from sateen.core.errors import InputError, nearest
from sateen.core.prediction import Learner, Posterior
from sateen.core.progress import USUAL, Progress, watcher
from sateen.core.registry import Registry, load_object

if TYPE_CHECKING:
    from sateen.core.observations import Observations
    from sateen.core.types import File

# To add a learner of sateen's own: write its file, and a line here.
LEARNERS: Final[Registry[Callable[..., Learner]]] = Registry(
    "learner",
    "sateen.learners",
    {
        "ep-gp": "sateen.learning.gp.recipes:EPGP",
        "svi-gp": "sateen.learning.gp.recipes:SVIGP",
        "svi-bnn": "sateen.learning.networks.recipes:SVIBNN",
        "laplace-net": "sateen.learning.networks.recipes:LaplaceNet",
        "ep-gp-faithful": "sateen.learning.gp.recipes:FaithfulEPGP",
        "svi-gp-faithful": "sateen.learning.gp.recipes:FaithfulSVIGP",
        "svi-bnn-faithful": "sateen.learning.networks.recipes:SVIBNN.faithful",
        "svi-gp-as-run": "sateen.learning.gp.recipes:FaithfulSVIGP.as_run",
        "svi-bnn-as-run": "sateen.learning.networks.recipes:SVIBNN.as_run",
        "sparse-vi": "sateen.learning.gp.recipes:SVIGP.sparse_vi",
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
    address of a class, such as "my_package:MyLearner". `read` makes the value of a setting from the given one, its
    name, the type that the learner declares for it, and that type as text. Unknown names and settings are InputErrors,
    whose `argument` is the setting.

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
    make = LEARNERS[name] if name in LEARNERS.builtin else _loaded(name, _code(name))
    return _made(name, make, given, read or _value)


@dataclass(frozen=True, slots=True)
class OwnLearner:
    """A learner that is not sateen's own, by its name and settings; its code is run when it is made, or first fits."""

    name: str
    settings: Mapping[str, object]
    code: Code

    def make(self) -> Learner:
        """The learner itself."""
        return _made(self.name, _loaded(self.name, self.code), self.settings, _value)

    def fit(
        self,
        observations: Observations,
        *,
        seed: int,
        progress: Progress | None = USUAL,
        checkpoint: File | None = None,
    ) -> Posterior:
        """What the learner fits, with every ability."""
        progress = watcher(progress)
        from sateen.core.posterior import fit_learner

        return fit_learner(self.make(), observations, seed=seed, progress=progress, checkpoint=checkpoint)


def find_learner(name: str, settings: Mapping[str, object] | None = None) -> Learner:
    """The learner that `make_learner` makes; one that is not sateen's own is found, but its code is not run yet."""
    if name in DEFAULT or name in LEARNERS.builtin:
        return make_learner(name, settings)
    code = _code(name)
    known = _written_settings(code)
    if known is not None:
        _check_settings(name, settings or {}, known)
    return OwnLearner(name, dict(settings or {}), code)


def learner_name(learner: Learner) -> str:
    """The name of a learner: the registered one, or the address of its class.

    >>> learner_name(make_learner("laplace-net", {"nets": 1}))
    'laplace-net'
    """
    if isinstance(learner, OwnLearner):
        return learner.name
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
    if isinstance(learner, OwnLearner):
        values = dict(learner.settings)
    elif is_dataclass(learner):
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
            raise InputError(f"{type(learner).__name__}: {name} is {error}, which a file cannot hold") from None
    return content


def settings_from(content: Mapping[str, object]) -> dict[str, object]:
    """The settings that `settings_content` described; what JSON has as lists are tuples, as in a frozen recipe."""
    return {name: _setting(value) for name, value in content.items()}


def _code(name: str) -> Code:
    """The code of a learner that is not sateen's own."""
    address = name if ":" in name else LEARNERS.address(name)
    if ".py:" in address:
        raise InputError(f"the learner {name} is named by a file; name its module, as package.module:Class")
    try:
        return find_code(address, FilePath())
    except InputError as error:
        raise InputError(f"the learner {name} cannot be imported: {error}") from None


def _loaded(name: str, code: Code) -> Callable[..., Learner]:
    """The class that the code is, or a preset; only what is registered can be a preset, for that is called."""
    thing = code.load()
    if isinstance(thing, type) and callable(getattr(thing, "fit", None)):
        return thing
    if ":" in name or isinstance(thing, type) or not callable(thing):
        raise InputError(f"{code.address} is not a learner: a learner is a class with `fit`")
    return thing


def _made(name: str, make: Callable[..., Learner], given: Mapping[str, object], read: Read) -> Learner:
    """The learner that a class or a preset makes with the settings that are given, each of which it must have."""
    known = _settings(make)
    _check_settings(name, given, known)
    values = {setting: read(setting, value, *known[setting]) for setting, value in given.items()}
    try:
        if isinstance(make, type):
            learner: Learner = make(**values)
            return learner
        learner = make()  # a preset of a class, such as SVIBNN.faithful
        return replace(learner, **values) if values else learner  # type: ignore[type-var]
    except InputError as error:
        guilty = error.argument or next((setting for setting in values if setting in str(error)), "")
        raise InputError(f"{name}: {error}", argument=guilty) from None
    except Exception as error:
        raise InputError(f"{name} cannot be made with these settings: {error}") from error


def _check_settings(name: str, given: Iterable[str], known: Collection[str]) -> None:
    for setting in given:
        if setting not in known:
            hint = nearest(setting, known) or (f"its settings are {', '.join(known)}" if known else "it has none")
            raise InputError(f"{name} has no setting {setting}; {hint}", argument=setting)


def _written_settings(code: Code) -> list[str] | None:
    """The settings of a class by its text alone; None where only running it would tell."""
    found = definition(code)
    if not isinstance(found, ast.ClassDef) or found.bases or found.keywords or "." in code.name:
        return None
    if found.decorator_list:
        marks = [ast.unparse(mark).partition("(")[0].rpartition(".")[2] for mark in found.decorator_list]
        named = [one for one in found.body if isinstance(one, ast.AnnAssign) and "ClassVar" not in ast.unparse(one)]
        return [ast.unparse(one.target) for one in named] if marks == ["dataclass"] else None
    made = next((one for one in found.body if isinstance(one, ast.FunctionDef) and one.name == "__init__"), None)
    if made is None:
        return []
    arguments = [*made.args.posonlyargs, *made.args.args, *made.args.kwonlyargs]
    return None if made.args.kwarg or made.decorator_list else [each.arg for each in arguments[1:]]


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
