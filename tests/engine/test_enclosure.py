"""Bounds over boxes of parameters hold at every parameter of the box."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import bounded_chains
import sateen as st
from bounded_chains import SIR_FORMULA, SIR_SPACE, SPACE
from sateen.core.errors import ExactError, InputError
from sateen.engine.enclosure import Enclosure
from small_chains import flat_formulas

EXACT = 2e-10  # what `exact` and a bound over a point may differ by: the error of each


def exact_in(model, formula, space, low, high, count, seed):
    """f by `exact` at random points of a box, at its corners and at its centre."""
    low, high = np.array(low), np.array(high)
    inside = low + (high - low) * np.random.default_rng(seed).random((count, len(low)))
    corners = np.array(list(itertools.product(*zip(low, high, strict=True))))
    theta = np.clip(np.concatenate([inside, corners, [(low + high) / 2]]), low, high)
    return st.exact(model, formula, st.Points(theta, space))


@settings(deadline=None, max_examples=120)
@given(
    bounded_chains.parametric_models(),
    flat_formulas(unbounded=False),
    bounded_chains.boxes(),
    some.integers(0, 2**32),
)
def test_bounds_enclose_exact_values_for_every_kind_of_rate(model, formula, box, seed):
    low, high = box
    found = Enclosure.of(model, formula, SPACE).bounds([low], [high])
    truth = exact_in(model, formula, SPACE, low, high, 12, seed)
    assert found[0][0] <= truth.min() + EXACT
    assert truth.max() <= found[1][0] + EXACT


@settings(deadline=None, max_examples=60)
@given(bounded_chains.parametric_models(), flat_formulas(unbounded=False), bounded_chains.boxes())
def test_a_box_that_is_a_point_has_the_exact_value(model, formula, box):
    point, _ = box
    lower, upper = Enclosure.of(model, formula, SPACE).bounds([point], [point])
    truth = st.exact(model, formula, st.Points([point], SPACE))
    # A rate that is no sum of products is found by interval arithmetic, to some units in the last place.
    assert upper[0] - lower[0] <= 1e-9
    assert lower[0] - EXACT <= truth[0] <= upper[0] + EXACT


@settings(deadline=None, max_examples=60)
@given(bounded_chains.parametric_models(), flat_formulas(unbounded=False), bounded_chains.boxes())
def test_a_smaller_box_has_tighter_bounds(model, formula, box):
    low, high = map(np.array, box)
    enclosure = Enclosure.of(model, formula, SPACE)
    lower, upper = enclosure.bounds([low, low + (high - low) / 4], [high, low + (high - low) / 2])
    assert lower[0] <= lower[1] + 1e-9
    assert upper[1] <= upper[0] + 1e-9


def test_a_bound_does_not_depend_on_the_other_boxes_of_a_call():
    enclosure = Enclosure.of(bounded_chains.sir(20, 2), SIR_FORMULA, SIR_SPACE)
    low = SIR_SPACE.uniform(21, seed=1).theta * 0.9 + 0.1 * np.array([0.005, 0.005])
    high = np.minimum(low * 1.1, [0.3, 0.2])
    together = enclosure.bounds(low, high)
    alone = [enclosure.bounds(low[i : i + 1], high[i : i + 1]) for i in range(len(low))]
    assert np.array_equal(together[0], np.concatenate([each[0] for each in alone]))
    assert np.array_equal(together[1], np.concatenate([each[1] for each in alone]))


def test_bounds_of_small_boxes_are_near_the_extremes_on_a_grid():
    """Where the property is monotone in both rates at each state, bounds are the values at two corners."""
    model = st.Model.parse("""
        species X = 0
        arrive: 0 -> X @ lam when X < 9
        serve:  X -> 0 @ mu * min(X, 1)
    """)
    formula, space = st.stl("F[0, 10] X == 9"), st.Space(lam=(0.5, 2.0), mu=(0.5, 2.0))
    lower, upper = Enclosure.of(model, formula, space).bounds([[0.9, 1.0]], [[1.1, 1.3]])
    grid = np.stack(np.meshgrid(np.linspace(0.9, 1.1, 9), np.linspace(1.0, 1.3, 9)), axis=-1).reshape(-1, 2)
    truth = st.exact(model, formula, st.Points(grid, space))
    assert lower[0] == pytest.approx(truth.min(), abs=1e-9)
    assert upper[0] == pytest.approx(truth.max(), abs=1e-9)


def test_the_sir_of_the_paper_is_enclosed_over_a_fine_grid_of_each_box():
    model = bounded_chains.sir()
    enclosure = Enclosure.of(model, SIR_FORMULA, SIR_SPACE)
    for low, high in (([0.11, 0.045], [0.13, 0.055]), ([0.04, 0.03], [0.06, 0.05]), ([0.19, 0.09], [0.21, 0.11])):
        lower, upper = enclosure.bounds([low], [high])
        axes = [np.linspace(a, b, 6) for a, b in zip(low, high, strict=True)]
        grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
        truth = st.exact(model, SIR_FORMULA, st.Points(grid, SIR_SPACE))
        assert lower[0] <= truth.min() <= truth.max() <= upper[0]
        # They are no trivial bounds: over half-widths h in log rates they are at most some 2 * 2h apart.
        assert upper[0] - lower[0] <= 2 * np.log(np.array(high) / low).mean()


def test_parameters_that_do_not_matter_are_not_relevant():
    model = st.Model.parse("species A = 3, B = 1\nA -> 0 @ k * A\nB -> 0 @ j * B")
    enclosure = Enclosure.of(model, st.stl("F[0, 1] A == 0"), st.Space(k=(1, 2), j=(0.1, 1)))
    assert enclosure.relevant == ("k", "j")  # B is part of the chain's states, so j moves it
    fixed = Enclosure.of(model, st.stl("F[0, 0] A == 3"), st.Space(k=(1, 2), j=(0.1, 1)))
    assert fixed.relevant == ()
    assert [side.tolist() for side in fixed.bounds([[1, 0.1]], [[2, 1]])] == [[1.0], [1.0]]


def test_a_rate_that_may_be_zero_at_an_end_keeps_its_bounds():
    model = st.Model.parse("species A = 3\nA -> 0 @ k * A")
    space = st.Space(k=(0.0, 1.0))
    lower, upper = Enclosure.of(model, st.stl("F[0, 1] A == 0"), space).bounds([[0.0], [0.0]], [[0.0], [0.5]])
    assert (lower[0], upper[0]) == (0.0, pytest.approx(0.0, abs=1e-9))
    assert lower[1] == 0.0
    assert upper[1] == pytest.approx((1 - np.exp(-0.5)) ** 3, abs=1e-9)


def test_an_endless_operator_is_taken_where_the_graph_decides_it():
    model = st.Model.parse("species A = 3\nA -> 0 @ k * A")
    lower, upper = Enclosure.of(model, st.stl("F A == 0"), st.Space(k=(0.1, 1.0))).bounds([[0.1]], [[1.0]])
    assert (lower[0], upper[0]) == (pytest.approx(1.0, abs=1e-9), 1.0)


def test_events_that_read_no_varying_parameter_are_followed():
    model = st.Model.parse("species A = 3\nA -> 0 @ k * A\nevent refill: A := 3 when time >= 1")
    formula, space = st.stl("F[0, 2] A == 0"), st.Space(k=(0.5, 1.5))
    lower, upper = Enclosure.of(model, formula, space).bounds([[0.7]], [[0.9]])
    truth = st.exact(model, formula, st.Points(np.linspace(0.7, 0.9, 9)[:, None], space))
    assert lower[0] == pytest.approx(truth.min(), abs=1e-9)
    assert upper[0] == pytest.approx(truth.max(), abs=1e-9)


@pytest.mark.parametrize(
    ("text", "formula", "why"),
    [
        ("species A = k\nA -> 0 @ A", "F[0, 1] A == 0", "the initial count of A"),
        ("species A = 3\nA -> 0 @ A when A > k", "F[0, 1] A == 0", "the guard"),
        ("species A = 3\nA -> 0 @ A", "F[0, 1] A < k", "the formula"),
        ("species A = 3\nstep: A := floor(k) @ A", "F[0, 1] A == 0", "what step sets A to"),
        ("species A = 3\nA -> 0 @ A\nevent e: A := 1 when time >= k", "F[0, 1] A == 0", "the trigger of the event e"),
        ("species A = 3\nconstant c = 2 * k\nA -> 0 @ A when A > c", "F[0, 1] A == 0", "the guard"),
        ("species A = 3\nA -> 0 @ max(0, k - 3) * A", "F[0, 1] A == 0", "may under other parameters"),
        ("species A = 3\nA -> 0 @ A / (k - 2)^2", "F[0, 1] A == 0", "no finite bound"),
        ("species A = 3\n0 -> A @ k\nA -> 0 @ A", "F[0, 1] A == 0", "more than 1,000 states"),
        ("species A = 3\nA -> 0 @ k * A", "F[0, 1] G[0, 1] A == 0", "does not nest"),
        ("species A = 3\nA -> 0 @ k * A\n0 -> A @ 1 when A < 5", "(A < 5) U (A == 0)", "without an end"),
    ],
)
def test_what_cannot_be_bounded_is_refused_by_name_with_a_remedy(text, formula, why):
    with warnings.catch_warnings(action="ignore", category=st.ModelWarning):  # of a parameter that nothing reads
        model = st.Model.parse(f"parameter k = 1\n{text}")
    with pytest.raises(ExactError, match=why) as caught:
        Enclosure.of(model, st.stl(formula), st.Space(k=(1.0, 3.5)), max_states=1000)
    assert caught.value.remedy or "\n  " in str(caught.value)


def test_too_many_parameters_are_refused():
    names = [f"k{i}" for i in range(7)]
    model = st.Model.parse("species A = 3\n" + "\n".join(f"A -> 0 @ {name} * A" for name in names))
    with pytest.raises(ExactError, match="7 parameters"):
        Enclosure.of(model, st.stl("F[0, 1] A == 0"), st.Space(dict.fromkeys(names, (1, 2))))


def test_boxes_outside_the_space_or_upside_down_are_refused():
    enclosure = Enclosure.of(bounded_chains.sir(5, 1), SIR_FORMULA, SIR_SPACE)
    for low, high in (([0.1, 0.1], [0.4, 0.1]), ([0.2, 0.1], [0.1, 0.1]), ([float("nan"), 0.1], [0.1, 0.1])):
        with pytest.raises(InputError, match="box 0"):
            enclosure.bounds([low], [high])
    with pytest.raises(InputError, match="shape"):
        enclosure.bounds([0.1], [0.2])
