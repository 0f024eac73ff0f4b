"""Models composed by SBML's package comp: flattened, limited in size, and without other files."""

from __future__ import annotations

import pytest

import sateen as st
from sateen.model.sbml import read_sbml
from sbml_texts import document, parameter, reaction, species

COMP = ' xmlns:comp="http://www.sbml.org/sbml/level3/version1/comp/version1" comp:required="true"'
PART = document(species("X", 5), parameter("k", 0.5), reaction("decay", {"X": 1})).partition("<model")[2]
PART = PART.partition(">")[2].partition("</model>")[0]


def composed(part: str, definitions: str = "", uses: tuple[str, ...] = ("part", "part")) -> str:
    """A model made of others, and their definitions."""
    core = "http://www.sbml.org/sbml/level3/version1/core"
    definition = f'<comp:modelDefinition id="part">{part}</comp:modelDefinition>'
    return (
        f'<sbml xmlns="{core}"{COMP} level="3" version="1"><model id="top">{submodels(uses)}</model>'
        f"<comp:listOfModelDefinitions>{definition}{definitions}</comp:listOfModelDefinitions></sbml>"
    )


def submodels(uses: tuple[str, ...]) -> str:
    parts = "".join(f'<comp:submodel comp:id="s{at}" comp:modelRef="{name}"/>' for at, name in enumerate(uses))
    return f"<comp:listOfSubmodels>{parts}</comp:listOfSubmodels>"


def test_a_composed_model_is_flattened():
    assert read_sbml(composed(PART)).model == st.Model.parse("""
        species s0__X = 5, s1__X = 5
        parameter s0__k = 0.5, s1__k = 0.5
        s0__decay: s0__X -> 0 @ s0__k * s0__X
        s1__decay: s1__X -> 0 @ s1__k * s1__X
    """)


def test_a_composed_model_that_would_be_vast_is_refused_before_it_is_made():
    double = "".join(
        f'<comp:modelDefinition id="m{at}">{submodels((f"m{at + 1}",) * 2)}</comp:modelDefinition>' for at in range(30)
    )
    double += f'<comp:modelDefinition id="m30">{PART}</comp:modelDefinition>'
    with pytest.raises(st.ModelError, match="composed of more than 50,000 elements"):
        read_sbml(composed(PART, double, ("m0",)))


def test_a_definition_that_is_composed_of_itself_is_refused():
    with pytest.raises(st.ModelError, match="the model definition part is composed of itself"):
        read_sbml(composed(submodels(("part",)) + PART))


def test_a_required_package_without_content_is_noted():
    text = document(species("X", 5), parameter("k", 0.5), reaction("decay", {"X": 1}), attributes=COMP)
    assert "the package comp is required, but nothing of it is used" in read_sbml(text).model.warnings
