"""The files of the page: small, from nowhere else, and without a door for markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from importlib.resources import files

import pytest

STATIC = {file.name: file.read_text(encoding="utf-8") for file in files("sateen.serve").joinpath("static").iterdir()}
MOST = 150_000  # bytes, all together


def test_all_files_together_are_small():
    assert sum(len(text.encode()) for text in STATIC.values()) <= MOST


@pytest.mark.parametrize("name", sorted(STATIC))
def test_a_file_names_no_address_outside(name):
    text = STATIC[name].replace("http://www.w3.org/2000/svg", "")  # the name of a vocabulary, which nobody fetches
    assert re.findall(r"(?:https?:)?//\w+\.\w+[^\s\"')]*|@import", text) == []


@pytest.mark.parametrize("name", sorted(name for name in STATIC if name.endswith(".js")))
def test_a_script_sets_text_and_never_markup(name):
    doors = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|eval\(|new Function|srcdoc|setHTML"
    assert re.findall(doors, STATIC[name]) == []


class Page(HTMLParser):
    """Its identifiers, its files, and what a content policy without inline code would stop."""

    def __init__(self):
        super().__init__()
        self.ids, self.files, self.inline, self.labels, self.fields = [], [], [], [], []
        self.inside = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids += [given["id"]] if "id" in given else []
        self.files += [given[key] for key in ("src", "href") if key in given]
        self.inline += [f"{tag} {key}" for key in given if key == "style" or key.startswith("on")]
        if tag == "style" or (tag == "script" and "src" not in given):
            self.inline.append(tag)
        if tag == "label":
            self.inside.append(tag)
            self.labels += [given["for"]] if "for" in given else []
        if tag in ("input", "select", "textarea"):
            self.fields.append(
                (given.get("id", ""), bool(self.inside) or bool({"aria-label", "aria-labelledby"} & {*given}))
            )

    def handle_endtag(self, tag):
        if tag == "label":
            self.inside.pop()


@pytest.fixture(scope="module")
def page():
    parsed = Page()
    parsed.feed(STATIC["index.html"])
    return parsed


def test_the_page_loads_only_files_beside_it(page):
    assert {name.removeprefix("/static/") for name in page.files} <= set(STATIC)
    assert all(name.startswith("/static/") for name in page.files)


def test_the_page_has_no_inline_script_or_style(page):
    assert page.inline == []


def test_every_field_has_a_label(page):
    assert page.fields
    assert [name for name, labelled in page.fields if not labelled and name not in page.labels] == []


def test_identifiers_are_given_once_and_scripts_ask_only_for_those(page):
    assert len(page.ids) == len(set(page.ids))
    scripts = "".join(text for name, text in STATIC.items() if name.endswith(".js"))
    asked = set(re.findall(r"\$\(\"([\w-]+)\"\)", scripts))
    assert asked
    assert asked <= set(page.ids)


def test_every_module_is_asked_for_with_the_page_and_not_after_the_one_that_imports_it(page):
    assert {name for name in STATIC if name.endswith(".js")} == {
        name.removeprefix("/static/") for name in page.files if name.endswith(".js")
    }


def test_every_module_that_is_imported_is_there():
    scripts = "".join(text for name, text in STATIC.items() if name.endswith(".js"))
    assert set(re.findall(r'from "\./([^"]+)"', scripts)) <= set(STATIC)
