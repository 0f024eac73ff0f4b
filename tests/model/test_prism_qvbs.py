"""The tandem queueing network of the Quantitative Verification Benchmark Set, unchanged, against its known values.

The files are not part of this repository: SATEEN_EXTERNAL_DATA says where they are.
"""

from __future__ import annotations

import os
from pathlib import Path as FilePath

import pytest
from scipy.stats import binomtest

import sateen as st
from sateen.logic.csl import read_properties
from sateen.model.prism import load_prism

LEVEL = 1e-6
FOLDER = FilePath(os.environ.get("SATEEN_EXTERNAL_DATA", "nowhere")) / "qvbs" / "tandem"
pytestmark = pytest.mark.skipif(
    not (FOLDER / "tandem.prism").is_file(), reason="SATEEN_EXTERNAL_DATA names no folder with qvbs/tandem"
)

FIRST_QUEUE = {5: 0.3352605619, 7: 0.2969271805, 15: 0.2060312414, 31: 0.1164415719}  # t = 0.2
NETWORK = {5: 0.8437906963, 7: 0.3177407549}  # T = 1000


def tandem(c: int):
    system = load_prism(FOLDER / "tandem.prism", {"c": c})
    text = (FOLDER / "tandem.props").read_text(encoding="utf-8")
    return system.model, read_properties(text, system, constants={"T": 1000, "t": 0.2})


@pytest.mark.parametrize(("c", "expected"), FIRST_QUEUE.items())
def test_the_first_queue_becomes_full_as_often_as_known(c, expected):
    model, properties = tandem(c)
    assert st.exact(model, properties["first_queue"].formula, {})[0] == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(("c", "expected"), NETWORK.items())
def test_the_network_becomes_full_as_often_as_known(c, expected):
    model, properties = tandem(c)
    assert st.exact(model, properties["network"].formula, {})[0] == pytest.approx(expected, abs=1e-8)


def test_runs_agree_with_the_known_values():
    point = st.Space().uniform(1, seed=1)
    model, properties = tandem(5)
    asked = {name: properties[name].formula for name in ("first_queue", "network")}
    runs = st.observe(model, asked, point, runs=5_000, seed=11)
    for name, expected in (("first_queue", FIRST_QUEUE[5]), ("network", NETWORK[5])):
        assert runs[name].undecided[0] == 0
        assert binomtest(int(runs[name].satisfied[0]), 5_000, expected).pvalue > LEVEL
    model, properties = tandem(31)
    many = st.observe(model, properties["first_queue"].formula, point, runs=100_000, seed=12)
    assert binomtest(int(many.satisfied[0]), 100_000, FIRST_QUEUE[31]).pvalue > LEVEL


def test_expected_rewards_are_refused_by_name_and_the_model_notes_them():
    model, properties = tandem(5)
    assert list(properties) == ["first_queue", "network", "second_queue"]
    assert {error.message for error in properties.refused.values()} == {"expected rewards (R) are not supported"}
    assert model.warnings == ('line 36: the rewards "customers" are not read',)
