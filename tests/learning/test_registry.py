"""Learners by name: the built-in ones, those of other packages, and those of a module of one's own."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import sateen as st
from sateen.learning.registry import LEARNERS, learner_name, make_learner, settings_content, settings_from

NAMES = (
    *("ep-gp", "svi-gp", "svi-bnn", "laplace-net", "ep-gp-faithful", "svi-gp-faithful", "svi-bnn-faithful"),
    *("svi-gp-as-run", "svi-bnn-as-run", "sparse-vi"),
)


@dataclass(frozen=True)
class Plain:
    """A learner with settings of two types."""

    width: int = 3
    label: str | None = None

    def fit(self, observations: st.Observations, *, seed: int) -> Any:
        raise AssertionError


class Estimator:
    """A learner in the style of scikit-learn."""

    def __init__(self, depth: int = 2, rate: float = 0.1) -> None:
        self.depth, self.rate = depth, rate

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"depth": self.depth, "rate": self.rate}

    def fit(self, observations: st.Observations, *, seed: int) -> Any:
        raise AssertionError


class NoLearner:
    """Has no `fit`."""


def test_the_built_in_names_are_those_that_studies_use() -> None:
    assert tuple(LEARNERS.builtin) == NAMES
    assert LEARNERS.names()[: len(NAMES)] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_built_in_name_gives_a_learner_with_that_name(name: str) -> None:
    learner = make_learner(name)
    assert isinstance(learner, st.Learner)
    of_class = {"svi-bnn-faithful": "svi-bnn", "svi-bnn-as-run": "svi-bnn", "sparse-vi": "svi-gp"}
    assert learner_name(learner) == {**of_class, "svi-gp-as-run": "svi-gp-faithful"}.get(name, name)


def test_a_preset_takes_settings_too() -> None:
    assert make_learner("svi-bnn-faithful", {"width": 5, "steps": 10, "epochs": None}).width == 5  # type: ignore[attr-defined]
    assert make_learner("svi-bnn-faithful") == st.SVIBNN.faithful()


@pytest.mark.parametrize("name", ["default", "auto"])
def test_the_automatic_choice_has_a_name_and_no_settings(name: str) -> None:
    assert learner_name(make_learner(name)) == "default"
    with pytest.raises(st.InputError, match="chooses for itself, so it takes no settings") as caught:
        make_learner(name, {"batch": 5})
    assert caught.value.argument == "batch"


@pytest.mark.parametrize(
    ("name", "settings", "words", "argument"),
    [
        ("svi-pg", {}, "there is no learner 'svi-pg'; did you mean svi-gp", ""),
        ("wizard of Oz", {}, "there are ep-gp, svi-gp", ""),
        ("svi-gp", {"inducng": 3}, "svi-gp has no setting inducng; did you mean inducing", "inducng"),
        ("svi-gp", {"zzz": 3}, "its settings are kernel, link", "zzz"),
        ("svi-gp", {"inducing": -3}, "svi-gp: inducing is a whole number from 1 up, not -3", "inducing"),
        ("svi-gp", {"kernel": "rfb"}, "svi-gp: kernel is 'matern' or 'rbf'", "kernel"),
        (f"{__name__}:Plain", {"widht": 3}, "did you mean width", "widht"),
        (f"{__name__}:NoLearner", {}, "is not a learner: a learner is a class with `fit`", ""),
        (f"{__name__}:NAMES", {}, "is not a learner", ""),
        ("os:system", {"command": "true"}, "os:system is not a learner", ""),
        (f"{__name__}:Absent", {}, "cannot be imported", ""),
        ("no_such_package:Learner", {}, "cannot be imported: No module named 'no_such_package'; install", ""),
    ],
)
def test_unknown_names_and_settings_are_refused(name: str, settings: Any, words: str, argument: str) -> None:
    with pytest.raises(st.InputError, match=words) as caught:
        make_learner(name, settings)
    assert caught.value.argument == argument


def test_a_class_of_ones_own_is_named_by_its_address() -> None:
    learner = make_learner(f"{__name__}:Plain", {"width": 5, "label": "none"})
    assert type(learner).__name__ == "Plain"
    assert (learner.width, learner.label) == (5, None)  # type: ignore[attr-defined]
    assert learner_name(learner) == f"{__name__}:Plain"


@pytest.mark.parametrize("learner", [Plain(7, "x"), Estimator(depth=5, rate=float("inf"))])
def test_settings_come_back_from_plain_data(learner: Any) -> None:
    settings = settings_from(settings_content(learner))
    again = make_learner(learner_name(learner), settings)
    assert settings_content(again) == settings_content(learner)


def test_a_setting_is_read_by_its_type() -> None:
    asked = []

    def read(name: str, value: Any, hint: Any, written: str) -> int:
        asked.append((name, value, hint, written))
        return int(value)

    assert make_learner(f"{__name__}:Estimator", {"depth": "4"}, read).depth == 4  # type: ignore[attr-defined]
    assert asked == [("depth", "4", int, "int")]


def test_a_learner_of_another_package_is_found_by_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "strangers.py").write_text("class Stranger:\n    def fit(self, observations, *, seed): ...\n")
    info = tmp_path / "strangers-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: strangers\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[sateen.learners]\nstranger = strangers:Stranger\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert LEARNERS.names()[-1] == "stranger"
    assert learner_name(make_learner("stranger")) == "stranger"
    with pytest.raises(st.InputError, match="did you mean stranger"):
        make_learner("strangr")


def test_learners_by_name_load_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "import sateen as st\n"
        "from sateen.learning.registry import LEARNERS, learner_name, make_learner\n"
        f"assert [learner_name(make_learner(name)) for name in {NAMES!r}]\n"
        "make_learner('default'), st.SVIGP(batch=3), st.SVIBNN.faithful(), st.LaplaceNet(nets=1), st.EPGP()\n"
        "heavy = {'jax', 'optax', 'scipy', 'llvmlite', 'matplotlib', 'safetensors', 'lark', 'msgspec'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
