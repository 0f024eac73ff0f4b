"""Hulls: no rate is above its hull at any time of the window, and hulls of simple laws are as narrow as can be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as some

from sateen.engine.hull import END, Hull, breaks
from sateen.engine.intervals import interval
from sateen.language.expression import Expression
from sateen.language.grammar import parse_condition, parse_expression

COUNTS = frozenset({"X", "Y"})
TIMES = some.floats(0, 40)
PARAMETERS = some.floats(-3, 3)


@some.composite
def laws(draw: some.DrawFn, depth: int = 3) -> str:
    """A law of the clock, two counts and two parameters of any sign."""
    if depth == 0 or draw(some.integers(0, 6)) == 0:
        return draw(some.sampled_from(["time", "time", "time", "X", "Y", "k", "q", "1", "2.5", "0"]))
    a, b, c = (draw(laws(depth - 1)) for _ in range(3))
    forms = [
        *(f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} * {b})", f"({a} / {b})", f"(-{a})"),
        *(f"sin({a})", f"cos({a})", f"exp(0.1 * {a})", f"log(1 + abs({a}))", f"sqrt(abs({a}))", f"abs({a})"),
        *(f"({a})^2", f"({a})^3", f"({a})^{b}", f"(1 + abs({a}))^({b} / 4)", f"floor({a})", f"ceil({a})"),
        *(f"min({a}, {b})", f"max({a}, {b})", f"({a} / (1 + {b}^2))", f"{a}^4 / (5 + {a}^4)"),
        *(f"if({c} {sign} {b}, {a}, {b})" for sign in ("<", "<=", ">", ">=", "==", "!=")),
        *(f"if(time {sign} {b}, {a}, {c})" for sign in ("<", "<=", ">", ">=", "==", "!=")),
        f"if(not ({a} < {b} or time > {c}) and {c} > 0, {a}, {b})",
    ]
    return draw(some.sampled_from(forms))


def high(law: Expression, begin: float, end: float, **values: float) -> float:
    return float(Hull.of(law, COUNTS).evaluate({**values, "time": begin, END: end}))


def at(law: Expression, time: float, **values: float) -> float:
    return float(law.evaluate({**values, "time": time}))


@settings(max_examples=500, deadline=None)
@given(
    laws(), TIMES, some.sampled_from([1e-9, 0.01, 1.0, 7.0, 300.0, math.inf]), PARAMETERS, PARAMETERS,
    some.integers(0, 5), some.integers(0, 5), some.lists(some.floats(0, 1, exclude_max=True), min_size=5, max_size=5),
)  # fmt: skip
def test_no_law_is_above_its_hull(
    text: str, begin: float, width: float, k: float, q: float, x: int, y: int, shares: list[float]
) -> None:
    law, values = parse_expression(text), {"k": k, "q": q, "X": float(x), "Y": float(y)}
    bound = high(law, begin, begin + width, **values)
    if math.isnan(bound):
        return  # no bound is found, and the window will be shorter
    for share in (0.0, *shares):
        time = begin + share * min(width, 1000.0)
        assume(time < begin + width)
        value = at(law, time, **values)
        if not math.isfinite(value):
            continue  # an undefined law is an error when it is met; within min and max its hull may not see it
        size = abs(bound) + max(abs(float(end)) for end in interval(law, exactly(values, time)))
        assert value <= bound + 1e-9 * min(size, 1e300) or undefined(law, begin, width, values)


def exactly(values: dict[str, float], time: float) -> dict[str, tuple[np.float64, np.float64]]:
    return {name: (np.float64(value),) * 2 for name, value in {**values, "time": time}.items()}


def undefined(law: Expression, begin: float, width: float, values: dict[str, float]) -> bool:
    """Whether a part of the law is undefined at some time of the window: then nothing is said of its hull."""
    for time in begin + np.linspace(0, min(width, 1000.0), 400, endpoint=False):
        parts = [law]
        while parts:
            node = parts.pop()
            parts.extend(node.children)
            value = node.evaluate({**values, "time": float(time)})
            if not np.isfinite(value):
                return True
    return False


@pytest.mark.parametrize(
    ("law", "begin", "end", "bound"),
    [
        ("time", 2, 5, 5),
        ("3 - time", 2, 5, 1),
        ("k * time", 2, 5, 10),
        ("q * time", 2, 5, -2),
        ("X * time / 4", 0, math.inf, math.inf),
        ("X * k / (1 + time)", 1, math.inf, 4),
        ("exp(-time)", 0, math.inf, 1),
        ("sin(time)", 0, 1, math.sin(1)),
        ("sin(time)", 1, 2, 1),
        ("sin(time)", 1.57, 1.571, 1),
        ("sin(time)", 1.6, 2.2, math.sin(1.6)),
        ("cos(time)", 0.1, 0.2, math.cos(0.1)),
        ("sin(time)", 2, 4, math.sin(2)),
        ("cos(time)", 1, 6, math.cos(6)),
        ("cos(time)", 6, 7, 1),
        ("X * (1 + sin(2 * time))", 0, math.inf, 8),
        ("1 - cos(time)", 3, 4, 2),
        ("if(time < 5, 1, 7)", 3, 5, 1),
        ("if(time <= 5, 1, 7)", 3, 5, 1),
        ("if(time >= 5, 7, 1)", 3, 5, 1),
        ("if(time < 5, 1, 7)", 3, 5.1, 7),
        ("if(5 > time, 1, 7)", 5, 9, 7),
        ("if(time < 5, 7, 1)", 5, 9, 1),
        ("if(time == 5, 7, 1)", 3, 5, 1),
        ("if(time == 5, 7, 1)", 5, 6, 7),
        ("if(time < 5 and X > 9, 7, 1)", 3, 4, 1),
        ("if(time > X, 7, 1)", 1, 4, 1),
        ("time^2 - 3", 0, 4, 13),
        ("(time - 3)^2", 0, 4, 9),
        ("0 * time", 0, math.inf, 0),
        ("zero * exp(time)", 0, math.inf, 0),
        ("min(time, 4)", 0, math.inf, 4),
        ("time^4 / (16 + time^4)", 2, 2, 0.5),
    ],
)
def test_hulls_that_are_known(law: str, begin: float, end: float, bound: float) -> None:
    found = high(parse_expression(law), begin, end, X=4.0, k=2.0, q=-1.0, zero=0.0)
    assert found == pytest.approx(bound, rel=1e-12)


def test_a_guard_that_cannot_hold_in_the_window_leaves_nothing() -> None:
    hull = Hull.of(parse_expression("k * X"), COUNTS, parse_condition("time >= 10 and X > 1"))
    state = {"k": 2.0, "X": 3.0}
    assert hull.evaluate({**state, "time": 0.0, END: 10.0}) == 0.0
    assert hull.evaluate({**state, "time": 0.0, END: 10.5}) == 6.0
    assert hull.evaluate({**state, "X": 1.0, "time": 10.0, END: math.inf}) == 0.0


def test_the_breaks_of_a_law_are_what_the_clock_alone_is_compared_with() -> None:
    law = parse_expression("if(time < 5, 1, if(k + X <= time, 2, if(time * 2 > 7, time, if(time < time + 1, 1, 2))))")
    assert list(map(str, breaks(law))) == ["5", "k + X"]


def test_a_hull_of_a_deep_law_has_few_steps() -> None:
    text = "time"
    for _ in range(8):
        text = f"(({text}) * ({text}) + X)"
    assert len(Hull.of(parse_expression(text), COUNTS).steps) < 50
