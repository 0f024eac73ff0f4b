"""Pictures of guarantees: every curve and band that is given is drawn, where its numbers are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student

from known_beliefs import SPACE, Waves, drawn_observations
from sateen.guarantee.guarantee import calibrate
from sateen.plot.figures import save
from sateen.plot.paper import bands_over_parameter, errors_by_runs, widths_by_runs

RUNS = (10, 50, 200)
RNG = np.random.default_rng(1)


def curve(height, trainings=4):
    return height * np.exp(0.1 * RNG.standard_normal((len(RUNS), trainings)))


WIDTHS = {
    learner: {
        "ICP": curve(0.2),
        "NICP": curve(0.3),
        "lift, planned": curve(0.1),
        "Bayes": curve(0.05),
        "gen": curve(0.01),
    }
    for learner in ("EP-GP", "SVI-GP", "SVI-BNN")
}


@pytest.mark.parametrize("draw", [widths_by_runs, errors_by_runs])
def test_a_curve_is_the_mean_over_trainings(draw):
    figure = draw(RUNS, WIDTHS)
    assert [axes.get_title(loc="left") for axes in figure.axes] == list(WIDTHS)
    for axes, curves in zip(figure.axes, WIDTHS.values(), strict=True):
        drawn = {tuple(line.get_ydata()) for line in axes.get_lines()}
        assert drawn == {tuple(rows.mean(axis=1)) for rows in curves.values()}
        assert len(axes.collections) == len(curves)  # the intervals around them


def test_one_training_has_no_interval():
    figure = widths_by_runs(RUNS, {"SVI-GP": {"ICP": curve(0.2, trainings=1)}})
    assert not figure.axes[0].collections


@pytest.mark.parametrize("trainings", [2, 5, 11, 30])
def test_the_band_of_a_mean_is_students_for_any_number_of_trainings(trainings):
    rows = curve(0.2, trainings)
    figure = widths_by_runs(RUNS, {"SVI-GP": {"ICP": rows}})
    (band,) = figure.axes[0].collections
    top = band.get_paths()[0].vertices[:, 1].max()
    means, errors = rows.mean(axis=1), rows.std(axis=1, ddof=1) / np.sqrt(trainings)
    assert top == pytest.approx((means + student.ppf(0.975, trainings - 1) * errors).max(), rel=1e-12)


def test_every_name_stands_in_the_legend_once():
    (legend,) = errors_by_runs(RUNS, WIDTHS).legends
    labels = [text.get_text() for text in legend.get_texts()]
    assert len(labels) == len(set(labels)) == 5
    assert "ICP, half-width" in labels


def test_bands_have_a_panel_for_each_number_of_runs(tmp_path):
    belief = Waves(0.03)
    truth = belief.functions(1, RNG)[0]
    line = SPACE.grid(50)
    predictions = {}
    for runs in (10, 20, 50, 100):
        held_out = drawn_observations(truth, SPACE.uniform(200, seed=runs), runs, RNG)
        made = {"ICP": {"method": "icp"}, "NICP": {"method": "nicp"}}
        predictions[runs] = {name: calibrate(belief, held_out, **how).predict(line) for name, how in made.items()}
        predictions[runs]["Bayes"] = belief.predict(line)
    figure = bands_over_parameter("SVI-GP", predictions, drawn_observations(truth, SPACE.grid(30), 1000, RNG))
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title(loc="left") for axes in shown] == [f"{runs} runs per point" for runs in predictions]
    for axes, bands in zip(shown, predictions.values(), strict=True):
        drawn = [tuple(line.get_ydata()) for line in axes.get_lines()]
        assert all(tuple(bands[name].upper) in drawn for name in ("ICP", "NICP"))
    assert [axes.get_xlabel() for axes in shown] == ["", "beta", "beta", "beta"]
    save(figure, tmp_path / "bands.png")
    assert (tmp_path / "bands.png").stat().st_size > 10_000
