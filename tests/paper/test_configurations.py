"""The ten configurations, their designs, and the published figures."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest

from sateen.core.errors import InputError
from sateen.core.space import Range, Space
from sateen.paper import published
from sateen.paper.cases.configurations import CONFIGURATIONS, Design, configuration
from sateen.paper.cases.models import VARIANTS
from sateen.paper.published import DIMENSIONS, METHODS, RANDOM, TABLE_1

LAYERS = {"k1": (0.1, 2), "k2": (0.1, 2), "k3": (0.1, 2)}
KP_KD = {"kp": (0.01, 0.2), "kd": (0.005, 0.1)}

# case, what varies, then N_t, M_t, N_v, M_v and the design, as the paper's tables have them
EXPECTED = {
    "a": ("sir", {"beta": (0.005, 0.3)}, 500, 50, 1000, 1000, "grid"),
    "b": ("sir", {"gamma": (0.005, 0.2)}, 700, 50, 1000, 1000, "grid"),
    "c": ("sir", {"beta": (0.005, 0.3), "gamma": (0.005, 0.2)}, 2500, 50, 400, 1000, "grid"),
    "d": ("lacz", {"k2": (10, 100_000)}, 500, 50, 400, 1000, "grid"),
    "e": ("lacz", {"k2": (10, 10_000), "k7": (0.45, 450)}, 2500, 50, 400, 1000, "grid"),
    "f": ("phosphorelay", {"k1": (0.1, 2)}, 500, 50, 1000, 1000, "grid"),
    "g": ("phosphorelay", KP_KD, 2500, 50, 400, 1000, "grid"),
    "h": ("phosphorelay", LAYERS, 8000, 20, 1000, 1000, "latin"),
    "i": ("phosphorelay", {**LAYERS, "k4": (0.5, 5)}, 10_000, 20, 4096, 1000, "latin"),
    "l": ("phosphorelay", {**LAYERS, "k4": (0.5, 5), **KP_KD}, 1_000_000, 20, 4096, 1000, "latin"),
}
each_configuration = pytest.mark.parametrize("name", EXPECTED)


def test_there_are_ten_configurations_in_the_order_of_the_paper() -> None:
    assert list(CONFIGURATIONS) == list(EXPECTED)


@each_configuration
def test_a_configuration_has_the_sizes_and_ranges_of_the_table(name: str) -> None:
    own = configuration(name)
    case, ranges, *sizes, design = EXPECTED[name]
    assert own.case == case
    assert own.space.ranges == {parameter: Range(*bounds) for parameter, bounds in ranges.items()}
    assert [own.train.points, own.train.runs, own.test.points, own.test.runs] == sizes
    assert own.train.kind == own.test.kind == design


def test_what_a_configuration_of_sir_does_not_vary_is_fixed_as_the_paper_says() -> None:
    assert dict(configuration("a").space.fixed) == {"gamma": 0.05}
    assert dict(configuration("b").space.fixed) == {"beta": 0.12}


@each_configuration
def test_training_points_and_test_points_have_the_shape_and_fill_the_ranges(name: str) -> None:
    own = configuration(name)
    for design, points in [(own.train, own.train.draw(own.space, 1)), (own.test, own.test.draw(own.space, 2))]:
        assert points.theta.shape == (design.points, own.space.dimension)
        assert points.design == design.kind
        assert own.space.contains(points.theta).all()
        for axis, bounds in enumerate(own.space.ranges.values()):
            gap = (bounds.high - bounds.low) / (design.points if design.kind == "latin" else np.inf)
            assert points.theta[:, axis].min() <= bounds.low + gap
            assert points.theta[:, axis].max() >= bounds.high - gap


@each_configuration
def test_every_point_gives_every_parameter_of_the_model_a_value(name: str) -> None:
    own = configuration(name)
    theta = own.test.draw(own.space, 1)[0]
    values = own.model.values(theta)
    assert theta.items() <= values.items()


def test_a_grid_is_linear_and_the_same_for_every_seed() -> None:
    d = configuration("d")
    assert d.train.draw(d.space) == d.train.draw(d.space, 1) == d.train.draw(d.space, 2)
    assert np.allclose(d.train.draw(d.space).theta[:, 0], np.linspace(10, 100_000, 500), rtol=1e-14)


def test_a_latin_hypercube_has_one_point_in_each_slice_and_follows_its_seed() -> None:
    h = configuration("h")
    points = h.train.draw(h.space, 1)
    assert points == h.train.draw(h.space, 1)
    assert points != h.train.draw(h.space, 2)
    slices = np.floor((points.theta - 0.1) / 1.9 * 8000 * (1 - 1e-12)).astype(int)
    assert all(np.array_equal(np.sort(column), np.arange(8000)) for column in slices.T)


def test_a_latin_hypercube_asks_for_a_seed() -> None:
    with pytest.raises(InputError, match="give it a seed"):
        configuration("h").train.draw(configuration("h").space)


@each_configuration
def test_a_configuration_begins_as_paper_data_and_changes_into_either_variant(name: str) -> None:
    own = configuration(name)
    assert own.reading == "paper-data"
    assert own.variant("paper-data") == own
    stated = own.variant("as-stated")
    assert stated.reading == "as-stated"
    assert stated.variant("paper-data") == own
    assert (stated.model, stated.train, stated.test, stated.published) == (
        own.model,
        own.train,
        own.test,
        own.published,
    )
    assert dict(own.formulas) == {variant: own.variant(variant).formula for variant in VARIANTS}
    assert hash(own) != hash(stated)


def test_only_k7_of_configuration_e_has_another_range_as_stated() -> None:
    for name, own in CONFIGURATIONS.items():
        stated = own.variant("as-stated").space
        assert (stated == own.space) == (name != "e")
    e = configuration("e").variant("as-stated")
    assert e.space.ranges["k7"] == Range(0.45, 4500)
    assert e.test.draw(e.space).theta[:, 1].max() == 4500


def test_the_formula_follows_the_variant() -> None:
    assert configuration("d").formula.end == 2100
    assert configuration("d").variant("as-stated").formula.end is None
    assert configuration("a").formula == configuration("a").variant("as-stated").formula


def test_unknown_names_are_refused() -> None:
    with pytest.raises(InputError, match="no configuration 'j'; there are a, b, c, d, e, f, g, h, i, l"):
        configuration("j")
    with pytest.raises(InputError, match=r"no configuration 'A'; did you mean a\?"):
        configuration("A")
    with pytest.raises(InputError, match=r"did you mean paper-data\?"):
        configuration("a").variant("paperdata")


def test_a_grid_needs_as_many_values_on_each_axis() -> None:
    assert Design("grid", 8000, 1).per_axis(3) == 20
    assert Design("grid", 4096, 1).per_axis(6) == 4
    with pytest.raises(InputError, match="500 points do not make a grid of dimension 2"):
        Design("grid", 500, 1).draw(Space(x=(0, 1), y=(0, 1)))


def test_a_design_of_no_kind_or_no_size_is_refused() -> None:
    with pytest.raises(InputError, match=r"'latn' is not a kind of design; did you mean latin\?"):
        Design("latn", 10, 1)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="not 0 points of 5 runs"):
        Design("grid", 0, 5)


# Published figures


@each_configuration
def test_every_configuration_carries_its_row_of_the_table(name: str) -> None:
    row = configuration(name).published
    assert row is TABLE_1[name]
    assert tuple(row.figures) == METHODS
    for method, figures in row.figures.items():
        values = (figures.rmse, figures.accuracy, figures.uncertainty)
        if (name, method) == ("l", "ep-gp"):
            assert values == (None, None, None)
        else:
            assert all(value is not None and 0 < value <= 1 for value in values)


@each_configuration
def test_the_test_set_simulated_again_has_the_published_width_within_five_percent(name: str) -> None:
    row = TABLE_1[name]
    assert row.simulated_width == pytest.approx(row.test_width, rel=0.05)


def test_the_paper_found_the_network_the_most_accurate_and_the_widest_of_the_two_variational_methods() -> None:
    for row in TABLE_1.values():
        accuracy = {method: figures.accuracy or 0 for method, figures in row.figures.items()}
        assert max(accuracy.values()) == accuracy["svi-bnn"]
        assert row.figures["svi-bnn"].uncertainty > row.figures["svi-gp"].uncertainty


def test_the_lowest_rmse_of_each_row_is_where_the_paper_prints_it_bold() -> None:
    best = {
        name: min((figures.rmse or np.inf, method) for method, figures in row.figures.items())[1]
        for name, row in TABLE_1.items()
    }
    gp, bnn = "svi-gp", "svi-bnn"
    assert best == {
        **{"a": gp, "b": gp, "c": bnn, "d": "ep-gp", "e": bnn},
        **{"f": bnn, "g": bnn, "h": bnn, "i": gp, "l": bnn},
    }


def test_the_series_on_random_networks_cover_every_dimension() -> None:
    assert tuple(RANDOM) == METHODS
    for method, series in RANDOM.items():
        assert tuple(series) == DIMENSIONS == (2, 3, 4, 8, 12, 16, 20)
        for rates, figures in series.items():
            known = {each is not None for each in asdict(figures).values()}
            assert known == {method != "ep-gp" or rates <= 4}
    assert [figures.hours for figures in RANDOM["svi-gp"].values()] == [5, 5, 6, 9, 14, 19, 21]
    assert [figures.hours for figures in RANDOM["ep-gp"].values()] == [2, 5, 9, None, None, None, None]


def test_the_means_over_random_networks_are_what_the_paper_says_of_them() -> None:
    def mean(method: str, figure: str) -> float:
        return float(np.mean([getattr(figures, figure) for figures in RANDOM[method].values()]))

    assert mean("svi-bnn", "accuracy") == pytest.approx(0.95, abs=0.01)
    assert mean("svi-gp", "accuracy") == pytest.approx(0.60, abs=0.03)
    assert mean("svi-bnn", "uncertainty") == pytest.approx(0.1, abs=0.02)


def test_published_data_says_where_it_comes_from() -> None:
    said = published.__doc__.replace("\n", " ")
    assert "Stochastic Variational Smoothed Model Checking" in said
    assert "no text has the numbers" in said
    assert "SV-smMC" in published.RANDOM_SOURCE
