"""The phrases of model text, each cut into its parts: what stands where, before any name is looked up.

`x = 0 in [0, 10]` has a value and bounds, `rate when guard` a rate and a guard, `X := 50 when time >= 25` assignments
and a trigger. Every part is a Piece, which knows its place, so that every error can point there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NoReturn

from sateen.core.errors import ModelError
from sateen.language.expression import LARGEST_WHOLE, Expression, Name, Number, Operation
from sateen.language.grammar import legible, parse_condition, parse_expression, pointed
from sateen.model.checks import MOST_MOLECULES

NAME: Final = r"(?:[^\W\d]\w*|`[^`\n]+`)"
_MOST_REACTANTS: Final = 50  # of mass_action, whose rate has a factor for each
_LABEL: Final = re.compile(rf"\s*({NAME})\s*:(?!=)")
_TERM: Final = re.compile(rf"\s*(?:([0-9]+)\s*(?:\*\s*)?)?({NAME})\s*")
_TARGET: Final = re.compile(rf"\s*({NAME})\s*:=")
_IN: Final = re.compile(r"(?:(?<=[\w`])\s+|(?<=\))\s*)in\b")  # after a value; elsewhere `in` is a name
_BOUNDS: Final = re.compile(r"\s*([\[(])\s*(-\s*inf|[-+]?\s*[0-9]+)\s*,\s*(\+?\s*inf|[-+]?\s*[0-9]+)\s*([\])])\s*")
WHEN: Final = re.compile(r"\bwhen\b")  # between a rate and its guard, or assignments and their trigger
ASSUMES: Final = re.compile(r'\s*assumes\s*(?=")')
_BEFORE_COMMENT: Final = re.compile(rf'(?:{ASSUMES.pattern}"(?:[^"\\]|\\.)*")?(?:`[^`]*`|[^#`])*')
_INITIALLY: Final = re.compile(r"\binitially\b(?:\s+(\w+))?\s*$")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the text that knows where it stands."""

    whole: str
    start: int
    text: str

    @property
    def line(self) -> int:
        """The line where it stands, counted from 1."""
        return self.whole.count("\n", 0, self.start) + 1

    @property
    def blank(self) -> bool:
        """Whether it says nothing."""
        return not self.text.strip()

    @property
    def nothing(self) -> bool:
        """Whether it says that there is nothing."""
        return self.text.strip() in ("0", "∅")

    def part(self, begin: int, end: int | None = None) -> Piece:
        """The piece from one of its characters to another."""
        return Piece(self.whole, self.start + begin, self.text[begin:end])

    def rest(self) -> Piece:
        """The place behind its last word."""
        return self.part(len(self.text.rstrip()))

    def fail(self, message: str, remedy: str = "") -> NoReturn:
        """Raises a ModelError that points to its first word."""
        lead = len(self.text) - len(self.text.lstrip())
        raise ModelError(message, self.whole, self.start + lead, remedy)

    def split(self, separator: str) -> Iterator[Piece]:
        """The pieces between separators that stand outside brackets and backquotes."""
        begin = depth = 0
        quoted = False
        for index, character in enumerate(self.text):
            quoted ^= character == "`"
            depth += 0 if quoted else (character in "([") - (character in ")]")
            if character == separator and depth == 0 and not quoted:
                yield self.part(begin, index)
                begin = index + 1
        yield self.part(begin)

    def cut(self, pattern: re.Pattern[str]) -> tuple[Piece, Piece | None]:
        """The pieces before and behind the first match outside backquotes; the whole and None where there is none."""
        match = pattern.search(self.masked())
        return (self, None) if match is None else (self.part(0, match.start()), self.part(match.end()))

    def masked(self) -> str:
        """The text with every name in backquotes blotted out, at the same length."""
        return re.sub(r"`[^`]*`", lambda quoted: "`" * len(quoted[0]), self.text)

    def expression(self, condition: bool = False) -> Expression:
        """The tree of what it says; ModelError, with a caret, where it says none."""
        with pointed(self.whole, ModelError, self.start):
            return (parse_condition if condition else parse_expression)(self.text)

    def label(self) -> tuple[str, Piece]:
        """The name before the colon, and what stands behind it; the name is empty where there is none."""
        match = _LABEL.match(self.text)
        if match is None:
            return "", self
        with pointed(self.whole, ModelError, self.start):
            return legible(match[1].strip("`"), match.start(1)), self.part(match.end())

    def sides(self) -> tuple[Piece, Piece]:
        """What stands left and right of the arrow of a reaction."""
        masked = self.masked()
        if strange := re.search(r"<-+>?|<=+>?|(?<!=)=+>|(?<!-)--+>", masked):
            arrow = strange[0]
            remedy = "write a reversible reaction as two reactions" if "<" in arrow else "write ->"
            self.part(strange.start()).fail(f"{arrow} is not the arrow of a reaction", remedy)
        parts = masked.split("->")
        if len(parts) != 2:
            self.fail("a reaction has one arrow, ->", "it looks like  S + I -> 2 I @ beta * S * I")
        return self.part(0, len(parts[0])), self.part(len(parts[0]) + 2)

    def terms(self) -> Iterator[tuple[Piece, str, int]]:
        """The terms of a side such as `A + 2 B`, each with its name and how many there are of it."""
        for term in () if self.nothing else self.split("+"):
            match = _TERM.fullmatch(term.text)
            if match is None:
                message = "a species is missing here" if term.blank else f"{term.text.strip()!r} is not a species"
                term.fail(message, "each side looks like  A + 2 B, or 0 for nothing; the rate follows @")
            name = match[2].strip("`")
            digits = match[1] or "1"
            count = int(digits) if len(digits) <= 10 else LARGEST_WHOLE
            if not 0 < count <= MOST_MOLECULES:
                term.fail(f"between 1 and {MOST_MOLECULES:,} of a species can take part, not {digits[:20]} {name}")
            yield term, name, count

    def assignment(self) -> tuple[str, Piece]:
        """The name and the value of `x := x - 1`."""
        match = _TARGET.match(self.text)
        if match is None:
            message = "an assignment is missing here" if self.blank else f"{self.text.strip()!r} is not an assignment"
            self.fail(message, "assignments look like  x := x - 1, y := 0")
        return match[1].strip("`"), self.part(match.end())

    def bounded(self) -> tuple[Piece, tuple[int | None, int | None] | None]:
        """The value and the bounds of `value in [low, high]`; None where no bounds are written."""
        value, written = self.cut(_IN)
        if written is None:
            return self, None
        match = _BOUNDS.fullmatch(written.text)
        if match is None:
            remedy = "they are whole numbers: x = 0 in [0, 10]; open ends are (-inf, 10] and [0, inf)"
            written.fail("bounds look like [0, 10]", remedy)
        low, high = (written.part(match.start(group))._bound(match[group]) for group in (2, 3))
        for bracket, end in ((1, low), (4, high)):
            if match[bracket] in "()" and end is not None:
                remedy = f"write {'[' if match[bracket] == '(' else ']'}"
                written.part(match.start(bracket)).fail("bounds belong to the range", remedy)
        if low is not None and high is not None and low > high:
            written.fail(f"no number is from {low} to {high}", "the lower bound comes first")
        return value, (low, high)

    def _bound(self, text: str) -> int | None:
        digits = re.sub(r"\s", "", text)
        if "inf" in digits:
            return None
        if len(digits) > 20 or abs(int(digits)) > LARGEST_WHOLE:
            self.fail(f"{digits[:20]} is too large for a bound", "leave that end open: (-inf, or inf)")
        return int(digits)

    def sentence(self) -> str:
        """What a text in double quotes says, with the escapes of JSON."""
        try:
            said = json.loads(self.text)
        except ValueError:
            said = None
        if not isinstance(said, str):
            self.fail("a sentence in double quotes is missing here", 'as in  assumes "cells do not die"')
        return said

    def triggered(self) -> tuple[Piece, Piece, bool]:
        """The assignments and the trigger of `X := 50 when time >= 25`, and what `initially` says."""
        assignments, trigger = self.cut(WHEN)
        if trigger is None:
            self.rest().fail("this event has no trigger", "write after when what makes it happen: when time >= 25")
        initially = True
        if clause := _INITIALLY.search(trigger.masked()):
            if clause[1] not in ("true", "false"):
                remedy = "it is the value that the trigger is taken to have before time 0"
                trigger.part(clause.start()).fail("write initially false, or initially true", remedy)
            initially = clause[1] == "true"
            trigger = trigger.part(0, clause.start())
        if trigger.blank:
            when = self.part(len(assignments.text))
            when.fail("this event has no trigger", "a trigger is a condition: when time >= 25")
        return assignments, trigger, initially

    def rate(self, consumed: tuple[tuple[str, int], ...]) -> Expression:
        """The rate that stands after @, with mass_action(k) written out."""
        match = re.fullmatch(r"\s*mass_action\s*\((.*)\)\s*", self.text, re.DOTALL)
        if match:
            if sum(count for _, count in consumed) > _MOST_REACTANTS:
                remedy = "write the rate itself, and a guard: when A >= 100"
                self.fail(f"mass_action is for at most {_MOST_REACTANTS} reactants", remedy)
            return mass_action(self.part(match.start(1), match.end(1)).expression(), consumed)
        if misplaced := re.search(r"\bmass_action\b", self.masked()):
            remedy = "write  @ mass_action(2 * k), not  @ 2 * mass_action(k)"
            self.part(misplaced.start()).fail("mass_action(k) stands alone", remedy)
        return self.expression()


def lines_of(text: str) -> Iterator[Piece]:
    """The lines that say something, without their comments."""
    start = 0
    for line in text.split("\n"):
        before = _BEFORE_COMMENT.match(line)
        piece = Piece(text, start, line if before is None or "#" not in line[before.end() :] else before[0])
        if not piece.blank:
            yield piece
        start += len(line) + 1


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
