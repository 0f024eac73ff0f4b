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
CUSTOMERS = {5: 3.576667592, 7: 5.154112416, 15: 11.55612449, 31: 24.44505}  # at t = 0.2
NETWORK = {5: 0.8437906963, 7: 0.3177407549}  # T = 1000


def tandem(c: int):
    system = load_prism(FOLDER / "tandem.prism", {"c": c})
    text = (FOLDER / "tandem.props").read_text(encoding="utf-8")
    with pytest.warns(
        st.SateenWarning, match=r"1 of 5 properties cannot be asked:\n  line 5, customers: rewards in the"
    ):
        properties = read_properties(text, system, constants={"T": 1000, "t": 0.2})
    return system.model, properties


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


@pytest.mark.parametrize(("c", "expected"), CUSTOMERS.items())
def test_the_expected_number_of_customers_is_the_known_one(c, expected):
    model, properties = tandem(c)
    assert st.exact(model, properties["customers_T"].formula, {})[0] == pytest.approx(expected, rel=1e-9)


def test_runs_have_the_known_number_of_customers():
    model, properties = tandem(5)
    found = st.estimate(model, properties["customers_T"].formula, seed=13, runs=2_000)
    assert abs(found.value - CUSTOMERS[5]) < 5 * found.deviation / 2_000**0.5
    assert found.lower < CUSTOMERS[5] < found.upper


def test_rewards_in_the_long_run_are_refused_by_name():
    model, properties = tandem(5)
    assert list(properties) == ["customers_T", "first_queue", "network", "second_queue"]
    assert {error.message for error in properties.refused.values()} == {"rewards in the long run (S) are not supported"}
    assert model.warnings == ()
