"""Interval arithmetic holds every value that real arithmetic gives."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from sateen.engine.intervals import interval
from sateen.language.grammar import parse_expression

TEXTS = (
    *("x + y", "x - y", "x * y", "x / y", "x^2", "x^3", "x * x * y", "min(x, y)", "max(x, -y)", "abs(x - y)"),
    *("floor(x)", "ceil(x * y)", "if(x < y, x, 2 * y)", "if(x == 1 or not y > 2, 1, x)", "sqrt(abs(x))", "exp(x / 9)"),
    *("log(1 + abs(x))", "abs(x)^y", "abs(x)^-0.5", "x / (1 + y^2)", "0 * x", "if(x != y and y >= 0, x / 3, y)"),
    *("sin(x)", "cos(x * y)", "sin(20 * x) * y", "1 + cos(x / 9)"),
)
ends = some.floats(-8.0, 8.0) | some.sampled_from((0.0, 1.0, 2.0, -1.0, 3.0))


@settings(deadline=None, max_examples=300)
@given(some.sampled_from(TEXTS), some.lists(ends, min_size=4, max_size=4), some.integers(0, 2**32))
def test_values_at_points_of_the_box_lie_in_the_interval(text, numbers, seed):
    expression = parse_expression(text)
    (x0, x1), (y0, y1) = sorted(numbers[:2]), sorted(numbers[2:])
    low, high = interval(expression, {"x": (np.array(x0), np.array(x1)), "y": (np.array(y0), np.array(y1))})
    rng = np.random.default_rng(seed)
    xs, ys = np.append(rng.uniform(x0, x1, 50), [x0, x1]), np.append(rng.uniform(y0, y1, 50), [y0, y1])
    values = np.asarray(expression.evaluate({"x": xs, "y": ys}))
    values = values[np.isfinite(values)]
    assert (values >= low).all()
    assert (values <= high).all()


@given(some.floats(-1e6, 1e6), some.floats(-1e6, 1e6))
def test_sums_and_products_of_points_hold_the_exact_result(x, y):
    for text, exact in (("x + y", Fraction(x) + Fraction(y)), ("x * y", Fraction(x) * Fraction(y))):
        low, high = interval(parse_expression(text), {"x": (np.array(x),) * 2, "y": (np.array(y),) * 2})
        assert Fraction(float(low)) <= exact <= Fraction(float(high))


@pytest.mark.parametrize("text", ["x / y", "log(y)", "sqrt(y - 5)", "y^-1", "y^x", "log(y - 9)", "1 / (y - y)"])
def test_what_may_be_undefined_has_no_finite_bounds(text):
    low, high = interval(parse_expression(text), {"x": (np.array(1.5),) * 2, "y": (np.array(-1.0), np.array(1.0))})
    assert math.isinf(low) or math.isinf(high)


def test_a_sine_is_narrow_away_from_its_peaks_and_full_where_it_has_both():
    for text, low, high in (
        ("sin(x)", math.sin(1), math.sin(1.5)),
        ("cos(x)", math.cos(1.5), math.cos(1)),
        ("sin(20 * x)", -1, 1),
    ):
        found = interval(parse_expression(text), {"x": (np.array(1.0), np.array(1.5))})
        assert [float(end) for end in found] == pytest.approx([low, high], abs=1e-12)
    forever = interval(parse_expression("sin(x)"), {"x": (np.array(0.0), np.array(math.inf))})
    assert [float(end) for end in forever] == [-1.0, 1.0]


def test_whole_numbers_and_zero_stay_exact():
    values = {"X": (np.array(7.0),) * 2, "Y": (np.array(0.0),) * 2, "k": (np.array(0.1), np.array(0.3))}
    for text, exact in (("X * (X - 1) / 2 * Y", 0.0), ("X^2 - X * X", 0.0), ("X * X - 1", 48.0), ("k * Y", 0.0)):
        low, high = interval(parse_expression(text), values)
        assert float(low) == float(high) == exact
