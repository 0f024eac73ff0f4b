"""What the form of an expression shows of its sign: what is proved holds in every state."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from sateen.core.seeds import stream
from sateen.language.expression import Expression
from sateen.language.grammar import parse_expression
from sateen.model.signs import Signs, bounds, cancelled
from strategies import expressions

VALUES = {"k": 2.0, "q": 3.0, "n": 2.5, "m": -1.0}
PROVED = {
    "a product": "k * A * B",
    "a wave above 0": "k * A * (1 + sin(q * B))",
    "inhibition": "k * A * (1 - B / (B + q))",
    "inhibition with a Hill exponent": "k * (1 - B^n / (q^n + B^n))",
    "inhibition of a part": "k * (1 - 0.4 * B / (B + q))",
    "saturation by decay": "1 - exp(-A)",
    "ways to choose": "k * A * (A - 1) * (A - 2) / 6",
    "ways to choose of two kinds": "A * (A - 1) * B * (B - 1)",
    "ways to choose, multiplied out": "k * A^2 - k * A",
    "a square": "(A - B) * k * (A - B)",
    "kept by a condition": "if(A > B and A > 3, k * (A - B) + (A - 3), 0)",
    "kept by a condition that fails": "if(A < B or A < 3, 0, k * (A - B) * (A - 3))",
    "two negative factors": "m * A * (-B)",
    "no term is left": "A + B - A",
}
OPEN = {
    "a difference": "A - B",
    "logistic growth": "k * A * (1 - A / 1e9)",
    "a wave": "A * sin(B)",
    "a cube": "(A - B)^3",
    "the other condition": "if(A > B, B - A, 0)",
    "ways to choose of a real number": "R * (R - 1)",
    "with a negative constant": "k * A + m * B",
    "over a difference": "A / (A - B)",
}


@pytest.mark.parametrize("case", PROVED)
def test_what_is_never_negative_is_proved(case):
    assert Signs(VALUES).never_negative(parse_expression(PROVED[case]))


@pytest.mark.parametrize("case", OPEN)
def test_what_may_be_negative_is_not_proved(case):
    assert not Signs(VALUES, frozenset({"R"})).never_negative(parse_expression(OPEN[case]))


@given(expressions())
@settings(max_examples=300)
def test_what_is_proved_holds_in_random_states(expression: Expression):
    random = stream(1, "signs")
    state = {name: np.floor(10.0 ** random.uniform(0, 3, 200)) - 1 for name in expression.names}
    values = np.asarray(expression.evaluate(state), np.float64)
    if Signs({}).never_negative(expression):
        assert not (values < 0).any()
    low, high = bounds(expression)
    assert not (values < low - 1e-9 * abs(low)).any()
    assert not (values > high + 1e-9 * abs(high)).any()


def test_too_long_a_product_is_left_open():
    law = " * ".join(f"(1 - A{place} / (A{place} + B{place} + C{place}))" for place in range(12))
    assert Signs({}).never_negative(parse_expression(law))  # each factor by itself
    assert not Signs({}).never_negative(parse_expression(f"{law} - {law}"))


def test_only_factors_that_may_go_are_cancelled():
    node = parse_expression("k * A^2 * (B / (A * k))")
    assert str(cancelled(node, lambda factor: "A" in factor.names)) == "k * A * B / k"
    assert cancelled(node, lambda factor: "C" in factor.names) == node
