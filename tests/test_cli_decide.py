"""The commands that decide: refine, decide, certify, check-certificate, optimise, sensitivity and bounds."""

from __future__ import annotations

import csv
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sateen as st
from command_line import HEARING, as_json, sateen, words
from sateen.cli import COMMANDS as REGISTERED
from small_studies import BEST, DECIDE, TWO, WITHOUT, changed

DECAY = "species A = 5\nA -> 0 @ mass_action(k)\n"
ASKED = ("-p", "F[0, 2] A == 0", "--vary", "k=0.1:2")
THRESHOLD = ("--above", "0.5", "--undecided", "0.1", "--budget", "6000")
COMMANDS = ("refine", "decide", "certify", "check-certificate", "optimise", "sensitivity", "bounds")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("deciding")
    (path / "decay.sateen").write_text(DECAY)
    sateen("refine", path / "decay.sateen", *ASKED, *THRESHOLD, "-o", path / "decay.safetensors")
    return path


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_a_line_a_help_and_an_example(name: str) -> None:
    assert name in REGISTERED
    assert f"  {name} " in sateen("--help").stdout
    told = sateen(name, "--help").stdout
    assert f"sateen {name} " in told.replace("  ", " ")
    assert "--json" in told


class TestRefine:
    def test_it_shows_its_rounds_and_leaves_a_posterior(self, folder: Path) -> None:
        target, kept = folder / "again.safetensors", folder / "runs.csv"
        command = ("refine", folder / "decay.sateen", *ASKED, *THRESHOLD, "-o", target, "--observations", kept)
        done = sateen(*command)
        assert "the goal is reached after" in done.stdout
        assert done.stdout.splitlines()[1].split() == ["round", "points", "runs", "undecided", "share"]
        posterior, other = st.load(target), st.load(folder / "decay.safetensors")
        assert posterior.training.fingerprint == other.training.fingerprint
        assert len(st.Observations.from_csv(kept)) == len(posterior.training.observations)

    def test_for_programs_it_is_one_object(self, folder: Path) -> None:
        found = as_json("refine", folder / "decay.sateen", *ASKED, *THRESHOLD, "-o", folder / "x.safetensors")
        assert found["reached"]
        assert found["rounds"][-1]["figure"] <= 0.1

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (("--budget", "6000"), "give -o FILE.safetensors"),
            (("-o", "x.safetensors"), "give --budget N"),
            (("--budget", "6000", "-o", "x.safetensors"), "which threshold?"),
            (("--above", "2", "--budget", "6000", "-o", "x.safetensors"), "--above is a number between 0 and 1"),
            (
                ("--above", "0.5", "--width", "0.1", "--budget", "6000", "-o", "x.safetensors"),
                "not for --goal threshold",
            ),
            (("--goal", "width", "--budget", "6000", "-o", "x.safetensors"), "give --width"),
            (("--above", "0.5", "--budget", "6000", "-o", "x.safetensors", "--folder", "y"), "--folder is for a STUDY"),
        ],
    )
    def test_what_it_needs_is_said(
        self, folder: Path, options: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(folder)
        assert said in words(sateen("refine", "decay.sateen", *ASKED, *options, code=2))


class TestDecide:
    def test_it_is_what_the_verb_gives(self, folder: Path) -> None:
        file, picture = folder / "decay.safetensors", folder / "sides.svg"
        told = sateen("decide", file, "--above", "0.5", "--box", "--plot", picture).stdout
        regions = st.decide(st.load(file), above=0.5, seed=1)
        assert str(regions) in told
        assert f"k  from {regions.box().ranges['k'].low:.6g} to" in told
        assert picture.read_text().startswith("<?xml")
        found = as_json("decide", file, "--below", "0.5", "--level", "0.9", "--seed", "3")
        assert found["side"] == "below"
        assert found["level"] == 0.9
        assert found["above"] + found["below"] + found["undecided"] == pytest.approx(1.0)
        assert "box" not in found

    @pytest.mark.parametrize("options", [(), ("--above", "0.5", "--below", "0.5")])
    def test_one_threshold_is_needed(self, folder: Path, options: tuple[str, ...]) -> None:
        assert "which threshold?" in words(sateen("decide", folder / "decay.safetensors", *options, code=2))

    def test_a_bad_threshold_is_named_as_the_option(self, folder: Path) -> None:
        assert "--above is a probability" in words(
            sateen("decide", folder / "decay.safetensors", "--above", "1", code=1)
        )


class TestCertify:
    @pytest.fixture
    def asked(self, folder: Path) -> tuple[Any, ...]:
        return "certify", folder / "decay.safetensors", "--above", "0.5", "--wrong", "0.1", "--confidence", "0.9"

    def test_a_dry_run_forecasts_and_spends_nothing(self, asked: tuple[Any, ...], folder: Path) -> None:
        found = as_json(*asked, "--dry-run")
        assert found["plan"]["runs"] > 0
        assert "nothing was spent" in sateen(*asked, "--dry-run").stdout
        assert not list(folder.glob("*.certificate"))

    def test_what_it_leaves_can_be_checked_and_what_was_altered_is_found(
        self, asked: tuple[Any, ...], folder: Path
    ) -> None:
        file = folder / "decay.certificate"
        told = sateen(*asked, "-o", file).stdout
        assert "it says nothing about one single parameter" in told
        checked = as_json("check-certificate", file, "--replay", "5", "--choice", "8")
        assert checked["holds"]
        assert 0 < checked["chance_of_missing_an_altered_count"] < 1
        assert as_json("check-certificate", file, "--all")["chance_of_missing_an_altered_count"] == 0
        altered = _altered(st.load(file), folder / "altered.certificate")
        assert "NOT valid" in sateen("check-certificate", altered, code=1).stdout

    def test_cells_certify_every_parameter(self, folder: Path) -> None:
        file = folder / "cells.certificate"
        command = ("certify", folder / "decay.safetensors", "--above", "0.5", "--by", "cells", "--undecided", "0.1")
        found = as_json(*command, "-o", file)
        assert found["claim"]["mode"] == "sure"
        assert found["runs"] == 0
        assert as_json("check-certificate", file)["holds"]

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ((), "give -o FILE.certificate"),
            (("-o", "x.certificate", "--cells", "3"), "--cells is for --by cells"),
            (("-o", "x.certificate", "--monotone", "k=up", "--by", "cells"), "is not NAME=+ or NAME=-"),
            (("-o", "x.safetensors"), "is to hold a certificate"),
        ],
    )
    def test_what_it_needs_is_said(
        self, asked: tuple[Any, ...], options: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: Any
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert said in words(sateen(*asked, *options, code=2))

    def test_other_files_are_no_certificates(self, folder: Path) -> None:
        said = words(sateen("check-certificate", folder / "decay.safetensors", code=1))
        assert "holds no certificate" in said


def _altered(certificate: Any, file: Path) -> Path:
    """The certificate with one count of satisfied runs changed."""
    from dataclasses import replace

    evidence = certificate.evidence
    look = evidence.outcome.looks[0]
    counts = np.array(look.satisfied)
    row = int(np.argmax(look.trials - counts > 0))
    counts[row] += 1
    changed_look = replace(look, satisfied=counts)
    outcome = replace(evidence.outcome, looks=(changed_look, *evidence.outcome.looks[1:]))
    replace(certificate, evidence=replace(evidence, outcome=outcome)).save(file)
    return file


class TestOptimise:
    def test_it_finds_the_end_of_the_range_where_more_is_better(self, folder: Path) -> None:
        found = as_json(
            "optimise", folder / "decay.sateen", *ASKED, "--budget", "20000", "--gap", "0.2", "--wrong", "0.1"
        )
        assert found["theta"]["k"] > 1.5
        assert found["lower"] < (1 - np.exp(-2 * found["theta"]["k"])) ** 5 < found["upper"]

    def test_a_limit_is_about_a_property_with_a_name(self, folder: Path) -> None:
        both = ("-p", "gone=F[0, 2] A == 0", "-p", "early=F[0, 1] A == 0", "--vary", "k=0.1:2")
        options = ("--budget", "30000", "--gap", "0.2", "--wrong", "0.1")
        told = sateen("optimise", folder / "decay.sateen", *both, *options, "--subject-to", "early <= 0.5").stdout
        assert told.splitlines()[1].startswith("best at k = ")
        for limit, said in (
            ("erly <= 0.5", "did you mean early?"),
            ("early < 0.5", "is not NAME <= NUMBER"),
            ("early <= 5", "a number between 0 and 1"),
        ):
            assert said in words(
                sateen("optimise", folder / "decay.sateen", *both, *options, "--subject-to", limit, code=2)
            )

    def test_of_several_properties_one_has_no_limit(self, folder: Path) -> None:
        both = ("-p", "gone=F[0, 2] A == 0", "-p", "early=F[0, 1] A == 0", "--vary", "k=0.1:2")
        said = words(sateen("optimise", folder / "decay.sateen", *both, "--budget", "30000", code=2))
        assert "gone and early have no limit" in said


def test_sensitivity_is_a_row_for_each_parameter(folder: Path) -> None:
    found = as_json("sensitivity", folder / "decay.safetensors")
    assert found["total"]["k"] == pytest.approx(1.0, abs=0.02)  # the only parameter explains everything
    lines = sateen("sensitivity", folder / "decay.safetensors").stdout.splitlines()
    assert lines[1].split() == ["parameter", "first", "order", "total", "elasticity"]
    assert lines[2].startswith("k ")


def test_bounds_enclose_the_truth_and_go_to_a_table(folder: Path) -> None:
    table = folder / "cells.csv"
    found = as_json("bounds", folder / "decay.sateen", *ASKED, "--width", "0.2", "-o", table)
    assert found["reached"]
    with open(table, encoding="utf-8") as stream:
        rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(stream)]
    assert len(rows) == found["cells"]
    for row in rows:
        for k in np.linspace(row["k_low"], row["k_high"], 5):
            assert row["lower"] - 1e-12 <= (1 - np.exp(-2 * k)) ** 5 <= row["upper"] + 1e-12


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("study") / "decay.toml"
    file.write_text(WITHOUT + DECIDE)
    sateen("run", file)
    return file


def test_each_command_shows_its_part_of_a_study_and_computes_nothing_again(study: Path) -> None:
    for command, said in (
        ("refine", "the goal is reached"),
        ("decide", "are undecided"),
        ("certify", "it says nothing about one single parameter"),
        ("sensitivity", "elasticity"),
    ):
        done = sateen(command, study)
        assert said in done.stdout
        assert "refine gone" in done.stderr
        assert "reused" in done.stderr
        assert "computed" not in done.stderr
    assert as_json("certify", study, "--dry-run")["plan"]["runs"] > 0
    copied = study.parent / "copied.certificate"
    sateen("certify", study, "-o", copied)
    assert as_json("check-certificate", copied, "--replay", "3")["holds"]


def test_what_the_study_says_is_not_said_again(study: Path) -> None:
    said = words(sateen("decide", study, "--above", "0.3", code=2))
    assert "--above: a study says this itself, in its table [decide]" in said


def test_a_part_that_a_study_does_not_ask_for_is_named(study: Path, tmp_path: Path) -> None:
    assert "asks for no optimum" in words(sateen("optimise", study, code=1))
    file = tmp_path / "plain.toml"
    file.write_text(WITHOUT)
    assert "has no table [decide]" in words(sateen("decide", file, code=1))
    file.write_text(changed(("certificate = { wrong = 0.1, confidence = 0.9 }", ""), text=WITHOUT + DECIDE))
    assert "asks for no certificate" in words(sateen("certify", file, code=1))
    assert "asks for no certificate" in words(sateen("certify", file, "--dry-run", code=1))


def test_a_forecast_of_a_certificate_needs_the_refinement(tmp_path: Path) -> None:
    file = tmp_path / "decay.toml"
    file.write_text(WITHOUT + DECIDE)
    said = words(sateen("certify", file, "--dry-run", code=1))
    assert "depends on the refinement, which does not exist yet" in said
    assert not (tmp_path / "decay-result").exists()


def test_a_study_of_an_optimum_shows_its_best_point(tmp_path: Path) -> None:
    file = tmp_path / "decay.toml"
    file.write_text(TWO + BEST)
    assert "best at k = " in sateen("optimise", file).stdout
    assert "an optimum, which has a search of its own" in words(sateen("refine", file, code=1))


def test_ctrl_c_says_what_the_store_has_and_the_same_goes_on(tmp_path: Path) -> None:
    model = tmp_path / "decay.sateen"
    model.write_text("species A = 10\nA -> 0 @ mass_action(k)\n")
    store, target = tmp_path / "runs.db", tmp_path / "learned.safetensors"
    asked = [
        "refine",
        str(model),
        "-p",
        "F[0, 2] A == 0",
        "--vary",
        "k=0.1:4",
        "--above",
        "0.5",
        "--undecided",
        "0.0005",
    ]
    command = [sys.executable, "-c", HEARING, *asked, "--budget", "900000000", "--store", str(store), "-o", str(target)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        while "runs: " not in running.stderr.readline():
            assert running.poll() is None
        running.send_signal(signal.SIGINT)
        stdout, stderr = running.communicate(timeout=300)
    assert (running.returncode, stdout) == (130, "")
    assert stderr.splitlines()[-2:] == [f"{store} has what was done; run the same again to resume", "interrupted"]
    assert store.exists()
    assert not target.exists()
