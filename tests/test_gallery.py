"""Start, tutorials and gallery: each page runs, prints what it shows and draws its pictures."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import readme_picture
from doc_pages import DOCS, ROOT, Block, Outcome, blocks, run_script, write_picture
from pages import GALLERY, TAUGHT, picture_difference, read, run_python


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with the examples in it."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", TAUGHT, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_a_page_that_teaches_runs_as_it_says(page: Path, desk: Path) -> None:
    drawn = run_python(page, desk)
    if page.parent.name != "start" and any(block.word == "python" for block in blocks(read(page))):
        assert drawn >= 1, f"{page.name}: a tutorial needs a picture"


@pytest.mark.parametrize("page", GALLERY, ids=lambda page: page.stem)
def test_an_example_of_the_gallery_draws_its_picture(page: Path, desk: Path) -> None:
    assert run_python(page, desk) == 1, f"{page.name}: an example has one picture"


def test_the_gallery_shows_every_example_with_its_picture() -> None:
    index = read(DOCS / "gallery" / "index.md")
    assert len(GALLERY) >= 12
    for page in GALLERY:
        assert f"](pictures/{page.stem}.png)]({page.name})" in index, f"{page.name} is not shown"
        title = re.match(r"# (.+)", read(page))
        assert title is not None
        assert f"[{title[1]}]({page.name})" in index, f"{page.name} has another title there"


def drawing(code: str, file: Path) -> bytes:
    start = "from matplotlib.figure import Figure\naxes = Figure(figsize=(6.4, 3.4)).add_subplot()\n"
    write_picture(run_script(Block("python", start + code, 1, False, ""), {}, "drawing"), file)
    return file.read_bytes()


def test_a_picture_that_differs_is_noticed_and_a_moved_letter_is_not(tmp_path: Path) -> None:
    curve = "axes.fill_between([0, 1, 2], [0, 1, 2]); axes.set_title({title!r}, fontsize={size})\naxes.figure"
    first = drawing(curve.format(title="f", size=10), tmp_path / "first.png")
    assert picture_difference(first, first) == 0
    assert picture_difference(first, drawing(curve.format(title="f", size=10.5), tmp_path / "same.png")) < 0.01
    other = curve.replace("[0, 1, 2])", "[2, 1, 0])")
    assert picture_difference(first, drawing(other.format(title="f", size=10), tmp_path / "other.png")) > 0.1


def test_a_block_that_draws_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="no figure"):
        write_picture(Outcome("", np.arange(3)), tmp_path / "none.png")


def labels(svg: str) -> list[str]:
    """The texts of a picture, which matplotlib notes beside their outlines, without their figures."""
    return [re.sub(r"\d[\d.]*", "0", each) for each in re.findall(r"<!-- (.*?) -->", svg)]


@pytest.mark.slow
def test_the_picture_of_the_readme_is_the_one_that_its_script_draws(tmp_path: Path) -> None:
    fresh, committed = tmp_path / "sir.svg", readme_picture.FILE
    readme_picture.draw(fresh)
    assert "docs/pictures/sir.svg" in read(ROOT / "README.md")
    remedy = "run: python docs/tools/readme_picture.py, and look at docs/pictures/sir.svg"
    assert labels(read(fresh)) == labels(read(committed)), remedy
    assert read(fresh).count("<path") == pytest.approx(read(committed).count("<path"), rel=0.1), remedy
