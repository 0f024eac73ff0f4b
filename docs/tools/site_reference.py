"""Reference pages made from the sources: public names, commands, study keys and errors, as Markdown."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Final

import click

import sateen
from doc_pages import DOCS, blocks
from notebooks import rendered
from sateen.cli import main
from sateen.logic import parser
from sateen.study.decide_table import BoundsSpec, CertificateSpec, DecideTable
from sateen.study.file import CapsTable, GuaranteeTable, ModelTable, RunTable, StudyTable
from sateen.study.spec import Calibration, Design

# The first public name of each group, in the order of `sateen.__all__`; a group ends where the next begins.
GROUPS: Final = {
    "asked": "Model",
    "one run": "simulate",
    "many runs": "Ensemble",
    "function": "learn",
    "decisions": "decide",
    "studies": "Study",
    "errors": "SateenError",
}
TABLES: Final[dict[str, type]] = {
    "study": StudyTable,
    "model": ModelTable,
    "observe": CapsTable,
    "observe.train and observe.test": Design,
    "observe.calibrate": Calibration,
    "guarantee": GuaranteeTable,
    "decide": DecideTable,
    "decide.certificate": CertificateSpec,
    "decide.bounds": BoundsSpec,
    "run": RunTable,
}
_EMPTY: Final = inspect.Parameter.empty
_WIDE: Final = 88  # characters of a signature on one line


def made(what: str, up: str) -> str:
    """The text that a page asks for; `up` leads from its folder to docs/."""
    kind, _, rest = what.partition(" ")
    if kind == "notebook":
        return rendered(rest)
    if kind == "names":
        return "\n\n".join(_entry(name, up) for name in names_of(rest))
    return {"commands": _commands, "keys": _keys, "errors": _errors, "grammar": _grammar}[kind]()


def names_of(group: str) -> list[str]:
    """The public names of a group."""
    names, starts = list(sateen.__all__), list(GROUPS.values())
    begin = names.index(GROUPS[group])
    after = starts[starts.index(GROUPS[group]) + 1 :]
    end = names.index(after[0]) if after else names.index("__version__")
    return names[begin:end]


@cache
def meanings() -> dict[str, dict[str, str]]:
    """What parameters and keys mean, by table."""
    return tomllib.loads((DOCS / "reference" / "parameters.toml").read_text(encoding="utf-8"))


def parameters_of(name: str) -> dict[str, inspect.Parameter]:
    """The parameters of a public name that is called by users: a function, or a class that is no protocol or enum."""
    thing = getattr(sateen, name)
    if inspect.isclass(thing) and (getattr(thing, "_is_protocol", False) or name == "Verdict"):
        return {}
    return dict(inspect.signature(thing).parameters)


def meaning(owner: str, parameter: str) -> str | None:
    """What a parameter of a public name means."""
    table = meanings()["parameters"]
    return table.get(f"{owner}.{parameter}", table.get(parameter))


def example(name: str) -> str | None:
    """An example of a name: its section in reference/examples.md, or else the session in its docstring."""
    if (given := _page_example(name)) is not None:
        return given
    sessions = _sessions(inspect.getdoc(getattr(sateen, name)) or "")
    return sessions[0] if sessions else None


def _page_example(name: str) -> str | None:
    sections = re.split(r"(?m)^## `?(\w+)`?$", (DOCS / "reference" / "examples.md").read_text(encoding="utf-8"))
    given = dict(zip(sections[1::2], sections[2::2], strict=True))
    return next((each.text for each in blocks(given[name]) if each.word == "python"), None) if name in given else None


def _sessions(docstring: str) -> list[str]:
    """The doctests of a docstring, without what stands between."""
    found = re.findall(r"(?m)((?:^>>> .*\n?(?:^(?!>>> )\S.*\n?|^ .*\n?)*)+)", docstring)
    return ["\n".join(each.rstrip("\n") for each in found) + "\n"] if found else []


def _entry(name: str, up: str) -> str:
    thing = getattr(sateen, name)
    doc = inspect.getdoc(thing) or ""
    words = doc[: doc.index(">>> ")] if ">>> " in doc else doc
    parts = [f"## {name}", _signature(name), words.strip(), _parameter_table(name)]
    if inspect.isclass(thing):
        parts.append(_members(thing))
    if session := example(name):
        parts.append(f"**Example**\n\n```python\n{session}```")
        if _page_example(name) is not None:
            parts.append(f"It goes on from those before it in [More examples]({up}reference/examples.md).")
    if page := _explained(name, up):
        parts.append(f"Explained in {page}.")
    return "\n\n".join(part for part in parts if part)


def _signature(name: str) -> str:
    given = parameters_of(name)
    if not given:
        return ""
    shown, star = [], False
    for each in given.values():
        if each.kind is each.KEYWORD_ONLY and not star:
            shown.append("*")
            star = True
        star = star or each.kind is each.VAR_POSITIONAL
        mark = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        default = "" if each.default is _EMPTY else f"={_value(each.default)}"
        shown.append(f"{mark}{each.name}{default}")
    line = f"st.{name}({', '.join(shown)})"
    if len(line) > _WIDE:
        line = f"st.{name}(\n" + "".join(f"    {each},\n" for each in shown) + ")"
    return f"```python\n{line}\n```"


def _value(default: object) -> str:
    text = repr(default)
    return "..." if text.startswith("<") or text == "mappingproxy({})" else text


def _type(annotation: object) -> str:
    if annotation is _EMPTY:
        return ""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\bnpt\.|\bnp\.|\bsateen\.(?:\w+\.)*", "", text.strip("'"))


def _parameter_table(name: str) -> str:
    given = parameters_of(name)
    if not given:
        return ""
    rows = ["| parameter | type | default | meaning |", "|---|---|---|---|"]
    for each in given.values():
        default = "" if each.default is _EMPTY else _value(each.default)
        cells = [each.name, _type(each.annotation), default]
        rows.append("| " + " | ".join(_code(cell) for cell in cells) + f" | {_cell(meaning(name, each.name) or '')} |")
    return _folding(rows)


def _folding(rows: list[str]) -> str:
    """A table of which, on a narrow screen, the last column goes below the others."""
    return ":::{container} folding\n\n" + "\n".join(rows) + "\n\n:::"


def _code(text: str) -> str:
    return f"`{_cell(text)}`" if text else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _members(thing: type) -> str:
    """The public methods and properties of a class that have a docstring, with its first sentence."""
    rows = []
    given = {field.name for field in fields(thing)} if is_dataclass(thing) else set()
    for name in dict.fromkeys(name for owner in thing.__mro__[:-1] for name in vars(owner)):
        member = inspect.getattr_static(thing, name)
        bare = getattr(member, "__func__", member)
        if name.startswith("_") or name in given or not (callable(bare) or isinstance(bare, property)):
            continue
        doc = inspect.getdoc(getattr(thing, name)) or ""
        call = "" if isinstance(bare, property) else "()"
        rows.append(f"| `.{name}{call}` | {_cell(_first_sentence(doc))} |")
    return "\n".join(["| method or property | does |", "|---|---|", *rows]) if rows else ""


def _first_sentence(doc: str) -> str:
    return " ".join(doc.split("\n\n")[0].split())


def _explained(name: str, up: str) -> str:
    """The page that explains a name, as the page of short descriptions has it."""
    row = re.search(rf"(?m)^\| `{name}` \|.*\| \[([^\]]+)\]\(([^)]+)\) \|$", (DOCS / "api.md").read_text("utf-8"))
    return f"[{row[1]}]({up}{row[2]})" if row else ""


def _commands() -> str:
    context = click.Context(main, info_name="sateen", **main.context_settings)
    parts = []
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context)
        parts.append(f"## sateen {name}\n\n```text\n{command.get_usage(inner).removeprefix('Usage: ')}\n```")
        parts.append(_prose(command.help or ""))
        if rows := list(_options(command, inner)):
            parts.append(_folding(["| option | default | meaning |", "|---|---|---|", *rows]))
    return "\n\n".join(part for part in parts if part)


def _prose(help_text: str) -> str:
    """The help of a command; what click keeps as it is becomes a block."""
    parts = []
    for part in inspect.cleandoc(help_text).split("\n\n"):
        lines = part.strip("\n").split("\n")
        kept = lines[0].strip() == "\b"
        parts.append("```text\n" + "\n".join(lines[1:]) + "\n```" if kept else _escape(" ".join(lines)))
    return "\n\n".join(parts)


def _escape(text: str) -> str:
    return re.sub(r"([<>*_\[\]])", r"\\\1", text)


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    for each in command.get_params(context):
        if not isinstance(each, click.Option) or each.hidden:
            continue
        names = ", ".join([*each.opts, *each.secondary_opts])
        shape = "" if each.is_flag or each.count else f" {each.make_metavar(context)}"
        default = each.default if not callable(each.default) else None
        shown = "" if default in (None, False, ()) or "UNSET" in repr(default).upper() else f"`{default}`"
        yield f"| `{_cell(names + shape)}` | {shown} | {_cell(_escape(' '.join((each.help or '').split())))} |"


def _keys() -> str:
    parts = []
    for table, kind in TABLES.items():
        rows = ["| key | type | default | meaning |", "|---|---|---|---|"]
        for field in fields(kind):
            default = "" if field.default is MISSING else _toml(field.default)
            words = _cell(meanings()[table][field.name])
            rows.append(f"| `{field.name}` | {_code(_key_type(str(field.type)))} | {_code(default)} | {words} |")
        parts.append(f"## [{table}]\n\n" + _folding(rows))
    return "\n\n".join(parts)


def _grammar() -> str:
    """The grammar from which the parser is made; what it prefers among tokens, `.3`, is left out."""
    lines = [line.removeprefix("    ") for line in parser._GRAMMAR.strip("\n").split("\n")]
    return "```text\n" + re.sub(r"(?m)^(\w+)\.\d:", r"\1:", "\n".join(lines)) + "\n```"


def _toml(value: object) -> str:
    if value is None:
        return ""
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value).replace("'", '"')


def _key_type(annotation: str) -> str:
    text = re.sub(r"Annotated\[(\w+), Meta\([^)]*\)\]", r"\1", annotation)
    text = re.sub(r"Literal\[([^\]]*)\]", lambda mark: " or ".join(mark[1].split(", ")), text)
    named = {"Whole": "int", "Runs": "int", "object": "table", "str": "text", "float": "number", "int": "whole number"}
    named |= {"bool": "true or false", "DesignName": "str", "GoalName": "str", "Way": "str", "Normaliser": "str"}
    for _ in range(2):
        text = re.sub(r"\b(\w+)\b", lambda mark: named.get(mark[1], mark[1]), text)
    return re.sub(r" \| None\b", "", re.sub(r"dict\[text, .*\]", "table", text)).replace(" | ", " or ")


def _errors() -> str:
    parts = []
    for name in names_of("errors"):
        thing = getattr(sateen, name)
        base = thing.__bases__[0].__name__
        also = next(each.__name__ for each in thing.__mro__[1:] if each.__module__ == "builtins")
        doc = inspect.getdoc(thing) or ""
        words = doc[: doc.index(">>> ")].strip() if ">>> " in doc else doc
        kind = f"Kind of: `{base}`." if base == also else f"Kind of: `{base}` and `{also}`."
        parts.append(f"## {name}\n\n{kind}\n\n{words}")
    return "\n\n".join(parts)
