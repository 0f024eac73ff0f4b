"""The three-layer phosphorelay (PR): a ligand B starts a phosphate down the layers L1, L2 and L3.

The property asks for a switch: the first layer carries at least as much phosphate as the third up to time 300, and
then, as stated, the third at least as much as the first at some time between 300 and 600. The published numbers
come from another second half, in which the first layer exceeds the third at some time between 300 and 600.

The third layer loses its phosphate at the rate k4·L3p/N. (The paper's text has L2p in it, which would drive L3p below
0, and lists a species L4p that no reaction touches.)
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
species B = 0, L1 = 32, L1p = 0, L2 = 32, L2p = 0, L3 = 32, L3p = 0
constant N = 5000
parameter kp = 0.1, k1 = 1, k2 = 1, k3 = 1, k4 = 2, kd = 0.05
R1: 0 -> B                 @ mass_action(kp)
R2: L1 + B -> L1p + B      @ mass_action(k1 / N)
R3: L1p + L2 -> L1 + L2p   @ mass_action(k2 / N)
R4: L2p + L3 -> L2 + L3p   @ mass_action(k3 / N)
R5: L3p -> L3              @ mass_action(k4 / N)
R6: B -> 0                 @ mass_action(kd)
"""

_FIRST_LEADS: Final = "G[0, 300] (L1p - L3p >= 0)"

PROPERTIES: Final[Mapping[Variant, Property]] = MappingProxyType(
    {
        "paper-data": Property(f"{_FIRST_LEADS} & F[300, 600] (L1p > L3p)"),
        "as-stated": Property(f"{_FIRST_LEADS} & F[300, 600] (L3p - L1p >= 0)"),
    }
)


def model() -> Model:
    """The phosphorelay, with the paper's default rates."""
    return Model.parse(MODEL)


def formula(variant: str) -> Formula:
    """The switch between the first and the third layer, as `variant` reads it.

    >>> formula("as-stated")
    stl('G[0, 300] L1p - L3p >= 0 & F[300, 600] L3p - L1p >= 0')
    """
    return property_in_variant(PROPERTIES, variant)
