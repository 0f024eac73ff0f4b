"""Registries: named things that are imported when they are first asked for, and to which other packages can add.

A registry lists the built-in things by name, each as `"module:attribute"`. Other packages add theirs by an entry point
in the registry's group. Entry points are read only when a name is not built in, or when a list is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Final, Generic, TypeVar

from sateen.core.errors import InputError, nearest

_T = TypeVar("_T")
_PROVIDERS: Final[dict[str, str]] = {}


@dataclass(frozen=True, slots=True)
class Registry(Generic[_T]):
    """Named things of one `kind`, such as "learner"; `group` is the entry-point group in which others add theirs."""

    kind: str
    group: str
    builtin: Mapping[str, str] = field(default_factory=dict)

    def names(self) -> tuple[str, ...]:
        """All names: the built-in ones in their order, then those of other packages."""
        return (*self.builtin, *(name for name in self._entry_points() if name not in self.builtin))

    def __contains__(self, name: object) -> bool:
        return name in self.builtin or name in self._entry_points()

    def address(self, name: str) -> str:
        """Where the thing is, as `"module:attribute"`; nothing is imported."""
        if name in self.builtin:
            return self.builtin[name]
        others = self._entry_points()
        if name in others:
            return others[name]
        known = (*self.builtin, *others)
        hint = nearest(name, known) or f"there are {', '.join(known)}"
        raise InputError(f"there is no {self.kind} {name!r}; {hint}")

    def __getitem__(self, name: str) -> _T:
        """The thing with this name, imported now."""
        return load_object(self.address(name))  # type: ignore[return-value]

    def _entry_points(self) -> dict[str, str]:
        from importlib.metadata import entry_points

        return {point.name: point.value for point in sorted(entry_points(group=self.group), key=lambda p: p.name)}


def load_object(address: str) -> object:
    """The object at `"module:attribute"`."""
    module, _, attribute = address.partition(":")
    thing: object = import_module(module)
    for name in attribute.split("."):
        thing = getattr(thing, name)
    return thing


def provide(addresses: Mapping[str, str]) -> None:
    """Say where the functions are that lower rooms call by name; the root package does so when it is imported.

    `core` imports no room, yet its objects can be drawn and saved. They call the function by its name, such as
    `"plot path"`, and its module is imported at the first call.
    """
    _PROVIDERS.update(addresses)


def call_provider(name: str, *args: object, **options: object) -> object:
    """Call the function that is provided under a name."""
    function: Callable[..., object] = load_object(_PROVIDERS[name])  # type: ignore[assignment]
    return function(*args, **options)
