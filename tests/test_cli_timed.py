"""Rates in time from the command line: a study whose answer is known, inspection, one run, many runs, and refusals."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import poisson

import sateen as st
from command_line import as_json, sateen

STUDY = """
[study]
name = "tide"
seed = 5
[model]
text = '''
species X = 0
parameter w = 2
come: 0 -> X @ a * (1 + sin(w * time)) when time >= 1
'''
[space]
a = [1, 6]
[property]
many = "F[0, 4] X >= 10"
[observe]
train = { design = "sobol", points = 96, runs = 40 }
calibrate = { budget = 10000 }
test = { design = "uniform", points = 60, runs = 300 }
[learn]
learners = ["svi-gp"]
[guarantee]
level = 0.9
marginal = true
"""


def known(a: np.ndarray) -> np.ndarray:
    """The probability that a Poisson process of rate a (1 + sin 2s) from time 1 to 4 counts 10 or more."""
    return np.asarray(poisson.sf(9, a * (3 + (math.cos(2) - math.cos(8)) / 2)))


@pytest.fixture(scope="module")
def tide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the study."""
    file = tmp_path_factory.mktemp("tide") / "tide.toml"
    file.write_text(STUDY)
    return file


def test_a_study_of_rates_in_time_learns_the_function_that_is_known(tide: Path) -> None:
    sateen("run", tide)
    result = st.Result.load(tide.parent / "tide-result").properties["many"]
    grid = st.Space(a=(1, 6)).grid(21)
    truth = known(grid.theta[:, 0])
    seen = result.guarantee.predict(grid)
    assert np.abs(seen.mean - truth).max() < 0.06
    assert ((seen.lower <= truth) & (truth <= seen.upper)).mean() >= 0.9


def test_the_chance_at_one_point_is_the_known_one_and_exact_refuses(tmp_path: Path) -> None:
    file = tmp_path / "tide.sateen"
    file.write_text("species X = 0\nparameter w = 2\ncome: 0 -> X @ a * (1 + sin(w * time)) when time >= 1\n")
    found = as_json("check", file, "-p", "F[0, 4] X >= 10", "--at", "a=3", "--runs", 20000)
    p = float(known(np.array(3.0)))
    assert abs(found["probability"] - p) < 4.9 * math.sqrt(p * (1 - p) / 20000)
    refused = sateen("check", file, "-p", "F[0, 4] X >= 10", "--at", "a=3", "--runs", 10, "--exact").stdout
    assert "not exact: the rate of come depends on time" in refused
    assert "come  0 -> X  @ a * (1 + sin(w * time))  when time >= 1" in sateen("inspect", file).stdout
    assert "not absorbed" in sateen("simulate", file, "--at", "a=3", "--until", 0.5).stdout
    many = as_json("simulate", file, "--at", "a=3", "--runs", 4000, "--times", "0,1,4")
    assert many["mean"][1] == [0.0]
    mean = 3 * (3 + (math.cos(2) - math.cos(8)) / 2)
    assert abs(many["mean"][2][0] - mean) < 4.9 * math.sqrt(mean / 4000)
