"""Models in Antimony, read through its library: the SBML that it makes is what is simulated.

The library reads other files where a text says `import`, and it may crash or never end. So it gets a text without a
word in its comments and strings, and without `import` elsewhere; and it runs in a process that cannot open files, with
little time and memory.
"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sateen.core.errors import ModelError
from sateen.core.extras import install_command
from sateen.language.grammar import refuse_oversized
from sateen.model.readers import ModelReader
from sateen.model.sbml import SbmlModel, read_sbml
from sateen.model.sbml_elements import Source
from sateen.model.sbml_math import Element
from sateen.model.sbml_safety import first_character

if TYPE_CHECKING:
    from sateen.model.model import Model

MAX_CHARACTERS: Final = 100_000
_LONGEST_LINE: Final = 2_000
_MOST_BRACKETS: Final = 100
_SECONDS: Final = 60  # after which the process is ended, should it be blocked or without limits of its own

# Writes "0" and the SBML of the text in its input, or "1" and the error of the library.
_PROGRAM: Final = """
import contextlib
import sys
sys.path.append(sys.argv[1])
import antimony
text = sys.stdin.buffer.read()
with contextlib.suppress(ImportError):  # Windows has no limits
    import resource
    for kind, most in (("NOFILE", 0), ("CORE", 0), ("CPU", 3), ("AS", 2**29)):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(getattr(resource, f"RLIMIT_{kind}"), (most, most))
failed = antimony.loadAntimonyString(text) < 0
result = antimony.getLastError() if failed else antimony.getSBMLString(antimony.getMainModuleName())
sys.stdout.buffer.write(f"{failed:d}{result or ''}".encode())
"""

_HIDDEN: Final = re.compile(r'```.*?(?:```|\Z)|"(?:[^"\\\n]|\\.)*"|//[^\n]*|#[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_INSIDE: Final = re.compile(r'[^\n"`/*#\\]')  # without what tells where a comment or a string begins and ends
# What ends in import must be a name such as glucose_import or cell.glucose_import. The library splits 2e5import into a
# number and import, and -oimport into an arrow and import.
_IMPORT: Final = re.compile(r"(?<![\w.])[\w.]*import(?!\w)", re.ASCII)
_NAME: Final = re.compile(r"(?:[a-zA-Z_]\w*\.)*(?!o?import\Z)[a-zA-Z_]\w*", re.ASCII)

# Functions of Antimony that someone may want as a name; without brackets behind, the library only says that the
# model is not valid.
_FUNCTIONS: Final = re.compile(
    r"\b(abs|binomial|ceil|cos|delay|exp|exponential|factorial|floor|gamma|laplace|ln|log|lognormal|max|min|normal"
    r"|piecewise|poisson|power|quotient|rayleigh|rem|root|sec|sin|sqrt|tan|uniform)\b(?!\s*\()"
)
_DISTRIBUTIONS: Final = re.compile(
    r"\b(bernoulli|binomial|cauchy|chisquare|exponential|gamma|geometric|laplace|lognormal|normal|poisson|rayleigh"
    r"|truncated\w+|uniform)\s*\("
)


def read_antimony(text: str, *, scale: float | str | None = None, split: bool = True) -> SbmlModel:
    """The model that an Antimony text describes; errors name the line. `scale` and `split` are as in `read_sbml`.

    >>> epidemic = read_antimony('''
    ...     infect:  S + I -> 2 I; beta * S * I
    ...     recover: I -> R; gamma_ * I
    ...     S = 95; I = 5; R = 0; beta = 0.001; gamma_ = 0.05
    ... ''')
    >>> print(epidemic.model)
    species S = 95, I = 5, R = 0
    parameter beta = 0.001
    parameter gamma_ = 0.05
    infect: S + I -> 2 I @ beta * S * I
    recover: I -> R @ gamma_ * I
    <BLANKLINE>
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")  # the library ends a line at either
    seen = _checked(text)
    sbml = as_sbml(text, seen)
    try:
        return read_sbml(sbml, Source(text, lambda element: _place(seen, element)), scale=scale, split=split)
    except ModelError as error:
        # The library leaves out a formula that reads one of its functions as a name.
        if bare := _FUNCTIONS.search(seen):
            raise _reserved(text, seen, bare[1]) from None
        if drawn := _DISTRIBUTIONS.search(seen):
            remedy = "a run draws only when reactions happen; a parameter can vary from run to run"
            raise ModelError(
                f"{drawn[1]} is a random number, which is not supported", text, drawn.start(), remedy
            ) from None
        if error.text == text:
            raise
        raise ModelError(error.message, text, 0, error.remedy) from None


def _read(text: str, scale: float | str | None = None, split: bool = True) -> Model:
    return read_antimony(text, scale=scale, split=split).model


READER: Final = ModelReader(_read, takes_scale=True)


def _checked(text: str) -> str:
    """The text, at the same length, with nothing but marks in its comments and strings; what is refused raises."""
    refuse_oversized(text, ModelError, "an Antimony file", MAX_CHARACTERS)
    if not _HIDDEN.sub("", text).strip():
        raise ModelError("an empty Antimony file", remedy="a reaction looks like  infect: S + I -> 2 I; k*S*I")
    seen = _HIDDEN.sub(lambda hidden: _INSIDE.sub(" ", hidden[0]), text)
    if strange := re.search(r"[^\t\n -~]", seen):
        message = f"{strange[0]!r} can only stand in a comment or a string"
        raise ModelError(message, text, strange.start(), "Antimony is written in ASCII")
    if seen.lstrip().startswith("<"):
        raise ModelError("this is XML, not Antimony", text, remedy="the suffix of SBML files is .xml or .sbml")
    for word in _IMPORT.finditer(seen):
        if not _NAME.fullmatch(word[0]):
            remedy = "replace it by the text of the other file"
            raise ModelError("import is refused: a model is one file", text, word.start(), remedy)
    start = depth = 0
    for line in seen.split("\n"):
        if len(line) > _LONGEST_LINE:
            message = f"a line of {len(line):,} characters; at most {_LONGEST_LINE:,} are read"
            raise ModelError(message, text, start, "break it, or name parts of it: total := A + B")
        start += len(line) + 1
    for position, character in enumerate(seen):
        depth += (character == "(") - (character == ")")
        if depth > _MOST_BRACKETS:
            raise ModelError(f"more than {_MOST_BRACKETS} levels of brackets", text, position)
    return seen


def as_sbml(text: str, seen: str) -> str:
    """The SBML that the library makes of `seen`; errors show the `text` that it was made from."""
    package = find_spec("antimony")
    if package is None or package.origin is None:
        remedy = f"install it with  {install_command('sbml')}"
        raise ModelError("Antimony files are read by antimony, which is not installed", remedy=remedy)
    folder = Path(package.origin).parent
    command = [sys.executable, "-I", "-S", "-c", _PROGRAM, str(folder.parent)]
    try:
        done = subprocess.run(command, input=seen.encode(), capture_output=True, cwd=folder, timeout=_SECONDS)
        answer = done.stdout.decode()
    except subprocess.TimeoutExpired:
        answer = ""
    if not answer:
        remedy = "look for what is unusual in the text, or write the model as SBML"
        raise ModelError("Antimony's library crashes or does not end on this text", remedy=remedy)
    if answer[0] == "1":
        raise _library_error(text, seen, answer[1:])
    return answer[1:]


def _library_error(text: str, seen: str, message: str) -> ModelError:
    """An error of the library, with the line it names, and what to do about its reserved words."""
    position = first_character(text, 1)
    if placed := re.match(r"Error in model string, line (\d+):\s*(.*)", message, re.DOTALL):
        position, message = first_character(text, int(placed[1])), placed[2]
    if reserved := re.match(r"'(\w+)' is a reserved word", message):
        return _reserved(text, seen, reserved[1])
    if unexpected := re.search(r"unexpected \"'(\w+)'(?: or '\w+')?\"", message):
        word = unexpected[1]
        if word == "function":
            return _inner_function(text, seen, position)
        place = re.compile(rf"\b{word}\b").search(seen, position)
        remedy = f"{word} is a reserved word of Antimony; if it is meant as a name, choose another, such as {word}_"
        return ModelError(f"{word} cannot stand here", text, place.start() if place else position, remedy)
    if bare := _FUNCTIONS.search(seen):
        return _reserved(text, seen, bare[1])
    first = re.split(r"\n|\.\s+(?=[A-Z])", message.strip(), maxsplit=1)[0].rstrip(".")
    return ModelError(f"Antimony says: {first}", text, position)


def _inner_function(text: str, seen: str, position: int) -> ModelError:
    """A function that is defined inside a model."""
    place = re.compile(r"\bfunction\b").search(seen, position)
    remedy = "a function stands outside: put  function f(x) ... end  above the line that begins with  model"
    return ModelError("a model cannot hold a function", text, place.start() if place else position, remedy)


def _reserved(text: str, seen: str, word: str) -> ModelError:
    place = re.search(rf"\b{word}\b", seen)
    remedy = f"Antimony has a function or constant of that name; choose another, such as {word}_ or k_{word}"
    return ModelError(f"{word} cannot be used as a name", text, place.start() if place else 0, remedy)


def _place(seen: str, element: Element) -> int:
    """Where the id of an element, or of one around it, stands in the text; the library numbers what has no name."""
    while getattr(element, "getElementName", lambda: "model")() != "model":
        for ask in ("getIdAttribute", "getVariable", "getSymbol"):
            name = getattr(element, ask, str)()
            if unnamed := re.fullmatch(r"_([JE])(\d+)", name):
                mark = r"->|=>" if unnamed[1] == "J" else r"\bat\b"
                statements = re.finditer(rf"(?:^|;)([ \t]*)[^:;\n]*?(?:{mark})", seen, re.MULTILINE)
                places = dict(enumerate(statement.end(1) for statement in statements))
                return places.get(int(unnamed[2]), 0)
            setting = rf"\b{name}\s*(?:'|:|=(?![=>]))"  # where it is set or labelled, rather than read
            if name and (place := re.search(setting, seen) or re.search(rf"\b{name}\b", seen)):
                return place.start()
        element = element.getParentSBMLObject()
    return 0
