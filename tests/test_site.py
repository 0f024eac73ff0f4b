"""The site builds without a warning and without a network, and its reference leaves nothing out."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import sateen
from doc_pages import DOCS, ROOT
from pages import PAGES, read
from sateen.study.file import StudyFile
from site_contents import children, complete, site_pages
from site_reference import GROUPS, TABLES, example, made, meaning, meanings, names_of, parameters_of

NAMES = [name for name in sateen.__all__ if name != "__version__"]
CALLED = [name for name in NAMES if name not in names_of("errors")]
FETCHED = re.compile(r"""<(?:script|img|link|iframe|source)\b[^>]*\b(?:src|href)=["'](?:https?:)?//""")


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_fetches_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", tmp_path / "trees"]
    done = subprocess.run([*command, DOCS, tmp_path / "html"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for page in PAGES[1:]:
        built = tmp_path / "html" / page.relative_to(DOCS).with_suffix(".html")
        text = read(built)
        assert "<h1>" in text, built.name
        assert not FETCHED.search(text.replace('rel="canonical"', "")), f"{built.name} fetches from elsewhere"
    assert 'id="observe"' in read(tmp_path / "html" / "reference" / "many-runs.html")
    assert "sateen check-certificate" in read(tmp_path / "html" / "reference" / "command-line.html")
    assert "Exit codes" in read(tmp_path / "html" / "reference" / "command-line.html")


def test_a_page_that_nothing_leads_to_is_noticed() -> None:
    reached = list(site_pages())
    assert len(reached) == len(set(reached)), "two pages have the same page below them"
    assert "gallery/index" in children(DOCS / "index.md")
    assert "regions" in children(DOCS / "gallery" / "index.md")
    assert "```{toctree}" in complete("gallery/index", read(DOCS / "gallery" / "index.md"))


def test_every_public_name_has_one_entry() -> None:
    asked = [f"names {group}" for group in GROUPS if group != "errors"]
    entries = [re.findall(r"(?m)^## (\w+)$", made(what, "../")) for what in [*asked, "errors"]]
    assert [name for group in entries for name in group] == NAMES
    pages = "".join(read(page) for page in (DOCS / "reference").glob("*.md"))
    for what in [*asked, "errors", "commands", "keys", "grammar"]:
        assert pages.count(f"<!-- made: {what} -->") == 1, what


@pytest.mark.parametrize("name", CALLED)
def test_a_public_name_has_an_example_and_a_meaning_for_each_parameter(name: str) -> None:
    session = example(name)
    assert session, f"write an example of {name} in its docstring or in docs/reference/examples.md"
    assert "Traceback" not in session, f"docs/reference/examples.md: show {name} at work, not only how it fails"
    mute = [each for each in parameters_of(name) if meaning(name, each) is None]
    assert not mute, f"docs/reference/parameters.toml: say what {', '.join(mute)} of {name} means"


@pytest.mark.parametrize("group", [group for group in GROUPS if group != "errors"])
def test_every_name_says_which_page_explains_it(group: str) -> None:
    assert made(f"names {group}", "../").count("Explained in [") == len(names_of(group))


def test_no_meaning_is_of_a_parameter_that_is_gone() -> None:
    there = {f"{name}.{each}" for name in CALLED for each in parameters_of(name)}
    bare = {each.partition(".")[2] for each in there}
    for key in meanings()["parameters"]:
        assert key in (there if "." in key else bare), f"docs/reference/parameters.toml: nothing has {key}"


@pytest.mark.parametrize("table", TABLES)
def test_every_key_of_a_study_has_a_meaning(table: str) -> None:
    assert set(meanings()[table]) == {field.name for field in fields(TABLES[table])}


def test_the_grammar_on_the_page_reads_formulas() -> None:
    from lark import Lark

    (shown,) = re.findall(r"(?s)```text\n(.*?)```", made("grammar", "../"))
    # Words before names: the page leaves out the numbers that say so.
    words = r"(?m)^(_?(?:F|G|U|T|OR|AND|NOT|IF|IFF|IMPLIES|POWER|TRUE|FALSE|FUNCTION|INF)):"
    reader = Lark(re.sub(words, r"\1.4:", shown), parser="lalr", start="formula", lexer="contextual")
    for text in ("(I > 0) U[100, 120] (I == 0)", "G[0, 5] (F[0, 1] x + 2 * y >= min(3, z) | !(w < 1))"):
        assert reader.parse(text).data


def test_every_table_of_a_study_is_on_the_page_of_keys() -> None:
    with pytest.raises(sateen.TextError) as error:
        StudyFile("[no_such_table]\nx = 1\n", "the study")
    listed = set(re.findall(r"\[(\w+)\]", str(error.value).partition("the tables are")[2]))
    assert {"study", "decide", "run"} <= listed
    page = read(DOCS / "reference" / "study-keys.md") + made("keys", "")
    for table in listed:
        assert f"[{table}]" in page, table


def test_the_extras_on_the_page_are_those_of_the_package() -> None:
    import tomllib

    declared = tomllib.loads(read(ROOT / "pyproject.toml"))["project"]["optional-dependencies"]
    assert set(re.findall(r"(?m)^\| `(\w+)` \|", read(DOCS / "start" / "install.md"))) == set(declared)
