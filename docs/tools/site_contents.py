"""What the site adds to a page: its table of contents, text made from the sources, and links that work there.

A page says in a comment what it wants, so that it stays plain Markdown:

    <!-- contents -->            the pages linked from here to the end of the page are its children
    <!-- contents: faq glossary -->   and these too, where they exist
    <!-- made: errors -->        text that `site_reference` makes from the sources
    <!-- include: ../CHANGELOG.md -->   a file at the root of the repository, without its title
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

DOCS: Final = Path(__file__).resolve().parents[1]
_CONTENTS: Final = re.compile(r"(?m)^<!-- contents(?:: ([\w./ -]+))? -->$")
_MADE: Final = re.compile(r"(?m)^<!-- made: (\w+(?: [^>\n]+)?) -->$")
_INCLUDE: Final = re.compile(r"(?m)^<!-- include: (\S+) -->$")
_LINK: Final = re.compile(r"\]\(([\w./-]+)\.md(?:#[\w-]+)?\)")
# Files at the root of the repository, and the page of the site that shows each.
_ROOT_PAGES: Final = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "README.md": "index.md",
}


def children(page: Path) -> list[str]:
    """The pages below a page, relative to its folder and without their suffix, in the order in which it names them."""
    found: dict[str, None] = {}
    text = page.read_text(encoding="utf-8")
    if mark := _CONTENTS.search(text):
        for name in [*_LINK.findall(text[mark.end() :]), *(mark[1] or "").split()]:
            if (page.parent / f"{name}.md").is_file():
                found[name] = None
    return list(found)


def site_pages(page: Path = DOCS / "index.md") -> Iterator[Path]:
    """A page, and all that are below it."""
    yield page
    for name in children(page):
        yield from site_pages((page.parent / f"{name}.md").resolve())


def complete(name: str, text: str) -> str:
    """The text of a page as the site shows it; `name` is its path in docs/, without the suffix."""
    from site_reference import made

    page = DOCS / f"{name}.md"
    text = _INCLUDE.sub(lambda mark: _included(page, mark[1]), text)
    text = _MADE.sub(lambda mark: made(mark[1], "../" * name.count("/")), text)
    up = "../" * name.count("/")
    for root_page, site_page in _ROOT_PAGES.items():
        text = text.replace(f"]({up}../{root_page}", f"]({up}{site_page}")
    if names := children(page):
        text += "\n```{toctree}\n:hidden:\n\n" + "\n".join(names) + "\n```\n"
    return text


def _included(page: Path, name: str) -> str:
    """A file at the root, without its title, with links from the folder of the page that includes it."""
    _, _, text = (page.parent / name).read_text(encoding="utf-8").partition("\n")
    text = re.sub(r"\]\(docs/", "](", text)
    for root_page, site_page in _ROOT_PAGES.items():
        text = text.replace(f"]({root_page}", f"]({site_page}")
    return text


def complete_page(app: object, name: str, source: list[str]) -> None:
    """Sphinx calls this for every page that it reads."""
    source[0] = complete(name, source[0])


def completed_pages(app: object, environment: object, *changes: object) -> list[str]:
    """Sphinx reads these pages in every build, because what completes them may have changed."""
    pages = (page for page in DOCS.rglob("*.md") if "_build" not in page.parts)
    asking = (page for page in pages if "\n<!-- " in page.read_text(encoding="utf-8"))
    return [page.relative_to(DOCS).with_suffix("").as_posix() for page in asking]
