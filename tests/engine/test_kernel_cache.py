"""The kernel cache: whatever is in the folder, counts are right, and no code runs but that of the source in memory."""

from __future__ import annotations

import os
import subprocess
import sys
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path as FilePath

import numpy as np
import pytest

from sateen.core import cache
from sateen.core.errors import SateenWarning, SimulationError
from sateen.engine import kernel as kernels
from sateen.engine.emit import kernel_source
from sateen.engine.kernel import Code, Kernel, kernel, load_source
from sateen.engine.run import Runner, replay
from sateen.logic.monitor import monitor
from sateen.logic.parser import stl
from sateen.model.model import Model

POSIX = pytest.mark.skipif(os.name != "posix", reason="owners and permissions are POSIX's")
ROOT = pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give files away")
NOBODY = 65534
DOUBLE = '"""For a test."""\ndef run(x: int):\n  return x + x\n'


@pytest.fixture
def folder(tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch) -> FilePath:
    """The cache directory, with a function in it that was compiled."""
    monkeypatch.setenv("SATEEN_CACHE_DIR", str(tmp_path / "cache"))
    assert compiled(DOUBLE) == 1
    return tmp_path / "cache"


def loaded(text: str) -> Code:
    """The code of a source, as a process gets it that has not loaded it before."""
    return load_source.__wrapped__(text)


def compiled(text: str) -> int:
    """How often the function was compiled to be called, and not loaded from the cache; it doubles, in any case."""
    run = loaded(text)
    assert run(21) == 42
    return run.compilations


def only_file(folder: FilePath) -> FilePath:
    (file,) = folder.iterdir()
    return file


def test_what_was_compiled_is_loaded_and_no_source_is_kept(folder: FilePath) -> None:
    assert compiled(DOUBLE) == 0
    assert only_file(folder).name == kernels._name(DOUBLE)
    assert b"For a test" not in only_file(folder).read_bytes()


@POSIX
def test_a_folder_that_is_made_is_open_to_nobody_else(folder: FilePath) -> None:
    assert folder.stat().st_mode & 0o777 == 0o700
    assert only_file(folder).stat().st_mode & 0o777 == 0o600


@POSIX
def test_what_is_wrong_with_the_folder_is_said_once(folder: FilePath) -> None:
    folder.chmod(0o777)
    with pytest.warns(SateenWarning) as told:
        assert compiled(DOUBLE) == compiled(DOUBLE) == 1
    assert len(told) == 1


def test_a_folder_that_was_deleted_is_made_again(folder: FilePath) -> None:
    only_file(folder).unlink()
    folder.rmdir()
    assert compiled(DOUBLE) == 1
    assert compiled(DOUBLE) == 0


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "emptied": lambda content: b"",
    "short": lambda content: content[:20],
    "truncated": lambda content: content[:-1],
    "halved": lambda content: content[: len(content) // 2],
    "longer": lambda content: content + b"\n",
    "of zeros": lambda content: bytes(len(content)),
    "shifted": lambda content: content[1:] + content[:1],
    "text": lambda content: b"import os",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_noticed_and_compiled_again(folder: FilePath, damage: Callable[[bytes], bytes]) -> None:
    file = only_file(folder)
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    with pytest.warns(SateenWarning, match=r"the compiled kernel .* is damaged.*; it is compiled again"):
        assert compiled(DOUBLE) == 1
    assert compiled(DOUBLE) == 0


def test_not_one_bit_can_change_unnoticed(folder: FilePath) -> None:
    file = only_file(folder)
    whole = file.read_bytes()
    assert cache.kept(file) == whole[32:]
    places = np.random.default_rng(1).integers(8 * len(whole), size=300).tolist()
    for place in [*range(8), 255, 256, *places, 8 * len(whole) - 1]:
        changed = bytearray(whole)
        changed[place // 8] ^= 1 << place % 8
        file.write_bytes(changed)
        assert cache.kept(file) is None, place


def test_what_is_whole_but_no_machine_code_is_compiled_again(folder: FilePath) -> None:
    file = only_file(folder)
    for content in (b"", b"no object code", b"\x7fELF", cache.kept(file)[:200]):
        file.write_bytes(cache._digest(file, content) + content)
        assert cache.kept(file) == content
        with pytest.warns(SateenWarning, match="damaged"):
            assert compiled(DOUBLE) == 1


def test_machine_code_of_another_source_is_not_used_under_the_name_of_this_one(folder: FilePath) -> None:
    file = only_file(folder)
    triple = loaded(DOUBLE.replace("x + x", "x + x + x"))
    assert triple(21) == 63
    (other,) = set(folder.iterdir()) - {file}
    other.replace(file)
    with pytest.warns(SateenWarning, match="damaged"):
        assert compiled(DOUBLE) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_what_is_no_file_is_not_waited_for(folder: FilePath) -> None:
    file = only_file(folder)
    file.unlink()
    os.mkfifo(file)
    with pytest.warns(SateenWarning, match="damaged"):
        assert compiled(DOUBLE) == 1
    assert compiled(DOUBLE) == 0


# Whose the folder is.


@POSIX
@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777, 0o1777])
def test_a_folder_that_others_can_write_to_is_left_alone(folder: FilePath, mode: int) -> None:
    folder.chmod(mode)
    before = only_file(folder).read_bytes()
    with pytest.warns(SateenWarning, match=r"written to by other users \(chmod go-w .*\n  .*SATEEN_CACHE_DIR"):
        assert compiled(DOUBLE) == 1
    assert only_file(folder).read_bytes() == before
    folder.chmod(0o755)
    assert compiled(DOUBLE) == 0


@POSIX
def test_a_file_that_others_can_write_to_is_not_read(folder: FilePath) -> None:
    only_file(folder).chmod(0o620)
    with pytest.warns(SateenWarning, match="not only you can write to it"):
        assert compiled(DOUBLE) == 1
    assert only_file(folder).stat().st_mode & 0o777 == 0o600
    assert compiled(DOUBLE) == 0


@ROOT
def test_a_folder_of_another_user_is_left_alone(folder: FilePath) -> None:
    os.chown(folder, NOBODY, NOBODY)
    with pytest.warns(SateenWarning, match=r"belongs to another user\n"):
        assert compiled(DOUBLE) == 1
    os.chown(folder, 0, 0)
    assert compiled(DOUBLE) == 0


@ROOT
def test_a_file_of_another_user_is_not_read(folder: FilePath) -> None:
    os.chown(only_file(folder), NOBODY, NOBODY)
    with pytest.warns(SateenWarning, match="not only you can write to it"):
        assert compiled(DOUBLE) == 1
    assert only_file(folder).stat().st_uid == 0


@POSIX
def test_a_link_to_a_folder_of_ones_own_is_followed(
    folder: FilePath, tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "link"
    link.symlink_to(folder)
    monkeypatch.setenv("SATEEN_CACHE_DIR", str(link))
    assert compiled(DOUBLE) == 0


@ROOT
@pytest.mark.parametrize("whose", ["link", "target"])
def test_a_link_of_another_user_or_to_anothers_folder_is_not_followed(
    folder: FilePath, tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch, whose: str
) -> None:
    link = tmp_path / "link"
    link.symlink_to(folder)
    os.chown(link if whose == "link" else folder, NOBODY, NOBODY, follow_symlinks=False)
    monkeypatch.setenv("SATEEN_CACHE_DIR", str(link))
    with pytest.warns(SateenWarning, match="belongs to another user"):
        assert compiled(DOUBLE) == 1


def test_where_there_can_be_no_folder_kernels_are_not_kept(tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        monkeypatch.setenv("SATEEN_CACHE_DIR", str(place))
        with pytest.warns(SateenWarning, match="are not kept, because the folder .* cannot be used"):
            assert compiled(DOUBLE) == 1
    assert (tmp_path / "file").read_text() == "no folder"


def test_without_a_home_kernels_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost() -> FilePath:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(cache, "cache_directory", lost)
    with pytest.warns(SateenWarning, match=r"cannot be used \(Could not determine home directory"):
        assert compiled(DOUBLE) == 1


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root writes to read-only folders")
def test_a_folder_that_cannot_be_written_to_is_read_all_the_same(folder: FilePath) -> None:
    folder.chmod(0o500)
    try:
        assert compiled(DOUBLE) == 0
        with pytest.warns(SateenWarning, match=r"cannot be written to \(Permission denied\)"):
            assert compiled(DOUBLE.replace("a test", "another")) == 1
    finally:
        folder.chmod(0o700)


@POSIX
def test_on_a_full_disk_kernels_run_and_nothing_is_left(tmp_path: FilePath) -> None:
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        f"from sateen.engine.kernel import load_source\nprint(load_source({DOUBLE!r})(21))"
    )
    done = run_python(program, tmp_path / "cache")
    assert (done.returncode, done.stdout) == (0, "42\n"), done.stderr
    assert "SateenWarning: compiled kernels are not kept" in done.stderr
    assert "cannot be written to (File too large)" in done.stderr
    assert list((tmp_path / "cache").iterdir()) == []


def run_python(program: str, cache: FilePath, **environment: str) -> subprocess.CompletedProcess[str]:
    source = str(FilePath(kernels.__file__).parents[2])
    given = {**os.environ, "SATEEN_CACHE_DIR": str(cache), "PYTHONPATH": source, **environment}
    return subprocess.run([sys.executable, "-c", program], env=given, capture_output=True, text=True, check=False)


# Real kernels, in processes of their own, in a folder in which every file was changed.

COUNT = """
from sateen.engine.run import Runner
from sateen.engine.run import Runner, replay
from sateen.logic.monitor import monitor
from sateen.logic.parser import stl
from sateen.model.model import Model
runner = Runner(Model.parse("species X = 5\\nX -> 0 @ d * X"), (stl("F[0, 2] G[0, 1] X == 0"),))
print(runner.is_compiled, runner.run([[1.0]], [[0, 0, 1000]], seed=1).satisfied.tolist())
"""


def with_bits_flipped(content: bytes) -> bytes:
    changed = bytearray(content)
    for place in np.random.default_rng(2).integers(len(content), size=20).tolist():
        changed[place] ^= 1
    return bytes(changed)


@pytest.mark.slow
def test_whatever_the_files_hold_the_counts_are_right_and_foreign_code_does_not_run(tmp_path: FilePath) -> None:
    cache, trap = tmp_path / "cache", tmp_path / "trap"
    code = f"\nopen({str(trap)!r}, 'w')\n".encode()
    first = run_python(COUNT, cache)
    assert first.returncode == 0, first.stderr
    right = first.stdout.replace("False", "True")
    assert run_python(COUNT, cache).stdout == right
    changes: list[Callable[[bytes], bytes]] = [
        with_bits_flipped,
        lambda content: content + code,
        lambda content: content[: len(content) // 2],
    ]
    for change in changes:
        for file in filter(FilePath.is_file, cache.rglob("*")):
            file.write_bytes(change(file.read_bytes()))
        done = run_python(COUNT, cache)
        assert (done.returncode, done.stdout) == (0, first.stdout), done.stderr
        assert "it is compiled again" in done.stderr
    assert run_python(COUNT, cache).stdout == right
    assert not trap.exists()


def test_source_that_somebody_put_there_is_not_run(folder: FilePath, tmp_path: FilePath) -> None:
    trap = tmp_path / "trap"
    for name in (kernels._name(DOUBLE), kernels._name(kernels._algebra()), "llvmlite", "__init__"):
        (folder / f"{name}.py").write_text(f"open({str(trap)!r}, 'w')\n")
    done = run_python(f"from sateen.engine.kernel import load_source\nprint(load_source({DOUBLE!r})(21))", folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "42\n", "")
    assert not trap.exists()


# Memory.


def test_runs_that_need_too_much_memory_are_an_error_that_says_what_next() -> None:
    text = "def run(n: int, numbers: float[:]):\n  x = np.empty(n)\n  return x.shape[0]\n"
    greedy = Kernel(load_source(text), kernel_source(Model.parse("species X = 1\nX -> 0 @ X"), ()))
    assert greedy.run(3) == 3
    with pytest.raises(SimulationError, match="need more memory than there is\n  use fewer workers"):
        greedy.run(2**50)


# What is said beforehand.


@pytest.mark.slow
def test_a_damaged_kernel_is_said_to_need_compiling(tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SATEEN_CACHE_DIR", str(tmp_path))
    program = COUNT.replace("G[0, 1] ", "")
    assert run_python(program, tmp_path).stdout.startswith("False")
    mine = kernel(Model.parse("species X = 5\nX -> 0 @ d * X"), (stl("F[0, 2] X == 0"),))
    mine.code._function = None  # other tests may have called it
    assert mine.is_cached
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    assert not mine.is_cached


# What shares a kernel.

SIR = "species S = {0}, I = {1}, R = 0\nconstant N = {2}\nS + I -> 2 I @ {3} * S * I / N\nI -> R @ gamma * I"
BASE = SIR.format(95, 5, 100, 0.12)


def name_of(text: str, *formulas: str, **options: bool) -> str:
    return kernel(Model.parse(text), tuple(map(stl, formulas)), **options).code.name


@pytest.mark.parametrize(
    ("formula", "others"),
    [
        ("(I > 3) U[100, 120] (I < 2)", ["(I > 2) U[90, 130] (I < 3)", "(I > 30) U[0.5, 7.25] (I < 2.5)"]),
        ("(I > 3) U[100, 120] (I < 2)", ["(I > 1) U[1, 1] (I < 1)", "(I > -1) U[90, 90] (I < 90)"]),
        ("F[0, 50] G[0, 10] I > 40", ["F[0, 60] G[0, 12] I > 41", "F[0, 20] G[0, 30] I > 20"]),
        ("F[0, 50] G[0, 10] I > 40", ["F[0, 10] G[0, 10] I > 1", "F[0, 0] G[0, 1] I > 0.5"]),
        ("F[1, 50] G[2, 10] I > 40", ["F[1, 1] G[1, 2] I > 1", "F[2, 8] G[2, 10] I > 10"]),
        ("F[0, 50] I > I(t-5) + 10", ["F[0, 60] I > I(t-7) + 12", "F[0, 1] I > I(t-1) + 1"]),
        ("F[1, 5] I > 3 & G[1, 5] R < 5", ["F[1, 6] I > 3 & G[1, 5] R < 5", "F[2, 2] I > 2 & G[1, 1] R < 1"]),
        ("F[2, 9] (I > 3 & F[2, 3] R < 4)", ["F[0, 1] (I > 1 & F[0, 0] R < 1)", "F[3, 5] (I > 2 & F[0, 2] R < 9)"]),
        ("F (I > 3 & F[2, 3] R < 4)", ["F (I > 1 & F[0, 1] R < 1)", "F (I > 4 & F[1, 1] R < 9)"]),
        ("F[0, 5] I^2 - 3 * R + 4 > min(I, 5)", ["F[0, 1] I^2 - 1 * R + 1 > min(I, 1)"]),
        ("F I == 3", ["F I == 4", "F I == 1"]),
    ],
)
def test_another_bound_threshold_count_or_constant_is_the_same_kernel(formula: str, others: list[str]) -> None:
    for other in others:
        assert name_of(BASE, other) == name_of(BASE, formula)
        assert name_of(SIR.format(80, 30, 110, 0.3), other) == name_of(BASE, formula)
        assert name_of(SIR.format(1, 0, 1, 1), other) == name_of(BASE, formula)


def test_numbers_that_happen_to_be_equal_have_places_of_their_own() -> None:
    assert name_of(BASE, "(I > 100) U[100, 120] (R > 100)") == name_of(BASE, "(I > 3) U[90, 120] (R > 40)")


@pytest.mark.parametrize(
    "text",
    [
        BASE.replace("R = 0", "R = 0, Q = 0"),
        BASE.replace("-> 2 I", "-> 3 I"),
        BASE.replace("S * I", "S * I^2"),
        BASE.replace("gamma * I", "gamma * I * I"),
    ],
)
def test_another_model_is_another_kernel(text: str) -> None:
    formulas = ("F[1, 5] I > 4", "F[1, 5] R > 4", "F[1, 5] S > 4")
    changed = name_of(text, *formulas, population=True)
    assert changed != name_of(BASE, *formulas, population=True)


@pytest.mark.parametrize("formula", ["F[1, 5] I >= 4", "G[1, 5] I > 4", "F[1, 5] R > 4", "F I > 4", "F[1, 5] I^2 > 4"])
def test_another_formula_is_another_kernel(formula: str) -> None:
    assert name_of(BASE, formula) != name_of(BASE, "F[1, 5] I > 4")


@pytest.mark.parametrize(
    "formulas",
    [
        ["(I > 1) U[1, 1] (I > 1)", "(I > 4) U[1, 9] (I > 7)", "(I > 3) U[5, 5] (I > 5)"],
        ["F[0, 0] G[0, 1] I > 4", "F[0, 3] G[0, 3] I > 6", "F[0, 20] G[0, 2] I > 9"],
        ["F[1, 1] G[1, 2] I > 5", "F[2, 8] G[2, 10] I > 6", "F[3, 4] G[1, 9] I > 5"],
        ["F[0, 1] (I > 4 & F[0, 0] R < 1)", "F[0, 9] (I > 7 & F[1, 2] R < 2)", "F[4, 5] (I > 5 & F[5, 5] R < 5)"],
        ["F (I > 9 & F[0, 1] R < 1)", "F (I > 11 & F[1, 1] R < 3)", "F (I > 10 & F[1, 3] R < 9)"],
        ["F[0, 1] I > I(t-1) + 1", "F[0, 9] I > I(t-4) + 5", "F[0, 5] I > I(t-5) + 4"],
    ],
)
def test_equal_and_neutral_numbers_are_told_apart_in_a_kernel_that_is_shared(formulas: list[str]) -> None:
    """Counts under numbers that repeat, or are 0 or 1, are those of monitored paths, run by run."""
    model = Model.parse(BASE)
    mixed = 0
    for text in formulas:
        asked = stl(text)
        assert name_of(BASE, text) == name_of(BASE, formulas[0])
        counts = Runner(model, (asked,)).run([[0.05]] * 40, [[0, run, 1] for run in range(40)], seed=8)
        until = min(asked.horizon, 1000.0)
        paths = [replay(model, {"gamma": 0.05}, until=until, seed=8, run=run) for run in range(40)]
        assert counts.satisfied[0].tolist() == [int(bool(monitor(asked, path))) for path in paths]
        mixed += 0 < counts.satisfied.sum() < 40
    assert mixed


def test_a_kernel_that_is_shared_computes_each_formula(tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch) -> None:
    """The counts of one kernel under several numbers are those of monitored paths, and one file is kept."""
    monkeypatch.setenv("SATEEN_CACHE_DIR", str(tmp_path))
    load_source.cache_clear()
    compilations = 0
    for shift, formula in enumerate(
        ["F[2, 50] G[0, 10] I > 20", "F[3, 40] G[0, 5] I > 25", "F[7.5, 90] G[0, 1.5] I > 30"]
    ):
        model, asked = Model.parse(SIR.format(95 + shift, 5, 100 + shift, 0.12)), stl(formula)
        runner = Runner(model, (asked,))
        counts = runner.run([[0.05]] * 40, [[0, run, 1] for run in range(40)], seed=6)
        paths = [replay(model, {"gamma": 0.05}, until=asked.horizon, seed=6, run=run) for run in range(40)]
        assert counts.satisfied[0].tolist() == [int(bool(monitor(asked, path))) for path in paths]
        assert 0 < counts.satisfied.sum() < 40
        compilations += runner._plain.code.compilations if shift == 0 else 0
    assert compilations == 1
    assert len(list(tmp_path.iterdir())) == 2  # that of the formulas, and that of the records


@pytest.mark.parametrize("what", range(4))
def test_another_processor_or_compiler_is_another_kernel(what: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def elsewhere() -> tuple[str, ...]:
        told = list(here)
        told[what] += "x"
        return tuple(told)

    here = kernels.machine_code.processor()
    ours = kernels._toolchain.__wrapped__()
    assert ours == kernels._toolchain.__wrapped__()
    monkeypatch.setattr(kernels.machine_code, "processor", elsewhere)
    assert kernels._toolchain.__wrapped__() != ours


def test_machine_code_that_nothing_uses_any_more_is_freed(folder: FilePath) -> None:
    def source(number: int) -> str:
        return f"def run(x: int):\n  return x + {number}\n"

    few = lru_cache(maxsize=3)(load_source.__wrapped__)
    assert load_source.cache_info().maxsize
    kept, codes = few(source(0)), []
    for number in range(1, 9):
        code = few(source(number))
        assert (code(1), kept(1)) == (1 + number, 1)
        codes.append(weakref.ref(code._function._linked))
        del code
    assert [code() is not None for code in codes] == [False] * 5 + [True] * 3
    assert kept(41) == 41


def test_code_is_not_freed_while_other_threads_run_it(folder: FilePath) -> None:
    """Kernels are loaded, run and freed at once in several threads: every sum is right, and the process lives."""
    text = "def run(x: int):\n  s = 0\n  for i in range(x):\n    s += (i ^ {}) & 1\n  return s\n"
    few = lru_cache(maxsize=2)(load_source.__wrapped__)

    def work(thread: int) -> list[int]:
        return [few(text.format(number % 5))(100_000) for number in range(thread, thread + 60)]

    with ThreadPoolExecutor(4) as threads:
        sums = list(threads.map(work, range(4)))
    assert sums == [[50_000] * 60] * 4


def test_the_oldest_files_are_removed_where_there_are_too_many(tmp_path: FilePath) -> None:
    for number in range(10):
        file = tmp_path / f"file{number}"
        file.write_bytes(bytes(100))
        os.utime(file, (number, number))
    (tmp_path / "folder").mkdir()
    cache.drop_oldest(tmp_path, most=450)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["file6", "file7", "file8", "file9", "folder"]
