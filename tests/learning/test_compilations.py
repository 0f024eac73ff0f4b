"""What JAX compiles for fits is kept in a private folder, and JAX's own settings are left alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sateen.core.errors import SateenWarning
from sateen.learning.networks import compilations
from sateen.learning.networks.compilations import kept_compilations
from sateen.learning.networks.network import arithmetic

DIRECTORY = "jax_compilation_cache_dir"
HIT = "/jax/compilation_cache/cache_hits"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache directory, in which everything is kept, however fast it was compiled."""
    monkeypatch.setenv("SATEEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setitem(compilations._SETTINGS, "jax_persistent_cache_min_compile_time_secs", 0.0)
    return tmp_path / "cache"


def compile_something(number: float) -> float:
    """The value of a function that no test has compiled before."""
    return float(jax.jit(lambda x: jnp.sin(x) * number)(1.0))


def files(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.glob("jax-*/*-cache"))


def test_what_was_compiled_is_read_in_place_of_being_compiled(folder: Path) -> None:
    found = []
    jax.monitoring.register_event_listener(lambda event, **_: found.append(event))
    try:
        with kept_compilations():
            first = compile_something(2.5)
        before = files(folder)
        assert before
        assert HIT not in found
        jax.clear_caches()
        with kept_compilations():
            assert compile_something(2.5) == first
        assert files(folder) == before
        assert HIT in found
    finally:
        jax.monitoring.clear_event_listeners()


def test_jax_is_left_as_it_was(folder: Path) -> None:
    names = (DIRECTORY, *compilations._SETTINGS)
    before = [getattr(jax.config, name) for name in names]

    def fail() -> None:
        with kept_compilations():
            assert getattr(jax.config, DIRECTORY).startswith(str(folder))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert [getattr(jax.config, name) for name in names] == before
    compile_something(3.5)
    assert not files(folder)


def test_a_cache_that_the_user_chose_for_jax_is_kept(folder: Path, tmp_path: Path) -> None:
    jax.config.update(DIRECTORY, str(tmp_path / "theirs"))
    try:
        with kept_compilations():
            assert getattr(jax.config, DIRECTORY) == str(tmp_path / "theirs")
        assert getattr(jax.config, DIRECTORY) == str(tmp_path / "theirs")
    finally:
        jax.config.update(DIRECTORY, None)
    assert not folder.exists()


def test_who_wants_no_cache_gets_none(folder: Path) -> None:
    jax.config.update("jax_enable_compilation_cache", False)
    try:
        with kept_compilations():
            assert getattr(jax.config, DIRECTORY) is None
    finally:
        jax.config.update("jax_enable_compilation_cache", True)
    assert not folder.exists()


def in_a_new_process(number: float) -> float:
    """The same in a process that has compiled nothing yet."""
    jax.clear_caches()
    compilations._is_made_sound.cache_clear()
    with kept_compilations():
        return compile_something(number)


def flipped(content: bytes) -> bytes:
    return content[:-9] + bytes([content[-9] ^ 1]) + content[-8:]


@pytest.mark.parametrize("damage", [lambda content: content[:40], flipped, lambda _: b""])
def test_a_damaged_file_is_replaced(folder: Path, damage: Callable[[bytes], bytes]) -> None:
    first = in_a_new_process(4.5)
    (file,) = (file for file in folder.glob("jax-*/*-cache") if "lambda" in file.name)
    file.write_bytes(damaged := damage(file.read_bytes()))
    assert in_a_new_process(4.5) == first  # and warns of nothing
    replaced = file.read_bytes()
    assert replaced != damaged
    assert in_a_new_process(4.5) == first
    assert file.read_bytes() == replaced


def test_a_file_without_a_seal_is_not_read(folder: Path) -> None:
    first = in_a_new_process(5.5)
    for seal in folder.glob("jax-*/*.seal"):
        seal.unlink()
    planted = next(folder.glob("jax-*")) / "jit_planted-cache"
    planted.write_bytes(b"code of a stranger's")
    assert in_a_new_process(5.5) == first
    assert not planted.exists()


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_a_file_that_others_can_write_to_is_not_read(folder: Path) -> None:
    first = in_a_new_process(6.5)
    for file in folder.glob("jax-*/*-cache"):
        assert file.stat().st_mode & 0o777 == 0o600
        file.chmod(0o666)
    assert in_a_new_process(6.5) == first
    assert {file.stat().st_mode & 0o777 for file in folder.glob("jax-*/*-cache")} == {0o600}


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_a_folder_that_others_can_write_to_is_not_used(folder: Path) -> None:
    with kept_compilations():
        pass
    (part,) = folder.glob("jax-*")
    part.chmod(0o777)
    with pytest.warns(SateenWarning, match=r"can be written to by other users \(chmod go-w"), kept_compilations():
        assert getattr(jax.config, DIRECTORY) is None


def test_a_folder_with_something_unsound_that_stays_is_not_used(folder: Path) -> None:
    first = in_a_new_process(7.5)
    part = next(folder.glob("jax-*"))
    (part / "jit_stubborn-cache").mkdir()  # cannot be removed as a file is
    with pytest.warns(SateenWarning, match="cannot be written to"):
        assert in_a_new_process(7.5) == first
    with kept_compilations():
        assert getattr(jax.config, DIRECTORY) is None


@pytest.mark.parametrize("forgiving", [False, True], ids=["fit", "prediction"])
def test_fits_and_predictions_are_kept(folder: Path, forgiving: bool) -> None:
    with arithmetic("cpu", "float32", forgiving=forgiving):
        assert getattr(jax.config, DIRECTORY).startswith(str(folder))
    assert getattr(jax.config, DIRECTORY) is None


def test_threads_share_the_cache_and_the_last_leaves_jax_as_it_was(folder: Path) -> None:
    together, apart = Barrier(4), Barrier(4)

    def work(place: int) -> tuple[float, bool]:
        together.wait(60)
        with kept_compilations():
            apart.wait(60)
            value = compile_something(float(place))
            return value, getattr(jax.config, DIRECTORY) is not None

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, range(4)))
    assert found == [(pytest.approx(float(place * np.sin(1.0)), rel=1e-6), True) for place in range(4)]
    assert getattr(jax.config, DIRECTORY) is None
    assert files(folder)
