"""The documentation runs: every Python block, every command line, every link, and no public name is left out.

A page is a Markdown file with fenced blocks. What each block is for is said by the word after its fence:

    python    run, page by page in one namespace: as a doctest where it has prompts, else as a script
    text      after a script without prompts: what it prints
    console   lines after `$` are run by the command line, and must print what stands below
    sh        lines that begin with `sateen` must be accepted by the command line as far as their options go

A command in the text, such as `sateen run examples/sir.toml`, must be accepted too. Without an argument, or with an
ellipsis, it is only named: the command and its options must exist.
An ellipsis in an output stands for anything, as in doctests; pages that teach show all that is printed.
"""

from __future__ import annotations

import doctest
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
import pytest
from click.testing import CliRunner

import sateen
from doc_pages import ROOT, Block, blocks
from pages import GALLERY, HOWTO, PAGES, TAUGHT, compare, page_name, read, run_python, table_cells
from sateen.cli import main
from site_contents import children, site_pages

# test_gallery.py runs the Python of the others.
REFERENCE: Final = [page for page in PAGES if page not in TAUGHT and page not in GALLERY]
WORDS: Final = {"python", "text", "console", "sh", "toml"}


def console(block: Block) -> Iterator[tuple[str, str]]:
    """The command lines of a console block, and what each prints."""
    command, printed = "", list[str]()
    for line in block.text.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, "".join(printed)
            command, printed = line[2:], []
        else:
            printed.append(f"{line}\n")
    yield command, "".join(printed)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with the examples in it."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", REFERENCE, ids=page_name)
def test_the_python_of_a_page_runs_and_prints_what_the_page_says(page: Path, desk: Path) -> None:
    run_python(page, desk)


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_the_consoles_of_a_page_print_what_the_page_says(page: Path, desk: Path) -> None:
    for block in (block for block in blocks(read(page)) if block.word == "console"):
        for command, printed in console(block):
            where = f"{page.name}:{block.line}: {command}"
            assert command.startswith("sateen "), f"{where}: only sateen is run here"
            done = CliRunner().invoke(main, shlex.split(command)[1:])
            assert done.exception is None or isinstance(done.exception, SystemExit), where
            failed = printed.startswith(("Usage:", "Error:")) or re.match(r"\w+Error: ", printed)
            compare(printed, done.stderr if failed else done.stdout, where, doctest.ELLIPSIS)


def outputs(page: Path) -> Iterator[tuple[int, str]]:
    """What a page shows as printed by its Python, except errors, with the line where it begins."""
    for block in blocks(read(page)):
        if block.word == "text" and block.directly_after:
            yield block.line, block.text
        elif block.word == "python":
            for example in doctest.DocTestParser().get_examples(block.text):
                if example.exc_msg is None:
                    yield block.line + example.lineno, example.want


@pytest.mark.parametrize("page", [PAGES[0], *TAUGHT, *GALLERY, *HOWTO], ids=page_name)
def test_a_page_that_teaches_shows_all_that_is_printed(page: Path) -> None:
    gaps = [f"{page.name}:{line}" for line, shown in outputs(page) if "..." in shown]
    assert not gaps, f"{', '.join(gaps)}: print rounded values, so that readers see a result"


def command_lines() -> list[tuple[str, str]]:
    """Every line in the sh blocks that calls sateen, and where it stands."""
    found = []
    for page in PAGES:
        for block in (block for block in blocks(read(page)) if block.word == "sh"):
            for line in block.text.replace("\\\n", " ").splitlines():
                if call := re.search(r"(?:^|&& )(?:\.venv/bin/)?sateen (.*)", line):
                    found.append((f"{page.name}:{block.line}", call[1]))
    return found


def commands_in_text() -> list[tuple[str, str]]:
    """Every call of a command of sateen in the text of a page, and where it stands."""
    found = []
    for page in PAGES:
        text = re.sub(r"(?ms)^(`{3,}).*?^\1\s*$", "", read(page))
        found += [(page.name, " ".join(call.split())) for call in re.findall(r"(?<!`)`sateen ([a-z][^`]*)`(?!`)", text)]
    return found


@pytest.mark.parametrize(("where", "line"), [*command_lines(), *commands_in_text()])
def test_a_command_line_is_one_that_the_command_line_accepts(where: str, line: str, desk: Path) -> None:
    name, *arguments = shlex.split(line, comments=True)
    context = click.Context(main, **main.context_settings)
    command = main.get_command(context, name)
    assert command is not None, f"{where}: there is no command {name}"
    if "..." in arguments or all(each.startswith("-") for each in arguments):  # only named
        known = {option for each in command.params for option in each.opts}
        assert {each for each in arguments if each.startswith("--")} <= known, f"{where}: {line}"
    else:  # A wrong option raises here; nothing is run. Without its parent a command would forget -h.
        command.make_context(name, arguments, parent=context)


def test_the_main_command_of_the_readme_runs_the_first_study(desk: Path) -> None:
    """`.ci/run` runs it as it stands, and tests/test_cli_run.py the same study; here it is only looked at."""
    (line,) = [line for where, line in command_lines() if where.startswith("README") and line.startswith("run ")]
    assert line == "run examples/sir.toml"
    done = CliRunner().invoke(main, [*shlex.split(line), "--dry-run"])
    assert done.exit_code == 0, done.output
    assert tuple(sateen.Study.load("examples/sir.toml").learners) == ("svi-gp", "ep-gp", "svi-bnn")


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_block_says_what_it_is(page: Path) -> None:
    for block in blocks(read(page)):
        assert block.word in WORDS, f"{page.name}:{block.line}: write one of {', '.join(sorted(WORDS))} after the fence"


def anchor(heading: str) -> str:
    """The name by which a link finds a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def prose(page: str) -> str:
    """The page without its fenced blocks and code."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"(?ms)^(`{3,}).*?^\1\s*$", "", page))


def headings(page: Path) -> set[str]:
    without_blocks = re.sub(r"(?ms)^(`{3,}).*?^\1\s*$", "", read(page))
    return {anchor(title) for title in re.findall(r"(?m)^#+ (.+)$", without_blocks)}


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(read(page))):
        if re.match(r"[a-z]+:", target):
            continue  # another site, which no test asks
        file, _, part = target.partition("#")
        found = (page.parent / file).resolve() if file else page
        assert found.exists(), f"{page.name}: {target} leads nowhere"
        assert not part or part in headings(found), f"{page.name}: {target}: there is no such heading"


def test_every_page_can_be_reached_from_the_index_in_one_way() -> None:
    reached = [page_name(page) for page in site_pages()]
    assert sorted(reached) == sorted(page_name(page) for page in PAGES[1:])


@pytest.mark.parametrize("page", [page for page in PAGES[1:] if children(page)], ids=page_name)
def test_a_section_names_its_pages_as_they_name_themselves(page: Path) -> None:
    _, _, listed = read(page).partition("\n<!-- contents")
    for name, file in re.findall(r"\[([^\[\]]+)\]\(([\w./-]+\.md)\)", listed):
        title = re.match(r"# (.+)", read((page.parent / file).resolve()))
        assert title is not None
        assert name == title[1], f"{page_name(page)} calls {file} {name!r}, but the sidebar shows {title[1]!r}"


def test_the_readme_leads_to_the_documentation() -> None:
    assert "(docs/index.md)" in read(ROOT / "README.md")


def test_the_api_page_names_every_public_name_once_and_no_other() -> None:
    listed = re.findall(r"(?m)^\| `(\w+)`", read(ROOT / "docs" / "api.md"))
    assert sorted(listed) == sorted(sateen.__all__)


def test_the_api_page_has_the_order_of_the_work() -> None:
    listed = re.findall(r"(?m)^\| `(\w+)`", read(ROOT / "docs" / "api.md"))
    errors = {name for name in sateen.__all__ if isinstance(getattr(sateen, name), type)}
    errors = {name for name in errors if issubclass(getattr(sateen, name), BaseException)}
    assert [name for name in listed if name not in errors] == [name for name in sateen.__all__ if name not in errors]


def rows(page: str, heading: str) -> list[list[str]]:
    """The rows of the first table under a heading, cell by cell; a cell that is code is freed of its backquotes."""
    section = read(ROOT / page).split(f"# {heading}\n", 1)[1]
    table = re.search(r"(?m)^\|(?!-).*\n\|-.*\n((?:\|.*\n)+)", section)
    assert table is not None
    return [[cell.strip("`") for cell in table_cells(line)] for line in table[1].splitlines()]


@pytest.mark.parametrize(("written", "meant"), rows("docs/formulas.md", "Grammar"))
def test_a_formula_is_read_as_the_page_says(written: str, meant: str) -> None:
    assert sateen.stl(written) == sateen.stl(meant)


@pytest.mark.parametrize("formula", [row[1] for row in rows("docs/formulas.md", "Examples")])
def test_an_example_of_a_formula_is_one(formula: str) -> None:
    assert isinstance(sateen.stl(formula), sateen.Formula)


@pytest.mark.parametrize(("formula", "told"), rows("docs/formulas.md", "Common mistakes"))
def test_a_mistake_is_told_as_the_page_says(formula: str, told: str) -> None:
    with pytest.raises(sateen.FormulaError) as error:
        sateen.stl(formula)
    assert error.value.message.startswith(told.partition(": ")[0])


def test_the_figures_of_speed_are_those_of_the_benchmarks() -> None:
    """Up to what a busy machine changes from one run of a benchmark to the next."""
    results = {file.stem: json.loads(read(file)) for file in (ROOT / "benchmarks" / "results").glob("*.json")}
    monitored, computed = results["monitor"]["rows"][-1], results["exact"]["cases"][0]
    largest = results["datasets-paper-data"]["rows"][-1]
    measured = [monitored["nested_ms"], monitored["ratio"], computed["ms_per_point"]]
    measured.append(largest["train_seconds"] + largest["test_seconds"])
    for part in ("all", "random"):
        spent = results["paper-times"][part]["seconds"]
        measured.append((sum(spent.values()) - spent["the truth"]) / 60)
    told = [(row[0], float(row[1].split()[0])) for row in rows("docs/explanation/speed.md", "Other tasks")]
    for (what, figure), value in zip(told, measured, strict=False):
        assert figure == pytest.approx(value, rel=0.25), f"speed.md, {what}: the results say {value:.3g}"
    raced = {(row["model"], row["engine"]): row for row in results["ssa"]["rows"]}
    labels = {"epidemic": "SIR", "gene expression (LacZ)": "PGE", "phosphorelay": "PR"}
    text = read(ROOT / "docs" / "explanation" / "speed.md")
    for label, model in labels.items():
        (line,) = [line for line in text.splitlines() if line.startswith(f"| {label} |")]
        own = next(row for (name, engine), row in raced.items() if name == model and engine.startswith("own"))
        cells = [float(cell.split()[0]) for cell in line.split("|")[2:6]]
        for row, speed, ratio in ((raced[model, "sateen"], cells[0], cells[1]), (own, cells[2], cells[3])):
            assert speed == pytest.approx(row["events_per_second"] / 1e6, rel=0.01), label
            assert ratio == pytest.approx(row["times_gillespy2"], rel=0.02), label


def test_the_first_answers_of_speed_are_those_of_the_benchmark() -> None:
    measured = json.loads(read(ROOT / "benchmarks" / "results" / "startup.json"))["rows"]
    cpu = {row["what"]: row["cpu"] for row in measured}
    kinds = ("counts, flat", "counts, nested", "counts, delayed", "SVIBNN", "LaplaceNet")
    for kind, row in zip(kinds, rows("docs/explanation/speed.md", "The first answer"), strict=True):
        assert [float(cell.split()[0]) for cell in row[1:]] == [
            pytest.approx(cpu[f"{kind}, {when}"], abs=0.006) for when in ("cold", "kept")
        ], kind
    page = read(ROOT / "docs" / "explanation" / "speed.md")
    another = max(seconds for what, seconds in cpu.items() if what.startswith("another number"))
    assert f"another bound or threshold takes {1000 * another:.0f} ms" in page
    assert f"`import sateen` takes {1000 * cpu['import sateen']:.0f} ms" in page


def test_the_readme_has_figures_of_the_benchmarks() -> None:
    results = {file.stem: json.loads(read(file)) for file in (ROOT / "benchmarks" / "results").glob("*.json")}
    raced = {(row["model"], row["engine"]): row for row in results["ssa"]["rows"]}
    plain, deciding = raced["SIR", "sateen"], raced["SIR", "own property"]
    monitored, largest = results["monitor"]["rows"][-1], results["datasets-paper-data"]["rows"][-1]
    both = (plain, deciding)
    measured = [
        ([row["events_per_second"] / 1e6 for row in both], [row["times_gillespy2"] for row in both]),
        ([monitored["shared_ms"]], [monitored["ratio"]]),
        ([largest["train_seconds"] + largest["test_seconds"]], []),
    ]
    for (what, *cells), told in zip(rows("README.md", "Speed"), measured, strict=True):
        for cell, figures in zip(cells, told, strict=True):
            written = [float(figure) for figure in re.findall(r"(?<!\w)\d[\d.]*", cell)]
            assert written == pytest.approx(figures, rel=0.02), what


def test_the_figures_of_ensembles_are_those_of_the_benchmark() -> None:
    measured = json.loads(read(ROOT / "benchmarks" / "results" / "ensemble.json"))["rows"]
    told = re.findall(r"1/(\d+) \(", read(ROOT / "docs" / "explanation" / "speed.md"))
    assert [int(figure) for figure in told] == [round(row["times"]) for row in measured]


def test_the_papers_tables_are_those_that_the_command_made() -> None:
    page, results = read(ROOT / "docs" / "paper.md"), ROOT / "benchmarks" / "results"
    for name, count in {"all": 2, "presets": 1, "random": 1, "guarantees": 2}.items():
        kept = read(results / f"paper-{name}.md").split("\n\n")
        tables = [block for block in kept if block.startswith("|")]
        assert len(tables) == count, name
        for table in tables:
            assert table.strip() in page, name


def test_a_line_of_the_documentation_is_not_too_long_to_read() -> None:
    for page in PAGES:
        for number, line in enumerate(read(page).splitlines(), start=1):
            long = len(line) > 120 and not line.startswith(("|", "python3 ", "$ "))
            assert not long, f"{page.name}:{number}: {len(line)} characters"
