"""`sateen run`: a study on the command line, from the file to the folder with its answer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any

import pytest
from scipy.stats import beta

import sateen as st
from command_line import HEARING, sateen
from sateen.cli.run import _lines as told_in_words
from small_studies import SMALL, changed

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = (
    *("sir_beta.toml", "sir.toml", "phosphorelay.toml", "birth_death.toml", "ruin.toml"),  # and ruin.py
    *("gene_switch.toml", "queue.toml", "epidemic.toml"),
)
DECIDING = ("threshold.toml", "best.toml")


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """The file of the small study."""
    file = tmp_path / "decay.toml"
    file.write_text(SMALL)
    return file


class TestRunning:
    def test_it_ends_with_the_verdict_the_scores_and_the_report(self, study: Path) -> None:
        done = sateen("run", study)
        folder = study.parent / "decay-result"
        own = st.Result.load(folder).properties["gone"]
        lines = done.stdout.splitlines()
        assert lines[0] == "decay, seed 7; computed: train, test, learn, calibrate, guarantee, score"
        assert own.verdict in done.stdout
        assert lines[-1] == str(folder / "report.html")
        table = [line.split() for line in lines[-5:-2]]
        assert table[0][:3] == ["learner", "RMSE", "accuracy"]
        assert table[1][:2] == ["svi-gp", f"{own.scores['svi-gp'].rmse:.4f}"]
        assert own.guarantee_score is not None
        assert table[2][:2] == ["svi-gp,", "lift"]
        assert own.guaranteed_widths is not None
        assert f"{own.guaranteed_widths.mean:.4f}" in table[2]
        assert "train gone: 480 runs" in done.stderr

    def test_a_second_run_says_what_it_reused(self, study: Path) -> None:
        sateen("run", study)
        study.write_text(changed(("inducing = 8", "inducing = 9")))
        done = sateen("run", study)
        assert done.stdout.splitlines()[0] == (
            "decay, seed 7; computed: learn, guarantee, score; reused: train, test, calibrate"
        )
        assert "train gone: reused" in done.stderr
        assert "learn gone svi-gp: 24 points" in done.stderr
        again = sateen("run", study)
        assert "reused: train, test, learn, calibrate, guarantee, score" in again.stdout.splitlines()[0]

    def test_for_programs_it_is_one_object(self, study: Path, tmp_path: Path) -> None:
        target = tmp_path / "elsewhere"
        told = json.loads(sateen("run", study, "-o", target, "--workers", "2", "--json").stdout)
        kept = json.loads((target / "result.json").read_text(encoding="utf-8"))
        assert told["folder"] == str(target)
        assert told["stages"]["train gone"] == "computed"
        assert told["seconds"].keys() == told["stages"].keys()
        own = told["properties"]["gone"]
        assert "predictions" in kept["properties"]["gone"]
        assert own == {key: value for key, value in kept["properties"]["gone"].items() if key != "predictions"}
        provenance = json.loads((target / "provenance.json").read_text(encoding="utf-8"))
        assert provenance["command"] == f"sateen run {study} -o {target}"

    def test_the_command_of_the_provenance_reproduces_the_result(self, study: Path) -> None:
        import shlex

        folder = study.parent / "decay-result"
        sateen("run", study)
        before = (folder / "result.json").read_bytes()
        command = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))["command"]
        folder.rename(study.parent / "aside")
        sateen(*shlex.split(command)[1:])
        assert (folder / "result.json").read_bytes() == before

    def test_a_dry_run_makes_nothing(self, study: Path) -> None:
        done = sateen("run", study, "--dry-run")
        lines = done.stdout.splitlines()
        assert lines[0] == f"decay, seed 7, into {study.parent / 'decay-result'}:"
        assert [line.split()[0] for line in lines[1:-1]] == [
            "train",
            "test",
            "learn",
            "calibrate",
            "guarantee",
            "score",
        ]
        assert all("pending" in line for line in lines[1:-1])
        assert lines[-1] == "1,780 runs to make"
        assert not (study.parent / "decay-result").exists()
        sateen("run", study)
        study.write_text(changed(("points = 10, runs", "points = 11, runs")))
        lines = sateen("run", study, "--dry-run").stdout.splitlines()
        assert lines[-1].startswith("550 runs to make, about ")
        study.write_text(SMALL)
        assert sateen("run", study, "--dry-run").stdout.splitlines()[-1] == "nothing is left to simulate"
        told = json.loads(sateen("run", study, "--dry-run", "--json").stdout)
        assert (told["runs"], told["seconds"]) == (0, None)
        assert set(told["stages"].values()) == {"reused"}

    def test_doubts_about_the_model_go_to_stderr(self, study: Path) -> None:
        study.write_text(changed(("species A = 5", "parameter none = 1\nspecies A = 5")))
        done = sateen("inspect", study)
        assert "warning: " in done.stderr
        assert "none" in done.stderr

    def test_a_fit_that_did_not_converge_is_told(self, study: Path) -> None:
        sateen("run", study)
        result = st.Result.load(study.parent / "decay-result")
        own = result.properties["gone"]
        record = replace(own.posteriors["svi-gp"].record, verdict="still rising: take more steps")
        posterior = replace(own.posteriors["svi-gp"], record=record)
        doubtful = replace(result, properties={"gone": replace(own, posteriors={"svi-gp": posterior})})
        assert "svi-gp: still rising: take more steps" not in list(told_in_words(result))
        assert "svi-gp: still rising: take more steps" in list(told_in_words(doubtful))


class TestRefusals:
    def test_a_mistake_is_a_sentence_with_the_line(self, study: Path) -> None:
        study.write_text(changed(("seed = 7", "sede = 7")))
        for command in ("run", "inspect"):
            done = sateen(command, study, code=1)
            assert done.stderr == (
                "TextError: decay.toml: study.sede: there is no such key (line 3)\n"
                "  sede = 7\n  ^\n  did you mean seed?\n"
            )

    @pytest.mark.parametrize(
        ("arguments", "said", "code"),
        [
            (["none.toml"], "none.toml cannot be read: No such file or directory", 1),
            (["model.sateen"], "model.sateen is not a study: a study is a TOML file", 1),
            (["decay.toml", "--workers", "0"], "0 is not in the range", 2),
            ([], "Missing argument 'STUDY.toml'", 2),
        ],
    )
    def test_what_cannot_be_run_is_said(self, arguments: list[str], said: str, code: int) -> None:
        assert said in sateen("run", *arguments, code=code).stderr

    def test_two_at_a_time_are_refused(self, study: Path) -> None:
        from sateen.pipeline.folder import ResultFolder

        with ResultFolder(study.parent / "decay-result").held():
            done = sateen("run", study, code=1)
        assert done.stderr.startswith("StoreError: another run is in progress in ")


@pytest.mark.skipif(os.name != "posix", reason="SIGINT is sent the POSIX way")
def test_ctrl_c_says_how_to_go_on_and_the_exit_code_is_130(study: Path) -> None:
    study.write_text(changed(("points = 24, runs = 20", "points = 24, runs = 100000000")))
    command = [sys.executable, "-c", HEARING, "run", str(study)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        assert running.stderr.readline().startswith("train gone: 2,400,000,000 runs")
        store = study.parent / "decay-result" / "stages" / "runs.db-wal"
        while running.poll() is None and not (store.exists() and store.stat().st_size > 50_000):
            time.sleep(0.01)  # until some chunks are stored
        running.send_signal(signal.SIGINT)
        stdout, stderr = running.communicate(timeout=300)
    assert (running.returncode, stdout) == (130, "")
    lines = stderr.splitlines()
    assert any(line.startswith("stopped after ") for line in lines)
    assert f"what is finished is in {study.parent / 'decay-result'}; run the same study again to resume" in lines
    assert lines[-1] == "interrupted"


class TestInspect:
    def test_a_study_is_shown_with_its_model(self, study: Path) -> None:
        lines = [line.split(maxsplit=1) for line in sateen("inspect", study).stdout.splitlines()]
        assert lines[0] == ["study", "decay, seed 7"]
        assert ["k", "in [0.1, 2]"] in lines
        assert ["gone", "F[0, 2] A == 0"] in lines
        assert ["train", "24 points (sobol) with 20 runs each"] in lines
        assert ["guarantee", "lift of svi-gp, 90 % with confidence 95 %"] in lines
        assert ["r1", "A -> 0  @ k * A"] in lines

    def test_for_programs_it_is_one_object(self, study: Path) -> None:
        told: dict[str, Any] = json.loads(sateen("inspect", study, "--json").stdout)
        assert (told["study"], told["seed"], told["learners"]) == (
            "decay",
            7,
            {"svi-gp": {"inputs": "linear", "inducing": 8}},
        )
        assert told["calibrate"]["points"] == 40
        assert told["species"] == [{"name": "A", "initial": 5.0, "low": 0, "high": None, "whole": True}]


@pytest.mark.parametrize("name", [*EXAMPLES, *DECIDING])
def test_an_example_says_how_to_run_it_and_is_shown_by_inspect(name: str) -> None:
    file = ROOT / "examples" / name
    assert f"#     sateen run examples/{name}" in file.read_text(encoding="utf-8").splitlines()
    done = sateen("inspect", file)
    assert done.stderr == ""
    assert f"{file.stem}, seed 1" in done.stdout


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, dict[str, Any]]]:
    """Runs an example once: the folder of its result, and what the command told."""
    desk = tmp_path_factory.mktemp("examples")
    copytree(ROOT / "examples", desk, dirs_exist_ok=True, ignore=ignore_patterns("*-result"))

    @cache
    def run(name: str) -> tuple[Path, dict[str, Any]]:
        folder = desk / f"{name}-result"
        return folder, json.loads(sateen("run", desk / name, "-o", folder, "--json").stdout)

    return run


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_and_its_guarantee_is_of_use(
    name: str, ran: Callable[[str], tuple[Path, dict[str, Any]]]
) -> None:
    folder, told = ran(name)
    result = st.Result.load(folder)
    assert list(result.properties) == list(told["properties"])
    for own in result.properties.values():
        assert own.guaranteed_prediction is not None
        assert own.guaranteed_prediction.width.mean() < 0.25
        assert own.guarantee_score is not None
        # All of them promise 80 % or more of θ: far more than half of the test points, however they were drawn.
        assert own.guarantee_score.wilson_accuracy > 0.5


@pytest.mark.slow
def test_the_example_with_a_threshold_ends_with_a_certificate_that_the_exact_probability_bears_out(
    tmp_path: Path,
) -> None:
    study = st.Study.load(ROOT / "examples" / "threshold.toml")
    decision = study.run(tmp_path / "result").properties["dies_out"].decision
    assert decision is not None
    assert decision.regions is not None
    assert decision.certificate is not None
    assert decision.certificate.holds
    assert decision.certificate.check(replay=50).holds
    assert isinstance(study.model, st.Model)
    points = study.space.grid(21)
    above = points[decision.regions.of(points) == "above"]
    # At most 2 % of the region is wrong, of which the grid has about 75 points; two at the border are room enough.
    assert len(above) > 50
    assert (st.exact(study.model, st.stl("(I > 0) U[100, 120] (I == 0)"), above) < 0.1).sum() <= 2
    assert decision.refinement is not None
    assert decision.refinement.reached


@pytest.mark.slow
def test_the_example_of_a_design_ends_with_a_point_that_respects_its_limit(tmp_path: Path) -> None:
    best = st.Study.load(ROOT / "examples" / "best.toml").run(tmp_path / "result").properties["cured"].decision.best  # type: ignore[union-attr]
    assert best is not None
    assert best.holds
    assert best.regret == 0.05
    assert best.constraints["toxic"].bound <= 0.1


@pytest.mark.slow
def test_the_guarantee_of_the_epidemic_holds_against_the_exact_probability(
    ran: Callable[[str], tuple[Path, dict[str, Any]]],
) -> None:
    study = st.Study.load(ROOT / "examples" / "sir_beta.toml")
    guarantee = st.Result.load(ran("sir_beta.toml")[0]).properties["dies_out"].guarantee
    assert guarantee is not None
    assert isinstance(study.model, st.Model)
    points = study.space.grid(41)
    exact = st.exact(study.model, st.stl("(I > 0) U[100, 120] (I == 0)"), points)
    guarded, made = guarantee.predict(points), guarantee.calibration
    missed = float(((exact < guarded.lower) | (exact > guarded.upper)).mean())
    # The lift's proof for any confidence: the share that is missed exceeds this once in 10^6 calibrations.
    assert made.rank is not None
    assert made.eta is not None
    assert missed <= beta.isf(1e-6, made.rank, made.points - made.rank + 1) / (1 - made.eta) + 1 / len(points)
