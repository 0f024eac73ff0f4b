"""A Guarantee: what it predicts, where it refuses to, how it shows itself, and its file."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from sateen import SVIGP, InputError, Observations, Space, SpaceError, calibrate, load
from sateen.core import registry
from sateen.files.container import read_container, write_container
from sateen.guarantee.archive import KIND, VERSION, read_guarantee
from tabled import UNIT, TabledPosterior, read_table, tabled, uniform_counts

POSTERIOR = tabled([0.15, 0.78], [0.02, 0.05])
HELD_OUT = uniform_counts(lambda x: 0.1 + 0.7 * x, 60, 50, np.random.default_rng(1))
MIXED = uniform_counts(lambda x: 0.1 + 0.7 * x, 60, np.arange(60) + 10, np.random.default_rng(2))
PLACES = UNIT.grid(41)
KINDS = {
    "lift": {"normaliser": "predictive"},
    "marginal lift": {"normaliser": "constant", "confidence": None},
    "icp": {"method": "icp"},
    "nicp": {"method": "nicp", "normaliser": "quantile"},
    "chernoff": {"method": "chernoff"},
    "mixed chernoff": {"method": "chernoff", "normaliser": "posterior", "confidence": 0.7},
    "trivial": {"method": "icp", "level": 0.999, "allow_trivial": True},
}


def made(kind="lift", held_out=HELD_OUT):
    return calibrate(POSTERIOR, held_out, **KINDS[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_mean_and_deviation_are_the_posteriors_and_the_interval_lies_around_them(kind):
    prediction, believed = made(kind).predict(PLACES), POSTERIOR.predict(PLACES)
    assert prediction.mean.tolist() == believed.mean.tolist()
    assert prediction.std.tolist() == believed.std.tolist()
    assert ((prediction.lower >= 0) & (prediction.lower <= believed.mean)).all()
    assert ((believed.mean <= prediction.upper) & (prediction.upper <= 1)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_an_interval_carries_the_claim_and_its_level(kind):
    guarantee = made(kind)
    prediction = guarantee.predict({"x": 0.5})
    assert prediction.claim is guarantee.claim
    assert prediction.level == guarantee.level == guarantee.claim.level


def test_points_come_in_every_form_and_keep_their_design():
    guarantee = made()
    wanted = guarantee.predict({"x": [0.2, 0.4]})
    for form in (np.array([[0.2], [0.4]]), [{"x": 0.2}, {"x": 0.4}], UNIT.points({"x": [0.2, 0.4]})):
        assert guarantee.predict(form).upper.tolist() == wanted.upper.tolist()
    assert guarantee.predict(PLACES).points is PLACES
    assert len(guarantee.predict(np.empty((0, 1)))) == 0


@pytest.mark.parametrize(
    "where",
    [{"x": [0.5, 1.5]}, np.array([[0.5], [1.5]]), Space(x=(0.0, 2.0)).points({"x": [0.5, 1.5]})],
    ids=["mapping", "array", "points"],
)
def test_outside_the_space_nothing_is_claimed(where):
    with pytest.raises(SpaceError, match=r"x is 1.5 in row 1, outside its range \[0, 1\], where the guarantee claims"):
        made().predict(where)


def test_points_that_were_let_outside_their_space_are_refused_too():
    with pytest.raises(SpaceError, match=r"x is -1 in row 0, outside its range"):
        made().predict(UNIT.points({"x": -1.0}, extrapolate=True))


def test_a_level_cannot_be_asked_for_after_calibration():
    with pytest.raises(TypeError, match="level"):
        made().predict(PLACES, level=0.5)


def test_it_cannot_be_changed():
    guarantee = made()
    with pytest.raises(dataclasses.FrozenInstanceError):
        guarantee.method = "icp"
    with pytest.raises(dataclasses.FrozenInstanceError):
        guarantee.calibration.rank = 7


def test_it_shows_what_it_is():
    assert repr(made()) == (
        "<Guarantee lift of TabledPosterior over Space(x=(0, 1)): "
        "90 % probability with confidence 95 %, from 60 points>"
    )
    assert repr(made("icp")).endswith(": 90 % frequency, from 60 points>")
    html = made()._repr_html_()
    assert "at least 90 % of parameters drawn uniformly" in html
    assert "&lt;Guarantee lift" in html


def test_a_calibration_prints_as_one_line():
    assert str(made().calibration).startswith(
        "60 held-out points with 50 runs, normaliser predictive (given), threshold"
    )
    assert "(rank 1), η 0." in str(made().calibration)
    assert "margin 0.1921" in str(made("chernoff").calibration)
    assert "threshold inf, too few points for the level" in str(made("trivial").calibration)
    assert "60 held-out points with different numbers of runs" in str(made("lift", MIXED).calibration)
    each = str(made("mixed chernoff", MIXED).calibration)
    assert "normaliser posterior + 0." in each
    assert each.endswith(", each point's margin in its score")


def test_it_draws_itself_over_one_parameter():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    assert made().plot(ax=axes) is axes
    assert axes.lines
    assert axes.collections


def test_three_parameters_have_no_picture():
    space = Space(x=(0.0, 1.0), y=(0.0, 1.0), z=(0.0, 1.0))
    training = Observations(space.uniform(5, seed=1), 1, 0, 5)
    guarantee = calibrate(
        tabled(0.2, 0.01, training=training), Observations(space.uniform(50, seed=2), 1, 0, 5), method="icp"
    )
    with pytest.raises(InputError, match="a picture shows one or two parameters, and here 3 vary"):
        guarantee.plot()


@pytest.fixture
def tables_in_files(monkeypatch):
    """Files keep tables as they keep learned posteriors."""
    monkeypatch.setitem(registry._PROVIDERS, "posterior parts", "tabled:table_parts")


def saved(guarantee, tmp_path):
    file = tmp_path / "guarantee.safetensors"
    guarantee.save(file)
    return file


@pytest.mark.usefixtures("tables_in_files")
@pytest.mark.parametrize(
    ("kind", "held_out"),
    [*((kind, HELD_OUT) for kind in KINDS), ("lift", MIXED), ("marginal lift", MIXED), ("mixed chernoff", MIXED)],
    ids=[*KINDS, "mixed lift", "mixed marginal lift", "mixed chernoff, mixed"],
)
def test_a_file_is_read_back_as_the_same_guarantee(kind, held_out, tmp_path):
    guarantee = made(kind, held_out)
    found, version, content, arrays = read_container(saved(guarantee, tmp_path))
    assert (found, version) == (KIND, VERSION)
    again = read_guarantee(content, arrays, read_table)
    assert isinstance(again.posterior, TabledPosterior)
    assert (again.method, again.claim, again.calibration) == (guarantee.method, guarantee.claim, guarantee.calibration)
    one, other = guarantee.predict(PLACES), again.predict(PLACES)
    for name in ("mean", "std", "lower", "upper"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()


def test_a_guarantee_of_a_learned_posterior_is_loaded_as_it_was(tmp_path):
    learned = SVIGP().fit(uniform_counts(lambda x: 0.1 + 0.7 * x, 60, 50, np.random.default_rng(3)), seed=4)
    guarantee = calibrate(learned, HELD_OUT)
    assert guarantee.calibration.why.startswith("by cross-validation")
    again = load(saved(guarantee, tmp_path))
    assert (again.claim, again.calibration) == (guarantee.claim, guarantee.calibration)
    assert again.posterior.training.fingerprint == learned.training.fingerprint
    one, other = guarantee.predict(PLACES), again.predict(PLACES)
    assert one.lower.tolist() == other.lower.tolist()
    assert one.upper.tolist() == other.upper.tolist()


def test_a_density_cannot_be_saved_and_the_refusal_says_what_can():
    guarantee = calibrate(POSTERIOR, HELD_OUT, method="icp", density=lambda t: 1 + t[:, 0])
    with pytest.raises(InputError, match=r"rests on a density.*a file cannot hold functions\n  save the posterior and"):
        guarantee.save("never-written.safetensors")


@pytest.mark.usefixtures("tables_in_files")
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda content: content.pop("claim"), "'claim' is missing"),
        (lambda content: content["calibration"].pop("points"), "points"),
        (lambda content: content["calibration"].update(colour="red"), "colour"),
        (lambda content: content.update(method="magic"), "no magic has the threshold"),
        (lambda content: content["calibration"].update(normaliser="magic"), "and magic"),
        (lambda content: content["claim"].update(target="fortune"), "fortune"),
        (lambda content: content["claim"].update(target="frequency"), "no lift is about the frequency"),
        (lambda content: content["claim"].update(level="0.9"), "level"),
        (lambda content: content["claim"].update(level=0.0), "level is a number between 0 and 1"),
        (lambda content: content["claim"].update(level=2**63), "level is a number between 0 and 1"),
        (lambda content: content["claim"].update(confidence=[0.95]), "confidence"),
        (lambda content: content["claim"].update(confidence=1.5), "confidence is a number between 0 and 1"),
        (lambda content: content["calibration"].update(eta="0.1"), "eta"),
        (lambda content: content["calibration"].update(normaliser_runs=0), "no lift is about"),
        (lambda content: content["calibration"].update(points="many"), "points"),
        (lambda content: content["calibration"].update(floor=-0.1), "no lift is about"),
        (lambda content: content["calibration"].update(margin="wide"), "margin"),
        (lambda content: content.update(method=["lift"]), "expected `str`"),
        (lambda content: content.update(posterior=3), "not subscriptable"),
    ],
)
def test_a_file_that_is_invalid_is_refused(change, said, tmp_path):
    _, _, content, arrays = read_container(saved(made(), tmp_path))
    change(content)
    write_container(tmp_path / "changed.safetensors", KIND, VERSION, content, arrays)
    _, _, content, arrays = read_container(tmp_path / "changed.safetensors")
    with pytest.raises(InputError, match=rf"^the file holds no valid guarantee: .*{said}"):
        read_guarantee(content, arrays, read_table)


@pytest.mark.usefixtures("tables_in_files")
@pytest.mark.parametrize("threshold", [np.array([-1.0]), np.array([np.nan]), np.array([1.0, 2.0]), np.array([])])
def test_a_threshold_that_is_none_is_refused(threshold, tmp_path):
    _, _, content, arrays = read_container(saved(made(), tmp_path))
    with pytest.raises(InputError, match="no valid guarantee"):
        read_guarantee(content, {**arrays, "threshold": threshold}, read_table)
