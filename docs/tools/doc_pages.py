"""Pages of the documentation as programs: their fenced blocks, run in order, and the pictures that they draw.

What a block is for is said by the word after its fence: `python` is run, `text` directly after it is what it prints,
and an image directly after it is what its last expression draws.
"""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from io import StringIO
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"
RESOLUTION: Final = 130  # pixels an inch, of the pictures


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: the word after its fence, its text, its first line, whether it stands directly after another."""

    word: str
    text: str
    line: int
    directly_after: bool  # nothing but an empty line between it and the block before
    picture: str  # the file of the image directly after it, or ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a Python block printed, and the value of its last expression."""

    printed: str
    value: Any


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a page, in order. An image below what a block prints is the block's picture too."""
    found = list(_fenced(page))
    for block, after in zip_longest(found, found[1:]):
        shared = after is not None and after.word == "text" and after.directly_after and after.picture
        yield replace(block, picture=after.picture) if shared else block


def _fenced(page: str) -> Iterator[Block]:
    fence, word, begun, text, last = "", "", 0, list[str](), 0
    lines = page.splitlines()
    for number, line in enumerate(lines, start=1):
        mark = re.match(r"(`{3,})(\w*)\s*$", line)
        if mark and not fence:
            fence, word, begun, text = mark[1], mark[2], number, []
        elif mark and mark[1] == fence and not mark[2]:
            between = lines[last : begun - 1] if last else ["text"]
            after = next((each for each in lines[number:] if each.strip()), "")
            picture = re.match(r"!\[[^\]]*\]\(([^)]+)\)", after)
            whole = "".join(f"{each}\n" for each in text)
            yield Block(word, whole, begun + 1, not "".join(between).strip(), picture[1] if picture else "")
            fence, last = "", number
        elif fence:
            text.append(line)
    assert not fence, f"the block that begins on line {begun} has no end"


def is_session(block: Block) -> bool:
    """Whether a Python block has prompts."""
    return ">>> " in block.text


def run_script(block: Block, names: dict[str, Any], where: str) -> Outcome:
    """Run a block without prompts."""
    tree = ast.parse(block.text, where)
    last = tree.body[-1] if tree.body else None
    value, printed = None, StringIO()
    with redirect_stdout(printed):
        if isinstance(last, ast.Expr):
            tree.body.pop()
            exec(compile(tree, where, "exec"), names)
            value = eval(compile(ast.Expression(last.value), where, "eval"), names)
        else:
            exec(compile(tree, where, "exec"), names)
    return Outcome(printed.getvalue(), value)


def run_page(page: Path) -> Iterator[tuple[Block, Outcome | None]]:
    """Every block of a page, with what came of it where it is Python without prompts; sessions are run as scripts too.

    Files are read and written in the current folder.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page.read_text(encoding="utf-8")):
        outcome = None
        if block.word == "python":
            where = f"{page.name}:{block.line}"
            if is_session(block):
                examples = doctest.DocTestParser().get_examples(block.text)
                source = "".join(each.source for each in examples if each.exc_msg is None)
                outcome = run_script(replace(block, text=source), names, where)
            else:
                outcome = run_script(block, names, where)
        yield block, outcome


def write_picture(outcome: Outcome, file: Path) -> None:
    """Write what a block drew: the figure of an Axes, or a figure itself."""
    figure = getattr(outcome.value, "figure", None)
    if not hasattr(figure, "savefig"):
        raise TypeError(f"{file.name}: the block before this picture ends with {outcome.value!r}, which is no figure")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=RESOLUTION, facecolor="white", metadata={"Software": None})
