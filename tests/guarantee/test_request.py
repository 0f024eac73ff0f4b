"""Requests: every rule of calibrations and plans in one place, worded by each door; and methods that others add."""

from __future__ import annotations

import importlib
import subprocess
import sys
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from sateen import InputError, Plan, calibrate, load
from sateen.core import registry
from sateen.guarantee.methods import METHODS
from sateen.guarantee.normaliser import NORMALISERS
from sateen.guarantee.request import CalibrateRequest, PlanRequest
from tabled import UNIT, read_table, tabled, uniform_counts

PLAN = Plan(100, 50, 2, "constant", 0.1, (0.08, 0.12), 0.8, None, 1.0)
shares = some.floats(0.01, 0.99)


def as_option(name, value):
    return f"--{name.replace('_', '-')}" if value in (None, "True") else f"--{name} {value}"


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"method": "jackknife"}, "method"),
        ({"method": ["lift"]}, "method"),
        ({"level": 1.0}, "level"),
        ({"confidence": 95}, "confidence"),
        ({"confidence": 0.9, "marginal": True}, "marginal"),
        ({"method": "chernoff", "split": 1.5}, "split"),
        ({"method": "icp", "rank": 1}, "rank"),
        ({"method": "nicp", "plan": PLAN}, "plan"),
        ({"method": "lift", "split": 0.5}, "split"),
        ({"method": "icp", "normaliser": "posterior"}, "normaliser"),
        ({"normaliser": "quantile"}, "normaliser"),
        ({"rank": 0}, "rank"),
        ({"seed": -1}, "seed"),
        ({"seed": 1, "normaliser": "constant"}, "seed"),
        ({"allow_trivial": "yes"}, "allow_trivial"),
        ({"density": 3.0}, "density"),
        ({"density": np.sum, "confidence": 0.9}, "confidence"),
        ({"plan": PLAN, "rank": 3}, "rank"),
        ({"plan": PLAN, "level": 0.9}, "level"),
        ({"plan": PLAN, "marginal": False, "confidence": 0.9}, "confidence"),
        ({"plan": PLAN, "normaliser": "posterior"}, "normaliser"),
        ({"plan": PLAN, "seed": 3}, "seed"),
        ({"plan": "ten points"}, "plan"),
    ],
)
def test_every_refusal_names_its_argument_in_the_words_of_the_door(options, argument):
    with pytest.raises(InputError) as caught:
        CalibrateRequest.of(**options)
    assert caught.value.argument == argument
    assert argument in str(caught.value)
    assert f"--{argument.replace('_', '-')}" in caught.value.worded(as_option)
    assert "{" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({}, "width"),
        ({"width": 0.1, "budget": 100}, "width"),
        ({"width": 2}, "width"),
        ({"budget": 0.5}, "budget"),
        ({"budget": 28}, "budget"),
        ({"width": 0.1, "level": 1 - 1e-12}, "level"),
        ({"width": 0.1, "confidence": 2}, "confidence"),
        ({"width": 0.1, "normaliser": "quantile"}, "normaliser"),
        ({"width": 0.1, "seed": -1}, "seed"),
        ({"width": 0.1, "marginal": True, "confidence": 0.5}, "marginal"),
    ],
)
def test_every_refusal_of_a_plan_names_its_argument(options, argument):
    with pytest.raises(InputError) as caught:
        PlanRequest.of(**options)
    assert caught.value.argument == argument


@given(some.sampled_from(sorted(METHODS.builtin)), shares, some.one_of(some.none(), shares))
def test_a_request_keeps_what_is_given(method, level, confidence):
    request = CalibrateRequest.of(method, level=level, confidence=confidence)
    assert (request.method, request.level, request.confidence) == (method, level, confidence)
    assert request.miss == 1 - level
    assert request == CalibrateRequest.of(method, level=level, confidence=confidence)


def test_defaults_are_those_of_the_method():
    assert {method: CalibrateRequest.of(method).confidence for method in METHODS.builtin} == {
        "icp": None,
        "nicp": None,
        "chernoff": None,
        "lift": 0.95,
    }
    assert CalibrateRequest.of(density=np.sum).confidence is None
    assert CalibrateRequest.of(marginal=True) == CalibrateRequest.of(confidence=None)
    with pytest.raises(FrozenInstanceError):
        CalibrateRequest.of().level = 0.5


def test_a_plan_gives_what_it_has_fixed_and_one_still_to_be_made_leaves_the_rank_open():
    made = CalibrateRequest.of(plan=PLAN)
    assert (made.level, made.confidence, made.rank, made.normaliser) == (0.8, None, 2, "constant")
    wanted = CalibrateRequest.of(plan=PlanRequest.of(width=0.1, level=0.8, marginal=True))
    assert (wanted.level, wanted.confidence, wanted.rank, wanted.normaliser) == (0.8, None, None, None)
    with pytest.raises(InputError, match=r"plan is what st\.plan gives"):
        calibrate(
            tabled(0.5, 0.1), uniform_counts(np.copy, 60, 10, np.random.default_rng(1)), plan=PlanRequest.of(width=0.1)
        )


@given(
    some.sampled_from(sorted(METHODS.builtin)),
    some.floats(0.5, 0.97),
    some.one_of(some.none(), some.floats(0.5, 0.99)),
)
def test_points_are_too_few_exactly_where_the_calibration_is_trivial(method, level, confidence):
    request = CalibrateRequest.of(method, level=level, confidence=confidence)
    enough = METHODS[method].fewest_points(request)
    request.check_points(enough)
    few = "1 held-out point is" if enough == 2 else f"{enough - 1:,} held-out points are"
    with pytest.raises(InputError, match=rf"^{few} too few .*: {enough:,} would suffice\n"):
        request.check_points(enough - 1)
    CalibrateRequest.of(method, level=level, confidence=confidence, allow_trivial=True).check_points(enough - 1)
    if 1 < enough < 500:
        posterior, given = tabled(0.5, 0.1), {"normaliser": "constant"} if method == "lift" else {}
        held_out = uniform_counts(lambda x: 0 * x + 0.5, enough, 10, np.random.default_rng(1))
        made = calibrate(posterior, held_out, method=method, level=level, confidence=confidence, **given)
        assert np.isfinite(made.calibration.threshold)
        few = calibrate(
            posterior, held_out[:-1], method=method, level=level, confidence=confidence, allow_trivial=True, **given
        )
        assert np.isinf(few.calibration.threshold)


def test_every_method_names_normalisers_of_the_table():
    for name in METHODS.builtin:
        assert set(METHODS[name].normalisers) <= set(NORMALISERS)
        assert ("normaliser" in METHODS[name].options) == bool(METHODS[name].normalisers)


def test_asking_for_a_request_loads_nothing_heavy():
    script = (
        "import sys; import sateen.guarantee.request, sateen.guarantee.methods, sateen.guarantee.normaliser\n"
        "print([name for name in ('scipy', 'jax', 'llvmlite', 'matplotlib') if name in sys.modules])\n"
        "sateen.guarantee.request.CalibrateRequest.of('lift').check_points(100)\n"
        "print([name for name in ('scipy.stats', 'jax', 'llvmlite', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n[]\n"


THEIRS = '''
from dataclasses import dataclass

import numpy as np
from sateen.guarantee.methods import Calibration


@dataclass(frozen=True)
class Everything:
    """The interval [0, 1], which is always right."""

    target: str = "probability"
    confidence: float | None = None
    options: tuple = ()
    normalisers: tuple = ()

    def fewest_points(self, request):
        return 1

    def calibrate(self, request, posterior, held_out, prediction):
        runs = int(held_out.trials[0])
        made = Calibration(len(held_out), runs, 1, 1.0, request.miss, "constant", runs, held_out.fingerprint)
        return made, None

    def interval(self, calibration, mean, reach):
        return np.zeros(len(mean)), np.ones(len(mean))


EVERYTHING = Everything()
'''


@pytest.fixture
def everything(tmp_path, monkeypatch):
    """A package of somebody else with a method of its own."""
    (tmp_path / "theirs.py").write_text(THEIRS)
    info = tmp_path / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[sateen.guarantees]\neverything = theirs:EVERYTHING\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield
    sys.modules.pop("theirs", None)


def test_a_method_of_another_package_is_one_file_and_one_entry_point(everything, tmp_path, monkeypatch):
    assert METHODS.names() == ("icp", "nicp", "chernoff", "lift", "everything")
    held_out = uniform_counts(lambda x: 0.2 + 0 * x, 20, 10, np.random.default_rng(1))
    guarded = calibrate(tabled(0.5, 0.1), held_out, method="everything", level=0.99)
    assert guarded.predict(UNIT.grid(5)).width.tolist() == [1.0] * 5
    assert (guarded.claim.target, guarded.claim.level, guarded.claim.by) == ("probability", 0.99, "everything")
    with pytest.raises(InputError, match="rank does not apply to method='everything', only to method='lift'"):
        calibrate(tabled(0.5, 0.1), held_out, method="everything", rank=2)
    monkeypatch.setitem(registry._PROVIDERS, "posterior parts", "tabled:table_parts")
    monkeypatch.setattr(
        "sateen.learning.stored.posterior_from_parts", lambda words, arrays, where: read_table(words, arrays)
    )
    guarded.save(tmp_path / "guarded.safetensors")
    assert load(tmp_path / "guarded.safetensors").claim == guarded.claim


def test_an_unknown_method_is_refused_with_all_names():
    with pytest.raises(InputError, match=r"^method is one of 'icp', 'nicp', 'chernoff', 'lift', not 'everything'$"):
        CalibrateRequest.of("everything")
