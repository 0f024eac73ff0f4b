"""Expressions as the kernel computes them: what a run fixes once, what every event computes, and what needs a check.

In `beta * S * I / N` only S and I move. The product is regrouped as (beta/N) * S * I, the factor in front is computed
when a lane is filled, and an event costs two multiplications. Regrouping moves a product by a rounding error of its
own, no more, and leaves a 0 a 0. In a sum that error could be all that is left, as in `1 - X / K` at X = K, and in a
condition it could turn a comparison. So only the factors of a rate are regrouped, and everything else is computed as it
is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final, Protocol, TypeAlias

from sateen.language.expression import Delayed, Expression, Name, Number, Operation, in_order, number

_PARTIAL: Final = frozenset({"/", "^", "log", "sqrt", "exp"})  # operations that can make NaN of finite numbers

SafeRate: TypeAlias = tuple[tuple[Expression, int], ...]  # the coefficient of each product, and how many counts it has


class Fixed(Protocol):
    """Spells a part that no event changes; where it `opens`, more of its numbers are arguments of the kernel."""

    def __call__(self, expression: Expression, opens: bool = False) -> str: ...


@dataclass(frozen=True, slots=True)
class Moving:
    """Emits expressions of the moving names; `fixed` gives the spelling of a part that no event changes.

    In a formula `opened` does so, but for the branches of a choice. Where it `regroups`, the factors of a product are
    multiplied in the order that costs least. Where it is not `careful`, the operands of min and max are trusted to be
    numbers, unless their form says otherwise.
    """

    names: frozenset[str]
    spell: Callable[[Name | Delayed], str]
    fixed: Fixed
    regroups: bool = False
    careful: bool = True
    opened: Callable[[Expression], str] | None = None

    def source(self, expression: Expression) -> str:
        """The source of an expression, with every part that does not move asked of `fixed`."""
        if not self._moves(expression):
            return (self.opened or self.fixed)(expression)
        if not isinstance(expression, Operation):
            return expression.emit(self.spell)
        if self.regroups:
            as_written = replace(self, regroups=False)
            is_product = expression.symbol in ("*", "/")
            return as_written._product(expression) if is_product else as_written.source(expression)
        # A number that only one branch needs would be loaded there, and the loop not be vectorised.
        further = replace(self, opened=None) if expression.symbol == "if" and self.opened else self
        sources = [(further if place else self).source(each) for place, each in enumerate(expression.operands)]
        if expression.symbol in ("min", "max") and not (self.careful or any(map(is_partial, expression.operands))):
            return f"{expression.symbol}({', '.join(sources)})"
        # The operation's own way of writing itself, on operands that are already source.
        parts = iter(sources)
        leaves = tuple(Name("operand") for _ in expression.operands)
        if expression.symbol == "^" and isinstance(expression.operands[1], Number):
            leaves = (leaves[0], expression.operands[1])  # type: ignore[assignment]
        return Operation(expression.symbol, leaves).emit(lambda _: next(parts))

    def _product(self, expression: Expression) -> str:
        above, below = factors(expression)
        still = [factor for factor in above if not self._moves(factor)]
        still_below = [factor for factor in below if not self._moves(factor)]
        parts = []
        if still or still_below:
            parts.append(self.fixed(_quotient(still, still_below)))
        parts += [self.source(factor) for factor in above if self._moves(factor)]
        over = " * ".join(parts) or "1.0"
        under = " * ".join(self.source(factor) for factor in below if self._moves(factor))
        return f"({over} / ({under}))" if under else f"({over})"

    def _moves(self, expression: Expression) -> bool:
        return not self.names.isdisjoint(expression.names)


def safe_rate(rate: Expression, counts: frozenset[str], trusted: frozenset[str]) -> SafeRate | None:
    """The terms of `rate` as a sum of products of counts, if it is one; the counts are whole numbers from 0 on.

    Such a rate cannot be negative, infinite or undefined while its coefficients, which read none of the counts, are in
    bounds; that is left for a check. Its moving factors are counts, or the falling counts A, A - 1, ... of a
    combination. `trusted` are those of the counts that stay whole numbers from 0 on.
    """
    terms = rate.operands if isinstance(rate, Operation) and rate.symbol == "+" else (rate,)
    terms_found = []
    for term in terms:
        above, below = factors(term)
        moving = [factor for factor in above if not counts.isdisjoint(factor.names)]
        if any(not counts.isdisjoint(factor.names) for factor in below) or not _falling(moving, trusted):
            return None
        still = [factor for factor in above if counts.isdisjoint(factor.names)]
        terms_found.append((_quotient(still, below), len(moving)))
    return tuple(terms_found)


def _falling(moving: Iterable[Expression], trusted: frozenset[str]) -> bool:
    """Whether factors are trusted counts, each offset A - k accompanied by A, A - 1, ..., A - (k - 1)."""
    seen: dict[str, set[float]] = {}
    for factor in moving:
        match factor:
            case Name(name):
                seen.setdefault(name, set()).add(0.0)
            case Operation("+", (Name(name), Operation("-", (Number(offset),)))):
                seen.setdefault(name, set()).add(offset)
            case _:
                return False
    whole = all(offsets == set(map(float, range(len(offsets)))) for offsets in seen.values())
    return whole and trusted.issuperset(seen)


def is_partial(expression: Expression) -> bool:
    """Whether finite values of its names may leave an expression undefined."""
    return any(isinstance(node, Operation) and node.symbol in _PARTIAL for node in in_order(expression))


def factors(expression: Expression) -> tuple[list[Expression], list[Expression]]:
    """The factors above and below the fraction bar of a product."""
    match expression:
        case Operation("*", (left, right)):
            (a, b), (c, d) = factors(left), factors(right)
            return a + c, b + d
        case Operation("/", (left, right)):
            (a, b), (c, d) = factors(left), factors(right)
            return a + d, b + c
        case Operation("-", (operand,)):
            above, below = factors(operand)
            return [number(-1.0), *above], below
    return [expression], []


def _quotient(above: list[Expression], below: list[Expression]) -> Expression:
    result: Expression = above[0] if above else Number(1.0)
    for factor in above[1:]:
        result = Operation("*", (result, factor))
    for factor in below:
        result = Operation("/", (result, factor))
    return result
