"""The paper's pictures: what is in them, by what they are given."""

from __future__ import annotations

import numpy as np
import pytest

import sateen as st
from sateen.core.prediction import Claim, Prediction
from sateen.plot.paper import curves, maps, scores_by_dimension

LINE = st.Space(beta=(0.1, 0.3))
PLANE = st.Space(beta=(0.1, 0.3), gamma=(1.0, 2.0))


def believed(points, mean):
    claim = Claim("probability", "credible", 0.95, "")
    return Prediction(points, mean, np.full(len(mean), 0.01), mean - 0.02, mean + 0.02, 0.95, claim)


def labels_of(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_curves_have_a_panel_for_each_method_with_band_truth_and_test_runs():
    points = LINE.grid(40)
    truth = points.theta[:, 0]
    shown = st.Observations.from_counts(LINE, {"beta": [0.1, 0.2, 0.3]}, satisfied=[90, 210, 0], trials=1000)
    figure = curves("(a)", {"EP-GP": believed(points, truth), "sateen": believed(points, truth)}, shown, points, truth)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["EP-GP", "sateen"]
    assert labels_of(figure) == [
        "credible interval, 95 %: a belief of its model",
        "truth",
        "posterior mean",
        "1,000 test runs, 95 % by Wilson",
    ]
    for axes in figure.axes:
        (bars,) = axes.containers
        lows = [segment[0, 1] for segment in bars[2][0].get_segments()]
        assert lows[2] == pytest.approx(0.0, abs=1e-12)  # a frequency of 0 has an interval too, and it is not below 0
        assert axes.get_xlabel() == "beta"


def test_maps_show_the_truth_and_every_method_on_one_scale_and_their_errors():
    points = PLANE.grid(5)
    truth = points.theta[:, 0] * points.theta[:, 1]
    off = truth + np.where(points.theta[:, 0] > 0.25, 0.1, 0.0)
    figure = maps("(c)", {"SVI-GP": believed(points, truth), "sateen": believed(points, off)}, points, truth)
    panels = [axes for axes in figure.axes if axes.collections and axes.get_title(loc="left")]
    titles = [axes.get_title(loc="left") for axes in panels]
    assert titles == ["truth", "SVI-GP", "sateen", "off by 0 (RMSE)", "off by 0.045 (RMSE)"]
    meshes = [axes.collections[0] for axes in panels]
    assert len({mesh.get_clim() for mesh in meshes[:3]}) == 1
    assert [mesh.get_clim() for mesh in meshes[3:]] == [pytest.approx((-0.1, 0.1))] * 2
    table = np.asarray(meshes[0].get_array()).reshape(5, 5)
    assert table[0, -1] == pytest.approx(0.3)  # beta goes to the right, gamma up
    assert table[-1, 0] == pytest.approx(0.2)


def test_dimensions_stand_side_by_side_with_the_published_figures():
    ours = {"SVI-GP": {2: (0.02, 0.004), 8: (0.03, None)}, "sateen": {2: (0.01, 0.002), 8: (0.02, 0.001)}}
    found = dict.fromkeys(("accuracy", "rmse", "uncertainty", "hours"), ours)
    known = {"rmse": {"SVI-BNN": {2: (0.028, None), 20: (0.029, None)}}}
    figure = scores_by_dimension(found, known, reference={2: (0.05, None), 8: (0.06, None)}, title="networks")
    assert figure.get_suptitle() == "networks"
    rmse, times = figure.axes[1], figure.axes[3]
    assert [text.get_text() for text in rmse.get_xticklabels()] == ["2", "8", "20"]
    lines = {line.get_label(): line for line in rmse.get_lines()}
    assert list(lines["SVI-BNN, the paper"].get_xdata()) == [0, 2]
    assert list(lines["sateen"].get_ydata()) == [0.01, 0.02]
    assert "intervals of the test frequencies (SMC)" in labels_of(figure)
    assert times.get_yscale() == "log"
    assert times.yaxis.get_major_formatter()(1 / 60, 0) == "1 min"
