"""What a report says of a property: the verdict, the numbers that stand out, what is fixed, and the table to save."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sateen as st
from sateen.core.prediction import drawn_uniformly
from sateen.report import words
from sateen.report.shown import shown_posteriors
from sateen.study.findings import bracketed, promise
from sateen.study.result import PropertyResult
from small_studies import changed, small

TWO = changed(
    ("A -> 0 @ mass_action(k)", "parameter spill = 0.5\nA -> 0 @ mass_action(k)\nA -> 0 @ mass_action(spill / 100)"),
    ("k = [0.1, 2]", 'k = { range = [0.1, 2], scale = "log" }\nspill = 0.25'),
    ('learners = ["svi-gp"]', 'learners = ["svi-gp", "ep-gp"]'),
)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> st.Result:
    return st.Study.parse(TWO).run(tmp_path_factory.mktemp("study"))


def test_the_sentences_of_the_verdict_begin_with_what_they_are_about(result: st.Result) -> None:
    own = result.properties["gone"]
    lines = list(words.verdict_lines(own, shown_posteriors(own)))
    assert [label for label, _ in lines] == ["Asked:", "Found from 480 training runs:", "Guaranteed:"]
    assert " ".join(f"{label} {rest}" for label, rest in lines) == " ".join(own.verdict.splitlines())


def test_a_formula_has_the_brackets_that_readers_need_and_is_the_same_formula() -> None:
    for text, told in (
        ("G[0, 3] A - B >= 0 & F[3, 6] A > 9", "(G[0, 3] A - B >= 0) & (F[3, 6] A > 9)"),
        ("A > 1 | G A > 2 | B > 3", "A > 1 | (G A > 2) | B > 3"),
        ("A > 1 -> F A > 2 & B > 3", "A > 1 -> (F A > 2 & B > 3)"),
        ("(A > 1) U[1, 2] (B > 3)", "(A > 1) U[1, 2] (B > 3)"),
        ("F[0, 2] A == 0", "F[0, 2] A == 0"),
    ):
        assert bracketed(st.stl(text).root) == told
        assert st.stl(told) == st.stl(text)


def test_the_sentences_of_a_verdict_stay_short(result: st.Result) -> None:
    for line in result.properties["gone"].verdict.splitlines():
        assert len(line.split()) <= 40


def test_the_lowest_and_the_highest_have_the_guaranteed_interval(result: st.Result) -> None:
    own = result.properties["gone"]
    shown = own.guaranteed_prediction
    assert shown is not None
    (label, value, rest), (other, _, _), *_ = words.facts(own, shown_posteriors(own))
    row = int(np.argmin(shown.mean))
    assert (label, other) == ("lowest", "highest")
    assert value == f"{shown.mean[row]:.3g}"
    assert rest.startswith(f"{shown.lower[row]:.3g} to {shown.upper[row]:.3g}, at k = ")


def test_parameters_that_do_not_vary_are_listed_with_where_their_values_come_from(
    result: st.Result, tmp_path: Path
) -> None:
    assert words.fixed_parameters(result) == [("spill", "0.25, fixed by the study")]
    default = st.Study.parse(TWO.replace("spill = 0.25\n", "")).run(tmp_path / "default")
    assert words.fixed_parameters(default) == [("spill", "0.5, the model's default")]
    page = (default.folder / "report.html").read_text(encoding="utf-8")
    assert "Fixed: spill = 0.5, the model&#39;s default." in page


def test_a_model_without_fixed_parameters_has_no_such_line(tmp_path: Path) -> None:
    bare = small().run(tmp_path / "bare")
    assert words.fixed_parameters(bare) == []
    assert "Fixed:" not in (bare.folder / "report.html").read_text(encoding="utf-8")


def test_the_table_has_every_prediction_at_every_point_and_the_claims(result: st.Result) -> None:
    own = result.properties["gone"]
    lines = words.predictions_csv(result, own, shown_posteriors(own)).splitlines()
    comments = [line for line in lines if line.startswith("#")]
    header, *rows = csv.reader(line for line in lines if not line.startswith("#"))
    assert header[:2] == ["k", "spill"]
    assert [name for name in header[2:] if name.endswith("mean")] == [
        "svi-gp guaranteed mean",
        "svi-gp credible mean",
        "ep-gp credible mean",
    ]
    assert len(rows) == 201
    assert {row[1] for row in rows} == {"0.25"}
    for label, prediction in (
        ("svi-gp guaranteed", own.guaranteed_prediction),
        ("ep-gp credible", own.predictions["ep-gp"]),
    ):
        assert prediction is not None
        for column in ("mean", "lower", "upper"):
            found = [float(row[header.index(f"{label} {column}")]) for row in rows]
            assert found == pytest.approx(getattr(prediction, column).tolist(), rel=1e-5, abs=1e-12)
        assert any(str(prediction.claim) in line for line in comments)


def claimed(**about: object) -> st.Prediction:
    """A prediction with a claim of this kind."""
    space = st.Space(k=(0, 1))
    given = {"target": "probability", "level": 0.9, "measure": drawn_uniformly(space)} | about
    return st.Prediction(space.grid(3), [0.5] * 3, [0.1] * 3, [0.4] * 3, [0.6] * 3, 0.9, st.Claim(**given))  # type: ignore[arg-type]


CONTAIN = "the intervals contain the true probability"
SURE = f"Guaranteed: with confidence 95 %, {CONTAIN}"
NOT_ONE = "Not guaranteed: any one given parameter"
OWN, FIXED = "drawn with a density of one's own", "the numbers of runs per point were fixed before the runs"
FRESH = "for a random parameter and calibration, the intervals contain the frequency among 50 fresh runs"
PROMISES: dict[str, dict[str, object]] = {
    f"{SURE} in at least 90 % of the space. {NOT_ONE}.": {"mode": "pac", "confidence": 0.95},
    f"{SURE} for at least 90 % of parameters {OWN}. {NOT_ONE}.": {"mode": "pac", "confidence": 0.95, "measure": OWN},
    f"{SURE} in at least 90 % of the space, if {FIXED}. {NOT_ONE}.": {"mode": "pac", "confidence": 0.95, "points": 30},
    f"Guaranteed: {FRESH} with probability 90 %. {NOT_ONE}, and the probability itself.": {
        "mode": "marginal",
        "target": "frequency",
        "runs": 50,
    },
    "Not guaranteed: the 90 % intervals are what svi-gp believes, and it is assumed that net rates are differences; "
    "runs held out for calibration would turn them into a guarantee.": {
        "mode": "credible",
        "by": "svi-gp",
        "assuming": "net rates are differences",
    },
}


@pytest.mark.parametrize("sentence", PROMISES)
def test_a_promise_says_what_is_guaranteed_and_what_is_not(sentence: str) -> None:
    assert promise(claimed(**PROMISES[sentence])) == sentence


def planned(tmp_path: Path, given: str) -> tuple[st.Result, PropertyResult]:
    changes = (
        ("calibrate = { points = 40, runs = 20 }", f"calibrate = {given}"),
        ('normaliser = "constant"', "level = 0.8"),
    )
    result = small(*changes).run(tmp_path / "planned")
    return result, result.properties["gone"]


def test_the_page_says_what_more_calibration_runs_would_give(tmp_path: Path) -> None:
    result, own = planned(tmp_path, "{ budget = 2000 }")
    assert own.plan is not None
    assert own.plan.more
    (name, runs, width, seconds), *more = words.calibration_offers(own)
    assert (name, runs, width) == ("this calibration", f"{own.plan.budget:,}", f"{own.plan.width:.3g}")
    assert float(seconds) > 0
    assert [row[1] for row in more] == [f"{offer.budget:,}" for offer in own.plan.more]
    assert words.budget_text(own) == ""
    assert "What more calibration runs would give" in (result.folder / "report.html").read_text(encoding="utf-8")


def test_the_page_says_what_seconds_bought(tmp_path: Path) -> None:
    result, own = planned(tmp_path, "{ seconds = 0.5, exact = true }")
    assert words.calibration_offers(own) == []
    assert own.calibrate is not None
    told = words.budget_text(own)
    assert f"the probability itself at {len(own.calibrate)} points" in told
    assert told.rstrip(".") in (result.folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("bought", [None, {}, {"why": "other keys"}, {"sentence": None}])
def test_a_budget_in_another_form_is_no_matter(result: st.Result, bought: dict[str, object] | None) -> None:
    assert words.budget_text(replace(result.properties["gone"], budget=bought)) == ""
