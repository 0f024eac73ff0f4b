"""The paper's figures about guarantees, in small: which numbers they hold, and that they can be repeated."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
from click.testing import CliRunner

import sateen as st
from sateen.cli import main
from sateen.paper.guarantees import GuaranteeFigures

SMALL = {"learners": ("svi-gp",), "runs": (10, 50), "trainings": 1, "seed": 3}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    figures = GuaranteeFigures(tmp_path_factory.mktemp("guarantees"), **SMALL, workers=1)
    figures.run()
    return figures


def test_widths_stand_in_the_order_that_theory_says(small):
    found = {name: rows[:, 0] for name, rows in small.widths()["SVI-GP"].items()}
    assert (found["Bayes"] < found["lift, planned"]).all()
    assert (found["lift, planned"] < found["lift"]).all()
    assert (found["lift, planned, 90 %"] < found["lift, planned"]).all()
    assert (found["NICP"] < found["NICP + Chernoff, 90 %"]).all()
    assert (found["gen"] < found["emp"]).all()  # the test has many more runs, and less noise
    assert all(rows[1] < rows[0] for rows in found.values())
    predictions = small.bands("SVI-GP")
    assert set(predictions) == {10, 50}
    assert predictions[50]["NICP + Chernoff, 90 %"].claim.level == 0.9
    assert predictions[50]["ICP"].claim.level == 0.95
    assert len(small.shown_test()) == 30


def test_bounds_on_the_error_are_above_it(small):
    values = small.errors()["SVI-GP"]
    for name in ("PAC-Bayes (Catoni)", "PAC-Bayes (Seeger)", "betting"):
        assert (values[name] > values["gen"]).all()
    assert (values["betting"] < values["PAC-Bayes (Seeger)"]).all()


def test_curves_are_plain_data(small):
    content = json.loads(small.draw()[-1].read_text())["widths"]
    assert content["runs"] == [10, 50]
    assert np.array(content["values"]["SVI-GP"]["ICP"]).shape == (2, 1)


def test_the_tables_have_the_means_over_trainings(small):
    widths, errors = (table.markdown() for table in small.tables())
    assert "| | 10 runs | 50 runs |" in widths.replace("|  |  |", "| |")
    bayes = small.widths()["SVI-GP"]["Bayes"].mean(axis=1)
    assert f"| SVI-GP | Bayes | {bayes[0]:.4f} | {bayes[1]:.4f} |" in widths
    assert "means over 1 training, by runs per point" in errors


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"learners": ("gp",)}, "the paper has no learner 'gp'; there are ep-gp, svi-gp, svi-bnn"),
        ({"preset": "slow"}, "there is no preset 'slow'; there are fast, faithful, as-run"),
        ({"learners": ()}, "at least one learner"),
        ({"runs": (0,)}, "at least one learner, one number of runs"),
        ({"trainings": 0}, "one training"),
    ],
)
def test_what_cannot_be_drawn_is_refused(wrong, message, tmp_path):
    with pytest.raises(st.InputError, match=message):
        GuaranteeFigures(tmp_path, **{**SMALL, **wrong})


@pytest.mark.slow
def test_a_preset_has_tasks_and_labels_of_its_own(tmp_path):
    asked = {"runs": (10,), "trainings": 1, "seed": 3, "workers": 1}
    work = GuaranteeFigures(tmp_path, preset="as-run", learners=("ep-gp", "svi-bnn"), **asked)
    work.run()
    assert list(work.widths()) == ["EP-GP faithful", "SVI-BNN as run"]  # theirs has one EP under both presets
    errors = work.errors()
    assert "PAC-Bayes (Catoni)" not in errors["EP-GP faithful"]  # its prior has seen the data
    assert errors["SVI-BNN as run"]["PAC-Bayes (Catoni)"].item() <= 1.0
    names = {file.name for file in work.draw(".svg")}
    assert "guarantee-bands-svi-bnn-as-run.svg" in names
    assert json.loads((tmp_path / "guarantee-numbers.json").read_text())["preset"] == "as-run"
    ours = GuaranteeFigures(tmp_path, learners=("svi-bnn",), **asked)
    assert len(ours.pipeline.pending()) == 2  # all but the test set


@pytest.mark.slow
def test_the_command_writes_the_figures_and_numbers_that_the_library_does(small, tmp_path):
    copytree(small.path, tmp_path / "one")  # where 10 runs per point are finished, among others
    figures = GuaranteeFigures(tmp_path / "one", **{**SMALL, "runs": (10,)})
    assert not figures.pipeline.pending()
    figures.run()
    files = figures.draw(".svg")
    names = ["guarantee-widths.svg", "guarantee-bands-svi-gp.svg", "guarantee-errors.svg"]
    assert [file.name for file in files] == [*names, "guarantee-table.md", "guarantee-numbers.json"]
    command = ["paper", "guarantees", "-l", "svi-gp", "--runs", "10", "--seeds", "1", "--seed", "3"]
    done = CliRunner().invoke(main, [*command, "-o", str(tmp_path / "two")])
    assert done.exit_code == 0, done.output
    told = [Path(line) for line in done.stdout.splitlines()]
    assert [file.read_bytes() for file in told] == [file.read_bytes() for file in files]
    numbers = json.loads(told[-1].read_text())
    assert numbers["widths"]["runs"] == [10]
    errors = numbers["errors"]["values"]["SVI-GP"]
    assert errors["betting"][0][0] > errors["gen"][0][0]


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["guarantee"], 2, "the paper has no part 'guarantee'; did you mean guarantees?"),
        (["guarantees", "--runs", "10,x"], 2, "'10,x' is not a list of whole numbers such as 10,50,500"),
        (["guarantees", "-l", "gp"], 2, "there is no learner 'gp'"),
        (["guarantees", "-o", "/dev/null/figures"], 1, "cannot write to the folder /dev/null/figures/pieces: Not a"),
    ],
)
def test_the_command_refuses_before_the_work(options, code, said):
    done = CliRunner().invoke(main, ["paper", *options])
    assert (done.exit_code, done.stdout) == (code, "")
    assert said in " ".join(done.stderr.split())
