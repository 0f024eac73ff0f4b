"""The commands `plan` and `calibrate`: what they print, write, and refuse."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sateen as st
from command_line import as_json, sateen, words
from known_functions import LINE, observed
from sateen.assess.widths import widths_over
from sateen.cli.plan import plan_for
from sateen.core.errors import InputError
from sateen.guarantee.methods import METHODS
from sateen.guarantee.request import PlanRequest
from sateen.learning.posterior import LearnedPosterior
from sateen.study import budget

SIR = Path(__file__).resolve().parents[1] / "examples" / "sir.sateen"
FORMULA = "(I > 0) U[100, 120] (I == 0)"
BETA = st.Space(beta=(0.005, 0.3))
SEED = 2  # of the training's runs


def posterior_in(file: Path) -> LearnedPosterior:
    found = st.load(file)
    assert isinstance(found, LearnedPosterior)
    return found


def guarantee_in(file: Path) -> st.Guarantee:
    found = st.load(file)
    assert isinstance(found, st.Guarantee)
    return found


def sir(points: st.Points, seed: int, runs: Any = 40, **caps: Any) -> st.Observations:
    found = st.observe(st.Model.load(SIR), st.stl(FORMULA, end=150), points, runs, seed=seed, **caps)
    assert isinstance(found, st.Observations)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a posterior of a model, one of counts that tell no model, and held-out files."""
    made = tmp_path_factory.mktemp("calibrated")
    st.EPGP(inputs="log").fit(sir(BETA.sobol(64, seed=1), SEED, max_events=5000), seed=1).save(made / "sir.safetensors")
    st.EPGP(inputs="linear").fit(observed(LINE, 40, 30, 5), seed=1).save(made / "line.safetensors")
    fresh = BETA.uniform(60, seed=11)
    sir(fresh, 12).save(made / "held_out.obs")
    sir(fresh, SEED).save(made / "shared.obs")
    sir(BETA.grid(60), 12).save(made / "grid.obs")
    sir(fresh[:20], 12).save(made / "few.obs")
    rows = zip(fresh.theta[:, 0].tolist(), sir(fresh, 12).satisfied.tolist(), strict=True)
    (made / "bare.csv").write_text("beta,satisfied,trials\n" + "".join(f"{beta!r},{n},40\n" for beta, n in rows))
    return made


@pytest.fixture(scope="module")
def planned(folder: Path) -> tuple[Path, str]:
    """The file of a plan, and what was printed when it was made."""
    target = folder / "plan.json"
    done = sateen("plan", folder / "sir.safetensors", "--budget", "4000", "-o", target)
    return target, done.stdout


class TestPlan:
    def test_it_prints_the_sentence_of_the_library_and_keeps_the_plan(
        self, folder: Path, planned: tuple[Path, str]
    ) -> None:
        target, printed = planned
        posterior = posterior_in(folder / "sir.safetensors")
        wanted = st.plan(posterior, budget=4000, seed=1)
        assert printed.splitlines()[1:] == [*str(wanted).splitlines(), str(target)]
        kept = json.loads(target.read_text(encoding="utf-8"))
        assert (kept["points"], kept["runs"], kept["rank"]) == (wanted.points, wanted.runs, wanted.rank)
        assert kept["training"] == posterior.training.fingerprint

    def test_json_holds_the_plan_of_a_marginal_guarantee(self, folder: Path) -> None:
        options = ["--width", "0.3", "--level", "0.8", "--marginal", "--seed", "3"]
        content = as_json("plan", folder / "line.safetensors", *options)
        wanted = st.plan(posterior_in(folder / "line.safetensors"), width=0.3, level=0.8, confidence=None, seed=3)
        assert content["sentence"] == wanted.sentence
        assert content["confidence"] is None
        assert content["seconds"] is None
        assert content["files"] == []

    @pytest.mark.parametrize(
        ("options", "said", "code"),
        [
            ([], "give one of --width 0.06 and --budget 100000", 2),
            (["--width", "0.1", "--budget", "1000"], "give one of --width 0.06 and --budget 100000", 2),
            (["--width", "1.5"], "--width is a number between 0 and 1, such as 0.06, not 1.5", 2),
            (["--width", "nan"], "--width is a number between 0 and 1, such as 0.06, not nan", 2),
            (["--budget", "0"], "--budget is a whole number of runs, such as 10_000, not 0", 2),
            (["--budget", "9", "--level", "1"], "--level is a number between 0 and 1, such as 0.9, not 1.0", 2),
            (["--budget", "9", "--confidence", "0.9", "--marginal"], "leave out one of --confidence and --marginal", 2),
            (["--budget", "9"], "a budget of 9 runs is too small for the level 90 %", 2),
            (["--budget", "99", "-o", "none/plan.json"], "there is no folder none", 1),
        ],
    )
    def test_what_makes_no_plan_is_refused(self, folder: Path, options: list[str], said: str, code: int) -> None:
        assert said in words(sateen("plan", folder / "sir.safetensors", *options, code=code))


def test_from_a_plan_to_a_guarantee_that_others_read(folder: Path, tmp_path: Path, planned: tuple[Path, str]) -> None:
    plan, target, kept = planned[0], tmp_path / "sure.safetensors", tmp_path / "kept.obs"
    common = ["calibrate", folder / "sir.safetensors", "-o", target]
    plot = tmp_path / "sure.svg"
    lines = sateen(*common, "--plan", plan, "--observations", kept, "--plot", plot).stdout.splitlines()
    guarantee, posterior = guarantee_in(target), posterior_in(folder / "sir.safetensors")
    content, seen = json.loads(plan.read_text(encoding="utf-8")), st.Observations.load(kept)
    assert (len(seen), set(seen.trials.tolist())) == (content["points"], {content["runs"]})
    assert guarantee.calibration.rank == content["rank"]
    assert guarantee.calibration.fingerprint == seen.fingerprint
    assert lines[0] == f"{folder / 'sir.safetensors'}, observed with the seed 1"
    assert lines[1] == f"the plan: {content['sentence']}"
    blank = lines.index("")
    assert lines[1:blank] == f"the plan: {st.Plan.from_content(content)}".splitlines()
    lines = lines[blank - 2 :]
    assert lines[3:5] == [f"lift: {guarantee.claim}", str(guarantee.calibration)]
    widths = widths_over(BETA, guarantee.predict)
    believed = widths_over(BETA, lambda points: posterior.predict(points, level=0.9)).mean
    assert lines[5].startswith(f"over the space, intervals are {widths}; ")
    assert lines[5].endswith(f"are {believed:.3g} wide on average")
    assert lines[6] == f"the posterior mean: {st.bound_error(posterior, seen)}"
    assert lines[-3:] == [str(kept), str(plot), str(target)]
    assert plot.read_text(encoding="utf-8").startswith("<?xml")

    assert str(guarantee.claim) in sateen("predict", target, "--at", "beta=0.1").stdout
    assert "--level: that of a guarantee was fixed" in words(
        sateen("predict", target, "--at", "beta=0.1", "--level", "0.9", code=2)
    )
    assert str(guarantee.claim) in sateen("inspect", target).stdout

    again = as_json(*common, "--budget", "4000")  # plans the same, and observes the same
    assert again["calibration"]["fingerprint"] == seen.fingerprint
    assert again["plan"]["rank"] == content["rank"]
    assert again["claim"]["sentence"] == str(guarantee.claim)


def test_without_a_word_on_the_cost_it_takes_as_long_as_the_training_took(folder: Path, tmp_path: Path) -> None:
    content = as_json("calibrate", folder / "sir.safetensors", "--no-exact", "-o", tmp_path / "g.safetensors")
    assert re.fullmatch(r"the time of the training allows [\d,]+ runs: as asked", content["budget"])
    assert content["plan"] is not None


def test_seconds_are_measured_once_and_the_options_that_repeat_them_anywhere_are_shown(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(name: str, *options: str) -> dict[str, Any]:
        return as_json("calibrate", folder / "sir.safetensors", *options, "-o", tmp_path / f"{name}.safetensors")

    first = made("first", "--no-exact", "--seconds", "0.05")
    assert str(tmp_path / "sir.budget.json") in first["files"]
    monkeypatch.setattr(LearnedPosterior, "seconds_per_run", 1e-9)  # another clock would give other runs
    again = made("again", "--no-exact", "--seconds", "0.05")
    elsewhere = made("elsewhere", *first["repeat"].split())
    assert again["calibration"] == first["calibration"] == elsewhere["calibration"]
    other = made("other", "--no-exact", "--seconds", "1e-7")
    assert (other["repeat"], other["budget"]) == (
        "--budget 116",
        "1e-07 s allow 116 runs, the fewest for the level: as asked",
    )
    (tmp_path / "sir.budget.json").write_text("{}")
    done = sateen("calibrate", folder / "sir.safetensors", "-o", tmp_path / "first.safetensors", code=1)
    assert "delete the file, and the seconds are measured again" in words(done)


def test_the_reason_names_the_points_that_the_level_wants_whatever_rank_is_planned(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def computed(bought: budget.Purchase, *_: object) -> budget.Purchase:
        return replace(bought, runs=5000, points=104, states=7, why="the chain is small")

    def second(posterior: LearnedPosterior, request: PlanRequest) -> st.Plan:
        return replace(plan_for(posterior, request), points=60, runs=80, rank=2)

    monkeypatch.setattr(budget, "_computed", computed)
    monkeypatch.setattr("sateen.cli.calibrate.plan_for", second)
    content = as_json("calibrate", folder / "sir.safetensors", "--seconds", "3", "-o", tmp_path / "g.safetensors")
    assert content["calibration"]["rank"] == 2
    why = "only 104 points could be computed, and 116 are wanted; the chain is small"
    assert content["budget"] == f"3 s allow 5,000 runs: {why}"


def test_too_few_seconds_for_computed_labels_say_how_many_would_do(folder: Path, tmp_path: Path) -> None:
    options = ["--exact", "--seconds", "0.001", "-o", tmp_path / "g.safetensors"]
    said = words(sateen("calibrate", folder / "sir.safetensors", *options, code=1))
    assert "0.001 s compute the probability at 0 points, and the level needs 29 give --seconds " in said


def test_that_no_run_satisfied_the_property_is_said_before_the_guarantee(tmp_path: Path) -> None:
    never, target = "F[0, 10] I > 200", tmp_path / "never.safetensors"
    seen = st.observe(st.Model.load(SIR), st.stl(never), BETA.sobol(64, seed=1), 40, seed=2)
    st.SVIGP(inducing=8).fit(seen, seed=1).save(target)
    seen.save(tmp_path / "never.obs")
    learned = sateen("learn", tmp_path / "never.obs", "-o", tmp_path / "again.safetensors").stdout.splitlines()
    assert learned[1].startswith(f"No run satisfied {seen.provenance['formula']}: 0 of 2,560 at 64 points. Its mean")
    options = ["--points", "40", "--runs", "10", "--normaliser", "constant", "-o", tmp_path / "g.safetensors"]
    lines = sateen("calibrate", target, *options).stdout.splitlines()
    assert lines[1].startswith(f"No run satisfied {seen.provenance['formula']}: 0 of 2,960 at 104 points. Its mean")
    assert as_json("calibrate", target, *options)["extreme"]["which"] == "none"


@pytest.mark.slow
def test_computed_labels_are_kept_and_give_the_same_guarantee_again(folder: Path, tmp_path: Path) -> None:
    kept, first, second = (tmp_path / f"{name}.safetensors" for name in ("truth", "first", "second"))
    common = ["calibrate", folder / "sir.safetensors"]
    made = as_json(*common, "--exact", "--points", "30", "--observations", kept, "-o", first)
    assert made["calibration"]["runs"] == 0
    again = as_json(*common, kept, "-o", second)
    assert again["calibration"]["fingerprint"] == made["calibration"]["fingerprint"] == st.load(kept).fingerprint
    assert again["mean_width"] == made["mean_width"]


class TestFreshObservations:
    def test_they_are_of_the_same_question_with_the_same_caps(self, folder: Path, tmp_path: Path) -> None:
        kept = tmp_path / "kept.csv"
        options = ["--points", "40", "--runs", "10", "--seed", "7", "--normaliser", "constant", "--observations", kept]
        sateen("calibrate", folder / "sir.safetensors", *options, "-o", tmp_path / "g.safetensors")
        seen, training = st.Observations.from_csv(kept), posterior_in(folder / "sir.safetensors").training.observations
        for key in ("model", "formula", "end", "max_events"):
            assert seen.provenance[key] == training.provenance[key]
        wanted = st.observe_held_out(
            st.Model.load(SIR), st.stl(FORMULA, end=150), BETA, 40, 10, seed=7, max_events=5000
        )
        assert (seen.fingerprint, seen.points.design, seen.space) == (wanted.fingerprint, "uniform", BETA)
        assert not np.array_equal(seen.theta, BETA.uniform(40, seed=7).theta)

    @pytest.mark.parametrize("method", ["icp", "nicp", "chernoff"])
    def test_methods_without_a_plan_observe_points_and_runs(self, folder: Path, tmp_path: Path, method: str) -> None:
        target = tmp_path / "g.safetensors"
        options = ["--method", method, "--points", "40", "--runs", "20"]
        content = as_json("calibrate", folder / "sir.safetensors", *options, "-o", target)
        assert (content["method"], content["seed"]) == (method, 1)
        assert (content["claim"]["mode"], content["claim"]["points"], content["claim"]["runs"]) == ("marginal", 40, 20)
        assert content["claim"]["sentence"] == str(guarantee_in(target).claim)

    def test_chernoff_takes_a_file_whose_points_differ_in_their_runs(self, folder: Path, tmp_path: Path) -> None:
        held_out, target = tmp_path / "mixed.obs", tmp_path / "g.safetensors"
        sir(BETA.uniform(60, seed=11), 12, np.arange(60) + 20).save(held_out)
        options = ["calibrate", folder / "sir.safetensors", held_out, "--method", "chernoff", "-o", target]
        content = as_json(*options, "--confidence", "0.7", "--normaliser", "posterior")
        made, claim = guarantee_in(target), content["claim"]
        assert (claim["by"], claim["mode"], claim["points"], claim["runs"]) == ("chernoff", "pac", 60, None)
        assert claim["sentence"].endswith(
            "if the numbers of runs per point, which differ, were fixed before the runs were made"
        )
        assert (content["calibration"]["margin"], content["calibration"]["floor"]) == (None, made.calibration.floor)
        assert "each point's margin in its score" in sateen(*options).stdout

    def test_with_the_seed_of_the_training_they_share_no_random_numbers(self, folder: Path, tmp_path: Path) -> None:
        kept = tmp_path / "kept.obs"
        options = ["--points", "40", "--runs", "10", "--seed", str(SEED), "--observations", kept]
        sateen("calibrate", folder / "sir.safetensors", *options, "-o", tmp_path / "g.safetensors")
        assert not set(st.Observations.load(kept).seeds) & {SEED}

    def test_too_few_points_are_refused_before_they_are_observed(self, folder: Path, tmp_path: Path) -> None:
        kept, target = tmp_path / "kept.obs", tmp_path / "g.safetensors"
        options = ["--points", "28", "--runs", "10", "--observations", kept, "-o", target]
        done = sateen("calibrate", folder / "sir.safetensors", *options, code=1)
        assert "28 held-out points are too few for the level 90 % with the confidence 95 %: 29 would suffice" in words(
            done
        )
        assert not kept.exists()
        content = as_json("calibrate", folder / "sir.safetensors", *options, "--allow-trivial")
        assert (content["calibration"]["threshold"], content["mean_width"]) == ("inf", 1.0)

    @pytest.mark.parametrize(
        ("method", "fewest"), [("lift", 29), ("lift --marginal", 10), ("icp", 9), ("chernoff", 19)]
    )
    def test_so_many_are_enough_for_the_library_too(self, folder: Path, method: str, fewest: int) -> None:
        name, *rest = method.split()
        done = sateen(
            *("calibrate", folder / "sir.safetensors", "--method", name, *rest),
            *("--points", str(fewest - 1), "--runs", "10", "-o", folder / "g.safetensors"),
            code=1,
        )
        assert f": {fewest} would suffice" in words(done)
        posterior, held_out = posterior_in(folder / "sir.safetensors"), st.Observations.load(folder / "held_out.obs")
        options: dict[str, Any] = {"method": name, **({"confidence": None} if rest else {})}
        options |= {"normaliser": "constant"} if name == "lift" else {}
        st.calibrate(posterior, held_out[:fewest], **options)
        with pytest.raises(InputError, match="too few"):
            st.calibrate(posterior, held_out[: fewest - 1], **options)

    def test_what_cannot_be_observed_again_asks_for_held_out(self, folder: Path, tmp_path: Path) -> None:
        options = ["--points", "40", "--runs", "10", "-o", str(tmp_path / "g.safetensors")]
        done = sateen("calibrate", folder / "line.safetensors", *options, code=1)
        assert "its observations do not name the model observe uniform points yourself" in words(done)
        seen = st.observe(
            lambda theta, rng: bool(rng.random() < theta["beta"]), None, LINE.uniform(30, seed=1), 9, seed=3
        )
        st.EPGP(inputs="linear").fit(seen, seed=1).save(tmp_path / "box.safetensors")
        done = sateen("calibrate", tmp_path / "box.safetensors", *options, code=1)
        assert "it was a black box " in words(done)
        assert "give the file as HELD_OUT" in words(done)


class TestHeldOut:
    def test_it_makes_the_guarantee_of_the_library(self, folder: Path, tmp_path: Path) -> None:
        target = tmp_path / "g.safetensors"
        options = ["--rank", "2", "--level", "0.8", "--confidence", "0.9", "--normaliser", "predictive"]
        content = as_json("calibrate", folder / "sir.safetensors", folder / "held_out.obs", *options, "-o", target)
        posterior, held_out = posterior_in(folder / "sir.safetensors"), st.Observations.load(folder / "held_out.obs")
        wanted = st.calibrate(posterior, held_out, rank=2, level=0.8, confidence=0.9, normaliser="predictive")
        found, where = guarantee_in(target), BETA.grid(9)
        assert np.array_equal(found.predict(where).upper, wanted.predict(where).upper)
        assert found.claim == wanted.claim
        bound = st.bound_error(posterior, held_out, confidence=0.9)
        assert content["error_bound"]["claim"]["sentence"] == str(bound)
        assert (content["seed"], content["plan"], content["files"]) == (None, None, [str(target)])

    def test_a_table_of_another_program_must_be_said_to_be_uniform(self, folder: Path, tmp_path: Path) -> None:
        common = ["calibrate", folder / "sir.safetensors", folder / "bare.csv", "--method", "icp"]
        common += ["-o", tmp_path / "g.safetensors"]
        assert "if these were drawn uniformly elsewhere, pass --drawn-uniformly" in words(sateen(*common, code=1))
        assert as_json(*common, "--drawn-uniformly")["claim"]["points"] == 60

    @pytest.mark.parametrize(
        ("name", "options", "said", "code"),
        [
            ("shared.obs", [], f"HELD_OUT shares the seed {SEED} with the training", 1),
            ("grid.obs", [], "HELD_OUT has the design 'grid'", 1),
            ("grid.obs", [], "leave out HELD_OUT to observe uniform points", 1),
            ("grid.obs", ["--drawn-uniformly"], "says itself how it was drawn: grid", 2),
            ("few.obs", ["--normaliser", "constant"], "20 held-out points are too few for the level 90 %", 1),
            ("few.obs", ["--normaliser", "constant"], "or pass --allow-trivial for the interval [0, 1]", 1),
            ("none.obs", [], "none.obs cannot be read: No such file", 1),
            ("sir.safetensors", [], "POSTERIOR and HELD_OUT are the same file", 2),
            ("line.safetensors", [], "is what was learned already", 1),
            ("model.sateen", [], "is a model, not observations", 2),
            ("held_out.obs", ["--seed", "9"], "--seed says how to observe, and HELD_OUT is observed", 2),
            ("held_out.obs", ["--width", "0.1"], "--width says how to observe", 2),
            ("held_out.obs", ["--observations", "x.obs"], "--observations says how to observe", 2),
        ],
    )
    def test_what_proves_nothing_is_refused(
        self, folder: Path, tmp_path: Path, name: str, options: list[str], said: str, code: int
    ) -> None:
        target = tmp_path / "g.safetensors"
        done = sateen("calibrate", folder / "sir.safetensors", folder / name, *options, "-o", target, code=code)
        assert said in words(done)
        assert not target.exists()


class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (
                "--seconds 1 --width 0.1",
                "nothing to calibrate with: give a file HELD_OUT of observations, or one of --seconds S",
            ),
            ("--method icp", "for --method icp give --points N with --runs M; seconds plan only a lift"),
            ("--exact --budget 1000", "--exact makes no runs; give it --points N or --seconds S"),
            ("--exact --points 40 --runs 9", "--exact makes no runs"),
            ("--exact --points 40 --method icp", "--method icp is about runs, and computed labels have none"),
            ("--exact --points 20", "20 held-out points are too few for the level 90 %"),
            ("--seconds 0", "0.0 is not in the range"),
            ("--seconds inf", "inf is not a finite number of seconds"),
            ("--seconds nan", "nan is not a finite number of seconds"),
            ("--width 0.1 --budget 1000", "nothing to calibrate with:"),
            ("--budget 1000 --points 9 --runs 9", "nothing to calibrate with:"),
            ("--points 40", "--points N and --runs M go together"),
            ("--runs 40", "--points N and --runs M go together"),
            ("--width 0.1 --method icp", "--width does not apply to --method icp, only to --method lift"),
            ("--width 0.1 --rank 2", "--rank and --width both fix the rank"),
            ("--width 0.1 --drawn-uniformly", "--drawn-uniformly says how HELD_OUT was drawn"),
            ("--points 40 --runs 9 --method nicp --rank 2", "--rank does not apply to --method nicp, only to"),
            ("--points 40 --runs 9 --split 0.3", "--split does not apply to --method lift, only to"),
            ("--points 40 --runs 9 --confidence 0.9 --marginal", "leave out one of --confidence and --marginal"),
            ("--points 40 --runs 9 --level 1.2", "--level is a number between 0 and 1, such as 0.9, not 1.2"),
            ("--points 40 --runs 9 --method lfit", "--method is one of 'icp', 'nicp', 'chernoff', 'lift', not 'lfit'"),
            ("--points 40 --runs 9 --plot x.gif", "end the name in .svg, .pdf or .png"),
        ],
    )
    def test_an_option_that_does_not_apply_is_an_error(
        self, folder: Path, tmp_path: Path, options: str, said: str
    ) -> None:
        target = tmp_path / "g.safetensors"
        assert said in words(sateen("calibrate", folder / "sir.safetensors", *options.split(), "-o", target, code=2))
        assert not target.exists()

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ("--level 0.8", "the plan was made for the level 0.9, not 0.8; leave --level out, or plan again"),
            ("--marginal", "the plan was made for the confidence 0.95, not None; leave --confidence out"),
            ("--normaliser posterior", "not posterior; leave --normaliser out"),
            ("--rank 2", "--rank and --plan both fix the rank"),
        ],
    )
    def test_an_option_that_contradicts_the_plan_is_an_error(
        self, folder: Path, tmp_path: Path, planned: tuple[Path, str], options: str, said: str
    ) -> None:
        target = tmp_path / "g.safetensors"
        given = ["--plan", planned[0], *options.split(), "-o", target]
        assert said in words(sateen("calibrate", folder / "sir.safetensors", *given, code=2))
        assert not target.exists()

    @pytest.mark.parametrize("method", METHODS.builtin)
    @pytest.mark.parametrize("normaliser", ["predictive", "posterior", "quantile", "constant"])
    def test_a_method_has_the_normalisers_that_the_library_gives_it(
        self, folder: Path, method: str, normaliser: str
    ) -> None:
        posterior, held_out = posterior_in(folder / "sir.safetensors"), st.Observations.load(folder / "held_out.obs")
        options: dict[str, Any] = {"method": method, "normaliser": normaliser}
        if normaliser in METHODS[method].normalisers:
            st.calibrate(posterior, held_out, **options)
            return
        with pytest.raises(InputError, match="normaliser"):
            st.calibrate(posterior, held_out, **options)
        given = ["--method", method, "--normaliser", normaliser, "-o", folder / "g.safetensors"]
        done = sateen("calibrate", folder / "sir.safetensors", folder / "held_out.obs", *given, code=2)
        wrong = "does not apply to" if method == "icp" else "of"
        assert f"--normaliser {wrong} --method {method}" in words(done)

    def test_files_that_do_not_serve_are_refused(self, folder: Path, tmp_path: Path) -> None:
        posterior, target = folder / "sir.safetensors", tmp_path / "g.safetensors"
        plan, fresh = tmp_path / "plan.json", ["--points", "40", "--runs", "10"]
        assert "end the name in .safetensors" in words(sateen("calibrate", posterior, "-o", "g.obs", *fresh, code=2))
        assert "POSTERIOR and -o are the same file" in words(
            sateen("calibrate", posterior, "-o", posterior, *fresh, code=2)
        )
        for text, said in (("junk", "is not a plan"), ("[]", "no valid plan"), ("{}", "no valid plan")):
            plan.write_text(text)
            assert said in words(sateen("calibrate", posterior, "--plan", plan, "-o", target, code=1))
        sateen("plan", folder / "line.safetensors", "--budget", "2000", "-o", plan)
        done = sateen("calibrate", posterior, "--plan", plan, "-o", target, code=1)
        assert "was planned for a posterior of another training" in words(done)
        kept = json.loads(plan.read_text(encoding="utf-8"))
        for key, value in {
            "rank": 0,
            "points": "9",
            "level": 2,
            "confidence": 1,
            "likely": 1,
            "normaliser": [],
        }.items():
            plan.write_text(json.dumps({**kept, key: value}))
            assert "no valid plan" in words(
                sateen(
                    "calibrate", folder / "line.safetensors", folder / "few.obs", "--plan", plan, "-o", target, code=1
                )
            )
        assert not target.exists()

    def test_a_guarantee_is_not_calibrated_again(self, folder: Path, tmp_path: Path) -> None:
        target, other = tmp_path / "g.safetensors", tmp_path / "other.safetensors"
        sateen("calibrate", folder / "sir.safetensors", folder / "held_out.obs", "--method", "icp", "-o", target)
        done = sateen("calibrate", target, folder / "held_out.obs", "-o", other, code=1)
        assert "is a guarantee already; give the posterior" in words(done)
        assert "is a guarantee already" in words(sateen("plan", target, "--budget", "2000", code=1))
