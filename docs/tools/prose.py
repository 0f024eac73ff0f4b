"""The prose of the project, for the checks of its words: pages, help, messages, and docstrings of public names.

    python docs/tools/prose.py          words that neither the English list nor docs/words.txt has, and where
    python docs/tools/prose.py --add    put them into docs/words.txt: look at each of them first

The English list is that of pyspellchecker, which is part of the package and American; docs/words.txt has the words of
the field, names, and British spellings. A word that is spelled right but is the wrong one is not found, nor is a word
of one or two letters.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from typing import Final

import click

import sateen
from doc_pages import DOCS, ROOT
from sateen.cli import main

WORDS: Final = DOCS / "words.txt"
_ROOT_PAGES: Final = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
_WORD: Final = re.compile(r"[A-Za-z]+(?:['\u2019][a-z]+)?")
# Files whose texts are programs, grammars or lists of keywords.
_OF_CODE: Final = re.compile(r"/(engine/|language/grammar|language/prism_syntax|logic/parser|sampling/database)")
_CODE: Final = re.compile(r"\bimport \w|\[\[|\btuple\[|\bSELECT\b")
_SENTENCE: Final = re.compile(r"(?:[A-Za-z,;:'-]+ ){3,}")  # a string with three words in a row is a message


def texts() -> Iterator[tuple[str, str]]:
    """Each piece of prose, and where it is."""
    yield from pages()
    yield from helps()
    yield from messages()
    yield from docstrings()


def pages() -> Iterator[tuple[str, str]]:
    """The pages, without blocks, code, targets of links and comments."""
    found = [*(ROOT / name for name in _ROOT_PAGES), *sorted(DOCS.rglob("*.md"))]
    for page in (page for page in found if "_build" not in page.parts and page.name != "changelog.md"):
        text = re.sub(r"(?ms)^(`{3,}).*?^\1\s*$", "", page.read_text(encoding="utf-8"))
        text = re.sub(r"(?m)^ {4}.*$|`[^`\n]*`", "", re.sub(r"<!--.*?-->", "", text))
        yield page.relative_to(ROOT).as_posix(), re.sub(r"\]\([^)]*\)", "]", text)


def helps() -> Iterator[tuple[str, str]]:
    """The help of each command and of its options, without its examples."""
    context = click.Context(main, info_name="sateen")
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        words = re.sub(r"\x08[^\n]*(?:\n[^\n]+)*", "", command.help or "")
        options = [each.help or "" for each in command.params if isinstance(each, click.Option)]
        yield f"sateen {name} --help", "\n".join([words, *options])


def messages() -> Iterator[tuple[str, str]]:
    """The texts in the sources that are sentences, docstrings left out."""
    for file in sorted((ROOT / "src").rglob("*.py")):
        if _OF_CODE.search(file.as_posix()):
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"))
        silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        silent |= {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(tree):
            text = None
            if isinstance(node, ast.JoinedStr):
                parts = (str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
                text = "".join(parts)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
                text = node.value
            if text is not None and _SENTENCE.search(text) and not _CODE.search(text):
                yield f"{file.relative_to(ROOT).as_posix()}:{node.lineno}", text


def docstrings() -> Iterator[tuple[str, str]]:
    """The docstrings of the public names and of their public members, without examples and code."""
    for name in sorted(sateen.__all__):
        thing = getattr(sateen, name)
        members = [key for key in vars(thing) if not key.startswith("_")] if inspect.isclass(thing) else []
        things = {name: thing, **{f"{name}.{key}": inspect.getattr_static(thing, key) for key in members}}
        for where, each in things.items():
            described = isinstance(each, property) or callable(getattr(each, "__func__", each))
            if described and (text := inspect.getdoc(each)) is not None:
                yield f"help(st.{where})", re.sub(r"(?m)^\s*(?:>>>|\.\.\.).*(?:\n.+)*|`[^`]*`", "", text)


@cache
def known() -> frozenset[str]:
    """All words that are right: English ones and those of docs/words.txt, in small letters."""
    from spellchecker import SpellChecker

    return frozenset(SpellChecker(language="en").word_frequency.words()) | own_words()


def own_words() -> frozenset[str]:
    """The words of docs/words.txt."""
    return frozenset(WORDS.read_text(encoding="utf-8").split()) if WORDS.exists() else frozenset()


def unknown(text: str) -> list[str]:
    """The words of a text that are not known; names of code, with digits or underscores, are no words."""
    text = re.sub(r"\S*[\d_\\/{}<>=@$%]\S*|\w+\.\w+|(?<!\w)-{1,2}\w[\w-]*", " ", text)
    words = (word.replace("\u2019", "'").lower() for word in _WORD.findall(text))
    return [word for word in words if len(word) > 2 and word not in known() and word.removesuffix("'s") not in known()]


def all_unknown() -> dict[str, list[str]]:
    """Every unknown word, and where it is."""
    found: dict[str, list[str]] = {}
    for where, text in texts():
        for word in unknown(text):
            found.setdefault(word, []).append(where)
    return found


if __name__ == "__main__":
    spelled = all_unknown()
    for word, places in sorted(spelled.items()):
        print(f"{word:24} {', '.join(list(dict.fromkeys(places))[:3])}")
    if "--add" in sys.argv[1:]:
        WORDS.write_text("\n".join(sorted(own_words() | set(spelled))) + "\n", encoding="utf-8")
    sys.exit(bool(spelled) and "--add" not in sys.argv[1:])
