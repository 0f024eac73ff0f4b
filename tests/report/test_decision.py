"""What a report says and draws of a decision: the numbers of the result, and a forecast that is called one."""

from __future__ import annotations

import numpy as np
import pytest

import sateen as st
from sateen.report.decision import _forecast, decision_data, decision_words, which_matter
from sateen.study.decided import DecisionResult
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
