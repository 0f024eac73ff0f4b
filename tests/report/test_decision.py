"""What a report says and draws of a decision: the numbers of the result, and a forecast that is called one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sateen as st
from sateen.cli.run import _lines as told_in_words
from sateen.report.decision import _forecast, decision_data, decision_words, which_matter
from sateen.report.shown import shown_posteriors
from sateen.report.words import facts, observed, verdict_lines
from sateen.study.decided import DecisionResult, _certified
from small_studies import DECIDE, WITHOUT, changed


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> st.Result:
    text = changed(("undecided = 0.08", "undecided = 0.04"), text=WITHOUT + DECIDE)
    return st.Study.parse(text).run(tmp_path_factory.mktemp("decided") / "result")


@pytest.fixture(scope="module")
def decision(result: st.Result) -> DecisionResult:
    found = result.properties["gone"].decision
    assert found is not None
    return found


def test_the_page_has_the_claim_the_box_and_the_forecast(result: st.Result, decision: DecisionResult) -> None:
    page = (result.folder / "report.html").read_text(encoding="utf-8")
    assert decision.certificate is not None
    assert str(decision.certificate) in page
    assert "it says nothing about one single parameter" in page
    assert "a forecast, not a measurement" in page
    assert "The largest box above 0.5" in page
    assert decision.box is not None
    assert f"{decision.box.ranges['k'].low:.5g}" in page


def test_the_words_have_the_volumes_and_the_rounds(decision: DecisionResult) -> None:
    words = decision_words(decision, 24)
    facts = {label: value for label, value, _ in words["facts"]}
    assert decision.regions is not None
    assert decision.refinement is not None
    assert facts["above 0.5"] == f"{100 * decision.regions.above:.1f} %"
    assert facts["undecided"] == f"{100 * decision.regions.undecided:.1f} %"
    assert facts["runs"] == f"{decision.refinement.runs:,}"


def test_the_picture_has_the_bands_that_decide_the_sides(decision: DecisionResult) -> None:
    drawn = decision_data(decision, 24)
    (axis,), (through,) = drawn["map"]["axes"], drawn["map"]["through"]
    table = through["tables"][0]
    assert decision.regions is not None
    sides = decision.regions.of({"k": axis["values"]})
    assert np.mean((np.array(table["lower"]) > 0.5) == (sides == "above")) > 0.99  # but for rounding at the border
    assert np.mean((np.array(table["upper"]) < 0.5) == (sides == "below")) > 0.99
    assert sum(drawn["runs"]["first"]) == 24
    assert sum(drawn["runs"]["runs"]) == int(decision.posterior.training.observations.trials.sum())


def test_a_forecast_meets_the_aim_where_the_power_law_does(decision: DecisionResult) -> None:
    done = decision.refinement
    assert done is not None
    ends = _forecast(done)
    assert ends is not None
    slow, fast = ends
    start, aim = done.rounds[0], done.goal.aim
    assert start.figure * (slow / start.runs) ** -0.3 == pytest.approx(aim)
    assert start.figure * (fast / start.runs) ** -0.46 == pytest.approx(aim)
    drawn = decision_data(decision, 24)["rounds"]["forecast"]
    assert drawn["runs"][0] == start.runs
    assert drawn["high"][-1] == pytest.approx(aim, rel=1e-4)


def test_over_one_parameter_nothing_is_said_of_which_matter(decision: DecisionResult) -> None:
    assert which_matter(decision, decision.posterior, seed=1)[1] is None


class TestWhichPosterior:
    """A refinement learned from more runs than the training, and the page says of which each figure is."""

    def test_what_was_found_is_what_the_refined_posterior_believes(
        self, result: st.Result, decision: DecisionResult
    ) -> None:
        own = result.properties["gone"]
        assert decision.refinement is not None
        runs, trained = decision.refinement.runs, int(own.train.trials.sum())
        shown = shown_posteriors(own)
        assert [one.label for one in shown] == ["svi-gp after refinement", "svi-gp before refinement"]
        assert [one.runs for one in shown] == [f"{runs:,} runs", f"{trained:,} runs"]
        assert shown[0].posterior is decision.posterior
        mean = decision.posterior.predict(own.predictions["svi-gp"].points).mean
        (_, found), *_ = (line for line in verdict_lines(own, shown) if line[0].startswith("Found"))
        assert f"{mean.min():.3g} (" in found
        assert f"{mean.max():.3g} (" in found
        labels = [label for label, _ in verdict_lines(own, shown)]
        assert labels[:3] == ["Asked:", f"Found after refinement, from {runs:,} runs:", "Not guaranteed:"]
        for _, _, rest in facts(own, shown):
            assert rest.endswith(f"after refinement, from {runs:,} runs")

    def test_the_page_says_of_which_posterior_its_figures_are(
        self, result: st.Result, decision: DecisionResult
    ) -> None:
        page = (result.folder / "report.html").read_text(encoding="utf-8")
        assert decision.refinement is not None
        runs = decision.refinement.runs
        assert f"svi-gp after refinement: from {runs:,} runs; svi-gp before refinement: from 480 runs." in page
        assert f"The maps below show svi-gp after refinement, from {runs:,} runs." in page

    def test_the_verdict_of_the_result_has_both_with_their_runs(self, result: st.Result) -> None:
        verdict = result.properties["gone"].verdict
        assert "Found from 480 training runs: " in verdict
        assert "\nFound after refinement, from " in verdict

    def test_terminal_and_notebook_show_what_was_found_once_as_the_page_does(self, result: st.Result) -> None:
        own = result.properties["gone"]
        for lines in (list(told_in_words(result)), own._repr_html_().splitlines()):
            text = "\n".join(lines)
            assert text.count("Found ") == 1
            assert "Found after refinement, from " in text
            assert text.index("Found after") < text.index("Not guaranteed:")

    def test_all_runs_are_listed_those_of_the_refinement_and_of_the_certificate_too(
        self, result: st.Result, decision: DecisionResult
    ) -> None:
        rows = {row[0]: row[1:] for row in observed(result.properties["gone"])}
        assert list(rows) == ["train", "refine", "certify"]
        assert decision.refinement is not None
        assert decision.certificate is not None
        assert rows["refine"][2] == f"{decision.refinement.runs - 480:,}"
        assert rows["certify"][2] == f"{decision.certificate.runs:,}"

    def test_guaranteed_intervals_stay_with_the_posterior_they_were_calibrated_for(self, tmp_path: Path) -> None:
        both = changed(("test      = { points = 10, runs = 50 }\n", "")) + DECIDE
        own = st.Study.parse(both).run(tmp_path / "both").properties["gone"]
        shown = shown_posteriors(own)
        assert [(one.label, one.guaranteed) for one in shown] == [
            ("svi-gp before refinement", True),
            ("svi-gp after refinement", False),
        ]
        labels = [label for label, _ in verdict_lines(own, shown)]
        assert labels[:3] == ["Asked:", "Found from 480 training runs:", "Guaranteed:"]
        assert labels[3].startswith("Found after refinement, from ")
        assert own.guaranteed_prediction is not None
        row = int(np.argmax(own.guaranteed_prediction.mean))
        ends = f"{own.guaranteed_prediction.lower[row]:.3g} to {own.guaranteed_prediction.upper[row]:.3g}"
        (_, _, rest) = list(facts(own, shown))[1]
        assert rest.startswith(ends)
        assert rest.endswith("before refinement, from 480 runs")


def test_the_sentences_about_a_certificate_are_short_and_say_what_it_does_not_prove(decision: DecisionResult) -> None:
    decided, certified, other = decision.sentence.splitlines()[-3:]
    assert decided.startswith("Decided: by its 95 % bands, svi-gp puts ")
    assert decision.certificate is not None
    assert certified.startswith("Certified with confidence 90 %: the probability is at least 0.5 in at least ")
    assert "of the region that svi-gp puts clearly above 0.5, which is " in certified
    assert "z = " not in decision.sentence
    assert "z = " in str(decision.certificate.claim)
    assert other == "Not certified: any one given parameter."
    assert all(len(line.split()) <= 40 for line in decision.sentence.splitlines())


def test_a_share_in_the_verdict_is_never_more_than_the_claim_proves(decision: DecisionResult) -> None:
    assert decision.certificate is not None
    assert decision.certificate.claim.level is not None
    said = float(decision.sentence.partition("in at least ")[2].partition(" %")[0]) / 100
    assert decision.certificate.claim.level - 1e-3 < said <= decision.certificate.claim.level


def test_a_certificate_that_holds_everywhere_says_so_with_what_it_assumes() -> None:
    decided = {"side": "above", "threshold": 0.5}
    claim = {"level": 1.0, "confidence": None, "by": "the probability is at least 0.5", "assuming": "f rises with k"}
    own = {"claim": claim, "holds": False, "volume": 0.3}
    assert list(_certified(own, decided, "svi-gp")) == [
        "Certified, though less than was asked for: the probability is at least 0.5 at every parameter of a region "
        "that is 30 % of the space, if f rises with k."
    ]
