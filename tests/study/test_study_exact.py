"""Studies whose labels are computed, and budgets in seconds: the same result however it is run, decided once."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sateen as st
from sateen.study import budget as study_budget
from sateen.study import labels as study_labels
from small_studies import changed, small

EXACT = ("calibrate = { points = 40, runs = 20 }", "calibrate = { exact = true, points = 40 }")
EXACT_TEST = ("test      = { points = 10, runs = 50 }", "test = { exact = true, points = 10 }")
SECONDS = ("{ points = 40, runs = 20 }", "{ seconds = 0.05, exact = false }")
PLAIN = ('\n[guarantee]\nnormaliser = "constant"\n', "")


def f(points: st.Points) -> np.ndarray:
    return (1 - np.exp(-2 * points.theta[:, 0])) ** 5


@pytest.fixture(scope="module")
def exactly(tmp_path_factory: pytest.TempPathFactory) -> st.Result:
    return small(EXACT, EXACT_TEST).run(tmp_path_factory.mktemp("exact") / "decay", workers=1)


def test_labels_are_the_closed_form_at_uniform_points_and_scores_have_no_noise(exactly: st.Result) -> None:
    answer = exactly.properties["gone"]
    assert isinstance(answer.calibrate, st.Truth)
    assert isinstance(answer.test, st.Truth)
    assert answer.calibrate.points.iid
    assert answer.calibrate.values == pytest.approx(f(answer.calibrate.points), abs=1e-10)
    assert answer.guarantee is not None
    assert answer.guarantee.calibration.runs == 0
    score = answer.scores["svi-gp"]
    error = answer.posteriors["svi-gp"].predict(answer.test.points).mean - answer.test.values
    assert score.rmse == pytest.approx(np.sqrt(np.mean(error**2)))
    assert score.log_score is None
    assert exactly.content["properties"]["gone"]["observations"]["test"]["exact"] is True


def test_the_result_is_the_same_when_the_labels_were_stopped_and_resumed(
    exactly: st.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second piece fails as Ctrl-C does; the first is kept, and not computed again."""
    real, calls = study_labels._timed, []

    def stopping(*arguments: object) -> object:
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(study_labels, "_timed", stopping)
    study = small(EXACT, EXACT_TEST)
    with pytest.raises(st.Interrupted):
        study.run(tmp_path / "decay", workers=1)
    assert list((tmp_path / "decay" / "stages").glob("calibrate*.checkpoint"))
    again = study.run(tmp_path / "decay", workers=1)
    assert len(calls) == 2 + 5 - 1 + 2  # five pieces of the calibration, the first of them once, and two of the test
    assert (again.folder / "result.json").read_bytes() == (exactly.folder / "result.json").read_bytes()
    assert not list((tmp_path / "decay" / "stages").glob("*.checkpoint"))


@pytest.mark.slow
def test_the_labels_are_the_same_side_by_side(
    exactly: st.Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study_labels, "_WORTHWHILE", 0.0)
    study = small(EXACT, EXACT_TEST)
    again = study.run(tmp_path / "decay", workers=2)
    assert (again.folder / "result.json").read_bytes() == (exactly.folder / "result.json").read_bytes()


@pytest.mark.parametrize("part", [EXACT, EXACT_TEST, (SECONDS[0], "{ exact = true, seconds = 1 }")])
def test_a_formula_that_cannot_be_computed_is_refused_at_its_line_when_the_study_is_read(part: tuple[str, str]) -> None:
    nested = ('"F[0, 2] A == 0"', '"F[0, 1] G[0, 1] A == 0"')
    with pytest.raises(st.TextError, match=r"exact: gone cannot be computed: .*does not nest") as caught:
        small(nested, part, *([] if part is EXACT_TEST else [PLAIN]))
    assert "use runs instead of exact = true" in str(caught.value)


@pytest.mark.parametrize("amount", ["points = 40", "seconds = 1"])
def test_too_many_states_are_said_before_anything_is_run(
    amount: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if three states were the most that a chain may have."""
    monkeypatch.setattr(study_budget.forecasts, "__kwdefaults__", {"max_states": 3})
    monkeypatch.setattr("sateen.engine.exact.exact.__kwdefaults__", {"max_states": 3, "progress": None})
    study = small((EXACT[0], f"calibrate = {{ exact = true, {amount} }}"), PLAIN)
    with pytest.raises(st.InputError, match=r"calibrate: gone cannot be computed: ") as caught:
        study.run(tmp_path / "decay", workers=1)
    assert "exact = true" in str(caught.value)
    assert not list((tmp_path / "decay").glob("stages/train*"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("points = 24, runs = 20", "points = 24, exact = true"), "learners learn from runs"),
        (("points = 10, runs = 50", "points = 10, runs = 50, exact = true"), "exact = true needs no runs"),
        (("points = 10, runs = 50", "points = 10"), "runs is missing"),
        (("points = 40, runs = 20", "points = 40, runs = 20, exact = true"), "how much may be computed"),
        (("points = 40, runs = 20", "points = 20, exact = true"), "20 held-out points are too few"),
        (("points = 40, runs = 20", "exact = true"), "how much may be computed"),
        (("points = 40, runs = 20", "seconds = 0"), "seconds"),
        (("points = 40, runs = 20", "seconds = inf"), "seconds is a finite number, not inf"),
        (("points = 40, runs = 20", "seconds = nan"), "seconds"),
        (("points = 40, runs = 20", 'seconds = "long"'), "'long' is not known here"),
        (("points = 40, runs = 20", "seconds = 1, budget = 5000"), "how much may it cost"),
    ],
)
def test_what_is_invalid_is_refused_at_its_line(change: tuple[str, str], message: str) -> None:
    with pytest.raises(st.InputError, match=message):
        small(change)


@pytest.mark.parametrize("setting", ["rank = 2", 'normaliser = "predictive"', 'method = "icp"'])
def test_settings_about_runs_are_refused_where_labels_are_computed(setting: str) -> None:
    with pytest.raises(st.InputError, match=r"runs|nothing to choose"):
        small(EXACT, ('normaliser = "constant"', setting))


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory) -> st.Result:
    return small(SECONDS).run(tmp_path_factory.mktemp("seconds") / "decay", workers=1)


class TestSeconds:
    def test_seconds_become_runs_once_at_the_pace_of_the_training(self, timed: st.Result) -> None:
        answer = timed.properties["gone"]
        bought = timed.content["properties"]["gone"]["budget"]
        pace = answer.train.seconds / 480
        assert bought["runs"] <= 0.05 / pace < 1.1 * bought["runs"] + 1
        assert answer.plan is not None
        assert answer.plan.budget <= bought["runs"]

    def test_they_are_not_decided_again(self, timed: st.Result, monkeypatch: pytest.MonkeyPatch) -> None:
        before = (timed.folder / "result.json").read_bytes()
        for file in timed.folder.glob("stages/guarantee*"):
            file.unlink()
        again = small(SECONDS).run(timed.folder, workers=1)
        assert again.stages["budget"] == "reused"
        assert again.stages["guarantee gone"] == "computed"
        assert (timed.folder / "result.json").read_bytes() == before

    def test_another_level_makes_no_new_runs_if_those_that_are_there_suffice(self, timed: st.Result) -> None:
        other = changed(SECONDS, ('normaliser = "constant"', 'normaliser = "constant"\nlevel = 0.8'))
        again = st.Study.parse(other).run(timed.folder, workers=1)
        assert {stage for stage, state in again.stages.items() if state == "computed"} == {
            "plan",
            "guarantee gone",
            "score gone",
        }
        assert again.properties["gone"].calibrate == timed.properties["gone"].calibrate
        assert again.properties["gone"].guarantee is not None
        assert again.properties["gone"].guarantee.level == pytest.approx(0.8)

    def test_a_level_that_needs_more_points_makes_new_runs_and_the_first_is_still_there(self, timed: st.Result) -> None:
        needed = changed(SECONDS, ('normaliser = "constant"', 'normaliser = "constant"\nlevel = 0.995'))
        again = st.Study.parse(needed).run(timed.folder, workers=1)
        assert again.stages["calibrate gone"] == "computed"
        assert again.properties["gone"].calibrate is not None
        assert len(again.properties["gone"].calibrate) >= 598
        back = small(SECONDS).run(timed.folder, workers=1)
        assert set(back.stages.values()) == {"reused"}


def test_a_blink_buys_the_runs_that_the_level_needs(tmp_path: Path) -> None:
    result = small(("{ points = 40, runs = 20 }", "{ seconds = 1e-9, exact = false }")).run(
        tmp_path / "decay", workers=1
    )
    budget = result.properties["gone"].budget
    assert budget is not None
    assert budget["sentence"] == "1e-09 s allow 116 runs, the fewest for the level: as asked"


def test_too_few_seconds_to_compute_say_how_many_would_do(tmp_path: Path) -> None:
    study = small(("{ points = 40, runs = 20 }", "{ exact = true, seconds = 1e-5 }"))
    with pytest.raises(st.InputError, match=r"calibrate: 1e-05 s compute the probability at 0 points") as caught:
        study.run(tmp_path / "decay", workers=1)
    said = str(caught.value)
    assert "the level needs 29" in said
    enough = float(said.split("give seconds = ")[1].split(",")[0])
    again = small(("{ points = 40, runs = 20 }", f"{{ exact = true, seconds = {10 * enough} }}"))
    assert isinstance(again.run(tmp_path / "decay", workers=1).properties["gone"].calibrate, st.Truth)


class TestTwoLevels:
    """Whichever level is first: what the other uses is what is there, and is what the result says."""

    @pytest.fixture(autouse=True)
    def enough_for_a_low_level_only(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """At 90 % seconds allow 575 computed points. At 99 % that is not enough to give up runs, for which 299 do."""

        def computed(bought: study_budget.Purchase, *_: object) -> study_budget.Purchase:
            return replace(bought, points=575, states=7, steps=20, why="the chain is small")

        monkeypatch.setattr(study_budget, "_computed", computed)

    @staticmethod
    def at(level: float, folder: Path, normaliser: str = "") -> st.Result:
        guarantee = f"\n[guarantee]\nlevel = {level}\n{normaliser}"
        return small(("{ points = 40, runs = 20 }", "{ seconds = 0.1 }"), (PLAIN[0], guarantee)).run(folder, workers=1)

    @staticmethod
    def repeated(result: st.Result, level: float, folder: Path, normaliser: str = "") -> st.Result:
        """The study with the line that the result names, in a new folder."""
        budget = result.properties["gone"].budget
        assert budget is not None
        line, _, more = budget["repeat"].partition(", and under [guarantee] ")
        more = more.replace(", ", "\n") or normaliser
        changes = (EXACT[0], line), (PLAIN[0], f"\n[guarantee]\nlevel = {level}\n{more}\n")
        return small(*changes).run(folder, workers=1)

    def test_computed_labels_need_no_plan_and_keep_the_normaliser(self, tmp_path: Path) -> None:
        low = self.at(0.9, tmp_path / "a").properties["gone"]
        assert low.budget is not None
        assert low.budget["sentence"] == "0.1 s allow the probability itself at 575 points: the chain is small"
        constant = 'normaliser = "constant"'
        result = self.at(0.99, tmp_path / "a", constant)
        high = result.properties["gone"]
        assert isinstance(low.calibrate, st.Truth)
        assert isinstance(high.calibrate, st.Truth)
        assert high.calibrate.fingerprint == low.calibrate.fingerprint
        assert high.plan is None
        assert high.guarantee is not None
        assert high.guarantee.calibration.normaliser == "constant"
        assert high.budget is not None
        assert (high.budget["exact"], high.budget["reused"]) == (True, True)
        assert high.budget["sentence"].endswith("from another level: the probability itself at 575 points")
        again = self.repeated(result, 0.99, tmp_path / "b", constant).properties["gone"]
        assert again.guarantee is not None
        assert again.guarantee.calibration == high.guarantee.calibration

    def test_runs_are_planned_as_they_are_there(self, tmp_path: Path) -> None:
        high = self.at(0.99, tmp_path / "a")
        result = self.at(0.9, tmp_path / "a")
        assert {stage for stage, state in result.stages.items() if state == "computed"} == {
            "plan",
            "guarantee gone",
            "score gone",
        }
        low, plan = result.properties["gone"], result.properties["gone"].plan
        assert plan is not None
        assert low.calibrate is not None
        assert low.guarantee is not None
        assert (plan.points, plan.runs, plan.level) == (len(low.calibrate), low.guarantee.calibration.runs, 0.9)
        assert low.guarantee.calibration.rank == plan.rank
        assert not math.isnan(plan.seconds)
        assert low.budget is not None
        assert (low.budget["exact"], low.budget["reused"]) == (False, True)
        for level, one in ((0.9, result), (0.99, high)):
            again = self.repeated(one, level, tmp_path / f"{level}").properties["gone"].guarantee
            first = one.properties["gone"].guarantee
            assert again is not None
            assert first is not None
            where = first.space.grid(9)
            assert np.array_equal(again.predict(where).lower, first.predict(where).lower)

    def test_no_measured_time_is_in_the_result(self, tmp_path: Path) -> None:
        result = self.at(0.9, tmp_path / "a")
        budget = result.content["properties"]["gone"]["budget"]
        assert budget["asked"] == 0.1
        assert not {"seconds", "point_seconds"} & set(budget)
        assert result.provenance["budget"]["seconds"] == 0.1


def test_as_long_as_the_training_is_enough_for_the_level_and_a_forecast_chooses(tmp_path: Path) -> None:
    study = small(("{ points = 40, runs = 20 }", '{ seconds = "training" }'), PLAIN)
    result = study.run(tmp_path / "decay", workers=1)
    bought = result.content["properties"]["gone"]["budget"]
    assert bought["states"] == 7  # six numbers of A, less the one that decides, and the two sinks
    assert bought["must"] is None
    answer = result.properties["gone"]
    assert isinstance(answer.calibrate, st.Truth) == (bought["points"] >= 4 * 29)
    assert answer.guarantee is not None
    read = json.loads((result.folder / "result.json").read_text())
    assert read["properties"]["gone"]["budget"] == bought


class TestExtremes:
    def test_a_property_that_no_run_satisfied_is_said_first_with_the_bound_that_holds(self, tmp_path: Path) -> None:
        study = small(('"F[0, 2] A == 0"', '"F[0, 2] A > 9"'))
        answer = study.run(tmp_path / "decay", workers=1).properties["gone"]
        runs = 24 * 20 + 40 * 20 + 10 * 50
        assert answer.extreme is not None
        assert (answer.extreme.which, answer.extreme.runs, answer.extreme.points) == ("none", runs, 74)
        assert answer.extreme.bound == pytest.approx(1 - 0.05 ** (1 / runs))
        assert answer.extreme.bound == pytest.approx(3 / runs, rel=0.01)
        assert answer.verdict.startswith(f"No run satisfied gone: 0 of {runs:,} at 74 points. Its mean probability")
        page = (tmp_path / "decay" / "report.html").read_text()
        assert page.index("No run satisfied gone") < page.index('data-draw="curve"')

    def test_so_is_one_that_every_run_satisfied_and_nothing_is_said_of_others(
        self, tmp_path: Path, exactly: st.Result
    ) -> None:
        study = small(('"F[0, 2] A == 0"', '"F[0, 2] A < 9"'), EXACT, EXACT_TEST)
        answer = study.run(tmp_path / "decay", workers=1).properties["gone"]
        assert answer.extreme is not None
        assert (answer.extreme.which, answer.extreme.runs) == ("all", 480)  # computed labels are no runs
        assert "at least 1 - 0.0062" in answer.verdict
        assert exactly.properties["gone"].extreme is None


def test_a_notebook_shows_the_same_widths_as_the_command_line_and_the_score_of_the_guarantee(
    exactly: st.Result,
) -> None:
    answer = exactly.properties["gone"]
    shown = answer._repr_html_()
    assert [kind for _, kind, _, _ in answer.scored()] == ["credible", "lift"]
    for _, _, score, wide in answer.scored():
        assert f"<td>{wide:.4f}</td>" in shown
        assert f"{score.uncertainty:.4f}" not in shown or f"{score.uncertainty:.4f}" == f"{wide:.4f}"


def test_one_mean_width_is_everywhere_and_no_interval_is_wider_than_at_most(exactly: st.Result) -> None:
    answer = exactly.properties["gone"]
    widths = answer.guaranteed_widths
    assert widths is not None
    assert answer.guarantee is not None
    assert f"{widths.mean:.3g} wide on average" in answer.verdict
    dense = answer.guarantee.predict(answer.guarantee.space.grid(5001)).width
    assert dense.max() <= widths.greatest * (1 + 1e-4)
    assert dense.mean() == pytest.approx(widths.mean, rel=0.01)
    page = (exactly.folder / "report.html").read_text()
    assert f"{widths.mean:.4f}" in page
    assert f"at most {widths.greatest:.3g} at the places searched" in page
    assert "Where the mean errs" in page
