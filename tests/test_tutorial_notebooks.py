"""The notebooks of the tutorials are those that the pages make, and run as the pages say."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from doc_pages import DOCS, ROOT, blocks
from notebooks import NOTEBOOKS, notebook, printed_by, rendered, run
from pages import CHECKER, FLAGS, read

BOTH = list(NOTEBOOKS.items())


def test_every_tutorial_in_python_has_a_notebook() -> None:
    pages = (DOCS / "tutorials").glob("*.md")
    tutorials = {page for page in pages if any(block.word == "python" for block in blocks(read(page)))}
    assert set(NOTEBOOKS.values()) == {DOCS / "tutorial.md", *tutorials}
    assert set(NOTEBOOKS) == set((DOCS / "tutorials").glob("*.ipynb"))


@pytest.mark.parametrize(("file", "page"), BOTH, ids=lambda each: each.stem)
def test_a_notebook_is_the_one_that_its_page_makes(file: Path, page: Path) -> None:
    import nbformat

    kept, made = json.loads(read(file)), notebook(page)
    for cell in kept["cells"]:
        if cell["cell_type"] == "code":
            cell |= {"outputs": [], "execution_count": None}
    assert kept == made, "run: python docs/tools/notebooks.py"
    nbformat.validate(nbformat.read(file, as_version=4))


@pytest.mark.parametrize(("file", "page"), BOTH, ids=lambda each: each.stem)
def test_the_gallery_shows_a_notebook_as_it_was_run(file: Path, page: Path) -> None:
    assert f"<!-- made: notebook {file.stem} -->" in read(DOCS / "gallery" / "notebooks" / f"{file.stem}.md")
    shown = rendered(file.stem)
    drawing = [block for block in blocks(read(page)) if block.word == "python" and block.picture]
    assert shown.count("(data:image/png;base64,") == len(drawing)
    for cell, wanted in zip(json.loads(read(file))["cells"], printed_by(page), strict=True):
        if wanted and not wanted.startswith("Traceback"):
            assert CHECKER.check_output(wanted, printed(cell), FLAGS), f"{wanted}\nbut {printed(cell)}"


@pytest.mark.filterwarnings("ignore")  # of the libraries of Jupyter, in this process
def test_a_notebook_that_is_run_keeps_no_times_no_paths_and_no_warnings(tmp_path: Path) -> None:
    source = "import sys\nprint('out')\nprint('err', file=sys.stderr)\n1 / 0"
    cell = {"cell_type": "code", "id": "a", "source": [source], "outputs": [], "execution_count": None}
    cell["metadata"] = {"tags": ["raises-exception"]}
    made = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (ran,) = run(made, tmp_path)["cells"]
    assert ran["metadata"] == {"tags": ["raises-exception"]}
    assert [output.get("text", output.get("traceback")) for output in ran["outputs"]] == [
        "out\n",
        ["ZeroDivisionError: division by zero"],
    ]


def printed(cell: Any) -> str:
    """All that a cell shows as text; a figure shows itself."""
    parts = []
    for output in cell["outputs"]:
        if output["output_type"] == "stream" and output["name"] == "stdout":
            parts.append(output["text"])
        elif output["output_type"] == "execute_result" and "image/png" not in output["data"]:
            parts.append(f"{output['data']['text/plain']}\n")
        elif output["output_type"] == "error":
            parts.append(f"{output['ename']}: {output['evalue']}\n")
    return "".join(parts)


@pytest.fixture(scope="module")
def kernel() -> Iterator[Any]:
    """One kernel for all notebooks, so that what they have in common is imported and compiled once."""
    from jupyter_client.manager import KernelManager

    manager = KernelManager(kernel_name="python3")
    yield manager
    if manager.has_kernel:
        manager.shutdown_kernel(now=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the libraries of Jupyter, in this process
@pytest.mark.parametrize(("file", "page"), BOTH, ids=lambda each: each.stem)
def test_a_notebook_runs_and_shows_what_its_page_shows(file: Path, page: Path, kernel: Any, tmp_path: Path) -> None:
    """Each begins in a folder of its own, without the names of those before; `run` itself begins a kernel for each."""
    import nbformat
    from nbclient import NotebookClient

    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    asked = nbformat.read(file, as_version=4)
    begin = nbformat.v4.new_code_cell(f"%reset -f\nimport os\nos.chdir({str(tmp_path)!r})\ndel os")
    asked.cells.insert(0, begin)
    resources = {"metadata": {"path": tmp_path}}
    client = NotebookClient(asked, timeout=600, km=kernel, resources=resources)
    try:
        done = {"cells": client.execute().cells[1:]}
    finally:
        client.kc.stop_channels()
    for cell, wanted in zip(done["cells"], printed_by(page), strict=True):
        if wanted and not wanted.startswith("Traceback"):
            assert CHECKER.check_output(wanted, printed(cell), FLAGS), f"{wanted}\nbut {printed(cell)}"
        elif wanted:  # the class of an error has no module in a notebook
            message = wanted.partition("Error: ")[2]
            assert message.strip() in printed(cell), f"{wanted}\nbut {printed(cell)}"
    outputs = [output for cell in done["cells"] for output in cell.get("outputs", [])]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    drawing = [block for block in blocks(read(page)) if block.word == "python" and block.picture]
    assert len(pictures) == len(drawing)
