"""Cells decide a threshold for every parameter, fill their box, and are checked by anyone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import bounded_chains
import sateen as st
from bounded_chains import SIR_FORMULA, SIR_SPACE
from sateen.core.errors import InputError
from sateen.decision.cells import check_cover, largest, threshold_cells
from sateen.decision.cover import fills_the_unit_box
from sateen.decision.subdivision import Lattice, Root
from sateen.engine.enclosure import Enclosure
from watchers import Watcher

SMALL = st.Model.parse("""
    species X = 0
    arrive: 0 -> X @ lam when X < 9
    serve:  X -> 0 @ mu * min(X, 1)
""")
SMALL_FORMULA = st.stl("F[0, 10] X == 9")
SMALL_SPACE = st.Space(lam=(0.5, 2.0), mu=st.Range(0.5, 2.0, scale="log"))


@pytest.fixture(scope="module")
def small() -> Enclosure:
    return Enclosure.of(SMALL, SMALL_FORMULA, SMALL_SPACE)


@pytest.fixture(scope="module")
def cover(small):
    return threshold_cells(small, 0.2, undecided=0.05)


def changed(cover, **tables):
    """A copy of a cover in which some entries are others."""
    return replace(cover, **tables)


def test_decided_cells_are_right_at_every_random_parameter(cover):
    theta = SMALL_SPACE.uniform(2000, seed=1).theta
    truth = st.exact(SMALL, SMALL_FORMULA, st.Points(theta, SMALL_SPACE))
    status = cover.of(theta)
    assert (truth[status > 0] >= 0.2).all()
    assert (truth[status < 0] <= 0.2).all()
    assert (status > 0).mean() == pytest.approx(cover.above, abs=0.06)
    assert (status == 0).mean() <= 0.1


def test_shares_add_up_to_one_and_the_goal_is_reached(cover):
    assert cover.reached
    assert cover.undecided <= 0.05
    assert cover.above + cover.below + cover.undecided == pytest.approx(1.0, abs=1e-12)
    assert "undecided" in cover.reason


def test_the_same_question_has_the_same_cells(small, cover):
    again = threshold_cells(small, 0.2, undecided=0.05)
    for name in ("corner_low", "corner_high", "low", "high", "status"):
        assert np.array_equal(getattr(cover, name), getattr(again, name))
    assert np.array_equal(cover.bound, again.bound, equal_nan=True)


def test_a_wrong_guess_costs_work_but_proves_nothing_false(small):
    misled = threshold_cells(small, 0.2, undecided=0.3, guess=lambda theta: np.full(len(theta), 0.9), cells=600)
    theta = SMALL_SPACE.uniform(500, seed=2).theta
    truth = st.exact(SMALL, SMALL_FORMULA, st.Points(theta, SMALL_SPACE))
    status = misled.of(theta)
    assert (truth[status > 0] >= 0.2).all()
    assert not (status < 0).any()


def test_limits_end_the_search_and_say_so(small):
    few = threshold_cells(small, 0.2, undecided=0.0001, guess=lambda theta: np.full(len(theta), 0.1), cells=20)
    assert not few.reached
    assert few.bounds_used <= 20
    assert "bounds are computed" in few.reason
    at_once = threshold_cells(small, 0.2, undecided=0.0001, seconds=0.0)
    assert "seconds are over" in at_once.reason
    assert at_once.undecided == 1.0
    assert check_cover(small, few).holds


def test_progress_tells_the_undecided_share(small):
    watcher = Watcher()
    threshold_cells(small, 0.2, undecided=0.2, progress=watcher)
    assert any("undecided" in note for note in watcher.notes)


def test_a_tolerance_decides_more(small, cover):
    tolerant = threshold_cells(small, 0.2, undecided=0.05, tolerance=0.02)
    assert tolerant.bounds_used < cover.bounds_used
    assert tolerant.bound[tolerant.status > 0].min() >= 0.18
    assert check_cover(small, tolerant).holds


def test_a_box_on_one_side_is_filled_completely(small):
    box = st.Space(lam=(1.5, 2.0), mu=st.Range(0.5, 0.7, scale="log"))
    filled = threshold_cells(small, 0.2, "above", box=box)
    assert filled.reached
    assert filled.above == 1.0
    assert check_cover(small, filled).holds


def test_a_box_that_reaches_the_other_side_has_a_counterexample(small):
    found = threshold_cells(small, 0.2, "above", box=st.Space(lam=(0.5, 2.0), mu=st.Range(0.5, 2.0, scale="log")))
    assert not found.reached
    truth = st.exact(SMALL, SMALL_FORMULA, dict(zip(SMALL_SPACE.names, found.counterexample, strict=True)))
    assert truth[0] < 0.2


def test_declared_monotonicity_needs_fewer_bounds_and_is_named(small, cover):
    declared = threshold_cells(small, 0.2, undecided=0.05, monotone={"lam": "+", "mu": "-"})
    assert declared.bounds_used <= cover.bounds_used
    assert declared.monotone == (("lam", "+"), ("mu", "-"))
    assert check_cover(small, declared).holds


def test_a_wrong_declaration_is_what_its_cells_rest_on(small):
    wrong = threshold_cells(small, 0.2, undecided=0.05, monotone={"lam": "-"}, cells=300)
    assert check_cover(small, wrong).holds  # under the assumption, which the certificate names
    assert not check_cover(small, changed(wrong, monotone=())).holds


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"threshold": 1.0}, "between 0 and 1"),
        ({"tolerance": -0.1}, "tolerance"),
        ({"monotone": {"lum": "+"}}, "lum"),
        ({"monotone": {"lam": "up"}}, "'up'"),
        ({"side": "above", "box": st.Space(lam=(0.1, 1.0), mu=st.Range(0.5, 1, scale="log"))}, "leaves"),
        ({"side": "above", "box": st.Space(lam=(0.5, 1.0), mu=(0.5, 1))}, "scale"),
        ({"side": "above", "box": st.Space(lam=(0.5, 1.0))}, "must be a box"),
        ({"box": SMALL_SPACE}, "side"),
    ],
)
def test_bad_input_is_refused_by_name(small, options, why):
    threshold = options.pop("threshold", 0.2)
    with pytest.raises(InputError, match=why):
        threshold_cells(small, threshold, **options)


def test_a_cover_that_was_not_touched_holds(small, cover):
    result = check_cover(small, cover)
    assert result.holds
    assert any("fill the box without overlap" in line for line in result.lines)


def test_every_kind_of_tampering_is_found(small, cover):
    def with_row(name, row, value):
        table = getattr(cover, name).copy()
        table[row] = value
        return changed(cover, **{name: table})

    undecided = int(np.flatnonzero(cover.status == 0)[0])
    decided = int(np.flatnonzero(cover.status > 0)[0])
    kept = np.arange(len(cover)) != decided
    rows = ("corner_low", "corner_high", "low", "high", "bound", "status")
    missing = changed(cover, **{name: getattr(cover, name)[kept] for name in rows})
    doubled = changed(cover, **{name: np.concatenate([getattr(cover, name)] * 2) for name in rows})
    grown = cover.corner_high.copy()
    grown[decided] = 1.0
    tampered = [
        changed(with_row("status", undecided, 1), bound=np.where(np.arange(len(cover)) == undecided, 0.3, cover.bound)),
        with_row("status", decided, -1),
        with_row("bound", decided, cover.bound[decided] + 1e-6),
        with_row("high", decided, cover.high[decided] * 0.999),
        with_row("corner_high", decided, 1.5),
        changed(cover, corner_high=grown),
        changed(cover, threshold=0.21),
        missing,
        doubled,
    ]
    for place, each in enumerate(tampered):
        assert not check_cover(small, each).holds, place


def test_filling_is_decided_exactly():
    low = np.array([[0.0, 0.0], [0.5, 0.0], [0.5, 0.5]])
    high = np.array([[0.5, 1.0], [1.0, 0.5], [1.0, 1.0]])
    assert fills_the_unit_box(low, high)
    assert not fills_the_unit_box(low[:2], high[:2])  # a gap
    assert not fills_the_unit_box(low, np.array([[0.5, 1.0], [1.0, 0.75], [1.0, 1.0]]))  # an overlap
    assert not fills_the_unit_box(low / 3, high / 3)  # no halves
    # Wheels cannot be halved, though they fill the box: no subdivision makes them.
    wheel_low = np.array([[0, 0], [0.75, 0], [0.25, 0.75], [0, 0.25], [0.25, 0.25]])
    wheel_high = np.array([[0.75, 0.25], [1, 0.75], [1, 1], [0.25, 1], [0.75, 0.75]])
    assert not fills_the_unit_box(wheel_low, wheel_high)


def test_a_lattice_guesses_an_analytic_function_well(small):
    lattice = Lattice.of(small, Root.of(small, None))
    theta = SMALL_SPACE.uniform(200, seed=3).theta
    truth = st.exact(SMALL, SMALL_FORMULA, st.Points(theta, SMALL_SPACE))
    assert np.abs(lattice(theta) - truth).max() <= 1e-3


def test_three_parameters_are_served():
    model = st.Model.parse("species A = 5\nA -> 0 @ a * A\n0 -> A @ b when A < 9\nA -> 0 @ c * A * (A - 1) / 2")
    formula, space = st.stl("F[0, 3] A == 0"), st.Space(a=(0.1, 2), b=(0.1, 2), c=(0.01, 1))
    cover = threshold_cells(Enclosure.of(model, formula, space), 0.5, undecided=0.3)
    theta = space.uniform(500, seed=6).theta
    truth = st.exact(model, formula, st.Points(theta, space))
    status = cover.of(theta)
    assert cover.reached
    assert (truth[status > 0] >= 0.5).all()
    assert (truth[status < 0] <= 0.5).all()


@pytest.mark.parametrize("minimise", [False, True])
def test_the_largest_value_lies_between_its_bounds(small, minimise):
    found = largest(small, gap=0.01, minimise=minimise)
    corner = {"lam": 0.5, "mu": 2.0} if minimise else {"lam": 2.0, "mu": 0.5}
    truth = st.exact(SMALL, SMALL_FORMULA, corner)[0]
    assert found.reached
    assert found.lower - 1e-9 <= truth <= found.upper + 1e-9
    assert found.upper - found.lower <= 0.01


def test_a_value_that_is_known_saves_bounds_and_limits_are_kept(small):
    truth = float(st.exact(SMALL, SMALL_FORMULA, {"lam": 2.0, "mu": 0.5})[0])
    informed, plain = largest(small, gap=0.01, best=truth), largest(small, gap=0.01)
    assert informed.bounds_used <= plain.bounds_used
    assert informed.upper <= truth + 0.01
    cut = largest(small, gap=1e-6, cells=50)
    assert not cut.reached
    assert cut.lower <= truth <= cut.upper


@pytest.mark.slow
def test_the_sir_of_the_paper_is_decided_but_for_five_percent_and_rightly_so():
    model = bounded_chains.sir()
    enclosure = Enclosure.of(model, SIR_FORMULA, SIR_SPACE)
    cover = threshold_cells(enclosure, 0.1, undecided=0.05)
    assert cover.reached
    # A point in each of the decided cells whose bounds are nearest to the threshold, and some anywhere.
    closest = np.argsort(np.where(cover.status != 0, np.abs(cover.bound - 0.1), np.inf))[:100]
    unit = np.random.default_rng(11).random((len(closest), 2))
    own = cover.low[closest] + unit * (cover.high - cover.low)[closest]
    theta = np.concatenate([own, SIR_SPACE.uniform(200, seed=11).theta])
    truth = st.exact(model, SIR_FORMULA, st.Points(theta, SIR_SPACE))
    status = cover.of(theta)
    assert (truth[status > 0] >= 0.1 - 1e-10).all()
    assert (truth[status < 0] <= 0.1 + 1e-10).all()
    for row in range(len(cover)):
        inside = ((cover.low[row] <= theta) & (theta <= cover.high[row])).all(axis=1)
        if cover.status[row] > 0:
            assert (truth[inside] >= cover.bound[row] - 1e-10).all()
        elif cover.status[row] < 0:
            assert (truth[inside] <= cover.bound[row] + 1e-10).all()
