"""Prokaryotic gene expression (PGE): how E. coli makes the protein LacZ.

A promoter binds RNA polymerase, transcripts bind ribosomes, and each transcript is translated many times before it
decays, so that LacZ is made in bursts. The property asks for a burst: LacZ has just increased, and then, from 10 to
200 time units later, it increases no more. Its tenth reaction degrades LacZ (the paper's text misspells it PLacZ).

As stated, an increase is measured over one time unit and the path is read up to time 2300. The published numbers
measure it over 5 time units, one of the authors' samples, and cut the path at time 2100, where windows end too and
an empty "always" is true. The cut alone moves the probability by up to 0.44 in configuration d and by 1 in e.
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
species PLac = 1, RNAP = 35, PLacRNAP = 0, TrLacZ1 = 0, RbsLacZ = 0, TrLacZ2 = 0
species Ribosome = 350, RbsRibosome = 0, TrRbsLacZ = 0, LacZ = 0, dgrLacZ = 0, dgrRbsLacZ = 0
parameter k1 = 0.17, k2 = 10, k3 = 1, k4 = 1, k5 = 0.015, k6 = 0.17
parameter k7 = 0.45, k8 = 0.4, k9 = 0.015, k10 = 0.0000642, k11 = 0.3
R1:  PLac + RNAP -> PLacRNAP                @ mass_action(k1)
R2:  PLacRNAP -> PLac + RNAP                @ mass_action(k2)
R3:  PLacRNAP -> TrLacZ1                    @ mass_action(k3)
R4:  TrLacZ1 -> RbsLacZ + PLac + TrLacZ2    @ mass_action(k4)
R5:  TrLacZ2 -> RNAP                        @ mass_action(k5)
R6:  Ribosome + RbsLacZ -> RbsRibosome      @ mass_action(k6)
R7:  RbsRibosome -> Ribosome + RbsLacZ      @ mass_action(k7)
R8:  RbsRibosome -> TrRbsLacZ + RbsLacZ     @ mass_action(k8)
R9:  TrRbsLacZ -> LacZ                      @ mass_action(k9)
R10: LacZ -> dgrLacZ                        @ mass_action(k10)
R11: RbsLacZ -> dgrRbsLacZ                  @ mass_action(k11)
"""


def _burst(lag: int) -> str:
    """A burst whose increases are measured over `lag` time units."""
    change = f"LacZ - LacZ(t-{lag})"
    return f"F[1600, 2100] ({change} > 0 & G[10, 200] {change} <= 0)"


PROPERTIES: Final[Mapping[Variant, Property]] = MappingProxyType(
    {"paper-data": Property(_burst(5), end=2100), "as-stated": Property(_burst(1))}
)


def model() -> Model:
    """Gene expression, with the paper's default rates."""
    return Model.parse(MODEL)


def formula(variant: str) -> Formula:
    """A burst of LacZ that begins between times 1600 and 2100, as `variant` reads it.

    >>> formula("as-stated")
    stl('F[1600, 2100] (LacZ - LacZ(t-1) > 0 & G[10, 200] LacZ - LacZ(t-1) <= 0)')
    """
    return property_in_variant(PROPERTIES, variant)
