"""`sateen report`: the page of a result, and its figures for papers, on the command line."""

from __future__ import annotations

import json
import os
import shutil
from functools import partial
from pathlib import Path

import pytest

import command_line
import sateen as st
from sateen.pipeline.folder import write_summary
from small_studies import small

PLANE = (
    ("A -> 0 @ mass_action(k)", "A -> 0 @ mass_action(k)\n0 -> A @ fresh"),
    ("k = [0.1, 2]", "k = [0.1, 2]\nfresh = [0.1, 1]"),
)


sateen = partial(command_line.sateen, "report")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small study that was run."""
    return small().run(tmp_path_factory.mktemp("made") / "decay-result").folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy of it, to do with as one likes."""
    return Path(shutil.copytree(made, tmp_path / "decay-result"))


def test_the_page_is_written_into_the_result_which_stays_as_it_is(folder: Path) -> None:
    before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    (folder / "report.html").unlink()
    done = sateen(folder)
    assert done.stdout.splitlines() == [str(folder / "report.html")]
    assert {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()} == before


def test_the_page_goes_where_it_is_said(folder: Path, tmp_path: Path) -> None:
    kept = (folder / "report.html").stat().st_mtime_ns
    target = tmp_path / "elsewhere.html"
    assert sateen(folder, "-o", target).stdout == f"{target}\n"
    assert target.read_bytes() == (folder / "report.html").read_bytes()
    assert (folder / "report.html").stat().st_mtime_ns == kept


@pytest.mark.parametrize(("suffix", "begins"), [(".svg", b"<?xml"), (".pdf", b"%PDF"), (".png", b"\x89PNG")])
def test_figures_are_written_each_into_a_file_and_named(
    folder: Path, tmp_path: Path, suffix: str, begins: bytes
) -> None:
    told = json.loads(sateen(folder, "--figures", tmp_path / "figures", "--suffix", suffix, "--json").stdout)
    names = ["svi-gp", "guaranteed", "coverage", "satisfied", "violated"]
    files = [tmp_path / "figures" / f"gone-{name}{suffix}" for name in names]
    assert told == {
        "result": str(folder),
        "report": str(folder / "report.html"),
        "figures": [str(file) for file in files],
    }
    assert sorted((tmp_path / "figures").iterdir()) == sorted(files)
    assert all(file.read_bytes().startswith(begins) for file in files)


def test_over_two_parameters_there_is_a_figure_of_which_matter_and_all_are_the_same_each_time(tmp_path: Path) -> None:
    folder = small(*PLANE).run(tmp_path / "plane").folder
    for name in ("one", "two"):
        sateen(folder, "--figures", tmp_path / name)
    one, two = (sorted((tmp_path / name).iterdir()) for name in ("one", "two"))
    assert "gone-parameters.svg" in [file.name for file in one]
    assert [file.read_bytes() for file in one] == [file.read_bytes() for file in two]


def test_no_name_in_a_result_leads_out_of_the_folder_of_figures(folder: Path, tmp_path: Path) -> None:
    content = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    content["properties"] = {"../../gone": content["properties"]["gone"]}
    write_summary(folder / "result.json", {key: value for key, value in content.items() if key != "checksum"})
    (folder / "provenance.json").unlink()
    written = json.loads(sateen(folder, "--figures", tmp_path / "a" / "b", "--json").stdout)["figures"]
    assert {Path(file).parent for file in written} == {tmp_path / "a" / "b"}
    assert Path(written[0]).name == ".._.._gone-svi-gp.svg"


def test_what_cannot_be_done_is_said(folder: Path, tmp_path: Path) -> None:
    assert sateen(tmp_path, code=1).stderr == f"InputError: {tmp_path} has no result of a study; give another\n"
    assert "end the name" in sateen(folder, "-o", tmp_path / "page.pdf", code=2).stderr
    assert "'.gif' is not one of" in sateen(folder, "--figures", tmp_path, "--suffix", ".gif", code=2).stderr
    nowhere = tmp_path / "none" / "page.html"
    said = sateen(folder, "-o", nowhere, code=1).stderr
    assert said == f"InputError: cannot write {nowhere}: No such file or directory\n"
    (tmp_path / "file").write_text("in the way")
    said = sateen(folder, "--figures", tmp_path / "file", code=1).stderr
    assert said == f"InputError: cannot write figures to {tmp_path / 'file'}: File exists\n"


def test_a_result_without_provenance_has_a_page_without_times_and_command(folder: Path) -> None:
    (folder / "provenance.json").unlink()
    sateen(folder)
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert '<div class="timings">' not in text
    for sentence in st.Result.load(folder).properties["gone"].verdict.splitlines():
        assert sentence.partition(": ")[2] in text


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_is_said(folder: Path) -> None:
    folder.chmod(0o500)
    try:
        assert "cannot write" in sateen(folder, code=1).stderr
    finally:
        folder.chmod(0o700)


def test_its_help_says_what_it_does() -> None:
    assert "one HTML file" in sateen("--help").stdout
