"""`sateen simulate` with --runs and --times: what it prints and writes is the library's ensemble."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import sateen as st
from command_line import as_json, process, sateen, words

SIR = str(Path(__file__).resolve().parents[1] / "examples" / "sir.sateen")
THETA = {"beta": 0.12, "gamma": 0.05}
MANY = ("simulate", SIR, "--at", "beta=0.12")


def made(times: list[float], runs: int, seed: int = 1) -> st.Ensemble:
    return st.simulate(st.Model.load(SIR), THETA, times=times, runs=runs, seed=seed)


def test_json_and_csv_hold_the_ensemble_that_the_library_makes(tmp_path: Path) -> None:
    file = tmp_path / "spread.csv"
    content = as_json(*MANY, "--runs", 300, "--times", "0:50:10", "--seed", 4, "--csv", file)
    known = made([0, 10, 20, 30, 40, 50], 300, 4)
    assert content["times"] == known.times.tolist()
    assert content["mean"] == known.mean.tolist()
    assert content["deviation"] == known.deviation.tolist()
    assert content["quantiles"]["0.95"] == known.quantiles(0.95).tolist()
    assert (content["runs"], content["seed"], content["unknown"]) == (300, 4, [0] * 6)
    assert (content["species"], content["values"]) == (["S", "I", "R"], {**THETA, "N": 100})
    table = pd.read_csv(file, comment="#")
    pd.testing.assert_frame_equal(table, known.frame(), check_dtype=False)


def test_without_files_it_prints_a_row_for_each_time_and_species_and_of_many_the_ends() -> None:
    lines = sateen(*MANY, "--runs", 50, "--times", "0,7.5").stdout.splitlines()
    assert lines[0] == f"{SIR}, seed 1: 50 runs of S, I, R at 2 times, 0 to 7.5"
    assert lines[1] == "gamma = 0.05, beta = 0.12, N = 100"
    known = made([0, 7.5], 50)
    rows = [line.split() for line in lines[3:]]
    assert rows[0] == ["time", "species", "mean", "deviation", "5%", "50%", "95%", "unknown"]
    assert rows[5][:4] == ["7.5", "I", f"{known.mean[1, 1]:.6g}", f"{known.deviation[1, 1]:.6g}"]
    assert "more, which --csv FILE writes" in sateen(*MANY, "--runs", 5, "--times", "0:30:1").stdout


def test_a_figure_is_drawn_and_the_same_in_every_process(tmp_path: Path) -> None:
    files = [tmp_path / "one.svg", tmp_path / "two.svg"]
    options = ("--runs", "40", "--times", "0:20:1", "--plot")
    done = process(*MANY, *options, str(files[0]))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == str(files[0])
    sateen(*MANY, *options, files[1])
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_figure_without_a_name_has_that_of_the_model_and_the_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    printed = sateen(*MANY, "--runs", "1e1", "--times", "0:20:1", "--seed", 3, "--plot").stdout
    assert printed.splitlines()[-1] == "sir-seed3.svg"
    assert (tmp_path / "sir-seed3.svg").exists()


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("0:1:0.1", [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]),
        ("0:5:2", [0, 2, 4]),
        ("3", [3]),
        ("0, 1:2:0.5, 1e2", [0, 1, 1.5, 2, 100]),
        ("4:4:1", [4]),
    ],
)
def test_times_are_numbers_and_ranges_whose_steps_are_exact(text: str, times: list[float]) -> None:
    assert as_json(*MANY, "--runs", 2, "--times", text)["times"] == times


@pytest.mark.parametrize("text", ["", "0:", "0:3", "3:0:1", "0:3:0", "a", "nan", "0:inf:1", "1:2:3:4"])
def test_what_is_no_time_is_named(text: str) -> None:
    assert f"{text!r} is not LOW:HIGH:STEP such as 0:50:1" in words(sateen(*MANY, "--runs", 2, "--times", text, code=2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--runs", 5], "--runs and --times belong together"),
        (["--times", "0:5:1"], "--runs and --times belong together"),
        (["--runs", 5, "--times", "1", "--until", 3], "--until is about one run"),
        (["--runs", 5, "--times", "1", "-p", "F[0, 1] I > 3"], "--property is about one run"),
        (["--runs", 5, "--times", "2,1"], "--times has 1 after 2; each must be later than the one before"),
        (["--runs", 0, "--times", "1"], "0 is not in the range x>=1"),
        (["--runs", "1.5", "--times", "1"], "'1.5' is not a valid whole number"),
        (["--runs", "1e999", "--times", "1"], "'1e999' is not a valid whole number"),
        (["--runs", 5, "--times", "0:50:1e-9"], "more than 1,000,000 times; take a larger step"),
    ],
)
def test_what_does_not_go_together_is_refused(options: list[object], message: str) -> None:
    assert message in words(sateen(*MANY, *options, code=2))


def test_runs_that_were_cut_short_are_counted_and_said() -> None:
    done = process(*MANY, "--runs", "30", "--times", "0,400", "--max-events", "20", "--json")
    content = json.loads(done.stdout)
    cut = content["unknown"][1]
    assert f"warning: {cut} runs reached max_events = 20; what follows is unknown, and NaN" in done.stderr
    assert content["unknown"] == [0, cut]
    assert content["mean"] == [[95, 5, 0], [None] * 3]
    one = as_json(*MANY, "--until", 400, "--max-events", 3)
    assert len(one["path"]["times"]) == 4
