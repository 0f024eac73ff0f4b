"""Rates as sums of products: a factor that only parameters decide, times a coefficient that only the state decides.

`(k1 + k2 * X) * Y` is k1 times Y plus k2 times X * Y. Edges whose rates share such a factor can only speed up or slow
down together, which is what makes bounds over a box of parameters narrow. A rate that is no such sum, as `X / (K + X)`
where K varies, is left whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sateen.language.expression import Expression, Number, Operation

_MOST: Final = 32  # terms of one rate
_ZERO: Final = Number(0.0)


@dataclass(frozen=True, slots=True)
class Term:
    """A product: of `factors`, which read varying parameters and no state, and of `coefficient`, which reads neither
    of the varying parameters."""

    factors: tuple[Expression, ...]
    coefficient: Expression

    def __mul__(self, other: Term) -> Term:
        factors = tuple(sorted((*self.factors, *other.factors), key=str))
        if self.coefficient == Number(1.0):
            return Term(factors, other.coefficient)
        if other.coefficient == Number(1.0):
            return Term(factors, self.coefficient)
        return Term(factors, Operation("*", (self.coefficient, other.coefficient)))


def terms_of(rate: Expression, varying: frozenset[str], moving: frozenset[str]) -> tuple[Term, ...] | None:
    """The terms of a rate, or None if it is no sum of such products.

    `varying` are the parameters that vary, `moving` what changes with the state.
    """
    read = frozenset(rate.names)
    if varying.isdisjoint(read):
        return (Term((), rate),)
    split = _split(rate, varying, moving)
    if split is not None and len(split) <= _MOST:
        return split
    return (Term((rate,), Number(1.0)),) if moving.isdisjoint(read) else None


def _split(rate: Expression, varying: frozenset[str], moving: frozenset[str]) -> tuple[Term, ...] | None:
    match rate:
        case Operation("+", operands):
            parts = [terms_of(operand, varying, moving) for operand in operands]
            return None if None in parts else tuple(term for part in parts if part for term in part)
        case Operation("-", (operand,)):
            inner = terms_of(operand, varying, moving)
            return inner and tuple(Term(term.factors, Operation("-", (term.coefficient,))) for term in inner)
        case Operation("*", (left, right)):
            a, b = terms_of(left, varying, moving), terms_of(right, varying, moving)
            return tuple(x * y for x in a for y in b) if a and b and len(a) * len(b) <= _MOST else None
        case Operation("/", (left, right)):
            a, below = terms_of(left, varying, moving), frozenset(right.names)
            if a is None or not (varying.isdisjoint(below) or moving.isdisjoint(below)):
                return None
            if varying.isdisjoint(below):
                return tuple(Term(term.factors, Operation("/", (term.coefficient, right))) for term in a)
            inverse = Term((Operation("/", (Number(1.0), right)),), Number(1.0))
            return tuple(term * inverse for term in a)
        case Operation("^", (base, exponent)) if varying.isdisjoint(exponent.names):
            a = terms_of(base, varying, moving)
            if a is None or len(a) != 1 or not moving.isdisjoint(exponent.names):
                return None
            factors = tuple(Operation("^", (factor, exponent)) for factor in a[0].factors)
            return (Term(factors, Operation("^", (a[0].coefficient, exponent))),)
        case Operation("if", (condition, then, otherwise)) if varying.isdisjoint(condition.names):
            branches = [terms_of(branch, varying, moving) for branch in (then, otherwise)]
            if None in branches:
                return None
            chosen = [
                Term(term.factors, Operation("if", (condition, *((term.coefficient, _ZERO)[:: 1 if first else -1]))))
                for branch, first in zip(branches, (True, False), strict=True)
                for term in branch or ()
            ]
            return tuple(chosen)
        case _ if moving.isdisjoint(rate.names):
            return (Term((rate,), Number(1.0)),)
    return None
