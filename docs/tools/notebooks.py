"""Write each tutorial as a notebook and run it: `python docs/tools/notebooks.py [NAME ...]`.

Without names, only notebooks whose code has changed are run; of the others the text is renewed.

Text becomes Markdown cells, Python blocks become code cells, and prompts go. What a page shows as printed is left out,
because the notebook prints it when it is run. What the cells show is kept in the file, so that a code host and the
gallery of the site can show it. `tests/test_tutorial_notebooks.py` runs the notebooks again and compares.
"""

from __future__ import annotations

import doctest
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from doc_pages import DOCS, ROOT

# Each notebook and the page it is made from.
NOTEBOOKS: Final = {
    DOCS / "tutorials" / "epidemic.ipynb": DOCS / "tutorial.md",
    **{
        DOCS / "tutorials" / f"{name}.ipynb": DOCS / "tutorials" / f"{name}.md"
        for name in ("sbml", "prism", "black-box", "certificate")
    },
}
_FENCED: Final = re.compile(r"(?ms)^(`{3,})(\w*)\n(.*?)^\1\s*$\n?")
_IMAGE: Final = re.compile(r"(?m)^!\[[^\]]*\]\([^)]+\)\n")
_LINK: Final = re.compile(r"\[([^\]]+)\]\((?!#)[^)]+\)")
# Pictures in the notebook, and files as in a clone, wherever in it Jupyter was started.
_SETUP: Final = """\
%matplotlib inline
import os
from pathlib import Path

clone = next((each for each in (Path.cwd(), *Path.cwd().parents) if (each / "examples" / "sir.sateen").exists()), None)
if clone is not None:
    os.chdir(clone)"""


def notebook(page: Path) -> dict[str, Any]:
    """The notebook of a page, in the format nbformat 4.5, without outputs."""
    cells = [_cell("code", _SETUP), *(cell for cell, _ in _cells(page.read_text(encoding="utf-8")))]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def printed_by(page: Path) -> list[str]:
    """What the page says that each cell prints; "" where it says nothing."""
    return ["", *(printed for _, printed in _cells(page.read_text(encoding="utf-8")))]


def _cells(text: str) -> Iterator[tuple[dict[str, Any], str]]:
    """The cells of a page, each with what the page says that it prints."""
    prose, last_word = "", ""
    pieces = _FENCED.split(text)
    waiting = ""  # a script, of which what it prints may follow
    for between, _, word, block in zip(pieces[::4], pieces[1::4], pieces[2::4], pieces[3::4], strict=False):
        shown = word == "text" and last_word == "python" and not between.strip()  # what the cell prints
        if waiting:
            yield _cell("code", waiting), block if shown else ""
            waiting = ""
        prose += between
        last_word = word
        if word == "python":
            yield from _markdown(prose)
            prose = ""
        elif not shown:
            prose += f"```{word}\n{block}```\n"
        if word == "python" and ">>> " in block:
            yield from _session(block)
        elif word == "python":
            waiting = block
    if waiting:
        yield _cell("code", waiting), ""
    yield from _markdown(prose + pieces[-1])


def _session(block: str) -> Iterator[tuple[dict[str, Any], str]]:
    """A cell for each example that prints something, together with those before it that print nothing."""
    source = ""
    for example in doctest.DocTestParser().get_examples(block):
        source += example.source
        if example.want:
            yield _cell("code", source, fails=example.exc_msg is not None), example.want
            source = ""
    if source:
        yield _cell("code", source), ""


def _markdown(text: str) -> Iterator[tuple[dict[str, Any], str]]:
    """A Markdown cell, without pictures, which the cell draws itself, and with links as plain words."""
    text = _LINK.sub(r"\1", _IMAGE.sub("", text)).strip("\n")
    if text:
        yield _cell("markdown", re.sub(r"\n{3,}", "\n\n", text)), ""


def _cell(kind: str, source: str, fails: bool = False) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": source.strip("\n").splitlines(keepends=True)}
    if kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    if fails:
        cell["metadata"]["tags"] = ["raises-exception"]
    return cell


def run(made: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The notebook with what its cells show when it is run in a folder that has the examples."""
    import nbformat
    from nbclient import NotebookClient

    asked = nbformat.reads(json.dumps(made), as_version=4)
    resources = {"metadata": {"path": folder}}
    done = NotebookClient(asked, timeout=600, kernel_name="python3", resources=resources).execute()
    cells = json.loads(json.dumps(done["cells"]))
    for cell in cells:
        cell["metadata"].pop("execution", None)  # times
        cell["source"] = cell["source"].splitlines(keepends=True)
        if cell["cell_type"] == "code":
            cell["outputs"] = [_kept(output) for output in cell["outputs"] if output.get("name") != "stderr"]
    return {**made, "cells": cells}


def _kept(output: dict[str, Any]) -> dict[str, Any]:
    """An output without what differs from one machine to the next."""
    if output["output_type"] == "error":
        return {**output, "traceback": [f"{output['ename']}: {output['evalue']}"]}
    return output


def write(file: Path, again: bool = True) -> None:
    """Write a notebook with what its cells show, run in an empty folder with the examples in it.

    Unless it shall be run `again`, what its cells show is kept where the code is the same.
    """
    made = notebook(NOTEBOOKS[file])
    old = _code_cells(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else []
    new = _code_cells(made)
    if not again and [cell["source"] for cell in old] == [cell["source"] for cell in new]:
        for cell, before in zip(new, old, strict=True):
            cell |= {"outputs": before["outputs"], "execution_count": before["execution_count"]}
        done = made
    else:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(ROOT / "examples", Path(folder) / "examples")
            done = run(made, Path(folder))
    file.write_text(json.dumps(done, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _code_cells(made: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in made["cells"] if cell["cell_type"] == "code"]


def rendered(name: str) -> str:
    """A notebook as Markdown for the site: its text, its code, and what its cells show; without its title."""
    parts = []
    for cell in json.loads((DOCS / "tutorials" / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(re.sub(r"\A# .*\n", "", source))
        elif "%matplotlib" not in source:
            parts.append(f"```python\n{source}\n```")
            parts += [_shown(output) for output in cell["outputs"]]
    return "\n\n".join(parts)


def _shown(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return f"```text\n{output['text']}```"
    if output["output_type"] == "error":
        return f"```text\n{output['traceback'][0]}\n```"
    data = output["data"]
    if "image/png" in data:
        return f"![what the cell draws](data:image/png;base64,{''.join(data['image/png'].split())})"
    if "text/html" in data:
        return f"```{{raw}} html\n<div class='cell-output'>{data['text/html']}</div>\n```"
    return f"```text\n{data['text/plain']}\n```"


if __name__ == "__main__":
    for each in NOTEBOOKS:
        if each.stem in sys.argv[1:] or not sys.argv[1:]:
            write(each, again=each.stem in sys.argv[1:])
            print(each.relative_to(DOCS))
