"""Make the pictures of pages: `python docs/tools/pictures.py [PAGE ...]`, by default of every page that has some.

The tests compare each picture with what its page draws now.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

from doc_pages import DOCS, ROOT, Block, blocks, run_page, write_picture


def pages_with_pictures() -> list[Path]:
    """Every page on which a block draws."""
    return [page for page in sorted(DOCS.rglob("*.md")) if any(draws(b) for b in blocks(page.read_text("utf-8")))]


def draws(block: Block) -> bool:
    """Whether a block draws the picture below it."""
    return block.word == "python" and bool(block.picture)


def make_pictures(page: Path) -> list[Path]:
    """Run a page in an empty folder with the examples in it, and write its pictures beside it."""
    made, here = [], Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "examples", Path(folder) / "examples")
        os.chdir(folder)
        try:
            for block, outcome in run_page(page):
                if block.picture and outcome is not None:
                    write_picture(outcome, page.parent / block.picture)
                    made.append(page.parent / block.picture)
        finally:
            os.chdir(here)
    return made


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for each in [Path(name).resolve() for name in sys.argv[1:]] or pages_with_pictures():
        for file in make_pictures(each):
            print(file.relative_to(ROOT))
