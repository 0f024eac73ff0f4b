"""Registries: built-in names, names that other packages add by entry points, and what is said of unknown ones."""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
from collections import OrderedDict

import pytest

from sateen.core import registry
from sateen.core.errors import InputError
from sateen.core.registry import Registry, call_provider, load_object, provide

GROUP = "sateen.test_things"
THINGS: Registry[object] = Registry(
    "thing", GROUP, {"ordered": "collections:OrderedDict", "join": "os:path.join", "absent": "no_such_module:thing"}
)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of somebody else on the path, whose entry points add two things."""
    (tmp_path / "somebodys.py").write_text('class Gadget:\n    """Theirs."""\n\n\nTHING = 42\n')
    info = tmp_path / "somebodys-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: somebodys\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[{GROUP}]\nzebra = somebodys:Gadget\nanswer = somebodys:THING\nordered = somebodys:THING\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield
    sys.modules.pop("somebodys", None)


def test_a_thing_is_imported_when_it_is_asked_for():
    assert THINGS["ordered"] is OrderedDict
    assert THINGS.address("absent") == "no_such_module:thing"
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        THINGS["absent"]


def test_an_attribute_may_lie_within_another():
    import os.path

    assert THINGS["join"] is os.path.join
    assert load_object("os:path.join") is os.path.join


def test_names_stand_in_the_order_of_the_table():
    assert THINGS.names() == ("ordered", "join", "absent")


def test_another_package_adds_names_after_the_built_in_ones(package):
    assert THINGS.names() == ("ordered", "join", "absent", "answer", "zebra")
    assert "zebra" in THINGS
    assert THINGS["zebra"].__name__ == "Gadget"
    assert THINGS["answer"] == 42
    assert THINGS.address("answer") == "somebodys:THING"


def test_no_package_replaces_what_is_built_in(package):
    assert THINGS["ordered"] is OrderedDict


def test_listing_names_imports_nothing_of_them(package):
    THINGS.names()
    assert "somebodys" not in sys.modules


def test_built_in_names_are_found_without_looking_for_packages(monkeypatch):
    def looked(**options):
        raise AssertionError("entry points were read")

    monkeypatch.setattr(importlib.metadata, "entry_points", looked)
    assert "ordered" in THINGS
    assert THINGS["ordered"] is OrderedDict
    with pytest.raises(AssertionError, match="entry points were read"):
        THINGS.names()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("orderd", "there is no thing 'orderd'; did you mean ordered?"),
        ("Ordered", "there is no thing 'Ordered'; did you mean ordered?"),
        ("xyzzy", "there is no thing 'xyzzy'; there are ordered, join, absent"),
        ("", "there is no thing ''; there are ordered, join, absent"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_or_with_all(name, message):
    assert name not in THINGS
    for ask in (THINGS.address, THINGS.__getitem__):
        with pytest.raises(InputError) as caught:
            ask(name)
        assert str(caught.value) == message


def test_names_of_other_packages_are_suggested_too(package):
    with pytest.raises(InputError, match=r"did you mean zebra\?"):
        THINGS["zebr"]


def test_an_empty_registry_has_no_names():
    assert Registry("nothing", "sateen.no_such_group").names() == ()


def test_a_provider_is_called_by_its_name(monkeypatch):
    monkeypatch.setattr(registry, "_PROVIDERS", {})
    provide({"join": "os:path.join", "dict": "builtins:dict"})
    assert call_provider("dict", a=1) == {"a": 1}
    assert call_provider("join", "a", "b").endswith("b")
    with pytest.raises(KeyError):
        call_provider("nobody")


def test_the_root_provides_what_lower_rooms_call():
    import sateen  # noqa: F401 (which registers them)

    for address in registry._PROVIDERS.values():
        assert callable(load_object(address)), address
