"""Network epidemics (SIR): an infection in a population of 100 that leaves immunity behind.

The property says that the epidemic ends between 100 and 120 time units after its outbreak. The paper's text gives the
infection the rate beta·S·I; its numbers come from beta·S·I/N, which is used here in both variants. They coincide: what
the authors' sampling every 0.5 time units changes is at most 0.005 in probability.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from sateen.model.model import Model
from sateen.paper.cases.variants import Property, Variant, property_in_variant

if TYPE_CHECKING:
    from sateen.logic.formula import Formula

__all__ = ["MODEL", "PROPERTIES", "formula", "model"]

MODEL: Final = """\
species S = 95, I = 5, R = 0
constant N = 100
parameter beta = 0.12, gamma = 0.05
infect:  S + I -> 2 I  @ beta * S * I / N
recover: I -> R        @ mass_action(gamma)
"""

_DIES_OUT: Final = Property("(I > 0) U[100, 120] (I == 0)")

PROPERTIES: Final[Mapping[Variant, Property]] = MappingProxyType({"paper-data": _DIES_OUT, "as-stated": _DIES_OUT})


def model() -> Model:
    """The epidemic, with the defaults beta = 0.12 and gamma = 0.05."""
    return Model.parse(MODEL)


def formula(variant: str) -> Formula:
    """The end of the epidemic between times 100 and 120, as `variant` reads it.

    >>> formula("as-stated")
    stl('(I > 0) U[100, 120] (I == 0)')
    """
    return property_in_variant(PROPERTIES, variant)
