"""What is refused of an SBML file before libsbml reads it: entity bombs, oversized formulas, and files of other kinds.

The text is read once by expat, element by element and without building anything. A document type, which is where
entities are declared and other files are named, ends the reading at its first character; so does an element that is
too deep. Two checks of the library take a time that grows with a square: of the length of a formula, and of the number
of pairs of formulas of which one reads the other, by way of others too. Both numbers are limited.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from xml.parsers import expat

from sateen.core.errors import ModelError

MAX_BYTES: Final = 10_000_000
MAX_ELEMENT_DEPTH: Final = 200
MAX_FORMULA_ELEMENTS: Final = 2_000
MAX_FUNCTION_PAIRS: Final = 1_000
MAX_FORMULA_PAIRS: Final = 20_000
_MATH: Final = "http://www.w3.org/1998/Math/MathML math"
_CI: Final = "http://www.w3.org/1998/Math/MathML ci"
_OWNERS: Final = {  # elements with a formula, and the attribute by which other formulas read its value
    "functionDefinition": "id",
    "assignmentRule": "variable",
    "initialAssignment": "symbol",
    "reaction": "id",
}
_PACKAGE: Final = re.compile(r"https?://www\.sbml\.org/sbml/level3/version\d+/(\w+)/version\d+ required")
_PLAIN_ENCODINGS: Final = frozenset({"utf-8", "utf8", "us-ascii", "ascii"})
_LATIN_ENCODINGS: Final = frozenset({"iso-8859-1", "iso-8859-15", "latin1", "latin-1", "windows-1252"})


def safe_header(text: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """What an SBML text declares, if it is safe to read on; ModelError, with the line, for any other text.

    First the packages that it uses and that a reader may ignore, then the ids of the reactions with the attribute
    reversible; in Level 2 they are so as well without it.
    """
    try:
        size = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError as error:
        message = f"{text[error.start]!r} is half of a character"
        raise ModelError(message, text, error.start, "save the file in UTF-8") from None
    if size > MAX_BYTES:
        raise ModelError(f"an SBML file of {size:,} bytes; at most {MAX_BYTES:,} are read")
    if not text.strip():
        raise ModelError("an SBML file without any text")
    return _SafetyCheck(text).header()


class _SafetyCheck:
    """One reading by expat, which ends at the first thing that is refused."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.depth = 0
        self.math_depth = 0
        self.formula_elements = 0
        self.packages: tuple[str, ...] | None = None
        self.reversible: set[str] = set()
        self.functions: dict[str, set[str]] = {}  # the names that each reads
        self.formulas: dict[str, set[str]] = {}
        self.owner: set[str] | None = None
        self.name: list[str] | None = None
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.EntityDeclHandler = self._doctype
        self.parser.XmlDeclHandler = self._declaration
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text

    def header(self) -> tuple[tuple[str, ...], frozenset[str]]:
        try:
            self.parser.Parse(self.text.removeprefix("\ufeff"), True)
        except expat.ExpatError as error:
            message = f"this is not XML: {expat.ErrorString(error.code)}"
            raise self._error(message, line=error.lineno, column=error.offset) from None
        assert self.packages is not None
        for noun, reads, most in (
            ("functions", self.functions, MAX_FUNCTION_PAIRS),
            ("rules, assignments and rates", self.formulas, MAX_FORMULA_PAIRS),
        ):
            if _has_pairs(reads, most):
                raise ModelError(f"{noun} read each other in more than {most:,} pairs", remedy="write some of them out")
        return self.packages, frozenset(self.reversible)

    def _declaration(self, _version: str, encoding: str | None, _standalone: int) -> None:
        """An encoding under which the library could read something else than what is read here is refused."""
        known = _PLAIN_ENCODINGS | (_LATIN_ENCODINGS if self.text.isascii() else frozenset())
        if encoding and encoding.lower() not in known:
            raise self._error(f"the encoding {encoding} is not read", "save the file in UTF-8")

    def _doctype(self, *_: object) -> None:
        raise self._error(
            "a document type (DOCTYPE) is refused", "SBML has none; it could name entities and other files: remove it"
        )

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self.depth += 1
        if self.depth > MAX_ELEMENT_DEPTH:
            raise self._error(f"more than {MAX_ELEMENT_DEPTH} elements within each other")
        if self.packages is None:
            self._outermost(name, attributes)
        space, _, element = name.rpartition(" ")
        if element in _OWNERS and "/sbml/" in space:
            kept = self.functions if element == "functionDefinition" else self.formulas
            self.owner = kept.setdefault(attributes.get(_OWNERS[element], ""), set())
            if attributes.get("reversible", "").strip() in ("true", "1"):
                self.reversible.add(attributes.get("id", ""))
        if name == _CI:
            self.name = []
        if name == _MATH and not self.math_depth:
            self.math_depth = self.depth
            self.formula_elements = 0
        self.formula_elements += 1
        if self.math_depth and self.formula_elements > MAX_FORMULA_ELEMENTS:
            remedy = "write it as assignment rules, or as a function definition, that are used in turn"
            raise self._error(f"a formula of more than {MAX_FORMULA_ELEMENTS:,} elements", remedy)

    def _outermost(self, name: str, attributes: dict[str, str]) -> None:
        space, _, element = name.rpartition(" ")
        if element != "sbml" or not re.match(r"https?://www\.sbml\.org/sbml/", space):
            remedy = "an SBML file begins with <sbml xmlns=... level=... version=...>"
            raise self._error(f"this is XML, but not SBML: its outermost element is {element}", remedy)
        if attributes.get("level") == "1":
            remedy = "convert it to Level 3 first, for example with libsbml's converters"
            raise self._error("SBML of Level 1 is not read", remedy)
        packages = {match[1]: value for key, value in attributes.items() if (match := _PACKAGE.fullmatch(key))}
        for package in (name for name, value in packages.items() if value.strip() in ("true", "1")):
            remedy = "flatten the model first" if package == "comp" else "save the model without it"
            raise self._error(f"the model needs the package {package}, which is not supported", remedy)
        self.packages = tuple(packages)

    def _text(self, text: str) -> None:
        if self.name is not None:
            self.name.append(text)

    def _end(self, name: str) -> None:
        if name == _CI and self.name is not None:
            if self.owner is not None:
                self.owner.add("".join(self.name).strip())
            self.name = None
        if name.rpartition(" ")[2] in _OWNERS:
            self.owner = None
        if self.depth == self.math_depth:
            self.math_depth = 0
        self.depth -= 1

    def _error(self, message: str, remedy: str = "", line: int = 0, column: int = -1) -> ModelError:
        line = line or self.parser.CurrentLineNumber
        column = self.parser.CurrentColumnNumber if column < 0 else column
        return ModelError(message, self.text, _line_start(self.text, line) + column, remedy)


def _has_pairs(reads: Mapping[str, set[str]], most: int) -> bool:
    """Whether there are more than `most` pairs of names of which one reads the other, by way of others too."""
    pairs = 0
    for name in reads:
        seen: set[str] = set()
        waiting = [name]
        while waiting and pairs + len(seen) <= most:
            new = {each for each in reads[waiting.pop()] if each in reads} - seen
            seen |= new
            waiting += new
        pairs += len(seen)
        if pairs > most:
            return True
    return False


def first_character(text: str, line: int) -> int:
    """Where the first character from a line on that is not a space stands."""
    start = _line_start(text, line)
    return start + len(text[start:]) - len(text[start:].lstrip())


def _line_start(text: str, line: int) -> int:
    """Where a line of a text begins, or the text ends; lines are counted from 1."""
    *before, rest = text.split("\n", max(line - 1, 0))
    return len(text) - len(rest) if len(before) >= line - 1 else len(text)
