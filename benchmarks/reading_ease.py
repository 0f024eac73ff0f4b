"""How easy is the documentation to read? Prints the Flesch reading ease of each page of Start, Tutorials and How-to.

    python benchmarks/reading_ease.py [PAGE ...]

Flesch's figure is 206.835 - 1.015 (words per sentence) - 84.6 (syllables per word). 60 to 70 is plain English, below 30
is hard. The syllables of a word are counted twice, by pyphen's hyphens and by groups of vowels, and the larger number
counts. Code, tables, headings and pictures are left out. A paragraph and an item of a list end a sentence.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pyphen

DOCS = Path(__file__).resolve().parents[1] / "docs"
SECTIONS = {"Start": "start", "Tutorials": "tutorials", "How-to": "howto"}
SYLLABLES = pyphen.Pyphen(lang="en_US", left=1, right=1)


def prose(page: str) -> str:
    """The sentences of a page: no blocks, tables, headings, pictures or comments; names of code count as a word."""
    page = re.sub(r"(?ms)^(`{3,}).*?^\1\s*$", "\n\n", page)
    page = re.sub(r"(?m)^(#|\||!\[|<!--|    ).*$", "\n", page)
    page = re.sub(r"(?m)^\s*(?:[-*]|\d+\.) ", "\n\n", page)
    page = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", page)
    return re.sub(r"`[^`]*`", "name", page)


def sentences(text: str) -> list[list[str]]:
    """The words of each sentence; a paragraph ends one too."""
    pieces = re.split(r"(?<=[.!?])\s+|\n\s*\n", text)
    found = [re.findall(r"[A-Za-z][A-Za-z'\u2019]*", piece) for piece in pieces]
    return [words for words in found if words]


def syllables(word: str) -> int:
    """How many syllables a word has, about."""
    hyphens = len(SYLLABLES.positions(word.lower())) + 1
    vowels = len(re.findall(r"[aeiouy]+", re.sub(r"(?<![aeiouyl])e$|(?<=[^td])ed$", "", word.lower())))
    return max(1, hyphens, vowels)


def reading_ease(page: str) -> tuple[float, int, float]:
    """Flesch's reading ease of a page, its words, and its words per sentence."""
    found = sentences(prose(page))
    words = [word for sentence in found for word in sentence]
    if not words:
        return float("nan"), 0, float("nan")
    long = len(words) / len(found)
    heavy = sum(map(syllables, words)) / len(words)
    return 206.835 - 1.015 * long - 84.6 * heavy, len(words), long


def pages_of(section: str) -> list[Path]:
    """The pages of a section: its index, and what the index links to."""
    index = DOCS / section / "index.md"
    linked = re.findall(r"\]\(([\w./-]+\.md)", index.read_text(encoding="utf-8"))
    return [index, *dict.fromkeys((index.parent / name).resolve() for name in linked)]


def section_ease(section: str) -> float:
    """The reading ease of all pages of a section together."""
    return reading_ease("\n\n".join(prose(page.read_text(encoding="utf-8")) for page in pages_of(section)))[0]


if __name__ == "__main__":
    if names := sys.argv[1:]:
        for name in names:
            ease, count, length = reading_ease(Path(name).read_text(encoding="utf-8"))
            print(f"{ease:5.1f}  {length:4.1f} words a sentence  {count:6,} words  {name}")
        sys.exit()
    for title, section in SECTIONS.items():
        print(f"{section_ease(section):5.1f}  {title}")
        for page in pages_of(section):
            ease, count, length = reading_ease(page.read_text(encoding="utf-8"))
            print(f"  {ease:5.1f}  {length:4.1f} words a sentence  {count:6,} words  {page.relative_to(DOCS)}")
