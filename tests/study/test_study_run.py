"""A study runs to the same result however it is interrupted, and a second run does only what changed."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest

import sateen as st
from sateen.core.code import Code
from sateen.core.seeds import stream_seed
from small_studies import changed, small

TWO = ('gone = "F[0, 2] A == 0"', 'gone = "F[0, 2] A == 0"\nhalf = { formula = "F A <= 2", end = 1 }')
BUDGET = ("points = 40, runs = 20", "budget = 1500")


def stages(result: st.Result, state: str = "computed") -> set[str]:
    """The stages of the last run that are in a state."""
    return {stage for stage, own in result.stages.items() if own == state}


def told(folder: Path) -> bytes:
    return (folder / "result.json").read_bytes()


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> st.Result:
    """The result of the small study, run once."""
    return small().run(tmp_path_factory.mktemp("once") / "decay")


ALL = {"train gone", "test gone", "learn gone svi-gp", "calibrate gone", "guarantee gone", "score gone"}


class TestWhatIsFound:
    def test_it_is_what_the_library_finds_by_hand(self, once: st.Result) -> None:
        study, own = small(), once.properties["gone"]
        points = study.space.sobol(24, seed=stream_seed(7, "train points"))
        formula = st.stl("F[0, 2] A == 0")
        assert isinstance(study.model, st.Model)
        train = st.observe(study.model, formula, points, 20, seed=stream_seed(7, "train runs"))
        assert own.train == train
        posterior = st.SVIGP(inputs="linear", inducing=8).fit(train, seed=stream_seed(7, "learn svi-gp"))
        drawn = study.space.uniform(40, seed=stream_seed(7, "held-out points"))
        held_out = st.observe(study.model, formula, drawn, 20, seed=stream_seed(7, "held-out runs"))
        assert own.calibrate == held_out
        guarantee = st.calibrate(posterior, held_out, normaliser="constant")
        where = study.space.grid(201)
        assert own.guaranteed_prediction is not None
        for found, wanted in (
            (own.predictions["svi-gp"], posterior.predict(where, level=guarantee.level)),
            (own.guaranteed_prediction, guarantee.predict(where)),
        ):
            assert found.claim == wanted.claim
            for column in ("mean", "std", "lower", "upper"):
                assert np.allclose(getattr(found, column), getattr(wanted, column), rtol=0, atol=1e-12)
        assert own.test is not None
        assert own.scores["svi-gp"].rmse == pytest.approx(
            st.score(posterior.predict(own.test.points), own.test).rmse, abs=1e-12
        )
        assert own.error_bound is not None
        assert own.error_bound.value == pytest.approx(st.bound_error(posterior, held_out).value, abs=1e-9)
        assert own.claims == (guarantee.claim, own.error_bound.claim)
        assert (own.guaranteed, own.plan) == ("svi-gp", None)

    def test_the_verdict_says_what_was_asked_what_was_found_and_what_is_guaranteed_and_what_is_not(
        self, once: st.Result
    ) -> None:
        own = once.properties["gone"]
        asked, found, promised = own.verdict.splitlines()
        assert asked == "Asked: how probable is gone, F[0, 2] A == 0, for k from 0.1 to 2?"
        shown = own.guaranteed_prediction
        assert shown is not None
        low, high = np.argmin(shown.mean), np.argmax(shown.mean)
        assert f"lowest, {shown.mean[low]:.3g} ({shown.lower[low]:.3g} to {shown.upper[low]:.3g}) at k = 0.1" in found
        assert f"highest, {shown.mean[high]:.3g} ({shown.lower[high]:.3g} to {shown.upper[high]:.3g}) at k = " in found
        assert promised == (
            "Guaranteed: with confidence 95 %, the intervals contain the true probability in at least 90 % of the "
            "space. Not guaranteed: any one given parameter."
        )

    def test_all_intervals_of_a_study_have_the_level_of_its_guarantee(self, once: st.Result) -> None:
        own = once.properties["gone"]
        assert own.guarantee is not None
        assert own.guarantee_score is not None
        levels = [own.predictions["svi-gp"].level, own.scores["svi-gp"].level, own.guarantee_score.level]
        assert levels == [own.guarantee.level] * 3

    def test_the_result_on_the_disk_is_the_result(self, once: st.Result) -> None:
        again, own = st.Result.load(once.folder), once.properties["gone"]
        other = again.properties["gone"]
        assert (again.name, again.seed, again.space, again.model) == (once.name, once.seed, once.space, once.model)
        assert again.content == once.content
        assert again.provenance == once.provenance
        assert (other.train, other.test, other.calibrate) == (own.train, own.test, own.calibrate)
        assert (other.scores, other.guarantee_score) == (own.scores, own.guarantee_score)
        assert np.array_equal(other.predictions["svi-gp"].upper, own.predictions["svi-gp"].upper)
        assert st.Model.parse(again.model) == small().model

    def test_what_it_tells_of_predictions_is_what_its_posteriors_say(self, once: st.Result) -> None:
        own = once.properties["gone"]
        shown = own.predictions["svi-gp"]
        asked = own.posteriors["svi-gp"].predict(shown.points, level=shown.level)
        assert np.allclose(shown.mean, asked.mean, rtol=0, atol=1e-12)
        assert shown.claim == asked.claim

    def test_a_notebook_shows_the_verdict_and_the_scores(self, once: st.Result) -> None:
        shown = once._repr_html_()
        assert "Asked: how probable is gone" in shown
        assert "scored against 500 fresh runs at 10 points" in shown
        assert "F[0, 2] A == 0" in small()._repr_html_()

    def test_nothing_in_it_can_be_changed(self, once: st.Result) -> None:
        for mapping in (once.properties, once.content, once.provenance, once.seconds, small().learners, small().caps):
            with pytest.raises(TypeError):
                mapping["x"] = 1  # type: ignore[index]

    def test_result_json_has_no_times_and_provenance_has(self, once: st.Result) -> None:
        text = told(once.folder).decode()
        assert not any(word in text for word in ('seconds": 0', "created", "started", "finished"))
        assert set(once.seconds) == ALL
        assert all(value >= 0 for value in once.seconds.values())
        about = once.provenance
        assert about["versions"]["sateen"] == st.__version__
        assert about["text"] == once.text == changed()
        assert about["seeds"]["train runs"] == stream_seed(7, "train runs") != stream_seed(7, "test runs")
        assert "result.json" in about["hashes"]
        assert len([name for name in about["hashes"] if name.startswith("stages/")]) == len(ALL)

    def test_every_hash_of_the_provenance_is_that_of_its_file(self, once: st.Result) -> None:
        from hashlib import sha256

        for name, digest in once.provenance["hashes"].items():
            assert sha256((once.folder / name).read_bytes()).hexdigest() == digest

    def test_without_test_and_calibration_there_are_neither_scores_nor_guarantees(self, tmp_path: Path) -> None:
        text = changed().split("[learn]")[0]
        text = "\n".join(line for line in text.splitlines() if not line.startswith(("test", "calibrate")))
        own = st.Study.parse(text).run(tmp_path / "bare").properties["gone"]
        assert (dict(own.scores), own.guarantee, own.calibrate, own.test, own.error_bound) == (
            {},
            None,
            None,
            None,
            None,
        )
        (claim,) = own.claims
        assert claim.mode == "credible"
        assert own.verdict.splitlines()[-1].startswith("Not guaranteed: the 95 % intervals are what svi-gp believes")

    def test_a_space_without_a_parameter_that_varies_is_a_single_point(self, tmp_path: Path) -> None:
        own = small(("k = [0.1, 2]", "k = 1")).run(tmp_path / "one").properties["gone"]
        exact = (1 - np.exp(-2.0)) ** 5
        assert own.guaranteed_prediction is not None
        assert own.guaranteed_prediction.lower[0] <= exact <= own.guaranteed_prediction.upper[0]
        assert "training runs: the probability is about 0." in own.verdict

    def test_a_calibration_too_small_may_be_trivial_if_that_is_allowed(self, tmp_path: Path) -> None:
        study = small(("points = 40", "points = 4"), ("[guarantee]", "[guarantee]\nallow_trivial = true"))
        own = study.run(tmp_path / "trivial").properties["gone"]
        assert own.guaranteed_prediction is not None
        assert (own.guaranteed_prediction.width == 1).all()
        assert (
            json.loads(told(tmp_path / "trivial"))["properties"]["gone"]["guarantee"]["calibration"]["threshold"]
            == "inf"
        )


class TestAgain:
    def test_a_second_run_reuses_everything_and_writes_the_same_bytes(self, once: st.Result, tmp_path: Path) -> None:
        folder = copytree(once.folder, tmp_path / "decay")
        second = small().run(folder)
        assert (stages(once), stages(second)) == (ALL, set())
        assert stages(second, "reused") == ALL
        assert told(folder) == told(once.folder)
        assert second.seconds == once.seconds

    @pytest.mark.parametrize(
        ("change", "computed"),
        [
            (("seed = 7", "seed  =  7   # the same seed"), set()),
            (("species A = 5", "species   A = 5  # five"), set()),
            (("F[0, 2] A == 0", "F[0,2] (A==0)"), set()),
            (('normaliser = "constant"', 'normaliser = "constant"\nlevel = 0.8'), {"guarantee gone", "score gone"}),
            (("inducing = 8", "inducing = 9"), {"learn gone svi-gp", "guarantee gone", "score gone"}),
            (("points = 10, runs", "points = 11, runs"), {"test gone", "score gone"}),
            (("points = 40, runs", "points = 41, runs"), {"calibrate gone", "guarantee gone", "score gone"}),
            (("points = 24", "points = 25"), ALL - {"test gone", "calibrate gone"}),
            (("k = [0.1, 2]", "k = [0.1, 3]"), ALL),
            (("seed = 7", "seed = 8"), ALL),
            (('["svi-gp"]', '["svi-gp", "ep-gp"]'), {"learn gone ep-gp", "score gone"}),
        ],
    )
    def test_only_what_depends_on_a_change_is_recomputed(
        self, once: st.Result, tmp_path: Path, change: tuple[str, str], computed: set[str]
    ) -> None:
        folder = copytree(once.folder, tmp_path / "decay")
        assert stages(small(change).run(folder)) == computed
        small(change).run(tmp_path / "fresh")
        assert told(folder) == told(tmp_path / "fresh")

    def test_what_was_changed_back_is_still_there(self, once: st.Result, tmp_path: Path) -> None:
        folder = copytree(once.folder, tmp_path / "decay")
        before = told(folder)
        small(("points = 24", "points = 25")).run(folder)
        assert stages(small().run(folder)) == set()
        assert told(folder) == before

    def test_the_number_of_workers_changes_nothing(self, once: st.Result, tmp_path: Path) -> None:
        small().run(tmp_path / "three", workers=3)
        assert told(tmp_path / "three") == told(once.folder)
        with pytest.raises(st.InputError, match="workers is a whole number from 1 up"):
            small().run(tmp_path / "none", workers=0)

    def test_a_forecast_says_what_is_pending_and_changes_nothing(self, once: st.Result, tmp_path: Path) -> None:
        folder = tmp_path / "decay"
        fresh = small(BUDGET).forecast(folder)
        assert {step.state for step in fresh.steps} == {"pending"}
        assert fresh.runs == 24 * 20 + 10 * 50 + 1500
        assert np.isnan(fresh.seconds)  # nobody knows: no run was made yet
        assert not folder.exists()
        copytree(once.folder, folder)
        before = sorted(folder.rglob("*"))
        later = small(("points = 10, runs", "points = 11, runs")).forecast(folder)
        assert {step.stage for step in later.steps if step.state == "pending"} == {"test gone", "score gone"}
        assert later.runs == 550
        assert 0 < later.seconds < 60
        done = small().forecast(folder)
        assert (done.runs, np.isnan(done.seconds)) == (0, True)
        assert {step.state for step in done.steps} == {"reused"}
        assert sorted(folder.rglob("*")) == before

    @pytest.mark.slow
    def test_a_forecast_knows_how_long_a_method_learns_that_can_tell(self, once: st.Result, tmp_path: Path) -> None:
        epochs = [
            ('["svi-gp"]', '["svi-gp", "svi-gp-faithful"]'),
            ("[guarantee]", "[learn.svi-gp-faithful]\nepochs = 9\n\n[guarantee]"),
        ]
        study = small(*epochs)
        assert dict(study.forecast(tmp_path / "none").learning) == {}
        (stage,) = study.forecast(once.folder).learning.items()
        assert stage[0] == "learn gone svi-gp-faithful"
        assert 0 < stage[1] < 120


class TestSeveralProperties:
    def test_they_share_their_runs_and_a_new_one_leaves_the_others_as_they_are(
        self, once: st.Result, tmp_path: Path
    ) -> None:
        folder, alone = copytree(once.folder, tmp_path / "decay"), once
        both = small(TWO).run(folder)
        assert stages(both) == {stage.replace("gone", "half") for stage in ALL}
        fresh = small(TWO).run(tmp_path / "fresh")
        assert told(folder) == told(tmp_path / "fresh")
        for part in ("train", "test", "calibrate"):
            gone, half = (getattr(fresh.properties[name], part) for name in ("gone", "half"))
            assert gone == getattr(alone.properties["gone"], part)
            assert np.array_equal(gone.origin, half.origin)
            assert (half.satisfied >= gone.satisfied).sum() > 0.8 * len(gone)

    def test_one_budget_calibrates_all_of_them(self, tmp_path: Path) -> None:
        result = small(TWO, BUDGET, ('normaliser = "constant"', "")).run(tmp_path / "both")
        one, other = (result.properties[name] for name in ("gone", "half"))
        assert one.plan is not None
        assert other.plan is not None
        assert one.calibrate is not None
        assert (one.plan.points, one.plan.runs) == (other.plan.points, other.plan.runs)
        assert one.plan.budget == int(one.calibrate.trials.sum()) <= 1500
        for own in (one, other):
            assert own.guarantee is not None
            assert own.plan is not None
            assert own.guarantee.calibration.rank == own.plan.rank
            assert own.guarantee.calibration.normaliser == own.plan.normaliser

    @pytest.mark.slow
    def test_the_shared_design_is_that_of_the_widest_and_the_others_get_the_rank_that_suits_it(self) -> None:
        from sateen.guarantee.plan import plan
        from sateen.study.budget import shared_plans
        from sateen.study.spec import Calibration, GuaranteeSpec

        space = st.Space(p=(0, 1))
        posteriors = {}
        for name, f in (("steep", lambda p: 0.5 + 0.4 * np.sin(9 * p)), ("flat", lambda p: 0.001 + 0 * p)):
            points = space.uniform(30, seed=1)
            counts = np.random.default_rng(2).binomial(40, f(points.theta[:, 0]))
            seen = st.Observations.from_counts(space, points, counts, 40)
            posteriors[name] = st.SVIGP(inputs="linear", inducing=8).fit(seen, seed=1)
        spec = GuaranteeSpec("svi-gp", "lift", 0.9, 0.95)
        found = shared_plans(posteriors, Calibration(budget=8000), spec, seed=3).by_name
        alone = {name: plan(own, budget=8000, seed=3) for name, own in posteriors.items()}
        assert found["steep"].content() == alone["steep"].content()
        assert (alone["flat"].points, alone["flat"].runs) != (alone["steep"].points, alone["steep"].runs)
        assert (found["flat"].points, found["flat"].runs) == (alone["steep"].points, alone["steep"].runs)
        assert found["flat"].width >= 0.98 * alone["flat"].width
        low, high = found["flat"].likely
        assert low <= found["flat"].width <= high


class Pressing:
    """A watcher that presses Ctrl-C at a call of `advance` within work whose label begins so."""

    def __init__(self, label: str, at: int, press: Callable[[], Any]) -> None:
        self.label, self.at, self.press, self.open, self.here = label, at, press, 0, False

    def start(self, label: str, total: int, unit: str) -> None:
        assert total > 0
        self.open += 1
        self.here = label.startswith(self.label)

    def advance(self, n: int) -> None:
        assert self.open == 1
        self.at -= self.here
        if self.here and self.at == 0:
            self.press()

    def note(self, text: str) -> None:
        assert self.open == 1

    def finish(self) -> None:
        self.open -= 1


def press() -> None:
    signal.raise_signal(signal.SIGINT)


class TestInterrupted:
    @pytest.mark.parametrize(
        ("label", "at"),
        [("observe", 2), ("learn", 1), ("SVIGP: kernel", 3), ("SVIGP: posterior", 1), ("guarantee", 1), ("score", 1)],
    )
    def test_ctrl_c_in_any_stage_ends_the_run_and_the_next_goes_on_to_the_same_result(
        self, once: st.Result, tmp_path: Path, label: str, at: int
    ) -> None:
        folder, watcher = tmp_path / "decay", Pressing(label, at, press)
        with pytest.raises(st.Interrupted, match="run the same study again to resume"):
            small().run(folder, progress=watcher)
        assert watcher.open == 0
        assert watcher.at <= 0
        assert not (folder / "result.json").exists()
        assert stages(small().run(folder)) <= ALL
        assert told(folder) == told(once.folder)
        assert not list(folder.rglob("*.checkpoint"))

    def test_a_plan_whose_fits_were_cut_short_is_not_kept(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Fits catch Ctrl-C and return the best they have, so a plan made of such fits would come out."""
        from sateen.guarantee import rehearsal

        real, cut = rehearsal.refitted, []

        def swallowing(*given: Any) -> Any:
            if not cut:
                cut.append(True)
                with suppress(KeyboardInterrupt):
                    press()
            return real(*given)

        monkeypatch.setattr(rehearsal, "refitted", swallowing)
        folder, study = tmp_path / "decay", small(BUDGET)
        with pytest.raises(st.Interrupted):
            study.run(folder)
        assert not list((folder / "stages").glob("plan*"))
        assert "plan" in stages(study.run(folder))

    def test_a_handler_of_ones_own_is_called_and_put_back(self, tmp_path: Path) -> None:
        calls: list[int] = []
        before = signal.signal(signal.SIGINT, lambda number, frame: calls.append(number))
        try:
            with pytest.raises(st.Interrupted):
                small().run(tmp_path / "decay", progress=Pressing("SVIGP", 1, press))
            assert calls == [signal.SIGINT]
            signal.raise_signal(signal.SIGINT)
            assert len(calls) == 2
        finally:
            signal.signal(signal.SIGINT, before)

    def test_simulation_goes_on_from_the_runs_that_are_stored(self, tmp_path: Path) -> None:
        folder = tmp_path / "decay"
        study = small(("points = 24, runs = 20", "points = 24, runs = 20000"))
        with pytest.raises(st.Interrupted, match=r"stopped after [\d,]+ of 480,000 runs"):
            study.run(folder, workers=1, progress=Pressing("observe", 3, press))
        notes: list[str] = []

        class Listening(Pressing):
            def note(self, text: str) -> None:
                notes.append(text)

        study.run(folder, progress=Listening("", -1, press))
        assert any("runs are in the store" in note for note in notes)


class TestSideBySide:
    FOUR = (TWO, ('["svi-gp"]', '["svi-gp", "own_learners:Pooled"]'))  # the latter is taken to be slow

    def test_any_number_of_workers_and_an_interruption_give_the_same_result(self, tmp_path: Path) -> None:
        for workers in (1, 2):
            result = small(*self.FOUR).run(tmp_path / str(workers), workers=workers)
            assert {len(own.posteriors) for own in result.properties.values()} == {2}
        watcher = Pressing("learn", 3, press)  # two fits have begun, in processes of their own
        with pytest.raises(st.Interrupted, match="run the same study again to resume"):
            small(*self.FOUR).run(tmp_path / "stopped", workers=2, progress=watcher)
        small(*self.FOUR).run(tmp_path / "stopped", workers=2)
        assert told(tmp_path / "1") == told(tmp_path / "2") == told(tmp_path / "stopped")
        assert not list((tmp_path / "stopped").rglob("*.checkpoint"))

    def test_processes_are_started_only_where_fits_take_long(self, tmp_path: Path) -> None:
        from sateen.study.stages import study_tasks

        def parallel(*learners: str) -> set[bool]:
            names = ", ".join(f'"{name}"' for name in learners)
            tasks = study_tasks(small(TWO, ('["svi-gp"]', f"[{names}]")), tmp_path).pipeline.tasks
            return {task.parallel for task in tasks if task.stage == "learn"}

        assert parallel("svi-gp", "ep-gp") == {False}
        assert parallel("svi-gp", "svi-bnn") == {True}

    def test_an_error_of_a_fit_in_a_process_is_told(self, tmp_path: Path) -> None:
        study = small(TWO, ('["svi-gp"]', '["svi-gp", "own_learners:Failing"]'))
        with pytest.raises(st.InputError, match="this learner always fails"):
            study.run(tmp_path / "out", workers=2)
        assert not (tmp_path / "out" / "result.json").exists()


class TestOwnLearners:
    POOLED = (
        ('["svi-gp"]', '["own_learners:Pooled", "svi-gp"]'),
        ("[guarantee]", '[learn."own_learners:Pooled"]\nstrength = 4\n\n[guarantee]'),
    )

    @pytest.mark.parametrize("workers", [1, 2])
    def test_a_class_of_the_user_learns_is_guaranteed_and_is_fitted_again_on_load(
        self, tmp_path: Path, workers: int
    ) -> None:
        notes: list[str] = []

        class Listening(Pressing):
            def note(self, text: str) -> None:
                notes.append(text)

        result = small(*self.POOLED).run(tmp_path / "out", workers=workers, progress=Listening("", -1, press))
        own = result.properties["gone"]
        assert own.guaranteed == "own_learners:Pooled"
        assert own.posteriors["own_learners:Pooled"].recipe.strength == 4  # type: ignore[attr-defined]
        share = (own.train.satisfied.sum() + 2) / (own.train.trials.sum() + 4)
        assert own.predictions["own_learners:Pooled"].mean == pytest.approx(share, abs=1e-12)
        (said,) = [note for note in notes if "fits again" in note]
        assert said.startswith("learn gone own_learners:Pooled: ")
        assert "fits again" in result.content["properties"]["gone"]["learners"]["own_learners:Pooled"]["notes"][-1]
        assert "fits again" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
        assert stages(small(*self.POOLED).run(tmp_path / "out")) == set()

    def test_a_change_in_its_file_fits_it_again(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        import sys

        source = (Path(__file__).parents[1] / "own_learners.py").read_text()
        monkeypatch.syspath_prepend(tmp_path)
        change = ('["svi-gp"]', '["changing_learners:Pooled"]')
        computed = []
        for code in (source, source + "\n# a comment\n"):
            (tmp_path / "changing_learners.py").write_text(code)
            sys.modules.pop("changing_learners", None)
            text = changed(change).replace('[learn.svi-gp]\ninputs = "linear"\ninducing = 8\n', "")
            computed.append(stages(st.Study.parse(text).run(tmp_path / "out")))
        assert computed[1] == {"learn gone changing_learners:Pooled", "guarantee gone", "score gone"}


class TestCallables:
    BOX = (
        "def box(theta, rng):\n    return bool(rng.random() < help_of(theta))\n"
        "def help_of(theta):\n    return theta['k'] / 3\n"
    )

    def study(self, folder: Path, text: str = BOX) -> st.Study:
        (folder / "box.py").write_text(text)
        model = changed().split("[model]")[1].split("[space]")[0]
        file = folder / "decay.toml"
        written = changed((model, '\ncallable = "box.py:box"\n\n'), ('[property]\ngone = "F[0, 2] A == 0"\n', ""))
        file.write_text(written)
        return st.Study.load(file)

    def test_what_a_function_returns_is_a_property_of_its_name(self, tmp_path: Path) -> None:
        result = self.study(tmp_path).run()
        own = result.properties["box"]
        assert result.folder == tmp_path / "decay-result"
        assert result.model == "box.py:box"
        assert own.formula is None
        frequency = own.train.satisfied.sum() / own.train.trials.sum()
        assert abs(frequency - 0.35) < 4.9 * np.sqrt(0.25 / own.train.trials.sum())

    def test_a_change_anywhere_in_its_file_recomputes_the_runs(self, tmp_path: Path) -> None:
        first = self.study(tmp_path).run().properties["box"].train
        later = self.study(tmp_path, self.BOX.replace("/ 3", "/ 6")).run()
        assert "train box" in stages(later)
        assert later.properties["box"].train.satisfied.sum() < 0.7 * first.satisfied.sum()
        assert stages(self.study(tmp_path).run()) == set()

    def test_what_is_run_is_what_stands_in_the_file_and_not_in_a_cache(self, tmp_path: Path) -> None:
        """Python's own cache of modules does not see a change of the same length within a second."""
        thirds = self.study(tmp_path)
        stamp = (tmp_path / "box.py").stat()
        sixths = self.study(tmp_path, self.BOX.replace("/ 3", "/ 6"))
        os.utime(tmp_path / "box.py", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        again = st.Study.load(tmp_path / "decay.toml")
        rng = np.random.default_rng
        boxes: list[Any] = [study.model.load() for study in (thirds, sixths, again) if isinstance(study.model, Code)]
        answers = [[box({"k": 2.0}, rng(seed)) for seed in range(40)] for box in boxes]
        assert sum(answers[0]) > sum(answers[1])
        assert answers[1] == answers[2]
        assert thirds.code != sixths.code == again.code
        assert not (tmp_path / "__pycache__").exists()

    def test_the_result_does_not_depend_on_where_the_files_are(self, tmp_path: Path) -> None:
        for name in ("here", "there"):
            (tmp_path / name).mkdir()
            self.study(tmp_path / name).run()
        here, there = (told(tmp_path / name / "decay-result") for name in ("here", "there"))
        assert here == there

    def test_a_function_may_return_paths_which_formulas_decide(self, tmp_path: Path) -> None:
        text = (
            "import sateen as st\n"
            "MODEL = st.Model.parse('species A = 5\\nA -> 0 @ mass_action(k)')\n"
            "def run(theta, rng):\n"
            "    return st.simulate(MODEL, theta, until=2, seed=int(rng.integers(2**31)))\n"
        )
        (tmp_path / "paths.py").write_text(text)
        model = changed().split("[model]")[1].split("[space]")[0]
        small_parts = ("points = 24, runs = 20", "points = 12, runs = 5")
        file = tmp_path / "decay.toml"
        file.write_text(changed((model, '\ncallable = "paths.py:run"\n\n'), small_parts))
        own = st.Study.load(file).run().properties["gone"]
        assert own.formula == "F[0, 2] A == 0"
        assert not own.train.undecided.any()
        file.write_text(file.read_text().replace('[property]\ngone = "F[0, 2] A == 0"\n', ""))
        problem = r"train: .* returns paths, which a formula must decide\n  give a table \[property\]"
        with pytest.raises(st.InputError, match=problem):
            st.Study.load(file).run()

    def test_a_function_that_always_fails_is_told_with_its_error(self, tmp_path: Path) -> None:
        with pytest.raises(st.SimulationError, match="ZeroDivisionError"):
            self.study(tmp_path, "def box(theta, rng):\n    return 1 / 0\n").run()

    @pytest.mark.parametrize(
        ("address", "said"),
        [
            ("box.py:bix", "has no bix; did you mean box"),
            ("none.py:box", "there is no file"),
            ("box.py", "is not the address of code"),
            ("box.py:NUMBER", "is not a plain function"),
            ("box.py:lonely", "is not a plain function"),
            ("nowhere_at_all:box", "cannot be imported"),
            ("math:sin", "is not a plain function"),
            ("box.py:one", r"takes \(theta\), and a black box is called as f\(theta, rng\)"),
            ("broken.py:box", r"broken.py is not Python: .*\n  def box\(theta, rng\) return\n"),
        ],
    )
    def test_an_address_that_leads_nowhere_is_told(self, tmp_path: Path, address: str, said: str) -> None:
        study = self.study(tmp_path, self.BOX + "NUMBER = 3\nlonely = lambda theta, rng: True\ndef one(theta): ...\n")
        (tmp_path / "broken.py").write_text("def box(theta, rng) return\n")
        assert study.file is not None
        study.file.write_text(study.text.replace("box.py:box", address))
        with pytest.raises(st.InputError, match=said) as caught:
            st.Study.load(study.file)
        assert re.search(r"decay.toml(, line 6)?: model.callable: ", str(caught.value))
