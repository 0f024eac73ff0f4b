"""Kernels: what their source holds, where they are kept, and the random numbers they draw."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from itertools import islice, pairwise, product
from pathlib import Path as FilePath

import llvmlite
import numpy as np
import pytest

import lanes_by_hand
from lane_checks import FUEL, LITTLE, MUCH
from sateen.core.cache import cache_directory
from sateen.engine import kernel as kernels
from sateen.engine.emit import kernel_source
from sateen.engine.kernel import load_source
from sateen.engine.run import Runner, replay
from sateen.logic.parser import stl
from sateen.model.model import Model
from sateen.paper.cases import lacz, phosphorelay, sir

FAULT = "fault[0] = row[l]"  # stands in a kernel that checks

# Source.


HOSTILE = ["import os", "os.system('x')", 'x"""; y', "{0}", "a\\b", "{x.__class__}", "F[l]", "a0", "tn", "é ñ"]


def test_no_text_of_a_user_stands_in_the_source() -> None:
    """Names in backquotes may be anything; the kernel knows species by number and everything else by slot."""
    species = ", ".join(f"`{name}` = {place}" for place, name in enumerate(HOSTILE))
    decays = "\n".join(f"`{name}` -> 0 @ `k {name}` * `{name}` / `c {name}`" for name in HOSTILE)
    constants = "\n".join(f"constant `c {name}` = `k {name}` + 1" for name in HOSTILE)
    model = Model.parse(f"species {species}\n{constants}\n{decays}")
    every = " & ".join(f"F[0, 3] (`{name}` > `k {name}` & G[0, 1] `{name}`(t-1) >= `{name}`)" for name in HOSTILE)
    for options in ({}, {"checked": True}, {"population": True}, {"record": True}):
        text = kernel_source(model, (stl(every),), **options).text
        assert text.isascii()
        plain = kernel_source(Model.parse("species X = 1\nX -> 0 @ X"), (stl("F[0, 3] G[0, 1] X > 1"),)).text
        for name in HOSTILE[:6]:
            assert name not in text or name in plain, name
        names = [name for name in HOSTILE[6:] if name not in ("F[l]", "a0", "tn")]
        assert not any(name in text for name in names)


def test_names_that_look_like_the_kernels_own_are_kept_apart_from_them() -> None:
    model = Model.parse("species `tn` = 2, a0 = 1, `F[l]` = 3\n`tn` -> a0 @ x0 * `tn`\na0 -> `F[l]` @ wait * a0")
    renamed = Model.parse("species A = 2, B = 1, C = 3\nA -> B @ k * A\nB -> C @ q * B")
    one = kernel_source(model, (stl("F[0, 1] `tn` > a0 + `F[l]` * x0"),)).text
    other = kernel_source(renamed, (stl("F[0, 1] A > B + C * k"),)).text
    assert one == other


@pytest.mark.parametrize("case", [sir, phosphorelay, lacz], ids=["sir", "phosphorelay", "lacz"])
def test_mass_action_needs_no_checks_while_running(case) -> None:
    model = case.model()
    source = kernel_source(model, (stl("F[0, 5] true"),))
    assert FAULT not in source.text
    values = {name: np.array([value]) for name, value in model.values().items()}
    assert not source.unchecked.may_fail(model, values, 1_000_000)
    name = model.parameters[0].name
    for wrong in ([-0.1], [0.1, math.inf], [math.nan], [1e300]):
        assert source.unchecked.may_fail(model, {**values, name: np.array(wrong)}, 1_000_000)
    assert FAULT in kernel_source(case.model(), (stl("F[0, 5] true"),), checked=True).text


@pytest.mark.parametrize(
    "reaction",
    [
        "X -> 0 @ X / (1 + X)",
        "0 -> X @ log(X)",
        "0 -> X @ if(X > 3, k, 1)",
        "0 -> X @ k * (X - 1)",
    ],
)
def test_rates_whose_form_proves_nothing_are_checked(reaction: str) -> None:
    model = Model.parse(f"species X = 1\n{reaction}\nX -> 0 @ X")
    assert FAULT in kernel_source(model, (stl("F[0, 5] X > 9"),)).text


def test_a_difference_is_checked_for_the_coefficient_below_zero() -> None:
    model = Model.parse("species X = 1\n0 -> X @ k - X")
    source = kernel_source(model, (stl("F[0, 5] X > 9"),))
    assert source.unchecked.may_fail(model, {"k": np.array([100.0])}, 1000)


@pytest.mark.parametrize(
    ("text", "checked"), [("X > 3", False), ("X * X - 2 > 3", False), ("X / 2 > 3", True), ("sqrt(X) > 3", True)]
)
def test_atoms_that_can_be_undefined_are_checked(text: str, checked: bool) -> None:
    model = Model.parse("species X = 1\n0 -> X @ k")
    assert (FAULT in kernel_source(model, (stl(f"F[0, 5] {text}"),)).text) == checked


def test_only_species_that_matter_are_followed() -> None:
    """R of an epidemic is read by nothing, so its count costs nothing."""
    formula = (stl("F[0, 5] I == 0"),)
    lean = kernel_source(sir.model(), formula).text
    full = kernel_source(sir.model(), (*formula, stl("F[0, 5] R > 3"))).text
    assert "x2 =" not in lean
    assert "x2 =" in full


def test_sources_are_the_same_every_time() -> None:
    formula = lacz.formula("as-stated")
    assert kernel_source(lacz.model(), (formula,)).text == kernel_source(lacz.model(), (formula,)).text


# The cache.

SCRIPT = """
import sys
from sateen.engine.run import Runner
from sateen.logic.parser import stl
from sateen.model.model import Model
runner = Runner(Model.parse("species X = 5\\nX -> 0 @ d * X"), (stl("F[0, 2] X == 0"),))
before = runner.is_compiled
counts = runner.run([[1.0]], [[0, 0, 1000]], seed=1)
print(before, runner.is_compiled, counts.satisfied.tolist())
"""


def begun(cache: FilePath) -> subprocess.Popen[str]:
    """A process of its own that compiles and runs a kernel with this cache directory."""
    source = str(FilePath(kernels.__file__).parents[2])
    environment = {**os.environ, "SATEEN_CACHE_DIR": str(cache), "PYTHONPATH": source}
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def said(process: subprocess.Popen[str]) -> list[str]:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out.split(maxsplit=2)


@pytest.mark.slow
def test_kernels_are_compiled_once_by_processes_at_once_and_even_without_a_cache(tmp_path: FilePath) -> None:
    shared, shut = tmp_path / "shared", tmp_path / "file"
    shut.write_text("no directory")
    processes = [begun(shared), begun(shared), begun(shut / "below")]
    first, second, uncached = map(said, processes)
    assert first[1] == second[1] == "True"
    assert first[2] == second[2] == uncached[2]
    assert uncached[:2] == ["False", "True"]
    again = said(begun(shared))
    assert again == ["True", "True", first[2]]
    (file,) = shared.iterdir()
    assert file.name.startswith("kernel_")
    assert shut.read_text() == "no directory"


def test_the_name_of_a_kernel_depends_on_its_source_and_on_all_versions() -> None:
    toolchain = kernels._toolchain()
    for version in (
        llvmlite.__version__,
        ".".join(map(str, llvmlite.binding.llvm_version_info)),
        llvmlite.binding.get_process_triple(),
        llvmlite.binding.get_host_cpu_name(),
        llvmlite.binding.get_host_cpu_features().flatten(),
    ):
        assert version in toolchain
    for part in ("instructions", "scope", "translate", "machine_code"):
        assert (FilePath(kernels.__file__).parent / f"{part}.py").read_text(encoding="utf-8") in toolchain
    names = {kernels._name(text) for text in ("a", "b", "a ")}
    assert len(names) == 3
    assert kernels._name("a") in names


def test_the_cache_directory_is_the_users_own_or_the_one_that_is_chosen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: FilePath
) -> None:
    monkeypatch.setenv("SATEEN_CACHE_DIR", str(tmp_path / "here"))
    assert cache_directory() == tmp_path / "here"
    monkeypatch.delenv("SATEEN_CACHE_DIR")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory() == tmp_path / "sateen"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_directory() == FilePath.home() / ".cache" / "sateen"


def test_the_same_source_is_loaded_once() -> None:
    text = '"""For a test."""\ndef run(x: int):\n  return x\n'
    assert load_source(text) is load_source(text)


# Random numbers.


def test_splitmix_is_vignas() -> None:
    """The first outputs of splitmix64 from the seed 1234567, as published with the algorithm's ports."""
    published = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    counter = [1234567 + 0x9E3779B97F4A7C15 * step & lanes_by_hand.MASK for step in range(5)]
    assert [lanes_by_hand.splitmix(z) for z in counter] == published


def test_xoshiro_is_blackmans_and_vignas() -> None:
    """The first outputs of xoshiro256++ from the state 1, 2, 3, 4, as the reference implementation gives them."""
    published = [41943041, 58720359, 3588806011781223, 3591011842654386, 9228616714210784205]
    assert list(islice(lanes_by_hand.xoshiro((1, 2, 3, 4)), 5)) == published


def test_the_kernels_mix_is_splitmix() -> None:
    text = kernel_source(BIRTH, ()).text
    mixed = load_source(text[: text.index("def run")] + "def run(z: word):\n  return int(mixed(z))\n")
    rng = np.random.default_rng(1)
    for z in [0, 1, 2**63, 2**64 - 1, *rng.integers(2**64, size=200, dtype=np.uint64).tolist()]:
        assert mixed(z) % 2**64 == lanes_by_hand.splitmix(z)


@pytest.mark.parametrize(("theta", "events"), [(LITTLE, 20), (MUCH, 400)], ids=["absorbed", "long"])
@pytest.mark.parametrize(("seed", "point", "run"), [(0, 0, 0), (1, 2, 3), (2**63 - 1, 10**12, 10**12)])
def test_a_trajectory_is_the_one_computed_by_hand(
    theta: dict[str, float], events: int, seed: int, point: int, run: int
) -> None:
    times, states = lanes_by_hand.trajectory(FUEL, theta, seed=seed, point=point, run=run, events=events)
    path = replay(FUEL, theta, until=1e9, seed=seed, point=point, run=run, max_events=events)
    assert path.states.tolist() == states
    assert path.times == pytest.approx(times, rel=1e-12, abs=0)


BIRTH = Model.parse("species X = 0\n0 -> X @ k")


def test_waits_are_logarithms_to_thirteen_digits() -> None:
    """The first wait of a run, at rate 1, is -log of its first uniform."""
    worst = 0.0
    for run in range(3000):
        path = replay(BIRTH, {"k": 1.0}, until=1e9, seed=5, run=run, max_events=1)
        uniform, _ = next(lanes_by_hand.uniforms(5, 0, run))
        worst = max(worst, abs(path.times[1] / -math.log(uniform) - 1.0))
    assert worst < 1e-13


def test_runs_do_not_share_a_stream() -> None:
    """No 64-bit number of a thousand runs' first twenty comes twice."""
    runs = [(seed, point, run) for seed in range(10) for point in range(10) for run in range(10)]
    numbers = [number for run in runs for number in islice(lanes_by_hand.bits(*run), 20)]
    assert len(set(numbers)) == len(numbers)


def test_waits_are_positive_and_time_goes_on() -> None:
    path = replay(BIRTH, {"k": 3.0}, until=1e9, seed=1, max_events=20_000)
    assert all(earlier < later for earlier, later in pairwise(path.times.tolist()))
    assert path["X"].tolist() == list(range(20_001))


@pytest.mark.parametrize("case", [sir, phosphorelay, lacz], ids=["sir", "phosphorelay", "lacz"])
def test_jumps_of_records_are_those_of_counted_runs_to_the_last_bit(case) -> None:
    """A run is in a state by the very time at which its record enters it, and not a bit earlier."""
    model = case.model()
    theta = {name: value for name, value in model.values().items() if name in {each.name for each in model.parameters}}
    path = replay(model, theta, until=1e9, seed=4, max_events=150)
    tested = 0
    for name, sign in product(model.species, (">=", "<=")):
        counts = path[name]
        extreme = (np.maximum if sign == ">=" else np.minimum).accumulate(counts)
        for index in np.flatnonzero(np.diff(extreme))[:10] + 1:
            time, count = float(path.times[index]), int(counts[index])
            for bound, met in ((time, 1), (math.nextafter(time, 0.0), 0)):
                runner = Runner(model, (stl(f"F[0, {bound!r}] {name} {sign} {count}"),))
                row = [[theta[each] for each in runner.parameters]]
                assert runner.run(row, [[0, 0, 1]], seed=4).satisfied.tolist() == [[met]]
                tested += 1
    assert tested >= 20
