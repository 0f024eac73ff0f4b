"""Tables from rows: every digit, mark and dash."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from sateen.assess.score import Score
from sateen.paper.published import RANDOM, TABLE_1, Figures
from sateen.paper.rows import Fit, Lift, Row, best_published, half_width, row
from sateen.paper.tables import Labels, configuration_tables, random_tables


def score(**changes: float) -> Score:
    usual = Score(
        points=100,
        level=0.95,
        rmse=0.0135,
        accuracy=0.99,
        wilson_accuracy=0.995,
        uncertainty=0.025,
        smc_width=0.0442,
        log_score=-3.0,
        rmse_truth=0.0067,
        coverage=0.94,
        coverage_slack=0.95,
    )
    return Score(**{**asdict(usual), **changes})


def fit(learner: str = "svi-gp", number: int = 1, seconds: float = 0.5, kind: str = "svi-gp", **changes: float) -> Fit:
    return Fit("a", learner, number, kind, score(**changes), seconds, 0.01, "converged")


LABELS = {"a": Labels("a", 0.0117, 0.949, 0.951, 0.04412, 0.044, None, 0.0)}
LIFT = Lift(0.9, 0.95, 100, 200, (0.95, 0.89), (0.03, 0.05), 0.25)


def test_a_row_is_the_mean_over_training_sets_and_the_shortest_of_the_times():
    found = row("a", "svi-gp", [fit(rmse=0.01, seconds=3.0), fit(number=2, rmse=0.02, seconds=2.0)])
    assert found.figures["rmse"] == pytest.approx(0.015)
    assert (found.fits, found.figures["seconds"]) == (2, 2.0)
    assert found.published == TABLE_1["a"].figures["svi-gp"]


def test_figures_against_the_truth_are_left_out_where_none_is_known():
    unknown = fit(rmse_truth=None, coverage=None, coverage_slack=None)
    assert not {"rmse_truth", "coverage", "coverage_slack"} & set(row("a", "svi-gp", [unknown]).figures)


def test_our_default_stands_beside_the_best_of_the_paper():
    best = best_published(TABLE_1["b"].figures)
    assert row("b", "default", [fit()]).published == best == Figures(0.0084, 0.926, 0.012)
    assert best_published({each: RANDOM[each][2] for each in RANDOM}).hours == 2


@pytest.mark.parametrize(
    ("changes", "worse"),
    [
        ({"rmse": 0.0138}, ()),
        ({"rmse": 0.01384}, ()),  # the same in the digits that the paper prints
        ({"rmse": 0.01386}, ("rmse",)),
        ({"accuracy": 0.988}, ()),
        ({"accuracy": 0.9878}, ("accuracy",)),
        ({"uncertainty": 0.0324}, ()),
        ({"uncertainty": 0.0326}, ("uncertainty",)),
    ],
)
def test_a_figure_is_worse_only_in_the_digits_that_the_paper_prints(changes, worse):
    assert row("a", "svi-gp", [fit(**changes)]).worse == worse


def test_what_the_paper_does_not_have_is_never_better():
    assert row("l", "ep-gp", [fit(rmse=0.9, accuracy=0.0, uncertainty=1.0)]).worse == ()


def as_text(tables):
    return "\n".join(table.text() for table in tables)


TABLE = """\
                    RMSE            Acc             Unc         Wilson  against f                 seconds
                    ours  paper    ours   paper    ours  paper     Acc       RMSE  cover  nearly    train  predict
a  EP-GP               -   1.41       -  100.00       -  0.044       -          -      -       -        -        -
   SVI-GP           1.35   1.38   99.00   98.80  0.040*  0.032   99.50       0.67   94.0    95.0      0.5     0.01
   sateen (svi-gp)  1.35   1.38  100.00  100.00   0.025  0.032   99.50       0.67   94.0    95.0      123     0.01
   test set         1.17          94.90          0.0441  0.044   95.10

Variant paper-data: the properties that the published figures come from.
RMSE in hundredths, Acc and coverage in percent; means over 1 training set, the shortest of the times.
For sateen the paper's figure is the best of its three methods, each figure by itself.
Nearly: an interval that misses f by 0.0005 counts too, for a share of runs may be 0 where f is only close to it.
Training times are CPU seconds; the first network of a process is compiled, which takes some of them.
For a test set, RMSE shows the noise of its labels, and Unc the mean width of their intervals;
Acc and Wilson Acc show what f itself would get, as an interval without width.
* worse than the paper's, in the digits that it prints.
a, EP-GP: EPGP needs 12 GB

The lift of sateen, 2 calibrations each, that promise 90 % coverage with confidence 95 %:
   points x runs   width  coverage  least   below     p
a      100 x 200  0.0400      92.0   89.0  1 of 2  0.25
"""


def test_the_table_of_configurations_is_exactly_this():
    rows = [
        row("a", "ep-gp", [], "EPGP needs 12 GB"),
        row("a", "svi-gp", [fit(uncertainty=0.04)]),
        row("a", "default", [fit("default", kind="svi-gp", accuracy=1.0, seconds=123.4)]),
    ]
    said = as_text(configuration_tables(rows, LABELS, {"a": LIFT}))
    assert said == TABLE


PRESETS = """\
The paper's methods: as published, and under each preset:
             RMSE                    Acc                     Unc                  seconds
            paper  as run  ours    paper  as run   ours    paper  as run   ours   as run  ours
a  SVI-GP    1.38       -  1.35    98.80       -  99.00    0.032       -  0.025        -   0.5
   SVI-BNN   1.43    1.40  1.35   100.00   99.00  99.00    0.097   0.098  0.025        7   0.5
"""


def test_presets_stand_side_by_side_with_what_was_published():
    theirs = row("a", "svi-bnn-as-run", [fit("svi-bnn-as-run", uncertainty=0.098, rmse=0.014, seconds=7.0)])
    rows = [row("a", "svi-gp", [fit()]), theirs, row("a", "svi-bnn", [fit("svi-bnn")]), row("a", "default", [fit()])]
    _, presets = configuration_tables(rows, LABELS, {})
    assert [line.split() for line in presets.text().splitlines()] == [line.split() for line in PRESETS.splitlines()]
    assert theirs.published == TABLE_1["a"].figures["svi-bnn"]
    assert len(configuration_tables(rows[2:], LABELS, {})) == 1


def test_sparse_vi_stands_beside_nothing_for_the_paper_has_no_figures_of_it():
    found = row("a", "sparse-vi", [fit("sparse-vi", rmse=0.5)])
    assert (found.published, found.worse) == (Figures(), ())
    table = configuration_tables([found], LABELS, {})[0].text()
    assert "sparse VI" in table
    assert "best of its three" not in table


def test_in_markdown_a_group_stands_before_its_columns_and_the_lift_is_a_table_of_its_own():
    rows = [row("a", "svi-gp", [fit(uncertainty=0.04)])]
    table, lift = (each.markdown().splitlines() for each in configuration_tables(rows, LABELS, {"a": LIFT}))
    assert table[0].startswith("|  |  | RMSE ours | RMSE paper | Acc ours | Acc paper |")
    assert table[1].startswith("| --- | --- | --: |")
    assert (
        table[2]
        == "| a | SVI-GP | 1.35 | 1.38 | 99.00 | 98.80 | 0.040* | 0.032 | 99.50 | 0.67 | 94.0 | 95.0 | 0.5 | 0.01 |"
    )
    assert {line.count("|") for line in table[:4]} == {15}
    assert "- `*` worse than the paper's, in the digits that it prints." in table
    assert lift[0].startswith("The lift of sateen, 2 calibrations")
    assert lift[2:4] == ["|  | points x runs | width | coverage | least | below | p |", "| --- " + "| --: " * 6 + "|"]


def test_a_truth_from_runs_is_said_with_its_error():
    rows, labels = [row("d", "svi-gp", [fit()])], {"d": Labels("d", 0.01, 0.95, 0.95, 0.04, 0.039, 5000, 0.0045)}
    said = as_text(configuration_tables(rows, labels, {}))
    assert "d: f is the share of 5,000 runs, with a standard error of 0.45 in the mean square" in said
    assert "The lift" not in said


def test_the_latex_of_the_configurations_is_exactly_this():
    rows = [row("a", "ep-gp", [], "too large"), row("a", "svi-gp", [fit(uncertainty=0.04)])]
    (table,) = configuration_tables(rows, LABELS, {})
    assert table.latex().splitlines() == [
        r"\begin{tabular}{ll|rr|rr|rr|r|rrr|rr}",
        r"    \toprule",
        r"     &  & \multicolumn{2}{c}{RMSE} & \multicolumn{2}{c}{Acc} & \multicolumn{2}{c}{Unc} & "
        r"\multicolumn{1}{c}{Wilson} & \multicolumn{3}{c}{against $f$} & \multicolumn{2}{c}{seconds} \\",
        r"     &  & ours & paper & ours & paper & ours & paper & Acc & RMSE & cover & nearly & train & predict \\",
        r"    \midrule",
        r"    a & EP-GP & -- & 1.41 & -- & 100.00 & -- & 0.044 & -- & -- & -- & -- & -- & -- \\",
        r"     & SVI-GP & 1.35 & 1.38 & 99.00 & 98.80 & 0.040\rlap{$^*$} & 0.032 & 99.50 & "
        r"0.67 & 94.0 & 95.0 & 0.5 & 0.01 \\",
        r"     & test set & 1.17 &  & 94.90 &  & 0.0441 & 0.044 & 95.10 &  &  &  &  &  \\",
        r"    \bottomrule",
        r"\end{tabular}",
    ]


def test_the_tables_of_random_networks_have_intervals_over_data_sets():
    rows = [
        row("2", "svi-gp", [fit(rmse=0.02, accuracy=0.9), fit(rmse=0.03, accuracy=0.9)]),
        row("2", "default", [fit("default", kind="laplace-net")]),
        row("8", "ep-gp", [], "too many points"),
    ]
    assert rows[0].figures["rmse"] == pytest.approx(0.025)
    lines = as_text(random_tables(rows)).splitlines()
    first = "2 SVI-GP 2.50 ± 6.35* 1.60 90.0 ± 0.0 67.0 0.025 ± 0.000* 0.019 0.044 99.5 0.67 94.0 95.0 0.5 5.0"
    assert " ".join(lines[2].split()) == first
    assert lines[3].split()[:6] == ["sateen", "(laplace-net)", "1.35", "1.60", "99.0", "96.0"]
    assert lines[4].split()[:3] == ["8", "EP-GP", "-"]
    assert any("SV-smMC, random_results.py), with hours on an A100." in line for line in lines)
    assert "The paper's EP-GP could not be run for more than 4 rates." in lines
    assert not any("has no networks" in line for line in lines)
    assert lines[-2:] == ["* worse than the paper's, in the digits that it prints.", "8, EP-GP: too many points"]
    latex = random_tables(rows)[0].latex()
    assert latex.count(r"\midrule") == 2
    assert r"2.50 $\pm$ 6.35\rlap{$^*$}" in latex
    body = [line for line in latex.splitlines() if line.endswith(r"\\") and "multicolumn" not in line]
    assert {line.count("&") for line in body} == {14}


def test_networks_of_a_size_that_the_paper_does_not_have_stand_alone():
    rows = [row("6", "svi-gp", [fit(rmse=0.9)]), row("6", "default", [fit("default", rmse=0.9)])]
    assert [each.published for each in rows] == [Figures(), Figures()]
    lines = as_text(random_tables(rows)).splitlines()
    assert " ".join(lines[2].split()) == "6 SVI-GP 90.00 - 99.0 - 0.025 - 0.044 99.5 0.67 94.0 95.0 0.5 -"
    assert lines[-1] == "The paper has no networks with 6 rates."
    assert not any(word in "\n".join(lines) for word in ("*", "A100", "best of its three"))


def test_published_figures_are_of_one_variant_and_not_shown_beside_the_other():
    rows = [row("a", "default", [fit("default")]), row("d", "default", [fit("default", rmse=0.9)], compared=False)]
    assert [each.worse for each in rows] == [("accuracy",), ()]
    lines = as_text(configuration_tables(rows, {}, {}, "as-stated")).splitlines()
    assert lines[2].split()[:6] == ["a", "sateen", "(svi-gp)", "1.35", "1.38", "99.00*"]
    assert lines[3].split()[:6] == ["d", "sateen", "(svi-gp)", "90.00", "-", "99.00"]
    assert lines[5:7] == [
        "Variant as-stated: the properties as the paper prints them; the published figures are of paper-data.",
        "For d these are other properties, so nothing is compared; a, b and c have the same in both.",
    ]
    assert "other properties" not in as_text(configuration_tables(rows[:1], {}, {}, "as-stated"))


def test_the_latex_of_a_learner_of_ones_own_is_escaped():
    (table,) = configuration_tables([row("a", "my_package:MyLearner", [fit("my_package:MyLearner")])], {}, {})
    assert r"    a & my\_package:MyLearner & 1.35 &" in table.latex()


def test_one_value_has_no_interval():
    assert half_width([0.5]) is None
    assert round(half_width([float(value) for value in range(9)]), 3) == 2.105  # 2.306 · 2.7386 / 3


def test_a_lift_counts_the_calibrations_that_cover_less_than_they_promise():
    assert (LIFT.failures, LIFT.coverage, LIFT.width) == (1, pytest.approx(0.92), pytest.approx(0.04))
    assert Lift(0.9, 0.95, 10, 10, (0.9, 1.0), (0.1, 0.1), 1.0).failures == 0


def test_rows_are_plain_data():
    import json

    content = row("a", "svi-gp", [fit(uncertainty=0.04)]).content()
    assert isinstance(Row(**{key: value for key, value in content.items() if key != "worse"}), Row)
    assert json.loads(json.dumps(content))["worse"] == ["uncertainty"]
