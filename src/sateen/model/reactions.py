"""sateen's own model text, read.

    species S = 95, I = I0             # initial counts: numbers, parameters, or expressions of them
    constant N = 100
    parameter gamma = 0.05, beta       # with or without a default; undeclared free names are parameters too
    infect:  S + I -> 2 I  @ beta * S * I / N
    recover: I -> R        @ mass_action(gamma)
    0 -> S                 @ 0.1 when S < 50        # a guard

A reaction consumes what stands left of the arrow and produces what stands right of it, at the rate after `@`; `0` is
nothing. `mass_action(k)` is k times the number of ways to choose the reactants: k·A·B, or k·A(A-1)/2 for 2 A.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, NoReturn

from sateen.core.errors import ExpressionError, ModelError, ModelWarning, nearest
from sateen.core.expression import Expression, Name, Number, Operation, parse_condition, parse_expression
from sateen.model.checks import consumption_fault, negative_by_sign
from sateen.model.model import Constant, Model, Parameter, Transition, Variable

__all__ = ["MAX_CHARACTERS", "mass_action", "read_reactions"]

MAX_CHARACTERS: Final = 200_000
_MOST: Final = 2**53  # whole numbers beyond are not exact
_MOST_HINTS: Final = 50  # names among which a misspelt one is looked for
_MOST_REACTANTS: Final = 50  # of mass_action, whose rate has a factor for each
_NAME: Final = r"(?:[^\W\d]\w*|`[^`\n]+`)"
_LABEL: Final = re.compile(rf"\s*({_NAME})\s*:(?!=)")
_TERM: Final = re.compile(rf"\s*(?:([0-9]+)\s*\*?\s*)?({_NAME})\s*")
_DECLARED: Final = re.compile(rf"\s*({_NAME})\s*(?:=(?!=)(.*))?$", re.DOTALL)
_NO_RATE: Final = ("this reaction has no rate", "write it after @, as in  I -> R @ gamma * I")
_KINDS: Final = ("species", "constant", "parameter")


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of the text that knows where it stands, so that every error can point there."""

    whole: str
    start: int
    text: str

    def part(self, begin: int, end: int | None = None) -> _Piece:
        return _Piece(self.whole, self.start + begin, self.text[begin:end])

    def fail(self, message: str, remedy: str = "") -> NoReturn:
        lead = len(self.text) - len(self.text.lstrip())
        raise ModelError(message, self.whole, self.start + lead, remedy)

    def split(self, separator: str) -> Iterator[_Piece]:
        """The pieces between separators that stand outside brackets and backquotes."""
        begin = depth = 0
        quoted = False
        for index, character in enumerate(self.text):
            quoted ^= character == "`"
            depth += 0 if quoted else (character == "(") - (character == ")")
            if character == separator and depth == 0 and not quoted:
                yield self.part(begin, index)
                begin = index + 1
        yield self.part(begin)

    def masked(self) -> str:
        """The text with every name in backquotes blotted out, at the same length."""
        return re.sub(r"`[^`]*`", lambda quoted: "`" * len(quoted[0]), self.text)

    def expression(self, condition: bool = False) -> Expression:
        try:
            return (parse_condition if condition else parse_expression)(self.text)
        except ExpressionError as error:
            raise ModelError(error.message, self.whole, self.start + error.position, error.remedy) from None


def read_reactions(text: str) -> Model:
    """The model that `text` describes, checked; doubts are given as ModelWarning and kept in `model.warnings`."""
    if not isinstance(text, str):
        raise ModelError(f"a model is written as text, not as {type(text).__name__}")
    if len(text) > MAX_CHARACTERS:
        raise ModelError(f"a model of {len(text):,} characters; at most {MAX_CHARACTERS:,} are read")
    reader = _Reader(text)
    for line in _lines(text):
        reader.line(line)
    model = reader.model()
    for doubt in model.warnings:
        warnings.warn(doubt, ModelWarning, stacklevel=3)
    return model


def _lines(text: str) -> Iterator[_Piece]:
    """The lines that say something, without their comments."""
    start = 0
    for line in text.split("\n"):
        said = re.match(r"(?:`[^`]*`|[^#`])*", line)
        piece = _Piece(text, start, line if said is None or "#" not in line[said.end() :] else said[0])
        if piece.text.strip():
            yield piece
        start += len(line) + 1


@dataclass(frozen=True, slots=True)
class _Reaction:
    """A reaction and where its sides and its rate stand."""

    transition: Transition
    sides: _Piece
    rate: _Piece


class _Reader:
    """Collects declarations and reactions line by line, then puts the model together."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.where: dict[str, _Piece] = {}  # where each name was declared
        self.variables: dict[str, Variable] = {}
        self.constants: dict[str, Constant] = {}
        self.parameters: dict[str, Parameter] = {}
        self.reactions: list[_Reaction] = []
        self.labels: set[str] = set()
        self.doubts: list[str] = []

    def line(self, line: _Piece) -> None:
        kind = line.text.split(maxsplit=1)[0]
        if kind in _KINDS:
            rest = line.part(line.text.index(kind) + len(kind))
            for declared in rest.split(","):
                self.declare(kind, declared)
        elif "@" in line.text or re.search(r"[-=]>|<[-=]", line.text):
            self.reaction(line)
        else:
            hint = nearest(kind, [*_KINDS, "parameters", "constants"])
            remedy = hint or "a reaction looks like  infect: S + I -> 2 I @ beta * S * I"
            line.fail("this line is neither a declaration nor a reaction", remedy)

    def declare(self, kind: str, declared: _Piece) -> None:
        match = _DECLARED.match(declared.text)
        if match is None:
            declared.fail(f"expected a name and a value, such as {kind} X = 5")
        name = self.name(declared.part(match.start(1), match.end(1)))
        value = None if match[2] is None else declared.part(match.start(2)).expression()
        if kind == "species":
            if value is None:
                declared.fail(f"{name} needs an initial count", f"write  species {name} = 0")
            if not value.names and not _whole(float(value.evaluate({}))):
                declared.part(match.start(2)).fail(f"a count is a whole number from 0 on, not {value}")
            self.variables[name] = Variable(name, value)
        elif kind == "constant":
            if value is None:
                declared.fail(f"{name} needs a value", f"write  constant {name} = 100")
            self.constants[name] = Constant(name, value)
        else:
            if value is not None and value.names:
                declared.part(match.start(2)).fail("a default is a number", f"write  constant {name} = {value}")
            self.parameters[name] = Parameter(name, None if value is None else float(value.evaluate({})))

    def name(self, piece: _Piece) -> str:
        tree = piece.expression()
        assert isinstance(tree, Name)
        if tree.name in self.where:
            first = self.where[tree.name]
            line = first.whole.count("\n", 0, first.start) + 1
            piece.fail(f"{tree.name} is declared twice", f"first on line {line}; give one of them another name")
        self.where[tree.name] = piece
        return tree.name

    def reaction(self, line: _Piece) -> None:
        label = _LABEL.match(line.text)
        name = label[1].strip("`") if label else ""
        body = line.part(label.end() if label else 0)
        sides, *rates = body.split("@")
        if not rates:
            line.part(len(line.text.rstrip())).fail(*_NO_RATE)
        if len(rates) > 1:
            rates[1].fail("a second rate", "a reaction has one @, with its rate behind it")
        rate, guard = _guarded(rates[0])
        if not rate.text.strip():
            line.part(len(line.text.rstrip())).fail(*_NO_RATE)
        if name and name in self.labels:
            line.fail(f"two reactions are called {name}", "give one of them another name")
        self.labels.add(name)
        consumed, produced = self.sides(sides)
        transition = Transition(name, _rate(rate, consumed), consumed, produced, guard=guard)
        self.reactions.append(_Reaction(transition, sides, rate))

    def sides(self, piece: _Piece) -> tuple[tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]]:
        masked = piece.masked()
        if strange := re.search(r"<-+>?|<=+>?|=+>|--+>", masked):
            arrow = strange[0]
            remedy = "write a reversible reaction as two reactions" if "<" in arrow else "write ->"
            piece.part(strange.start()).fail(f"{arrow} is not the arrow of a reaction", remedy)
        parts = masked.split("->")
        if len(parts) != 2:
            piece.fail("a reaction has one arrow, ->", "it looks like  S + I -> 2 I @ beta * S * I")
        left = piece.part(0, len(parts[0]))
        right = piece.part(len(parts[0]) + 2)
        return self.side(left), self.side(right)

    def side(self, piece: _Piece) -> tuple[tuple[str, int], ...]:
        if piece.text.strip() in ("0", "∅"):
            return ()
        counts: dict[str, int] = {}
        for term in piece.split("+"):
            match = _TERM.fullmatch(term.text)
            if match is None:
                found = f"{term.text.strip()!r} is no species" if term.text.strip() else "a species is missing here"
                term.fail(found, "each side looks like  A + 2 B, or 0 for nothing; the rate stands after @")
            name = match[2].strip("`")
            digits = match[1] or "1"
            count = int(digits) if len(digits) < 10 else _MOST
            if not 0 < count <= 1000:
                term.fail(f"between 1 and 1000 of a species can take part, not {digits[:20]} {name}")
            if name not in self.variables:
                remedy = nearest(name, self.variables) or f"declare it first: species {name} = 0"
                term.fail(f"{name} is not a species", remedy)
            counts[name] = counts.get(name, 0) + count
        return tuple(counts.items())

    def model(self) -> Model:
        if not self.variables:
            remedy = "begin with a line such as  species S = 95, I = 5"
            raise ModelError("this model has no species", self.text, 0, remedy)
        if not self.reactions:
            remedy = "add a line such as  I -> R @ gamma * I"
            raise ModelError("this model has no reactions", self.text, len(self.text), remedy)
        self._name_the_unnamed()
        self._free_names()
        for reaction in self.reactions:
            self._check(reaction)
        self._unused()
        return Model(
            tuple(self.variables.values()),
            tuple(reaction.transition for reaction in self.reactions),
            tuple(self.parameters.values()),
            tuple(self.constants.values()),
            warnings=tuple(self.doubts),
        )

    def _name_the_unnamed(self) -> None:
        """Calls them r1, r2, ... by their place in the text."""
        taken = {reaction.transition.name for reaction in self.reactions}
        for place, reaction in enumerate(self.reactions):
            name = f"r{place + 1}"
            while name in taken:
                name += "_"
            if not reaction.transition.name:
                self.reactions[place] = replace(reaction, transition=replace(reaction.transition, name=name))

    def _check(self, reaction: _Reaction) -> None:
        transition = reaction.transition
        if negative_by_sign(transition.rate):
            reaction.rate.fail(f"the rate {transition.rate} is never positive", "rates are at least 0: change its sign")
        fault = consumption_fault(transition)
        if fault is not None and fault.fatal:
            reaction.sides.fail(fault.message, fault.remedy)
        if fault is not None:
            self._doubt(reaction.sides, f"{fault.message}; {fault.remedy}")

    def _doubt(self, piece: _Piece, message: str) -> None:
        self.doubts.append(f"line {piece.whole.count(chr(10), 0, piece.start) + 1}: {message}")

    def _free_names(self) -> None:
        """Makes every name that nothing declares a parameter, after a check of what declarations read."""
        for variable in self.variables.values():
            self._read_by(variable.name, variable.initial, set(self.constants))
        earlier: set[str] = set()
        for constant in self.constants.values():
            self._read_by(constant.name, constant.value, earlier)
            earlier.add(constant.name)
        for reaction in self.reactions:
            for name in reaction.transition.reads:
                if name in ("t", "time") and name not in self.where:
                    message = f"{name} is not declared, and rates cannot depend on time"
                    reaction.rate.fail(message, f"if it is no time, declare it: parameter {name}")
                self._known_or_parameter(name)

    def _read_by(self, owner: str, value: Expression, constants: set[str]) -> None:
        for name in value.names:
            if name in self.variables:
                self.where[owner].fail(f"{owner} cannot read the species {name}", "it is fixed before the run begins")
            if name in self.constants and name not in constants:
                self.where[owner].fail(f"{owner} reads the constant {name}, which is defined later", "swap them")
            self._known_or_parameter(name)

    def _known_or_parameter(self, name: str) -> None:
        if name not in self.variables and name not in self.constants:
            self.parameters.setdefault(name, Parameter(name))

    def _unused(self) -> None:
        """Doubts about declared parameters that nothing reads."""
        values = [variable.initial for variable in self.variables.values()]
        values += [constant.value for constant in self.constants.values()]
        read = {name for value in values for name in value.names}
        read |= {name for reaction in self.reactions for name in reaction.transition.reads}
        undeclared = [name for name in self.parameters if name not in self.where]
        for name in self.parameters:
            if name not in read:
                hint = nearest(name, undeclared[:_MOST_HINTS]).replace("did you mean", "was it meant by")
                self._doubt(self.where[name], f"nothing uses the parameter {name}" + (f"; {hint}" if hint else ""))


def _whole(count: float) -> bool:
    return count.is_integer() and 0 <= count < _MOST


def _guarded(piece: _Piece) -> tuple[_Piece, Expression | None]:
    """The rate and the guard of `rate when guard`."""
    match = re.search(r"\bwhen\b", piece.masked())
    if match is None:
        return piece, None
    return piece.part(0, match.start()), piece.part(match.end()).expression(condition=True)


def _rate(piece: _Piece, consumed: tuple[tuple[str, int], ...]) -> Expression:
    match = re.fullmatch(r"\s*mass_action\s*\((.*)\)\s*", piece.text, re.DOTALL)
    if match:
        if sum(count for _, count in consumed) > _MOST_REACTANTS:
            remedy = "write the rate itself, and a guard: when A >= 100"
            piece.fail(f"mass_action is for at most {_MOST_REACTANTS} reactants", remedy)
        return mass_action(piece.part(match.start(1), match.end(1)).expression(), consumed)
    if misplaced := re.search(r"\bmass_action\b", piece.masked()):
        remedy = "write  @ mass_action(2 * k), not  @ 2 * mass_action(k)"
        piece.part(misplaced.start()).fail("mass_action(k) stands alone", remedy)
    return piece.expression()


def mass_action(constant: Expression, consumed: tuple[tuple[str, int], ...]) -> Expression:
    """`constant` times the number of ways to choose the reactants: k·A·B, k·A(A-1)/2 for two A."""
    rate = constant
    for name, count in consumed:
        ways = 1
        for taken in range(count):
            left: Expression = Name(name)
            if taken:
                left = Operation("+", (left, Operation("-", (Number(float(taken)),))))
            rate = Operation("*", (rate, left))
            ways *= taken + 1
        if ways > 1:
            rate = Operation("/", (rate, Number(float(ways))))
    return rate
