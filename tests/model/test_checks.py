"""What the form of a rate tells before any run: its sign, and whether a reaction stops when its reactants run out."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sateen.core.errors import ModelError, ModelWarning
from sateen.language.expression import Expression
from sateen.language.grammar import parse_condition, parse_expression
from sateen.model.checks import consumption_fault, negative_by_sign
from sateen.model.model import Model, Transition
from strategies import expressions


@pytest.mark.parametrize(
    "rate",
    [
        "-k",
        "-k * A",
        "k * -A",
        "-(k * A)",
        "-k / A",
        "k / -A",
        "-k - A",
        "-k - 2 * A",
        "-A^2",
        "-abs(A)",
        "-exp(A)",
        "-sqrt(A)",
        "min(-k, A)",
        "max(-k, -A)",
        "if(A > 0, -k, -1)",
        "floor(-k)",
        "ceil(-k)",
        "-(-(-k))",
        "-1",
        "k * A * -0.5",
    ],
)
def test_a_rate_that_is_negative_by_sign_alone_is_told(rate: str) -> None:
    assert negative_by_sign(parse_expression(rate))


@pytest.mark.parametrize(
    "rate",
    [
        "k * A",
        "k - A",
        "-k + A",
        "--k",
        "-k * -A",
        "(-k) / (-A)",
        "(-A)^2",
        "exp(-k)",
        "abs(-k)",
        "log(k)",
        "-log(k)",
        "max(-k, A)",
        "min(k, A)",
        "max(-k, log(A))",
        "if(A > 0, k, -1)",
        "k * (A - 1)",
        "-(A - k)",
        "0",
        "1 - A",
        "floor(k - A)",
    ],
)
def test_a_rate_that_may_be_positive_is_not_refused(rate: str) -> None:
    assert not negative_by_sign(parse_expression(rate))


@settings(max_examples=200)
@given(expressions(), st.data())
def test_what_is_called_negative_is_never_positive(rate: Expression, data: st.DataObject) -> None:
    """At positive values of all names; the law of the check."""
    values = {name: data.draw(st.floats(0.01, 100)) for name in rate.names}
    if negative_by_sign(rate):
        assert not float(rate.evaluate(values)) > 0


# Reactions that consume.


def transition(text: str) -> Transition:
    """`consumed @ rate when guard` as a transition without any check."""
    sides, rest = text.split("@")
    rate, _, guard = rest.partition("when")
    consumed = tuple(
        (term.split()[-1], int(term.split()[0]) if len(term.split()) == 2 else 1) for term in sides.split("+")
    )
    return Transition("x", parse_expression(rate), consumed, guard=parse_condition(guard) if guard else None)


@pytest.mark.parametrize(
    "text",
    [
        "A @ k * A",
        "A @ A",
        "A @ A / (A + K)",
        "A @ k * A^2 / (1 + A^2)",
        "A @ A^0.5",
        "A @ sqrt(A)",
        "A @ min(A, k)",
        "A @ if(A > 0, k, 0)",
        "A @ if(A == 0, 0, k)",
        "A @ if(A >= 1 and B > 2, k, 0)",
        "A @ k * abs(A)",
        "A @ k * floor(A)",
        "A @ -(-k * A)",
        "A @ k * A + 2 * A * B",
        "A @ max(A, 2 * A)",
        "2 A @ k * A * (A - 1)",
        "2 A @ k * A * (A - 1) / 2",
        "2 A @ k * A when A >= 2",
        "2 A @ k * A when A > 1 and B > 0",
        "3 A @ k * A * (A - 1) * (A - 2)",
        "A + B @ k * A * B",
        "A + B @ k * min(A, B)",
        "2 A + 3 B @ k * A * B when A >= 2 and B >= 3",
        "2 A @ k * A when not A < 2",
    ],
)
def test_a_reaction_that_stops_by_itself_has_no_fault(text: str) -> None:
    assert consumption_fault(transition(text)) is None


@pytest.mark.parametrize(
    "text",
    [
        "A @ k",
        "A @ k * B",
        "A @ 1",
        "A @ exp(k)",
        "2 A @ k",
        "A @ k when B > 0",
        "A @ k when A >= 0",
        "A @ k when A > 0 or B > 0",
        "A + B @ k * A",
        "A + B @ k * B",
        # A guard, or another fault, must not hide that something falls below 0.
        "2 A @ k when A >= 1",
        "3 A @ k when A >= 2",
        "A + B @ k when A >= 1",
        "A + B @ k when B >= 1",
        "2 A + B @ k * A",
        "2 A + B @ k * A when A >= 2",
    ],
)
def test_a_reaction_whose_rate_does_not_see_what_it_consumes_is_an_error(text: str) -> None:
    fault = consumption_fault(transition(text))
    assert fault is not None
    assert fault.fatal
    assert "which its rate" in fault.message
    assert "could fall below 0" in fault.message
    assert "when" in fault.remedy


@pytest.mark.parametrize(
    "text",
    [
        "A @ k when A > 0",
        "A @ k when A >= 1",
        "A @ k when 0 < A",
        "A @ k when A != 0",
        "A @ k when not A == 0",
        "A @ k when A > 0 and B > 0",
        "2 A @ k when A >= 2",
        "A + B @ k when A > 0 and B > 0",
        "A + B @ k * A when B > 0",
    ],
)
def test_where_only_a_guard_prevents_it_it_is_a_doubt(text: str) -> None:
    fault = consumption_fault(transition(text))
    assert fault is not None
    assert not fault.fatal
    assert "only its guard keeps" in fault.remedy


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("2 A @ k * A", 1),
        ("3 A @ k * A * (A - 1)", 2),
        ("A @ k^A", 0),
        ("A @ 1 - A", 0),
        ("A @ A / A", 0),
        ("A @ A^n", 0),
        ("A @ A + k", 0),
        ("A @ max(A, k)", 0),
    ],
)
def test_a_rate_that_sees_what_it_consumes_and_does_not_stop_is_a_doubt(text: str, left: int) -> None:
    fault = consumption_fault(transition(text))
    assert fault is not None
    assert not fault.fatal
    assert f"may still fire with {left} left" in fault.message


def test_what_is_consumed_and_produced_again_is_not_used_up() -> None:
    catalysed = Transition("x", parse_expression("k"), (("A", 1),), (("A", 1), ("B", 1)))
    assert consumption_fault(catalysed) is None


def test_large_stoichiometry_is_checked_in_short_time() -> None:
    fault = consumption_fault(transition("1000 A @ k * A"))
    assert fault is not None
    assert not fault.fatal


@pytest.mark.parametrize("text", ["2 A -> 0 @ k when A >= 1", "A + B -> 0 @ k when A >= 1", "2 A + B -> 0 @ k * A"])
def test_no_guard_or_doubt_hides_an_error_in_a_model(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        with pytest.raises(ModelError, match="could fall below 0"):
            Model.parse(f"species A = 5, B = 3\n{text}")
