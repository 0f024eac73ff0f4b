"""The commands `learn`, `predict`, and `inspect` of what was learned: what they print, write, and refuse."""

from __future__ import annotations

import csv
import json
import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest

import sateen as st
from command_line import HEARING, as_json, sateen
from known_functions import LINE, PLANE, observed
from sateen.cli.learn import read_setting
from sateen.learning.posterior import LearnedPosterior
from sateen.learning.registry import LEARNERS, make_learner

SIR = str(Path(__file__).resolve().parents[1] / "examples" / "sir.sateen")
FORMULA = "(I > 0) U[100, 120] (I == 0)"
MODEL = ["learn", SIR, "-p", FORMULA, "--vary", "beta=0.005:0.3"]
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="SIGINT is sent the POSIX way")
SMALL = ["--points", "32", "--runs", "20"]


def same(one: Any, other: Any) -> bool:
    """Whether two predict the same to the last bit, at the corners and within."""
    points = one.space.grid(5)
    columns = ("mean", "std", "lower", "upper")
    return all(
        np.array_equal(getattr(one.predict(points), name), getattr(other.predict(points), name)) for name in columns
    )


def interrupted(arguments: list[str]) -> tuple[int, str]:
    """Exit code and stderr of a command that gets Ctrl-C when the bar on its terminal shows that work is done."""
    # Some libraries swallow a signal that comes while they load.
    program = "import llvmlite, jax, sateen.sampling.observe, sateen.model.reactions\n" + HEARING
    ours, its = os.openpty()
    command = [sys.executable, "-c", program, *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=its, env={**os.environ, "COLUMNS": "200"}
    ) as running:
        os.close(its)
        said, sent, deadline = b"", False, time.monotonic() + 240
        while time.monotonic() < deadline:
            try:
                said += os.read(ours, 65536) if select.select([ours], [], [], 1.0)[0] else b""
            except OSError:  # the other end is closed, and all that it said is read
                break
            if b"time left" in said and not sent:
                running.send_signal(signal.SIGINT)
                sent = True
        if not sent:
            running.kill()
        running.wait(timeout=60)
    os.close(ours)
    return running.returncode, said.decode().replace("\r\n", "\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with observations, a posterior over a line and one over a plane, and a guarantee."""
    made = tmp_path_factory.mktemp("learned")
    line, plane = observed(LINE, 40, 30, 5), observed(PLANE, 60, 30, 5)
    line.save(made / "line.obs")
    line.to_csv(made / "line.csv")
    plane.save(made / "plane.obs")
    posterior = st.EPGP(inputs="linear").fit(line, seed=1)
    posterior.save(made / "line.safetensors")
    st.EPGP(inputs="linear").fit(plane, seed=1).save(made / "plane.safetensors")
    guarantee = st.calibrate(posterior, observed(LINE, 60, 30, 6), method="icp", level=0.9)
    guarantee.save(made / "guarantee.safetensors")
    return made


class TestLearnFromObservations:
    @pytest.mark.parametrize("name", ["line.obs", "line.csv"])
    def test_it_writes_what_the_library_learns(self, folder: Path, tmp_path: Path, name: str) -> None:
        target = tmp_path / "f.safetensors"
        sateen("learn", folder / name, "-o", target, "--learner", "ep-gp", "--inputs", "linear", "--seed", "1")
        assert same(st.load(target), st.load(folder / "line.safetensors"))

    def test_a_table_of_another_program_needs_its_space(self, tmp_path: Path) -> None:
        table, target = tmp_path / "bare.csv", tmp_path / "f.safetensors"
        table.write_text("beta,satisfied,trials\n0.1,3,10\n0.2,5,10\n0.4,9,10\n")
        done = sateen("learn", table, "-o", target, code=1)
        assert "does not state its space\n  pass --space a=0:1\n" in done.stderr
        assert not target.exists()
        done = sateen("learn", table, "-o", target, "--space", "beta=0.05:0.3", code=1)
        outside = (
            "beta is 0.4 in row 2, outside its range [0.05, 0.3]\n  move it inside or widen its range in --space\n"
        )
        assert outside in done.stderr
        sateen("learn", table, "-o", target, "--space", "beta=0.05:0.5:log,k=3", "--learner", "ep-gp")
        assert st.load(target).space == st.Space(beta=st.Range(0.05, 0.5, scale="log"), k=3)

    def test_it_says_what_was_learned_and_the_name_of_the_file_last(self, folder: Path, tmp_path: Path) -> None:
        target = tmp_path / "f.safetensors"
        lines = sateen("learn", folder / "line.obs", "-o", target).stdout.splitlines()
        posterior = st.load(target)
        assert lines[0] == f"{folder / 'line.obs'}, seed 1"
        assert lines[1] == repr(observed(LINE, 40, 30, 5))[1:-1]
        assert lines[2] == "over beta in [0.01, 1]"
        assert lines[3].startswith(f"{posterior.record.verdict}: ")
        assert lines[4].startswith(f"{posterior.kind}: 40 points, 1 parameter")
        assert f"  beta  {posterior.importance()['beta']:.3g}" in lines
        assert lines[-2] == str(posterior.predict({"beta": 0.5}).claim)
        assert lines[-1] == str(target)

    def test_auto_is_the_default_of_the_library(self, folder: Path, tmp_path: Path) -> None:
        target = tmp_path / "f.safetensors"
        sateen("learn", folder / "plane.obs", "-o", target, "--seed", "4")
        assert same(st.load(target), st.learn(st.Observations.load(folder / "plane.obs"), seed=4))

    def test_json_holds_what_was_learned(self, folder: Path, tmp_path: Path) -> None:
        target = tmp_path / "f.safetensors"
        content = as_json("learn", folder / "plane.obs", "-o", target, "--learner", "ep-gp", "--kernel", "rbf")
        posterior = st.load(target)
        assert content["learner"] == "ep-gp"
        assert content["recipe"]["kernel"] == "rbf"
        assert content["seed"] == 1
        assert content["files"] == [str(target)]
        assert content["importance"] == posterior.importance()
        assert content["record"]["verdict"] == posterior.record.verdict
        assert content["record"]["converged"] is posterior.record.converged
        assert content["record"]["value"] == posterior.record.values[-1]
        assert content["training"]["points"] == 60
        assert content["training"]["fingerprint"] == posterior.training.fingerprint
        assert content["space"]["gamma"] == {"low": 0.1, "high": 10.0, "scale": "log"}
        assert content["space"]["k"] == 2.0
        assert "belief" in content["claim"]["sentence"]

    def test_a_parameter_that_cannot_matter_is_said_to_be_left_out(self, tmp_path: Path) -> None:
        seen = observed(PLANE, 40, 30, 5)
        known = st.Observations(seen.points, seen.satisfied, seen.undecided, seen.trials, relevant=("beta",))
        known.save(tmp_path / "obs.obs")
        lines = sateen("learn", tmp_path / "obs.obs", "-o", tmp_path / "f.safetensors").stdout.splitlines()
        assert "  gamma  left out" in lines

    @pytest.mark.parametrize("name", ["line", "plane"])
    def test_a_picture_is_drawn(self, folder: Path, tmp_path: Path, name: str) -> None:
        target, plot = tmp_path / "f.safetensors", tmp_path / "f.svg"
        lines = sateen("learn", folder / f"{name}.obs", "-o", target, "--plot", plot).stdout.splitlines()
        assert lines[-2:] == [str(plot), str(target)]
        assert plot.read_text(encoding="utf-8").startswith("<?xml")

    def test_a_checkpoint_leads_to_the_same_posterior(self, folder: Path, tmp_path: Path) -> None:
        common = ["learn", folder / "line.obs", "--learner", "svi-gp"]
        half = ["--checkpoint", tmp_path / "half.safetensors"]
        sateen(*common, "-o", tmp_path / "one.safetensors")
        for _ in range(2):
            sateen(*common, *half, "-o", tmp_path / "two.safetensors")
            assert same(st.load(tmp_path / "one.safetensors"), st.load(tmp_path / "two.safetensors"))


class TestLearnFromAModel:
    def test_it_observes_first_and_may_keep_what_it_saw(self, tmp_path: Path) -> None:
        kept, target, again = tmp_path / "obs.obs", tmp_path / "f.safetensors", tmp_path / "again.safetensors"
        sateen(*MODEL, *SMALL, "--seed", "3", "--observations", kept, "-o", target)
        seen = st.Observations.load(kept)
        assert (len(seen), set(seen.trials.tolist()), seen.points.design) == (32, {20}, "sobol")
        assert seen.provenance["formula"] == FORMULA
        assert st.load(target).training.observations == seen
        sateen("learn", kept, "--seed", "3", "-o", again)
        assert same(st.load(target), st.load(again))

    def test_the_seed_fixes_everything(self, tmp_path: Path) -> None:
        files = [tmp_path / name for name in ("a.safetensors", "b.safetensors", "c.safetensors")]
        for file, seed in zip(files, ("7", "7", "8"), strict=True):
            sateen(*MODEL, *SMALL, "--seed", seed, "-o", file)
        one, two, other = map(st.load, files)
        assert one.training.observations == two.training.observations
        assert same(one, two)
        assert not np.array_equal(one.training.observations.theta, other.training.observations.theta)

    def test_no_two_stages_share_a_seed(self, tmp_path: Path) -> None:
        sateen(*MODEL, *SMALL, "--seed", "7", "-o", tmp_path / "f.safetensors")
        seen = st.load(tmp_path / "f.safetensors").training.observations
        assert seen.seed != 7
        assert not np.array_equal(seen.theta, seen.space.sobol(32, seed=7).theta)
        assert not np.array_equal(seen.theta, seen.space.sobol(32, seed=int(seen.seed)).theta)

    @pytest.mark.parametrize(("design", "points"), [("uniform", 20), ("latin", 20), ("grid", 5)])
    def test_the_design_is_as_asked(self, tmp_path: Path, design: str, points: int) -> None:
        ranges = ["--vary", "gamma=0.01:0.2:log", "--design", design, "--points", str(points), "--runs", "5"]
        sateen(*MODEL, *ranges, "-o", tmp_path / "f.safetensors")
        seen = st.load(tmp_path / "f.safetensors").training.observations
        assert seen.points.design == design
        assert len(seen) == (25 if design == "grid" else points)
        assert seen.space == st.Space(beta=(0.005, 0.3), gamma=st.Range(0.01, 0.2, scale="log"))

    def test_others_are_fixed_by_at_and_the_observations_may_be_a_table(self, tmp_path: Path) -> None:
        kept = tmp_path / "obs.csv"
        sateen(*MODEL, *SMALL, "--at", "gamma=0.1", "--observations", kept, "-o", tmp_path / "f.safetensors")
        assert st.Observations.from_csv(kept).space == st.Space(beta=(0.005, 0.3), gamma=0.1)

    def test_a_run_may_be_cut_and_the_formula_read_up_to_an_end(self, tmp_path: Path) -> None:
        target = tmp_path / "f.safetensors"
        sateen(*MODEL, *SMALL, "--max-events", "120", "--end", "110", "-o", target)
        seen = st.load(target).training.observations
        assert seen.undecided.any()
        assert seen.provenance["end"] == 110

    @POSIX
    def test_ctrl_c_while_observing_keeps_what_was_observed(self, tmp_path: Path) -> None:
        kept, target = tmp_path / "obs.obs", tmp_path / "f.safetensors"
        many = ["--points", "100", "--runs", "10000000", "--observations", str(kept), "-o", str(target)]
        code, said = interrupted([*MODEL, *many])
        assert code == 130
        runs = int(st.Observations.load(kept).trials.sum())
        assert runs > 0
        assert f"{kept} has what was observed: {runs:,} runs\n" in said
        assert said.endswith("interrupted\n")
        assert not target.exists()


@POSIX
@pytest.mark.slow
def test_ctrl_c_while_fitting_keeps_the_best_so_far(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "f.safetensors"
    long = ["--learner", "svi-gp-faithful", "--set", "epochs=100000000", "--yes", "-o", str(target)]
    code, said = interrupted(["learn", str(folder / "line.obs"), *long])
    assert code == 130
    assert said.endswith("interrupted\n")
    posterior = st.load(target)
    assert isinstance(posterior, LearnedPosterior)
    assert posterior.record.interrupted
    assert posterior.record.verdict in sateen("inspect", target).stdout


OWN = """
import sateen as st

class Flat:
    \"\"\"Learns one probability for all parameters.\"\"\"

    def __init__(self, width: float = 0.1) -> None:
        self.width = width

    def fit(self, observations, *, seed):
        mean = observations.satisfied.sum() / observations.trials.sum()
        flat = lambda theta: (0 * theta[:, 0] + mean, 0 * theta[:, 0] + self.width)
        return st.posterior_from(flat, observations, learner=self, seed=seed)
"""


class TestLearnersOfOthers:
    @pytest.fixture(autouse=True)
    def package(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "own_flat.py").write_text(OWN)
        monkeypatch.syspath_prepend(tmp_path)

    def test_one_learns_predicts_and_is_inspected_like_any_other(self, folder: Path, tmp_path: Path) -> None:
        target = tmp_path / "f.safetensors"
        options = ["--learner", "own_flat:Flat", "--set", "width=0.05"]
        lines = sateen("learn", folder / "line.obs", *options, "-o", target).stdout.splitlines()
        assert any(line.startswith("own_flat:Flat with width=0.05") for line in lines)
        (row,) = as_json("predict", target, "--at", "beta=0.5", "--gradient")["points"]
        known = st.Observations.load(folder / "line.obs")
        assert row["mean"] == pytest.approx(known.satisfied.sum() / known.trials.sum())
        assert row["d mean / d beta"] == pytest.approx(0.0)
        assert as_json("inspect", target)["recipe"] == {"width": 0.05}

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["own_flat:Flta"], "the learner own_flat:Flta cannot be imported"),
            (["own_flat:Flat", "--set", "widht=1"], "own_flat:Flat has no setting widht; did you mean width?"),
            (["own_flat:Flat", "--set", "width=wide"], "width=wide: the setting width is of type float"),
            (
                ["own_flat:Flat", "--checkpoint", "half.safetensors"],
                "--checkpoint: the learner own_flat:Flat keeps no checkpoint",
            ),
        ],
    )
    def test_what_it_does_not_take_is_refused(
        self, folder: Path, tmp_path: Path, options: list[str], words: str
    ) -> None:
        target = tmp_path / "f.safetensors"
        done = sateen("learn", folder / "line.obs", "-o", target, "--learner", *options, code=2)
        assert words in " ".join(done.stderr.split())


class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--points", "9"], "--points says how a model is observed; say which formula, with -p FORMULA"),
            (["--vary", "beta=0:1"], "--vary says how a model is observed"),
            (["--at", "beta=1"], "--at says how a model is observed"),
            (["--max-events", "9"], "--max-events says how a model is observed"),
            (["--observations", "x.obs"], "--observations says how a model is observed"),
            (["--space", "beta=0:1"], "has its own space"),
            (["--kernel", "rbf"], "the learner default chooses for itself, so it takes no settings"),
            (["--set", "batch=9"], "the learner default chooses for itself"),
            (["--learner", "svi-gp", "--set", "kernle=rbf"], "svi-gp has no setting kernle; did you mean kernel?"),
            (["--learner", "laplace-net", "--kernel", "rbf"], "laplace-net has no setting kernel; its settings are"),
            (["--learner", "svi-bnn", "--inducing", "9"], "svi-bnn has no setting inducing"),
            (
                ["--learner", "svi-gp", "--kernel", "rbf", "--set", "kernel=rbf"],
                "by --kernel and by --set; give it once",
            ),
            (["--learner", "svi-gp", "--set", "batch=many"], "batch=many: the setting batch is of type int | None"),
            (["--learner", "svi-gp", "--set", "batch=-3"], "svi-gp: batch"),
            (["--learner", "svi-gp", "--set", "batch"], "'batch' is not NAME=VALUE, such as batch=100"),
            (["--learner", "svi-gp", "--set", "batch=1", "--set", "batch=2"], "batch is given twice"),
            (["--learner", "svi-pg"], "there is no learner 'svi-pg'; did you mean svi-gp?"),
            (["--inducing", "0"], "0 is not in the range"),
            (["--plot", "x.gif"], "end the name in .svg, .pdf or .png"),
        ],
    )
    def test_an_option_that_does_not_apply_is_an_error(
        self, folder: Path, tmp_path: Path, options: list[str], words: str
    ) -> None:
        target = tmp_path / "f.safetensors"
        done = sateen("learn", folder / "line.obs", "-o", target, *options, code=2)
        assert words in " ".join(done.stderr.split())
        assert not target.exists()

    @pytest.mark.parametrize(
        ("options", "words", "code"),
        [
            ([], "what varies? Give each parameter its range, as in --vary beta=0.005:0.3", 2),
            (["--vary", "beta=0.3"], "beta has one value and does not vary", 2),
            (["--vary", "beta=0.3:0.1"], "a range needs low < high, not [0.3, 0.1]; swap them", 2),
            (["--vary", "beta=0:1:log"], "scale='log' needs low > 0", 2),
            (["--vary", "beta=0:x"], "'beta=0:x' is not NAME=LOW:HIGH", 2),
            (["--vary", "beta=0:1:2"], "'beta=0:1:2' is not NAME=LOW:HIGH", 2),
            (["--vary", "beta"], "'beta' is not NAME=LOW:HIGH", 2),
            (["--vary", "beta=0:1", "--vary", "beta=0:2"], "beta is given twice", 2),
            (["--vary", "beta=0.1:1", "--at", "beta=1"], "either it varies or it is fixed", 2),
            (["--vary", "beta=0.1:1", "--space", "beta=0.1:1"], "--space gives the space of a table", 2),
            (["--vary", "bta=0.1:1"], "the model has no parameter bta; did you mean beta?", 1),
            (["--vary", "gamma=0.1:1"], "the parameter beta has no value", 1),
        ],
    )
    def test_a_model_needs_ranges_that_make_sense(
        self, tmp_path: Path, options: list[str], words: str, code: int
    ) -> None:
        done = sateen("learn", SIR, "-p", FORMULA, "-o", tmp_path / "f.safetensors", *options, code=code)
        assert words in " ".join(done.stderr.split())

    def test_files_that_are_something_else_are_refused_with_what_they_are(self, folder: Path, tmp_path: Path) -> None:
        target = tmp_path / "f.safetensors"
        assert "is a model; say what to observe" in sateen("learn", SIR, "-o", target, code=2).stderr
        learned = folder / "line.safetensors"
        assert "is what was learned already" in sateen("learn", learned, "-o", target, code=1).stderr
        assert "No such file" in sateen("learn", tmp_path / "none.obs", "-o", target, code=1).stderr
        (tmp_path / "junk.obs").write_bytes(b"PK\x05\x06" + b"\0" * 18)
        assert "junk.obs" in sateen("learn", tmp_path / "junk.obs", "-o", target, code=1).stderr
        assert not target.exists()

    def test_the_posterior_goes_to_a_file_that_others_know(self, folder: Path, tmp_path: Path) -> None:
        done = sateen("learn", folder / "line.obs", "-o", tmp_path / "f.obs", code=2)
        assert "end the name in .safetensors" in done.stderr
        done = sateen("learn", folder / "line.obs", "-o", tmp_path / "none" / "f.safetensors", code=1)
        assert "there is no folder" in done.stderr
        target = str(tmp_path / "f.safetensors")
        done = sateen("learn", folder / "line.obs", "-o", target, "--checkpoint", target, code=2)
        assert "-o and --checkpoint are the same file" in " ".join(done.stderr.split())

    def test_a_picture_of_nothing_is_refused_before_anything_is_learned(self, tmp_path: Path) -> None:
        (tmp_path / "point.csv").write_text("satisfied,trials\n3,10\n")
        target = tmp_path / "f.safetensors"
        asked = ["learn", tmp_path / "point.csv", "--space", "k=2", "-o", target]
        assert "there is nothing to draw" in sateen(*asked, "--plot", tmp_path / "f.svg", code=1).stderr
        assert not target.exists()
        assert "over a single point, with k = 2" in sateen(*asked).stdout
        assert len(as_json("predict", target, "--grid", "3")["points"]) == 1

    @pytest.mark.slow
    def test_a_fit_of_more_than_ten_minutes_is_announced_and_not_begun(self, folder: Path, tmp_path: Path) -> None:
        target = tmp_path / "f.safetensors"
        long = ["--learner", "svi-gp-faithful", "--set", "epochs=100000000"]
        done = sateen("learn", folder / "line.obs", "-o", target, *long, code=1)
        assert "this takes about " in done.stderr
        assert "not a terminal, so cannot ask; pass --yes" in done.stderr
        assert not target.exists()


class TestSettings:
    def test_every_name_makes_a_learner(self) -> None:
        for name in ("default", *LEARNERS.names()):
            assert isinstance(make_learner(name, {}, read_setting), st.Learner)

    @pytest.mark.parametrize("name", LEARNERS.builtin)
    def test_every_default_setting_can_be_given_as_text(self, name: str) -> None:
        preset: Any = make_learner(name, {}, read_setting)
        texts = {}
        for field in fields(preset):
            value = getattr(preset, field.name)
            texts[field.name] = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
        assert make_learner(name, texts, read_setting) == preset

    def test_values_are_read_by_the_type_of_the_setting(self) -> None:
        texts = {"kernel": "rbf", "inducing": "30", "length_scales": "0.3, 1", "split": "none"}
        made = make_learner("ep-gp", texts, read_setting)
        assert made == st.EPGP(kernel="rbf", inducing=30, length_scales=(0.3, 1.0), split=None)

    @pytest.mark.parametrize("name", LEARNERS.builtin)
    def test_the_types_of_all_settings_are_known(self, name: str) -> None:
        recipe_class: Any = type(make_learner(name, {}, read_setting))
        assert set(get_type_hints(recipe_class)) >= {field.name for field in fields(recipe_class)}


class TestPredict:
    def test_it_prints_what_the_library_predicts_and_the_claim_as_a_sentence(self, folder: Path) -> None:
        points = ["--at", "beta=.2,gamma=1", "--at", "beta=0.5,gamma=3"]
        lines = sateen("predict", folder / "plane.safetensors", *points, "--level", "0.8").stdout.splitlines()
        posterior = st.load(folder / "plane.safetensors")
        wanted = posterior.predict({"beta": [0.2, 0.5], "gamma": [1, 3]}, level=0.8)
        assert lines[0].split() == ["beta", "gamma", "mean", "std", "lower", "upper"]
        for row, line in enumerate(lines[1:3]):
            columns = (wanted.mean, wanted.std, wanted.lower, wanted.upper)
            assert line.split()[2:] == [f"{column[row]:.5g}" for column in columns]
        assert lines[3:] == ["", str(wanted.claim)]
        assert "80 %" in lines[4]

    def test_json_holds_what_the_library_predicts(self, folder: Path) -> None:
        content = as_json("predict", folder / "plane.safetensors", "--grid", "3", "--gradient")
        posterior = st.load(folder / "plane.safetensors")
        wanted, slopes = posterior.predict(PLANE.grid(3)), posterior.gradient(PLANE.grid(3))
        assert content["level"] == 0.95
        assert content["claim"]["sentence"] == str(wanted.claim)
        assert [row["mean"] for row in content["points"]] == wanted.mean.tolist()
        assert [row["upper"] for row in content["points"]] == wanted.upper.tolist()
        assert [row["d mean / d gamma"] for row in content["points"]] == slopes[:, 1].tolist()
        assert [row["beta"] for row in content["points"]] == PLANE.grid(3).theta[:, 0].tolist()

    def test_a_table_holds_every_digit_and_the_claim_and_can_be_read_as_points(
        self, folder: Path, tmp_path: Path
    ) -> None:
        table = tmp_path / "out.csv"
        done = sateen("predict", folder / "plane.safetensors", "--grid", "6", "-o", table)
        wanted = st.load(folder / "plane.safetensors").predict(PLANE.grid(6))
        assert done.stdout.splitlines() == [str(wanted.claim), str(table)]
        lines = table.read_text(encoding="utf-8").splitlines()
        assert f"# claim: {wanted.claim}" in lines
        rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
        assert [float(row["lower"]) for row in rows] == wanted.lower.tolist()
        again = sateen("predict", folder / "plane.safetensors", "--points", table, "--json")
        assert [row["mean"] for row in json.loads(again.stdout)["points"]] == wanted.mean.tolist()
        assert "not read from" in again.stderr
        assert "mean, std, lower, upper" in again.stderr

    def test_of_many_points_the_first_and_the_last_are_printed(self, folder: Path) -> None:
        lines = sateen("predict", folder / "line.safetensors", "--grid", "100").stdout.splitlines()
        assert lines[11] == "… 80 more, which -o FILE.csv writes …"
        assert len(lines) == 1 + 10 + 1 + 10 + 2

    @pytest.mark.parametrize("name", ["line", "plane", "guarantee"])
    def test_a_picture_is_drawn(self, folder: Path, tmp_path: Path, name: str) -> None:
        sateen("predict", folder / f"{name}.safetensors", "--grid", "30", "--plot", tmp_path / "f.png")
        assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")

    def test_a_guarantee_predicts_with_its_own_level(self, folder: Path) -> None:
        content = as_json("predict", folder / "guarantee.safetensors", "--at", "beta=0.4", "--gradient")
        guarantee = st.load(folder / "guarantee.safetensors")
        assert isinstance(guarantee, st.Guarantee)
        wanted = guarantee.predict({"beta": 0.4})
        assert (content["level"], content["claim"]["mode"]) == (0.9, "marginal")
        assert content["points"][0]["lower"] == wanted.lower[0]
        assert content["points"][0]["d mean / d beta"] == guarantee.posterior.gradient({"beta": 0.4})[0, 0]

    def test_what_a_guarantee_has_fixed_is_not_asked_again(self, folder: Path) -> None:
        asked = ["predict", folder / "guarantee.safetensors", "--at", "beta=0.4"]
        assert "fixed at calibration, here at 90 %" in sateen(*asked, "--level", "0.9", code=2).stderr
        assert "claims nothing" in sateen(*asked, "--extrapolate", code=2).stderr
        outside = sateen("predict", folder / "guarantee.safetensors", "--at", "beta=4", code=1).stderr
        assert "beta is 4 in row 0, outside its range" in outside

    def test_outside_the_space_only_if_asked(self, folder: Path) -> None:
        asked = ["predict", folder / "line.safetensors", "--at", "beta=1.5"]
        assert "outside its range [0.01, 1]\n  move it inside or pass --extrapolate\n" in sateen(*asked, code=1).stderr
        content = as_json(*asked, "--extrapolate", "--gradient")
        wanted = st.load(folder / "line.safetensors").predict({"beta": 1.5}, extrapolate=True)
        assert content["points"][0]["mean"] == wanted.mean[0]

    @pytest.mark.parametrize(
        ("options", "words", "code"),
        [
            ([], "where? Give one of --at beta=0.12, --points FILE.csv and --grid N", 2),
            (["--at", "beta=.1", "--grid", "3"], "where? Give one of", 2),
            (["--at", "gamma=.1"], "gamma in row 0 is not one of (beta)", 1),
            (["--at", "beta=x"], "'beta=x' is not NAME=NUMBER", 2),
            (["--at", "beta=.1", "--level", "95"], "level is a probability between 0 and 1", 1),
            (["--grid", "1"], "1 is not in the range", 2),
            (["--grid", "100000000"], "is too large; take fewer", 1),
            (["--points", "none.csv"], "none.csv cannot be read: No such file", 1),
            (["--at", "beta=.1", "-o", "none/x.csv"], "there is no folder none", 1),
        ],
    )
    def test_what_makes_no_sense_is_refused(self, folder: Path, options: list[str], words: str, code: int) -> None:
        assert words in " ".join(sateen("predict", folder / "line.safetensors", *options, code=code).stderr.split())

    @pytest.mark.parametrize(
        ("table", "words"),
        [
            ("", "has no column beta; its columns are missing"),
            ("x,y\n1,2\n", "has no column beta; its columns are x, y"),
            ("beta,x\n0.5\n", "is not a table: line 2: 1 values under 2 columns"),
            ("beta\n0.5\nmuch\n", "beta is 'much' in line 3, which is not a number"),
            ("beta\nnan\n", "beta is nan in row 0; every value must be a finite number"),
            ('beta\n"0.5\n', "is not a table"),
            ("\xff\xfe\x00", "is not a table"),
        ],
    )
    def test_a_table_of_points_that_makes_no_sense_is_refused(
        self, folder: Path, tmp_path: Path, table: str, words: str
    ) -> None:
        file = tmp_path / "points.csv"
        file.write_bytes(table.encode("latin-1"))
        assert words in sateen("predict", folder / "line.safetensors", "--points", file, code=1).stderr

    def test_files_that_hold_no_posterior_are_refused(self, folder: Path) -> None:
        assert (
            "holds observations; `sateen learn` learns from them"
            in sateen("predict", folder / "line.obs", "--grid", "3", code=1).stderr
        )
        assert "No such file" in sateen("predict", folder / "none.safetensors", "--grid", "3", code=1).stderr

    def test_a_picture_of_three_parameters_ranks_the_points(self, tmp_path: Path) -> None:
        space = st.Space(a=(0, 1), b=(0, 1), c=(0, 1))
        st.EPGP(inputs="linear").fit(observed(space, 30, 20, 1), seed=1).save(tmp_path / "f.safetensors")
        options = ["--grid", "2", "-o", tmp_path / "t.csv", "--plot", tmp_path / "f.svg"]
        sateen("predict", tmp_path / "f.safetensors", *options)
        assert (tmp_path / "t.csv").exists()
        assert "<svg" in (tmp_path / "f.svg").read_text("utf-8")


class TestInspect:
    def test_a_posterior_tells_how_it_was_learned(self, folder: Path) -> None:
        lines = sateen("inspect", folder / "plane.safetensors").stdout.splitlines()
        posterior = st.load(folder / "plane.safetensors")
        assert lines[0] == repr(posterior.training.observations)[1:-1]
        assert any(line.startswith("ep-gp") for line in lines)
        assert any(line.startswith(posterior.record.verdict) for line in lines)
        assert lines[-1] == str(posterior.predict({"beta": 0.5, "gamma": 1}).claim)
        assert any(line.split()[:1] == ["gamma"] for line in lines)

    def test_json_has_the_same(self, folder: Path) -> None:
        content = as_json("inspect", folder / "plane.safetensors")
        posterior = st.load(folder / "plane.safetensors")
        assert isinstance(posterior, LearnedPosterior)
        assert content["kind"] == "posterior"
        assert content["learner"] == "ep-gp"
        assert content["importance"] == posterior.importance()
        assert content["inputs"] == {"beta": "linear", "gamma": "linear"}

    def test_a_guarantee_tells_its_claim_and_its_calibration(self, folder: Path) -> None:
        lines = sateen("inspect", folder / "guarantee.safetensors").stdout.splitlines()
        guarantee = st.load(folder / "guarantee.safetensors")
        assert isinstance(guarantee, st.Guarantee)
        assert lines[:2] == [f"icp: {guarantee.claim}", str(guarantee.calibration)]
        content = as_json("inspect", folder / "guarantee.safetensors")
        assert content["kind"] == "guarantee"
        assert content["calibration"]["points"] == 60
        assert content["posterior"]["learner"] == "ep-gp"
