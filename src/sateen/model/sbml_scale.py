"""Amounts that are not whole numbers of molecules: how many molecules are in a unit, given, read or proposed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final

from sateen.core.errors import ModelError
from sateen.core.text import finite, number_text, shown
from sateen.language.expression import LARGEST_WHOLE, Expression, Name, Number, Operation, literal_value, number
from sateen.model.sbml_elements import Source, listed, whole
from sateen.model.sbml_math import AVOGADRO, Element, library

BY_UNITS: Final = "units"  # the scale that the units of the file say
_LARGEST: Final = 1e30
_ENOUGH: Final = 1000.0  # molecules of the most abundant species, in a proposal
_MOST_DIGITS: Final = 10  # of a count that is not scaled down
_HALF: Final = Number(0.5)


def scale_of(given: object, model: Element, source: Source) -> float | None:
    """The number of molecules in a unit of amount, if one is given; by "units" it is read from the file."""
    if given is None:
        return None
    if given == BY_UNITS:
        return _by_units(model, source)
    value = None if isinstance(given, bool) else finite(given)
    if value is None or not 0 < value <= _LARGEST:
        remedy = f"for example 1000, or {BY_UNITS} for what the units of the file say"
        raise ModelError(f"scale is {shown(given)}; it must be a number of molecules above 0", remedy=remedy)
    return float(value)


def scale_remedy(model: Element, amounts: Iterable[float]) -> str:
    """What to do about amounts that are not whole numbers of molecules; the units only where they can be counted by."""
    known = list(amounts)
    scale = number_text(proposed_scale(known))
    units = _units(model)
    molecules = _molecules(model, units[0]) if len(units) == 1 else None
    useful = molecules is not None and molecules > 1 and molecules * max(map(abs, known), default=1.0) < LARGEST_WHOLE
    return (
        "amounts are numbers of molecules here, whole ones from 0 on; say how many molecules are in a unit of amount:\n"
        f"Model.load(file, scale={scale}), or [model] scale = {scale} in a study, or --scale {scale}"
        + (f'; "units" takes what the units of the file say, {molecules:.6g}' if useful else "")
    )


def _units(model: Element) -> list[str]:
    """The units of amounts in a file, each once."""
    return list(dict.fromkeys(_substance(model, each) for each in listed(model.getListOfSpecies())))


def unit_doubts(model: Element) -> Iterator[tuple[str, Element]]:
    """What is doubtful where amounts are read as molecules: each unit of them that is another one, and what has it.

    The mole that Level 2 implies where a file says nothing is in none.
    """
    owners = {_substance(model, each): each for each in reversed(listed(model.getListOfSpecies()))}
    for unit in _units(model):
        molecules = _molecules(model, unit)
        chosen = owners[unit].isSetSubstanceUnits() or model.getUnitDefinition(unit) or model.getLevel() >= 3
        if chosen and molecules not in (None, 1.0):
            known = "the mole" if unit == "mole" else f"{unit}, {molecules:.6g} molecules"
            message = f"the unit of amounts is {known}; they are read as molecules, unless a scale says how many it has"
            yield message, owners[unit] if owners[unit].isSetSubstanceUnits() else model


def _by_units(model: Element, source: Source) -> float:
    units = _units(model)
    if len(units) != 1:
        source.fail("the units of amounts differ, so they give no single scale", model, "give a number: scale=1000")
    unit = units[0]
    molecules = _molecules(model, unit)
    if molecules is None:
        message = f"the unit of amounts is {unit or 'not given'}, which does not say how many molecules it is"
        source.fail(message, model, "give the number: scale=1000")
    return molecules


def _substance(model: Element, species: Element) -> str:
    """The unit of amounts of a species; in Level 2 there is one by default, which the model may redefine."""
    if species.isSetSubstanceUnits():
        return str(species.getSubstanceUnits())
    if model.getLevel() >= 3:
        return str(model.getSubstanceUnits())
    return "substance" if model.getUnitDefinition("substance") is not None else "mole"


def _molecules(model: Element, unit: str) -> float | None:
    """How many molecules are in a unit: a base unit, or one that the model defines by one base unit."""
    base = {"mole": AVOGADRO, "item": 1.0, "avogadro": AVOGADRO}
    if unit in base:
        return base[unit]
    definition = model.getUnitDefinition(unit) if unit else None
    if definition is None or definition.getNumUnits() != 1:
        return None
    part = definition.getUnit(0)
    kind = library().UnitKind_toString(part.getKind())
    if kind not in base or part.getExponentAsDouble() != 1.0:
        return None
    return base[kind] * float(part.getMultiplier()) * 10.0 ** int(part.getScale())


def proposed_scale(amounts: Iterable[float]) -> float:
    """A power of ten that gives the largest amount a thousand molecules, or a few more if all are whole then."""
    sizes = [abs(amount) for amount in amounts if amount and math.isfinite(amount)]
    largest = max(sizes, default=1.0)
    exponent = math.ceil(math.log10(_ENOUGH / largest) - 1e-9)
    if -_MOST_DIGITS < exponent < 0:  # larger amounts, if they can be counted, are taken as they are
        exponent = 0
    for more in range(exponent, exponent + 3):
        if all(whole(size * 10.0**more) for size in sizes):
            return float(f"1e{more}")
    return float(f"1e{exponent}")


def molecules_of(amount: Expression, scale: float, name: str) -> tuple[Expression, bool]:
    """The count that an amount is, a whole number, and whether it had to be rounded as far as is known.

    `name` is what the scale is called in a formula.
    """
    value = literal_value(amount)
    if value is None:
        return rounded(amount, name), True
    count = value * scale
    if not abs(count) < LARGEST_WHOLE:
        raise ModelError(
            f"{number_text(value)} are {count:.3g} molecules, too many to be counted one by one",
            remedy="take a smaller scale: the noise of this many molecules cannot be seen",
        )
    return number(float(math.floor(count + 0.5))), whole(count) is None


def rounded(amount: Expression, name: str) -> Expression:
    """The formula of the whole number of molecules nearest to an amount."""
    count = Operation("*", (amount, Name(name)))
    return Operation("floor", (Operation("+", (count, _HALF)),))
