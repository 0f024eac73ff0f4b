"""The words of the pages: short sentences, terms linked to the glossary, a comparison with sources and true figures."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[1]
DOCS: Final = ROOT / "docs"
FEWEST_TERMS: Final = 40
FEWEST_QUESTIONS: Final = 15
LONGEST_MEAN: Final = 18  # words a sentence
# These pages explain nothing that the glossary would: lists of links, and the first lesson, which explains as it goes.
WITHOUT_TERMS: Final = {"api", "changelog", "contributing", "glossary", "index", "tutorial"}
EXPLAINING: Final = [page for page in sorted(DOCS.glob("*.md")) if page.stem not in WITHOUT_TERMS]


def read(name: str) -> str:
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def without_blocks(page: str) -> str:
    return re.sub(r"(?ms)^(`{3,}).*?^\1\s*$", "", page)


def entries(page: str, mark: str) -> dict[str, str]:
    """The headings of a rank, and the text below each."""
    parts = re.split(rf"(?m)^{mark} (.+)$", without_blocks(page))[1:]
    return dict(zip(parts[::2], (text.partition("\n#")[0].strip() for text in parts[1::2]), strict=True))


def kept(name: str) -> Any:
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))


def test_the_glossary_is_sorted_and_explains_every_term() -> None:
    terms = entries(read("glossary"), "##")
    assert len(terms) >= FEWEST_TERMS
    assert list(terms) == sorted(terms, key=str.lower)
    assert not [term for term, text in terms.items() if len(text.split()) < 6]


@pytest.mark.parametrize("page", EXPLAINING, ids=lambda page: page.stem)
def test_a_page_links_its_terms_to_the_glossary_once_each(page: Path) -> None:
    linked = re.findall(r"\]\(glossary\.md#([\w-]+)\)", page.read_text(encoding="utf-8"))
    assert linked, "link each term to the glossary where it is first used"
    assert sorted(linked) == sorted(set(linked)), "only the first use of a term is a link"


def sentences(page: str) -> list[list[str]]:
    """The words of each sentence of the prose: no blocks, headings, tables or formulas; an item of a list ends one."""
    lines = [line for line in without_blocks(page).splitlines() if not line.startswith(("#", "|", ">", "    "))]
    pieces = re.split(r"(?<=[.!?])[\"*)]*\s+|\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", "\n".join(lines))
    return [words for words in (piece.split() for piece in pieces) if len(words) > 2]


@pytest.mark.parametrize("page", EXPLAINING, ids=lambda page: page.stem)
def test_the_sentences_of_a_page_are_short_on_average(page: Path) -> None:
    lengths = [len(words) for words in sentences(page.read_text(encoding="utf-8"))]
    assert sum(lengths) / len(lengths) <= LONGEST_MEAN


def test_sentences_are_counted_by_words() -> None:
    assert [
        len(words) for words in sentences("# No\n\nOne two three. Four five\nsix seven!\n\n- a b c\n- d e f g")
    ] == [
        3,
        4,
        4,
        5,
    ]


def test_every_question_has_an_answer() -> None:
    questions = entries(read("faq"), "###")
    assert len(questions) >= FEWEST_QUESTIONS
    assert not [question for question in questions if not question.endswith("?")]
    assert not [question for question, answer in questions.items() if len(answer.split()) < 10]


def test_every_source_of_the_comparison_is_cited_and_every_citation_has_a_source() -> None:
    page = without_blocks(read("comparison"))
    text, _, sources = page.partition("\n## Sources\n")
    numbers = [int(number) for number in re.findall(r"(?m)^(\d+)\. ", sources)]
    cited = {int(number) for group in re.findall(r"\[(\d+(?:, \d+)*)\]", text) for number in group.split(", ")}
    assert numbers == list(range(1, len(numbers) + 1))
    assert cited == set(numbers)
    for doi in re.findall(r"DOI (\S+)", sources):
        assert re.fullmatch(r"10\.\d{4,}/[\w.()-]*\w\.?[;,]?", doi), doi


def figure(pattern: str, page: str) -> tuple[float, ...]:
    """The figures that a sentence of a page has, however its lines are broken."""
    found = re.search(pattern, " ".join(read(page).split()))
    assert found is not None, f"docs/{page}.md no longer says: {pattern}"
    return tuple(float(each) for each in found.groups())


def test_the_figures_of_the_comparison_are_those_of_the_benchmarks() -> None:
    speeds = [row["times_gillespy2"] for row in kept("ssa")["rows"] if row["engine"] == "sateen" and not row["formula"]]
    assert len(speeds) == 4  # of four models, as the page says
    told = figure(r"between (\d+) and (\d+) times as many events", "comparison")
    assert told == pytest.approx((min(speeds), max(speeds)), rel=0.02)
    states = [row["times"] for row in kept("ensemble")["rows"]]
    assert len(states) == 3
    assert figure(r"it is (\d+) to (\d+) times as fast", "comparison") == (round(min(states)), round(max(states)))
    chosen = {row["way"].split(",")[0]: row["seconds"] for row in kept("refine_peer")["rows"]}
    for page in ("comparison", "decide"):
        assert figure(r"(\d\.\d+) s of CPU", page) == (round(chosen["choice: refine"], 2),)
        assert figure(r"(\d+) s [^.]*with its straddle", page) == (
            round(chosen["choice: AEPsych MCLevelSetEstimation"]),
        )
        assert figure(r"(\d+) s with its look-ahead", page) == (round(chosen["choice: AEPsych GlobalMI"]),)
    rewards = kept("prism_rewards")
    for page in ("comparison", "prism"):
        assert figure(r"(\d+) of the (\d+) expected rewards", page) == (rewards["agree"], rewards["of"])
