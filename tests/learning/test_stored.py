"""Files of posteriors: all of one is kept, and what is no posterior, or is invalid as one, is refused."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as hs

import sateen as st
from known_functions import LINE, PLANE, observed
from sateen.core.observations import Failure, Observations
from sateen.core.registry import load_object
from sateen.files.container import read_container, write_container
from sateen.learning.gp.recipes import FaithfulEPGP
from sateen.learning.posterior import LearnedPosterior
from sateen.learning.registry import LEARNERS, learner_name, make_learner, settings_content, settings_from
from sateen.learning.stored import FORMAT, KIND, posterior_from_parts, posterior_parts, save


@cache
def rich_observations() -> Observations:
    """Observations with all that observations can have: doubts, reasons, failures, seeds, a formula, a time."""
    seen = observed(PLANE, 40, 30, 5, undecided=0.1)
    early = seen.undecided // 2
    return Observations(
        seen.points,
        seen.satisfied,
        seen.undecided,
        seen.trials,
        origin=seen.origin,
        provenance={"model": "a model", "formula": "F[0, 1] x > 0", "end": None, "versions": {"sateen": "0"}},
        relevant=("beta",),
        reasons={"max_events": early, "error": seen.undecided - early},
        failures=[Failure({"beta": 0.5, "gamma": 1.0, "k": 2.0}, 5, 3, 7, "ZeroDivisionError: no")],
        seconds=1.25,
    )


@cache
def fitted() -> LearnedPosterior:
    return st.EPGP(inputs="linear", inducing=12).fit(rich_observations(), seed=1)


def parts() -> tuple[dict[str, Any], dict[str, Any]]:
    """The words and arrays of a posterior, as a file gives them back; each time anew, to be spoilt."""
    content, arrays = posterior_parts(fitted())
    return json.loads(json.dumps(content)), dict(arrays)


def test_what_is_read_predicts_the_same_to_the_last_bit_and_knows_all_that_it_knew(tmp_path: Path) -> None:
    save(fitted(), tmp_path / "f.safetensors")
    loaded = st.load(tmp_path / "f.safetensors")
    assert type(loaded) is type(fitted())
    for name in ("mean", "std", "lower", "upper"):
        one, other = (getattr(each.predict(PLANE.grid(7), level=0.8), name) for each in (fitted(), loaded))
        assert one.tobytes() == other.tobytes()
    assert loaded.kind == fitted().kind
    assert loaded.recipe == fitted().recipe
    assert loaded.space == fitted().space
    assert loaded.inputs == fitted().inputs
    assert loaded.record.content() == fitted().record.content()
    assert np.array_equal(loaded.record.values, fitted().record.values)
    assert loaded.seconds_per_run == fitted().seconds_per_run > 0


def test_what_a_posterior_works_out_from_its_parts_is_the_same_to_the_last_bit_too(tmp_path: Path) -> None:
    posterior = st.EPGP(inputs="linear").fit(observed(PLANE, 150, 30, 5), seed=1)
    posterior.save(tmp_path / "f.safetensors")
    loaded = st.load(tmp_path / "f.safetensors")
    arrays = [field.name for field in fields(posterior) if isinstance(getattr(posterior, field.name), np.ndarray)]
    assert len(arrays) > 4
    for name in arrays:
        assert getattr(loaded, name).tobytes() == getattr(posterior, name).tobytes(), name


def test_the_training_observations_are_kept_whole(tmp_path: Path) -> None:
    save(fitted(), tmp_path / "f.safetensors")
    seen, kept = rich_observations(), st.load(tmp_path / "f.safetensors").training.observations
    assert kept == seen
    assert kept.fingerprint == seen.fingerprint
    assert (kept.relevant, kept.failures, kept.seconds, kept.seed) == (seen.relevant, seen.failures, 1.25, 5)
    assert dict(kept.provenance) == dict(seen.provenance)
    assert {reason: counts.tolist() for reason, counts in kept.reasons.items()} == {
        reason: counts.tolist() for reason, counts in seen.reasons.items()
    }
    assert kept.points.design == "uniform"


def test_the_same_posterior_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        save(fitted(), tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_words_and_arrays_can_be_nested_in_another_file(tmp_path: Path) -> None:
    content, arrays = posterior_parts(fitted())
    file = tmp_path / "nest.safetensors"
    write_container(file, "nest", 1, {"inner": content}, {f"inner/{name}": array for name, array in arrays.items()})
    _, _, outer, stored = read_container(file)
    inner = {name.removeprefix("inner/"): array for name, array in stored.items()}
    points = PLANE.grid(4)
    assert np.array_equal(
        posterior_from_parts(outer["inner"], inner).predict(points).mean, fitted().predict(points).mean
    )


@pytest.mark.parametrize("name", LEARNERS.builtin)
def test_every_learner_names_the_class_of_its_posterior(name: str) -> None:
    recipe: Any = make_learner(name)
    assert recipe == make_learner(name)
    posterior_class = load_object(recipe.posterior_class)
    assert isinstance(posterior_class, type)
    assert issubclass(posterior_class, LearnedPosterior)


@given(
    hs.sampled_from(["matern", "rbf"]),
    hs.none() | hs.integers(1, 900),
    hs.none() | hs.lists(hs.floats(0.01, 10), min_size=1, max_size=1).map(tuple),
    hs.none() | hs.floats(0.1, 0.9),
)
def test_any_recipe_is_read_back_as_it_was(
    kernel: str, inducing: int | None, length_scales: tuple[float, ...] | None, split: float | None
) -> None:
    recipe = st.EPGP(kernel=kernel, inducing=inducing, length_scales=length_scales, split=split)
    content, arrays = posterior_parts(replace(fitted(), recipe=recipe))
    back = posterior_from_parts(json.loads(json.dumps(content)), arrays).recipe
    assert back == recipe
    assert hash(back) == hash(recipe)


@pytest.mark.parametrize(
    "recipe", [st.EPGP(memory=math.inf), st.SVIGP.sparse_vi([[0.1, 1.0], [0.5, 2.0]], link="logit")]
)
def test_infinite_settings_and_rows_of_numbers_are_read_back_too(recipe: Any) -> None:
    learner = {st.EPGP: "ep-gp", st.SVIGP: "svi-gp"}[type(recipe)]
    content, arrays = posterior_parts(replace(fitted(), recipe=recipe))
    content["learned"]["kind"] = learner
    text = json.dumps({**content, "learner": learner}, allow_nan=False)
    assert posterior_from_parts(json.loads(text), arrays).recipe == recipe


def test_settings_that_are_not_in_the_file_are_what_they_are_by_default() -> None:
    content, arrays = parts()
    del content["recipe"]["kernel"]
    assert posterior_from_parts(content, arrays).recipe == fitted().recipe


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"learner": "svi-pg"}, r"there is no learner 'svi-pg'; did you mean svi-gp\?"),
        ({"learner": "oracle of Delphi"}, "there is no learner 'oracle of Delphi'; there are ep-gp, svi-gp"),
        ({"learner": 7}, "no valid posterior"),
        ({"recipe": {"kernle": "rbf"}}, r"ep-gp has no setting kernle; did you mean kernel\?"),
        ({"recipe": {"zzz": 1}}, "ep-gp has no setting zzz; its settings are kernel, inducing"),
        ({"recipe": {"kernel": "polynomial"}}, "kernel"),
        ({"recipe": {"inducing": "many"}}, "no valid posterior"),
        ({"recipe": ["kernel"]}, "no valid posterior"),
        ({"recipe": None}, "no valid posterior"),
        ({"training": {}}, "object missing required field `space`"),
        ({"inputs": {"names": ["stranger"], "scales": ["linear"]}}, "no valid posterior"),
        ({"inputs": {"names": ["beta"], "scales": ["cubic"]}}, "no valid posterior"),
        ({"inputs": {"names": ["beta"], "scales": []}}, "no valid posterior"),
        ({"record": {}}, "no valid posterior"),
        ({"learned": {}}, "no valid posterior"),
    ],
)
def test_words_that_make_no_sense_are_refused(change: dict[str, Any], words: str) -> None:
    content, arrays = parts()
    with pytest.raises(st.InputError, match=words):
        posterior_from_parts({**content, **change}, arrays, "f.safetensors")


def test_every_word_and_every_array_is_needed() -> None:
    content, arrays = parts()
    for key in content:
        without = {name: value for name, value in content.items() if name != key}
        with pytest.raises(st.InputError, match=f"f.safetensors holds no valid posterior: '{key}' is missing"):
            posterior_from_parts(without, arrays, "f.safetensors")
    for key in arrays:
        with pytest.raises(st.InputError, match="no valid posterior"):
            posterior_from_parts(content, {name: own for name, own in arrays.items() if name != key})


def test_counts_of_another_number_of_points_are_refused() -> None:
    content, arrays = parts()
    for key, array in arrays.items():
        if key.startswith("training/"):
            with pytest.raises(st.InputError, match="no valid posterior"):
                posterior_from_parts(content, {**arrays, key: array[:-1]})


@pytest.mark.parametrize(
    ("key", "array"),
    [
        ("learned/spread", np.empty((60_000, 0))),  # whose product with itself has 29 gigabytes
        ("learned/mean", np.zeros(60_000)),
        ("learned/mean", np.array(0.0)),
        ("learned/mean", np.full(12, np.nan)),
        ("learned/mean", np.full(12, 1e308)),
        ("learned/points", np.zeros((12, 2))),
        ("learned/unseen", np.ones(3, bool)),
        ("learned/factor", np.zeros((12, 12))),
        ("record/steps", np.zeros((1, 1))),
        ("training/theta", np.empty((10**9, 0))),
        ("training/satisfied", np.array(1)),
        ("training/trials", np.zeros(40, np.float16)),
    ],
)
def test_arrays_of_another_shape_or_type_are_refused_before_anything_is_made_of_them(key: str, array: Any) -> None:
    content, arrays = parts()
    with pytest.raises(st.InputError, match=r"f\.safetensors holds no valid posterior"):
        posterior_from_parts(content, {**arrays, key: array}, "f.safetensors")


@pytest.mark.parametrize(
    ("section", "change"),
    [
        ("learned", {"kind": "svi-gp"}),
        ("learned", {"kind": 7}),
        ("learned", {"offset": "0"}),
        ("learned", {"link": "cauchit"}),
        ("learned", {"kernel": {"name": "matern", "length_scales": [1.0, 1.0, 1.0], "variance": 1.0}}),
        ("learned", {"kernel": {"name": "matern", "length_scales": "1", "variance": 1.0}}),
        ("inputs", {"names": ["beta", "beta"], "scales": ["linear", "linear"]}),
        ("record", {"verdict": 7}),
        ("record", {"notes": "many"}),
        ("record", {"seconds": "long"}),
        ("training", {"seconds": "1"}),
        ("training", {"design": ["uniform"]}),
        ("training", {"failures": [{"theta": 1}]}),
        ("training", {"provenance": []}),
    ],
)
def test_words_of_a_wrong_type_are_refused(section: str, change: dict[str, Any]) -> None:
    content, arrays = parts()
    content[section] |= change
    with pytest.raises(st.InputError, match=r"f\.safetensors holds no valid posterior"):
        posterior_from_parts(content, arrays, "f.safetensors")


def test_observations_whose_words_are_spoilt_are_refused_by_name(tmp_path: Path) -> None:
    rich_observations().save(tmp_path / "o.safetensors")
    kind, number, content, arrays = read_container(tmp_path / "o.safetensors")
    for change in ({"space": 7}, {"space": [["beta", [1, 0, "linear"]]]}, {"seconds": -1.0}, {"reasons": "all"}):
        write_container(tmp_path / "o.safetensors", kind, number, {**content, **change}, arrays)
        for load in (st.load, Observations.load):
            with pytest.raises(st.InputError, match=r"o\.safetensors holds no valid observations"):
                load(tmp_path / "o.safetensors")


def test_a_recipe_that_a_file_cannot_keep_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    strange = replace(fitted(), recipe=replace(fitted().recipe))
    object.__setattr__(strange.recipe, "kernel", object())
    with pytest.raises(st.InputError, match="EPGP: kernel is of type object, which a file cannot hold"):
        strange.save(tmp_path / "f.safetensors")
    assert not list(tmp_path.iterdir())


class TestLoad:
    def test_another_kind_is_refused(self, tmp_path: Path) -> None:
        file = tmp_path / "c.safetensors"
        write_container(file, "checkpoint", 1, {}, {})
        with pytest.raises(
            st.InputError,
            match="of the kind 'checkpoint', and only posterior, guarantee, certificate, truth or observations",
        ):
            st.load(file)

    def test_a_later_version_is_refused(self, tmp_path: Path) -> None:
        file = tmp_path / "f.safetensors"
        write_container(file, KIND, FORMAT + 1, *posterior_parts(fitted()))
        with pytest.raises(st.InputError, match=f"of format {FORMAT + 1}, and this sateen reads .*; update sateen"):
            st.load(file)

    def test_an_earlier_format_is_refused(self, tmp_path: Path) -> None:
        file = tmp_path / "f.safetensors"
        write_container(file, KIND, FORMAT - 1, *posterior_parts(fitted()))
        with pytest.raises(st.InputError, match=f"of format {FORMAT - 1}, and this sateen reads .*; make it again"):
            st.load(file)

    def test_observations_come_back_as_observations(self, tmp_path: Path) -> None:
        rich_observations().save(tmp_path / "seen.safetensors")
        assert st.load(tmp_path / "seen.safetensors") == rich_observations()

    def test_a_damaged_file_is_refused_and_the_fault_names_it(self, tmp_path: Path) -> None:
        file = tmp_path / "f.safetensors"
        fitted().save(file)
        whole = file.read_bytes()
        rng = np.random.default_rng(1)
        for place in rng.integers(0, len(whole), 50).tolist():
            spoilt = bytearray(whole)
            spoilt[place] ^= 1 << int(rng.integers(8))
            file.write_bytes(bytes(spoilt))
            with pytest.raises(st.InputError, match=r"f\.safetensors"):
                st.load(file)

    def test_loading_a_gaussian_process_loads_no_jax(self, tmp_path: Path) -> None:
        file = tmp_path / "f.safetensors"
        fitted().save(file)
        script = (
            "import sys, sateen as st\n"
            f"st.load({str(file)!r}).predict({{'beta': 0.5, 'gamma': 1.0}})\n"
            "assert not {'jax', 'optax', 'llvmlite', 'matplotlib'} & set(sys.modules)"
        )
        subprocess.run([sys.executable, "-c", script], check=True, timeout=120)

    def test_a_guarantee_comes_back_as_one(self, tmp_path: Path) -> None:
        posterior = st.EPGP(inputs="linear", inducing=12).fit(observed(LINE, 40, 30, 5), seed=1)
        guarantee = st.calibrate(posterior, observed(LINE, 60, 30, 6), method="icp", level=0.9)
        guarantee.save(tmp_path / "g.safetensors")
        loaded = st.load(tmp_path / "g.safetensors")
        assert isinstance(loaded, st.Guarantee)
        points = LINE.grid(9)
        assert loaded.predict(points).lower.tobytes() == guarantee.predict(points).lower.tobytes()
        assert loaded.claim == guarantee.claim


OTHER_WORDS = {
    "kernel": ("matern", "rbf"),
    "link": ("probit", "logit"),
    "hyperparameters": ("subset", "joint"),
    "activation": ("silu", "tanh"),
    "device": ("auto", "cpu"),
    "inputs": ("auto", "log"),
    "precision": ("float32", "float64"),
    "selection": ("greedy", "random"),
}
OTHER_VALUES = {
    "length_scales": (0.3, 1.5),
    "variance": 2.5,
    "split": 0.25,
    "weight_decay": 3.5,
    "inducing_points": ((0.1, 1.0), (0.5, 2.0)),
}


def another_value(recipe: Any, name: str) -> Any:
    """A value of a setting that is not its default."""
    value = getattr(recipe, name)
    if name in OTHER_WORDS:
        return next(word for word in OTHER_WORDS[name] if word != value)
    if name == "length_scales" and isinstance(recipe, FaithfulEPGP):
        return 0.3  # it has one for all inputs
    if name in OTHER_VALUES:
        return OTHER_VALUES[name]
    if isinstance(value, bool):
        return not value
    return 77 if value is None else value + 1 if isinstance(value, int) else value * 1.5


@pytest.mark.parametrize("name", LEARNERS.builtin)
def test_every_setting_of_every_recipe_can_be_kept(name: str) -> None:
    """Each setting in turn, at another value than its default, is the same after a file."""
    recipe: Any = make_learner(name)
    for field in fields(recipe):
        changes = {field.name: another_value(recipe, field.name)}
        if field.name in ("steps", "epochs") and {"steps", "epochs"} <= {each.name for each in fields(recipe)}:
            changes = {"steps": None, "epochs": None, field.name: 77}
        if getattr(recipe, "selection", "") == "random" and field.name in ("inducing_points", "optimise_inducing"):
            changes["selection"] = "greedy"  # random points are neither given nor moved
        other = replace(recipe, **changes)
        assert getattr(other, field.name) != getattr(recipe, field.name), field.name
        content = json.loads(json.dumps(settings_content(other), allow_nan=False))
        assert make_learner(learner_name(other), settings_from(content)) == other, field.name
