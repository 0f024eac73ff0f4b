"""A guarantee from runs is never a point, and never surer than the posterior: the case that showed it, and the law."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

import sateen as st
from sateen.core.prediction import Claim, Prediction
from sateen.guarantee.lift import lifted
from sateen.guarantee.normaliser import joined
from tabled import UNIT, tabled

SPACE = st.Space(k=(0, 1))
CLAIM = Claim("probability", "credible", 0.9, "")


def believed(mean: float, low: float, high: float) -> Prediction:
    return Prediction(SPACE.points({"k": 0.5}), [mean], [0.03], [low], [high], 0.9, CLAIM)


def test_where_no_count_is_possible_the_lift_alone_is_a_point():
    """0.0041 ± 0.0005 holds no multiple of 1/1000, and bounds that miss with probability 0.9 cross."""
    lower, upper = lifted(np.array([0.0045]), np.array([0.0003]), 1000, 0.9)
    assert lower[0] == upper[0] == 0.0045


@given(
    mean=some.floats(0, 1),
    reach=some.floats(0, 0.2),
    runs=some.integers(1, 5000),
    eta=some.floats(0.01, 0.99),
    below=some.floats(0, 0.1),
    above=some.floats(0, 0.1),
)
def test_a_joined_interval_is_no_point_and_contains_both_the_lift_and_the_belief(mean, reach, runs, eta, below, above):
    prediction = believed(mean, max(mean - below, 0.0), min(mean + above, 1.0))
    lifted_ends = lifted(np.array([mean]), np.array([reach]), runs, eta)
    (low,), (high,) = joined(*lifted_ends, prediction, runs)
    assert 0.0 <= low <= min(lifted_ends[0][0], prediction.lower[0])
    assert 1.0 >= high >= max(lifted_ends[1][0], prediction.upper[0])
    assert high - low >= 0.24 / runs


@pytest.mark.parametrize(("label", "low"), [(2e-8, 0.0), (2e-5, 2e-5)])
def test_an_end_next_to_0_or_1_is_0_or_1_so_what_cannot_happen_is_not_excluded(label: float, low: float) -> None:
    points = UNIT.uniform(40, seed=1)
    for mean, value in ((0.01, label), (0.99, 1.0 - label)):
        shown = st.calibrate(tabled([mean, mean], 0.05), truth=(points, np.full(40, value))).predict(UNIT.grid(5))
        nearest = shown.lower if mean < 0.5 else 1.0 - shown.upper
        assert nearest == pytest.approx(np.full(5, low), abs=1e-9)
        assert low > 0.0 or (nearest == 0.0).all()


@pytest.mark.slow
def test_a_property_that_never_holds_has_guarantees_that_contain_zero_and_are_wide_where_little_is_known():
    """The case that was found: at (0.005, 0.005) the interval was the point 0.004087, and f is 0."""
    model = st.Model.parse("""
        species S = 95, I = 5, R = 0
        constant N = 100
        S + I -> 2 I @ beta*S*I/N
        I -> R       @ gamma*I
    """)
    space = st.Space(beta=(0.005, 0.3), gamma=(0.005, 0.2))
    never = st.stl("F[0, 10] I > 200")
    seen = st.observe(model, never, space.sobol(64, seed=1), 20, seed=2)
    posterior = st.SVIGP().fit(seen, seed=3)
    plan = st.plan(posterior, budget=20_000, seed=4)
    held_out = st.observe(model, never, space.uniform(plan.points, seed=5), plan.runs, seed=6)
    guarantee = st.calibrate(posterior, held_out, plan=plan)
    shown = guarantee.predict(space.grid(15))
    narrower = posterior.predict(space.grid(15), level=0.9)
    assert (shown.width > 0.2 / plan.runs).all()
    assert (shown.lower <= narrower.lower).all()
    assert (shown.upper >= narrower.upper).all()
    assert (shown.lower == 0).all()
