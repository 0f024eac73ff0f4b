"""`sateen paper` on the command line: what it says, asks and refuses."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result

import command_line
from sateen.cli import main
from sateen.paper.cases.models import VARIANTS

TRIED = ("--share", "0.02", "--seeds", "1", "--workers", "1")


def sateen(*arguments: str | Path, code: int = 0) -> Result:
    return command_line.sateen("paper", *arguments, code=code)


def test_a_configuration_is_told_as_text_markdown_latex_json_and_a_figure(tmp_path: Path):
    asked = ("a", *TRIED, "-l", "SVI-GP,default", "-o", tmp_path / "paper")
    done = sateen(*asked)
    lines = done.stdout.splitlines()
    names = ["table.txt", "table.md", "table.tex", "table.json", "paper-a.svg"]
    assert lines[-5:] == [str(tmp_path / "paper" / name) for name in names]
    assert all(Path(line).is_file() for line in lines[-5:])
    assert any(line.startswith("   sateen (svi-gp)") for line in lines)
    assert "tasks are pending, which takes about" in done.stderr
    assert "fit a svi-gp 1" in done.stderr
    assert "computed in " in done.stderr
    again = sateen(*asked, "--json")
    assert again.stderr.splitlines() == ["all of 8 tasks are finished"]
    told = json.loads(again.stdout)
    kept = json.loads((tmp_path / "paper" / "table.json").read_text())
    assert [row["learner"] for row in told["rows"]] == ["svi-gp", "default"]
    assert {key: told[key] for key in kept} == kept
    assert told["parts"] == ["a"]


LEARNER = '''
import numpy as np
import sateen as st

class Constant:
    """Predicts the share of all runs that satisfy the formula, everywhere."""

    def fit(self, observations, *, seed):
        share = observations.frequency.mean()
        everywhere = lambda theta: (np.full(len(theta), share), np.full(len(theta), 0.1))
        return st.posterior_from(everywhere, observations, learner=self, seed=seed)
'''


def test_a_learner_of_ones_own_has_rows_of_its_own(tmp_path: Path, monkeypatch):
    (tmp_path / "my_package.py").write_text(LEARNER)
    monkeypatch.syspath_prepend(tmp_path)
    done = sateen("a", *TRIED, "-l", "my_package:Constant,svi-gp", "-o", tmp_path / "paper")
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[4:6]] == ["a", "my_package:Constant"]
    rows = json.loads((tmp_path / "paper" / "table.json").read_text())["rows"]
    assert [row["learner"] for row in rows] == ["svi-gp", "my_package:Constant"]
    theirs, own = (row["figures"]["rmse_truth"] for row in rows)
    assert own > 0.1 > theirs  # f is no constant
    assert "my_package:Constant" in (tmp_path / "paper" / "paper-a.svg").read_text()


def test_a_dry_run_says_what_is_missing_and_makes_nothing(tmp_path: Path):
    done = sateen("all", "random", "--dry-run", "-o", tmp_path / "paper")
    assert "608 of 608 tasks are pending, which takes about" in done.stdout
    assert "fits of svi-bnn" in done.stdout
    assert not (tmp_path / "paper").exists()
    told = json.loads(sateen("l", "--dry-run", "--json", "-o", tmp_path / "paper").stdout)
    assert told["pending"] == told["tasks"] == 23
    assert told["seconds"]["the truth"] > 10


def test_a_dry_run_of_networks_of_any_size_searches_for_none(tmp_path: Path):
    asked = ("random", "--rates", "10,6", "-l", "svi-gp", "--json", "--dry-run", "-o", tmp_path / "paper")
    told = json.loads(sateen(*asked).stdout)
    assert (told["parts"], told["pending"], told["tasks"]) == (["r10", "r06"], 38, 38)
    assert told["seconds"]["search for networks"] > 0
    assert not (tmp_path / "paper").exists()
    same = [sateen(*part, "--dry-run", "-o", tmp_path).stdout for part in (["random", "--rates", "8"], ["r8"], ["r08"])]
    assert same[0] == same[1] == same[2]
    assert "search" not in same[0]


def test_the_variant_is_told_and_is_one_for_the_epidemic(tmp_path: Path):
    asked = ("a", *TRIED, "-l", "svi-gp", "-o", tmp_path)
    usual, stated = (json.loads(sateen(*asked, "--variant", name, "--json").stdout) for name in VARIANTS)
    assert [usual["variant"], stated["variant"]] == list(VARIANTS)
    assert stated["rows"] == usual["rows"]  # read from the same files
    assert "Variant as-stated" in (tmp_path / "table.txt").read_text()
    told = sateen("guarantees", "--variant", "as-stated", "--dry-run", "-o", tmp_path).stdout
    assert "181 of 181 tasks" in told


def test_a_dry_run_of_guarantees_draws_nothing(tmp_path: Path):
    told = sateen("guarantees", "--dry-run", "--workers", "1", "-o", tmp_path / "paper").stdout
    assert "181 of 181 tasks are pending, which takes about 21 min" in told
    assert not (tmp_path / "paper").exists()


def test_more_than_an_hour_is_refused_where_nobody_can_be_asked(tmp_path: Path):
    done = sateen("l", "--preset", "faithful", "-o", tmp_path / "paper", code=1)
    assert "not a terminal, so cannot ask; pass --yes, or ask for less" in done.stderr
    assert not (tmp_path / "paper").exists()


# Where the tests run in the background, SIGINT may be ignored from birth: so it is set first.
HEARING = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "from sateen.cli import main; main(prog_name='sateen')"
)


@pytest.mark.parametrize("answer", ["n\n", "\n", ""], ids=["no", "nothing", "the end"])
def test_more_than_an_hour_is_asked_where_somebody_is_there(answer: str, tmp_path: Path, monkeypatch):
    monkeypatch.setattr("sateen.cli.output.sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))
    command = ["paper", "l", "--preset", "faithful", "-o", str(tmp_path / "paper")]
    done = CliRunner().invoke(main, command, input=answer)
    assert done.exit_code == 1
    assert "continue? [y/N]" in done.stderr
    assert "days" in done.output
    assert not (tmp_path / "paper").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_ctrl_c_says_how_to_go_on(tmp_path: Path):
    command = [sys.executable, "-c", HEARING, "paper", "b", *TRIED, "-l", "svi-gp", "-o", str(tmp_path)]
    stages = tmp_path / "pieces" / "stages"
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        while running.poll() is None and not list(stages.glob("train1.b.*.safetensors")):
            time.sleep(0.01)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=300)
    assert running.returncode == 130, said
    assert f"what is finished is in {tmp_path / 'pieces'}; run the same again to resume" in said
    left = sateen("b", *TRIED, "-l", "svi-gp", "-o", tmp_path, "--dry-run").stdout
    assert "of 4 tasks are pending" in left
    assert not left.startswith("4")


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ([], 2, "Missing argument 'PART...'"),
        (["k"], 2, "the paper has no part 'k'; there are a, b, c, d, e, f, g, h, i, l, all, r02"),
        (["randon"], 2, "did you mean random?"),
        (["a", "-l", "gp"], 2, "there is no learner 'gp'; there are ep-gp, svi-gp, svi-bnn"),
        (["a", "-l", "svi-pg"], 2, "there is no learner 'svi-pg'; did you mean svi-gp?"),
        (["a", "-l", "nowhere:Learner"], 2, "the learner nowhere:Learner cannot be imported"),
        (["a", "--methods", "svi-gp"], 2, "--methods is now called --learners: write --learners svi-gp"),
        (["a", "--seeds", "0"], 2, "0 is not in the range x>=1"),
        (["a", "--share", "0"], 2, "0.0 is not in the range 0<x<=1"),
        (["a", "--preset", "slow"], 2, "'slow' is not one of 'fast', 'faithful', 'as-run'"),
        (["a", "--runs", "10"], 2, "--runs is for guarantees only"),
        (["guarantees", "--share", "0.5"], 2, "--share is for configurations and networks"),
        (["guarantees", "--finished"], 2, "--finished is for configurations and networks"),
        (["guarantees", "--preset", "fast", "--preset", "as-run"], 2, "under one preset at a time; give --preset once"),
        (["a", *TRIED, "--finished", "-o", "nowhere"], 1, "no fit of these parts and learners is finished in nowhere"),
        (["d", "--variant", "as-state"], 2, "'as-state' is not one of 'paper-data', 'as-stated'"),
        (["a", "--rates", "6"], 2, "--rates is for random: write sateen paper random --rates 6"),
        *(
            (["random", "--rates", wrong], 2, f"a whole number of rates from 1 to 40, not {wrong.split(',')[-1]!r}")
            for wrong in ("0", "-1", "x", "200", "6,", "2.5")
        ),
        (["r200"], 2, "a whole number of rates from 1 to 40, not '200'"),
        (["guarantees", "-l", "default"], 2, "guarantees are drawn for ep-gp, svi-gp and svi-bnn, not for default"),
        (["a", *TRIED, "-o", "/dev/null/paper"], 1, "cannot write to the folder /dev/null/paper/pieces"),
    ],
)
def test_what_is_invalid_is_refused_before_the_work(options: list[str], code: int, said: str):
    done = sateen(*options, code=code)
    assert done.stdout == ""
    assert said in " ".join(done.stderr.split())
