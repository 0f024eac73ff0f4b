"""The numbers behind a report's pictures are the posterior's own."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import sateen as st
from known_beliefs import Waves
from known_functions import LINE, PLANE, observed
from sateen.core.prediction import Claim, Prediction, drawn_uniformly
from sateen.report.data import function_data, interval_label, parameters_that_matter, run_data, short

CUBE = st.Space(a=(0, 1), b=st.Range(0.1, 10, scale="log"), c=(-1, 1), d=(0, 2), fixed=3.0)


@dataclass(frozen=True)
class Plain:
    """A belief in f = (1 + a·b' - c²) / 4 of unit inputs, where the last parameter has no say."""

    space: st.Space

    def predict(self, points: object, *, level: float = 0.95) -> Prediction:
        where = points if isinstance(points, st.Points) else self.space.points(points)
        unit = self.space.to_unit(where.theta)
        mean = (2 + unit[:, 0] * unit[:, 1] - unit[:, 2] ** 2) / 4
        claim = Claim("probability", "credible", level, drawn_uniformly(self.space))
        lower, upper = np.clip(mean - 0.1 * level, 0, 1), np.clip(mean + 0.1 * level, 0, 1)
        return Prediction(where, mean, np.full(len(where), 0.05), lower, upper, level, claim)

    def gradient(self, points: st.Points) -> Any:
        unit = self.space.to_unit(points.theta)
        return np.stack([np.full(len(unit), 1.0), np.full(len(unit), -2.0), -unit[:, 2], np.zeros(len(unit))], axis=1)

    def importance(self) -> dict[str, float]:
        return {"c": 0.6, "a": 0.5, "b": 0.4, "d": 0.0}


def test_a_curve_is_the_prediction_on_a_grid_with_the_frequencies_of_the_training() -> None:
    train = observed(LINE, 30, 20, seed=1)
    posterior = st.SVIGP(inducing=8).fit(train, seed=2)
    told = function_data({"svi-gp": posterior}, None, None, train)
    assert told["kind"] == "curve"
    ((axis,), (band,)) = told["axes"], told["bands"]
    predicted = posterior.predict(LINE.grid(201))
    assert axis["values"] == pytest.approx(predicted.points.theta[:, 0], rel=1e-5)
    assert not axis["log"]
    for name in ("mean", "lower", "upper"):
        assert band[name] == pytest.approx(getattr(predicted, name), abs=6e-5)
    assert (band["learner"], band["interval"], band["guaranteed"]) == ("svi-gp", "95 % credible", False)
    assert told["seen"]["low"] == pytest.approx(train.frequency, abs=6e-5)
    assert told["seen"]["theta"]["beta"] == pytest.approx(train.theta[:, 0], rel=1e-5)


def test_on_a_map_the_second_parameter_varies_fastest() -> None:
    train = observed(PLANE, 40, 20, seed=1)
    posterior = st.SVIGP(inducing=8).fit(train, seed=2)
    told = function_data({"svi-gp": posterior}, None, None, train)
    across, up = told["axes"]
    assert (told["kind"], across["log"], up["log"]) == ("maps", False, True)
    row, size = 5, len(up["values"])
    where = {"beta": across["values"][row], "gamma": up["values"][7]}
    assert told["bands"][0]["mean"][row * size + 7] == pytest.approx(posterior.predict(where).mean[0], abs=1e-3)


def test_guaranteed_intervals_come_first_and_are_called_so() -> None:
    belief = Waves(0.05)
    held_out = st.Observations(belief.space.uniform(200, seed=1), [10] * 200, 0, [20] * 200)
    guarantee = st.calibrate(belief, held_out, method="icp", level=0.8, confidence=None)
    told = function_data({"waves": belief}, guarantee, "waves", held_out)
    assert [band["guaranteed"] for band in told["bands"]] == [True, False]
    assert told["bands"][0]["interval"] == "80 % guaranteed, for frequencies of 20 runs"


def test_slices_are_predictions_where_two_parameters_move_and_the_others_stay() -> None:
    belief = Plain(CUBE)
    train = st.Observations.from_counts(CUBE, CUBE.uniform(5, seed=1), [1] * 5, [2] * 5)
    told = function_data({"plain": belief}, None, None, train)
    names = [axis["name"] for axis in told["axes"]]
    assert names == ["c", "a", "b", "d"]
    assert [one["words"] for one in told["through"]] == [
        "the middle of the space",
        "where it is lowest",
        "where it is highest",
    ]
    values = {axis["name"]: axis["values"] for axis in told["axes"]}
    for through in told["through"]:
        assert through["values"].keys() == set(CUBE.names)
        for rank, (first, second) in enumerate(combinations(names, 2)):
            theta = {name: values[name][place] for name, place in through["at"].items()}
            theta |= {first: values[first][3], second: values[second][17]}
            table = through["credible"]["plain"][rank]
            assert table["mean"][3 * 21 + 17] == pytest.approx(belief.predict(theta).mean[0], abs=1e-3)
            assert table["upper"][3 * 21 + 17] == pytest.approx(belief.predict(theta).upper[0], abs=1e-3)


def test_slices_have_every_learner_the_guaranteed_one_first_and_all_intervals_at_its_level() -> None:
    bold, belief = Plain(CUBE), Plain(CUBE)
    held_out = st.Observations(CUBE.uniform(200, seed=1), [10] * 200, 0, [20] * 200)
    guarantee = st.calibrate(belief, held_out, method="icp", level=0.8, confidence=None)
    told = function_data({"bold": bold, "plain": belief}, guarantee, "plain", held_out)
    assert told["learners"] == ["plain", "bold"]
    assert told["intervals"] == {
        "credible": "80 % credible",
        "guaranteed": interval_label(guarantee.predict(CUBE.grid(2))),
    }
    for through in told["through"]:
        assert set(through["credible"]) == {"plain", "bold"}
        assert len(through["guaranteed"]) == 6
        table = through["credible"]["bold"][0]
        assert np.ptp(table["upper"]) > 0
        widths = np.subtract(table["upper"], table["lower"])
        assert widths.max() == pytest.approx(0.16, abs=2e-4)  # 0.2 times the level


def test_of_many_parameters_the_six_that_matter_most_are_drawn_and_the_others_named() -> None:
    space = st.Space({f"k{n}": (0, 1) for n in range(8)})

    class Many(Plain):
        def importance(self) -> dict[str, float]:
            return {f"k{n}": 1.0 + n for n in reversed(range(8))}

    train = st.Observations.from_counts(space, space.uniform(5, seed=1), [1] * 5, [2] * 5)
    told = function_data({"many": Many(space)}, None, None, train)
    assert [axis["name"] for axis in told["axes"]] == ["k7", "k6", "k5", "k4", "k3", "k2"]
    assert told["left_out"] == ["k0", "k1"]
    assert len(told["through"][0]["credible"]["many"]) == 15


def test_parameters_are_ranked_and_it_is_said_which_way_they_push() -> None:
    total = {"a": 0.5, "b": 0.4, "c": 0.6, "d": 0.003}
    ends = {kind: {name: value / 2 for name, value in total.items()} for kind in ("first", "total", "elasticity")}
    claim = Claim("region", "credible", 0.95, "", by="each number lies in its interval")
    found = st.Sensitivity(CUBE, total, total, total, ends, ends, 0.95, claim, "plain", 1, 64, 64)  # type: ignore[arg-type]
    told = parameters_that_matter(Plain(CUBE), found)  # type: ignore[arg-type]
    assert [(one["name"], one["way"]) for one in told] == [
        ("c", "rises and falls"),
        ("a", "rises with it"),
        ("b", "falls with it"),
        ("d", "—"),
    ]
    assert [one["total"]["share"] for one in told] == pytest.approx([60.0, 50.0, 40.0, 0.3])
    assert told[0]["first"] == {"text": "0.600", "ends": "0.300 to 0.300", "share": 60.0, "low": 30.0, "high": 30.0}


def test_a_point_with_undecided_runs_has_a_range_of_frequencies_and_one_without_runs_is_left_out() -> None:
    points = LINE.points({"beta": [0.1, 0.2, 0.3]})
    train = st.Observations(points, [1, 2, 0], [0, 3, 0], [10, 10, 0])
    seen = function_data({"waves": Waves(0.05, space=LINE)}, None, None, train)["seen"]
    assert (seen["low"], seen["high"], seen["runs"], seen["all"]) == ([0.1, 0.2], [0.1, 0.5], [10, 10], 3)


def test_numbers_are_short_and_labels_say_what_an_interval_is() -> None:
    assert short([0.123456, 1 / 3]) == [0.1235, 0.3333]
    assert interval_label(Waves(0.05).predict({"beta": 0.5}, level=0.9)) == "90 % credible"


def test_a_short_run_is_told_jump_by_jump_up_to_its_end() -> None:
    path = st.Path(times=[0, 1, 1, 2.5], states=[[5, 0], [4, 1], [3, 2], [2, 3]], species=("A", "B"), end=4.0)
    told = run_data(path, [("A > 3", 0, [(0.0, 1.0)], [(4.0, np.inf), (5.0, 6.0)])], {"A"}, "One run.")
    assert told["times"] == [0, 1, 2.5, 4]
    assert told["states"] == {"A": [5, 3, 2, 2], "B": [0, 2, 3, 3]}
    assert told["named"] == ["A"]
    assert told["lanes"] == [{"label": "A > 3", "holds": [(0.0, 1.0)], "unknown": [(4.0, 4.0)]}]
    assert told["words"] == "One run."


def test_a_long_run_is_told_by_its_state_at_evenly_spread_times_and_the_words_say_so() -> None:
    times = np.arange(5000.0)
    path = st.Path(times=times, states=times[:, None], species=("A",), end=5000.0)
    told = run_data(path, [], (), "One run.")
    assert told["words"] == "One run. Drawn at 1,200 of 5,000 instants."
    assert len(told["times"]) == len(told["states"]["A"]) == 1201
    late = np.array(told["times"]) - np.array(told["states"]["A"])  # since the jump to this state
    assert (late > -0.01).all()  # times are told with six digits
    assert (late <= 1.0).all()
