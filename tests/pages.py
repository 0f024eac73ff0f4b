"""Pages of the documentation, as tests read and run them."""

from __future__ import annotations

import doctest
import re
import warnings
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any, Final

import numpy as np

import sateen
from doc_pages import DOCS, ROOT, Block, Outcome, blocks, is_session, run_script, write_picture

PAGES: Final = [ROOT / "README.md", *sorted(page for page in DOCS.glob("**/*.md") if "_build" not in page.parts)]
TAUGHT: Final = [DOCS / "tutorial.md", *sorted(DOCS.glob("start/*.md")), *sorted(DOCS.glob("tutorials/*.md"))]
GALLERY: Final = sorted(page for page in (DOCS / "gallery").glob("*.md") if page.name != "index.md")
HOWTO: Final = sorted(page for page in (DOCS / "howto").glob("*.md") if page.name != "index.md")
# A page may break a long line that is printed, for which a line break is as good as a space.
FLAGS: Final = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
CHECKER: Final = doctest.OutputChecker()
_PATCH: Final = 26  # pixels; the side of the squares whose mean colours are compared


def page_name(page: Path) -> str:
    """The path of a page from the root of the repository, or in docs/."""
    return page.relative_to(ROOT).as_posix().removeprefix("docs/")


def read(page: Path) -> str:
    """The text of a page."""
    return page.read_text(encoding="utf-8")


def table_cells(line: str) -> list[str]:
    """The cells of a line of a Markdown table, in which \\| is a bar."""
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def compare(wanted: str, got: str, where: str, flags: int = FLAGS) -> None:
    """Compare what was printed with what the page shows; an ellipsis stands for anything."""
    example = doctest.Example("", wanted)
    assert CHECKER.check_output(wanted, got, flags), f"{where}\n{CHECKER.output_difference(example, got, flags)}"


def run_session(block: Block, names: dict[str, Any], page: Path) -> None:
    """Run a block with prompts as a doctest."""
    failures = StringIO()
    test = doctest.DocTestParser().get_doctest(block.text, names, page.name, str(page), block.line - 1)
    runner = doctest.DocTestRunner(CHECKER, verbose=False, optionflags=FLAGS)
    runner.run(test, out=failures.write, clear_globs=False)
    names.update(test.globs)
    assert runner.failures == 0, failures.getvalue()


def run_python(page: Path, folder: Path) -> int:
    """Run the Python of a page; what it prints and draws must be what the page shows. The number of pictures."""
    names: dict[str, Any] = {"__name__": "__main__"}
    printed: str | None = None
    drawn = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sateen.ModelWarning)
        for block in blocks(read(page)):
            where = f"{page.name}:{block.line}"
            if block.word == "text" and block.directly_after and printed is not None:
                compare(block.text, printed, where)
            printed = None
            if block.word == "python" and is_session(block):
                run_session(block, names, page)
            elif block.word == "python":
                outcome = run_script(block, names, where)
                printed = outcome.printed
                if block.picture:
                    compare_picture(outcome, page.parent / block.picture, folder)
                    drawn += 1
    return drawn


def compare_picture(outcome: Outcome, committed: Path, folder: Path) -> None:
    """A picture must look like the one that is committed, up to what another version of a library changes."""
    fresh = folder / committed.name
    write_picture(outcome, fresh)
    remedy = f"run: python docs/tools/pictures.py, and look at {committed.relative_to(ROOT)}"
    assert committed.exists(), f"there is no such picture; {remedy}"
    difference = picture_difference(fresh.read_bytes(), committed.read_bytes())
    assert difference < 0.015, f"what the page draws differs by {difference:.3f} from its picture; {remedy}"


def picture_difference(first: bytes, second: bytes) -> float:
    """How far two PNG pictures are apart: the root mean square over squares of their mean colours, from 0 to 1.

    Squares of a quarter of an inch do not see letters that move by a hair, but see another curve or colour.
    """
    one, other = _patches(first), _patches(second)
    if one.shape != other.shape:
        return 1.0
    return float(np.sqrt(np.mean((one - other) ** 2)))


def _patches(picture: bytes) -> np.ndarray[Any, np.dtype[np.float64]]:
    from matplotlib.image import imread

    pixels = np.asarray(imread(BytesIO(picture), format="png"), dtype=float)[..., :3]
    high, wide = (size // _PATCH for size in pixels.shape[:2])
    whole = pixels[: high * _PATCH, : wide * _PATCH]
    return whole.reshape(high, _PATCH, wide, _PATCH, 3).mean(axis=(1, 3))
