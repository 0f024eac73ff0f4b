"""What is refused of an SBML file before libsbml reads it: entity bombs, oversized formulas, and files of other kinds.

The text is read once by expat, element by element and without building anything. A document type, which is where
entities are declared and other files are named, ends the reading at its first character; so does an element that is
too deep. Two checks of the library take a time that grows with a square: of the length of a formula, and of the number
of pairs of formulas of which one reads the other, by way of others too. Both numbers are limited. So is the size of a
model that is composed of others, which the library flattens: each definition may use others several times.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from xml.parsers import expat

from sateen.core.errors import ModelError

MAX_BYTES: Final = 10_000_000
MAX_ELEMENT_DEPTH: Final = 200
MAX_FORMULA_ELEMENTS: Final = 2_000
MAX_FUNCTION_PAIRS: Final = 1_000
MAX_FORMULA_PAIRS: Final = 20_000
MAX_COMPOSED_ELEMENTS: Final = 50_000
_MATH: Final = "http://www.w3.org/1998/Math/MathML math"
_CI: Final = "http://www.w3.org/1998/Math/MathML ci"
_OWNERS: Final = {  # elements with a formula, and the attribute by which other formulas read its value
    "functionDefinition": "id",
    "assignmentRule": "variable",
    "initialAssignment": "symbol",
    "reaction": "id",
}
_PACKAGE: Final = re.compile(r"https?://www\.sbml\.org/sbml/level3/version\d+/(?!core\b)(\w+)/version\d+")
_MAIN: Final = ""  # the model itself, among those that it is composed of
_PLAIN_ENCODINGS: Final = frozenset({"utf-8", "utf8", "us-ascii", "ascii"})
_LATIN_ENCODINGS: Final = frozenset({"iso-8859-1", "iso-8859-15", "latin1", "latin-1", "windows-1252"})


@dataclass(frozen=True, slots=True)
class Header:
    """What an SBML text declares: its packages that are not read, and whether it is composed of submodels.

    `empty` are packages that a reader must understand, but of which nothing stands in the text.
    """

    packages: tuple[str, ...]
    empty: tuple[str, ...]
    composed: bool


def safe_header(text: str) -> Header:
    """What an SBML text declares, if it is safe to read on; ModelError, with the line, for any other text."""
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
        self.packages: dict[str, bool] | None = None  # and whether a reader must understand them
        self.content: dict[str, ModelError] = {}  # of packages, where it begins
        self.definition = _MAIN
        self.submodels: dict[str, list[str]] = {_MAIN: []}  # what each definition is composed of
        self.elements: dict[str, int] = {_MAIN: 0}  # that each has itself
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

    def header(self) -> Header:
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
        must = [name for name, required in self.packages.items() if required]
        for name in must:
            if name in self.content and name != "comp":
                raise self.content[name]
        composed = "comp" in self.content
        if composed:
            self._refuse_large_composition()
        unread = tuple(name for name in self.packages if name not in must)
        return Header(unread, tuple(name for name in must if name not in self.content), composed)

    def _refuse_large_composition(self) -> None:
        """Refuses definitions that are composed of themselves, or that make too many elements."""
        sizes: dict[str, int] = {}

        def size(name: str, within: tuple[str, ...]) -> int:
            if name in within:
                raise ModelError(f"the model definition {name} is composed of itself")
            if name not in sizes:
                parts = (size(part, (*within, name)) for part in self.submodels.get(name, ()))
                sizes[name] = min(self.elements.get(name, 0) + sum(parts), 2 * MAX_COMPOSED_ELEMENTS)
            return sizes[name]

        if len(self.submodels) > MAX_ELEMENT_DEPTH or size(_MAIN, ()) > MAX_COMPOSED_ELEMENTS:
            message = f"a model composed of more than {MAX_COMPOSED_ELEMENTS:,} elements"
            raise ModelError(message, remedy="compose it of fewer parts")

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
        self._packaged(space, element, attributes)
        if element in _OWNERS and "/sbml/" in space:
            kept = self.functions if element == "functionDefinition" else self.formulas
            self.owner = kept.setdefault(attributes.get(_OWNERS[element], ""), set())
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
        self.packages = {}
        for key, value in attributes.items():
            space, _, attribute = key.rpartition(" ")
            if attribute == "required" and (match := _PACKAGE.fullmatch(space)):
                self.packages[match[1]] = value.strip() in ("true", "1")

    def _packaged(self, space: str, element: str, attributes: dict[str, str]) -> None:
        """Notes what belongs to a package, and of what a model is composed."""
        for place in (space, *(key.rpartition(" ")[0] for key in attributes if self.depth > 1)):
            if (match := _PACKAGE.fullmatch(place)) and match[1] not in self.content:
                package, remedy = match[1], "save the model without it"
                message = f"the model needs the package {package}, which is not supported"
                self.content[package] = self._error(message, remedy)
        self.elements[self.definition] += 1
        if not _PACKAGE.fullmatch(space):
            return
        if element == "externalModelDefinition":
            remedy = "a model is one file: put the definition into it"
            raise self._error("a model definition in another file is refused", remedy)
        if element == "modelDefinition":
            self.definition = attributes.get("id", "?")
            self.submodels.setdefault(self.definition, [])
            self.elements.setdefault(self.definition, 0)
        if element == "submodel":
            reference = next((value for key, value in attributes.items() if key.endswith("modelRef")), "?")
            self.submodels[self.definition].append(reference)

    def _text(self, text: str) -> None:
        if self.name is not None:
            self.name.append(text)

    def _end(self, name: str) -> None:
        if name == _CI and self.name is not None:
            if self.owner is not None:
                self.owner.add("".join(self.name).strip())
            self.name = None
        element = name.rpartition(" ")[2]
        if element in _OWNERS:
            self.owner = None
        if element == "modelDefinition":
            self.definition = _MAIN
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
