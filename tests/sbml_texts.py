"""SBML texts for tests, put together from short pieces: formulas are written as `k * X`, not as MathML."""

from __future__ import annotations

from collections.abc import Mapping

import libsbml

NAMESPACES = {
    (2, 1): "http://www.sbml.org/sbml/level2",
    (2, 4): "http://www.sbml.org/sbml/level2/version4",
    (3, 1): "http://www.sbml.org/sbml/level3/version1/core",
    (3, 2): "http://www.sbml.org/sbml/level3/version2/core",
}


def formula(text: str) -> str:
    """The MathML of a formula; one that is MathML already stays as it is."""
    if text.startswith("<"):
        return f'<math xmlns="http://www.w3.org/1998/Math/MathML">{text}</math>'
    tree = libsbml.parseL3Formula(text)
    assert tree is not None, libsbml.getLastParseL3Error()
    return libsbml.writeMathMLToString(tree).partition("\n")[2].strip()


def element(tag: str, inside: str = "", **attributes: object) -> str:
    written = "".join(f' {name}="{value}"' for name, value in attributes.items() if value is not None)
    return f"<{tag}{written}>{inside}</{tag}>" if inside else f"<{tag}{written}/>"


def compartment(name: str = "C", size: object = 1, **more: object) -> str:
    return element("compartment", id=name, size=size, **{"spatialDimensions": 3, "constant": "true", **more})


def species(name: str, amount: object = 0, **more: object) -> str:
    usual = {"hasOnlySubstanceUnits": "true", "boundaryCondition": "false", "constant": "false", "compartment": "C"}
    return element("species", id=name, initialAmount=amount, **{**usual, **more})


def parameter(name: str, value: object = None, **more: object) -> str:
    return element("parameter", id=name, value=value, **{"constant": "true", **more})


def reference(name: str, count: object = 1, inside: str = "", **more: object) -> str:
    return element("speciesReference", inside, species=name, stoichiometry=count, **{"constant": "true", **more})


def reaction(
    name: str,
    consumed: Mapping[str, object] | str = "",
    produced: Mapping[str, object] | str = "",
    law: str = "k * X",
    local: str = "",
    modifiers: tuple[str, ...] = (),
    **more: object,
) -> str:
    """A reaction; a side is counts by species, or references that are written out."""
    inside = ""
    for tag, side in (("listOfReactants", consumed), ("listOfProducts", produced)):
        references = side if isinstance(side, str) else "".join(reference(*pair) for pair in side.items())
        inside += element(tag, references) if references else ""
    if modifiers:
        each = [element("modifierSpeciesReference", species=modifier) for modifier in modifiers]
        inside += element("listOfModifiers", "".join(each))
    if law:
        parameters = element("listOfLocalParameters", local) if local else ""
        inside += element("kineticLaw", formula(law) + parameters)
    return element("reaction", inside, id=name, **{"reversible": "false", "fast": "false", **more})


def rule(variable: str, value: str, kind: str = "assignmentRule") -> str:
    return element(kind, formula(value), **({"variable": variable} if variable else {}))


def assignment(symbol: str, value: str) -> str:
    return element("initialAssignment", formula(value), symbol=symbol)


def function(name: str, value: str) -> str:
    """A function; its value is written as `lambda(x, y, x * y)`."""
    return element("functionDefinition", formula(value), id=name)


def event(
    name: str,
    trigger: str,
    update: Mapping[str, str],
    inside: str = "",
    initial: str | None = "true",
    persistent: str | None = "true",
    **more: object,
) -> str:
    """An event; without `initial` and `persistent` it is one of Level 2."""
    settings = {"initialValue": initial, "persistent": persistent}
    written = element("trigger", formula(trigger), **settings) + inside
    assignments = [element("eventAssignment", formula(value), variable=name) for name, value in update.items()]
    written += element("listOfEventAssignments", "".join(assignments)) if assignments else ""
    return element("event", written, id=name or None, **{"useValuesFromTriggerTime": "true", **more})


def document(*parts: str, level: tuple[int, int] = (3, 1), attributes: str = "", **more: object) -> str:
    """A whole file: each part goes to the list that its tag belongs to, a line for each part."""
    lists = {
        "functionDefinition": "listOfFunctionDefinitions",
        "unitDefinition": "listOfUnitDefinitions",
        "compartment": "listOfCompartments",
        "species": "listOfSpecies",
        "parameter": "listOfParameters",
        "initialAssignment": "listOfInitialAssignments",
        "assignmentRule": "listOfRules",
        "rateRule": "listOfRules",
        "algebraicRule": "listOfRules",
        "constraint": "listOfConstraints",
        "reaction": "listOfReactions",
        "event": "listOfEvents",
    }
    found: dict[str, list[str]] = {name: [] for name in lists.values()}
    for part in parts:
        found[lists[part[1:].split(" ")[0].split(">")[0]]].append(part.replace("\n", " "))
    if not found["listOfCompartments"]:
        found["listOfCompartments"].append(compartment())
    inside = ""
    for name, members in found.items():
        inside += f"<{name}>\n" + "".join(f"{each}\n" for each in members) + f"</{name}>\n" if members else ""
    head = f'<sbml xmlns="{NAMESPACES[level]}" level="{level[0]}" version="{level[1]}"{attributes}>'
    body = element("model", f"\n{inside}", id="m", **more)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}\n{body}\n</sbml>\n'
