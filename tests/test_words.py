"""The words of pages, help and messages: spelled right, and none of the phrases that readers stumbled over."""

from __future__ import annotations

import re
import sys

import pytest

from doc_pages import ROOT
from prose import WORDS, all_unknown, docstrings, helps, messages, own_words, pages, texts, unknown

# What people had to read twice, and what to write instead.
ARCHAIC = {
    "made anew": "recomputed",
    "anew": "again",
    "are taken over": "are reused",
    "is taken over from": "is reused from",
    "is no point where": "has positive width where",
    "nobody is there to be asked": "not a terminal, so cannot ask",
    "put in where it is read": "inlined",
    "nothing bears": "undefined name",
    "to be rid of": "to remove",
    "ended without a word": "exited unexpectedly",
    "thereof": "of it",
    "wherein": "in which",
    "whilst": "while",
    "upon": "on",
    "manieth": "number",
    "hitherto": "so far",
    "so as to": "to",
    "lest": "so that ... not",
    "aught": "anything",
    "hereby": "by this",
    "therein": "in it",
    "whence": "from which",
    "henceforth": "from now on",
    "is worth": "how good it is",
    "held to be": "taken to be",
    "a page of its own": "its own page",
    "at each put": "at each parameter of the region",
    "from anybody": "that you were given",
    "buys a guarantee": "makes intervals with a guarantee",
    "thousand million": "billion",
    "brought no progress": "made no progress",
    "in cpu time as called": "in CPU time of a call from Python",
    "are the others": "name them",
    "all that stands": "everything",
    "has taken over": "continues",
    "are no jumps": "are not jumps",
    "such a one": "one like this",
    "wherefrom": "from which",
    "whereof": "of which",
    "whereby": "by which",
    "thereby": "by this",
    "therefrom": "from it",
    "thence": "from there",
    "albeit": "although",
    "amongst": "among",
    "of old": "earlier",
    "save for": "except",
    "to wit": "namely",
    "shall": "will",
    "whoever": "anyone who",
    "bears": "has",
    "one's own": "your own",
    "nobody knows": "it is not known",
    "what nobody": "what no one",
    "as people meet it": "as it is used",
    "of which nothing": "without",
    "that stands before": "before",
    "is none is": "empty",
    "is told of": "the error names",
    "are told of": "the error names",
    "is warned of": "gives a warning",
    "is asked of": "must give",
    "stands in the way": "gives the reason",
    "no other level stands": "unless another level is given",
    "stand as they are": "are unchanged",
    "stands as it is": "is unchanged",
    "in the midst of": "in the middle of",
    "in the place of another": "instead of",
    "comes on top": "in addition",
    "come on top": "in addition",
    "goes on from": "continues from",
    "thinks up": "chooses",
    "gives way": "is relaxed",
    "teaches most": "is most informative",
    "teach most": "are most informative",
    "tells equally much": "is equally informative",
    "what the calibration bought": "what the runs gave",
    "what they buy": "what they give",
    "would buy": "would give",
    "all the same hold": "still hold",
    "hold all the same": "still hold",
    "is sure where": "is certain where",
    "knows better": "is more accurate",
    "are there twice": "duplicate",
    "is there twice": "duplicate",
    "as far as is known": "as far as the posterior knows",
    "cannot be told from": "cannot be distinguished from",
    "asked for by name": "requested",
    "for they": "because they",
    "for it would": "because it would",
    "they deviate by": "standard deviation",
    "would lie if it were right": "95 % band",
    "as sure as it says": "perfectly calibrated",
}


def phrases(text: str) -> list[str]:
    """The archaic phrases in a text, however its lines are broken."""
    flat = " ".join(text.lower().split())
    return [phrase for phrase in ARCHAIC if re.search(rf"\b{re.escape(phrase)}\b", flat)]


def test_no_page_help_message_or_public_docstring_has_an_archaic_phrase() -> None:
    found = [f"{where}: {phrase}: write {ARCHAIC[phrase]}" for where, text in texts() for phrase in phrases(text)]
    assert not found, "\n".join(["", *found])


def test_an_archaic_phrase_is_noticed_across_lines() -> None:
    assert phrases("Wilson's interval is no\npoint where all agree, and is made anew.") == [
        "made anew",
        "anew",
        "is no point where",
    ]
    assert phrases("a plan, anewly") == []


def test_every_word_is_spelled_as_a_list_has_it() -> None:
    spelled = [f"{word}: {', '.join(places[:3])}" for word, places in sorted(all_unknown().items())]
    remedy = "correct it, or look at it and run: python docs/tools/prose.py --add"
    assert not spelled, "\n".join([remedy, *spelled])


@pytest.mark.parametrize("typo", ["teh", "recieve", "seperate", "occured", "definately", "probablity", "posteror"])
def test_a_misspelled_word_is_noticed(typo: str) -> None:
    assert unknown(f"Here {typo} is wrong.") == [typo]


def test_code_is_not_spelled() -> None:
    assert unknown("the file x_y.toml, obs2, --no-cdoe and st.lern, in {braceds}") == []


def test_pages_help_and_messages_are_all_looked_at() -> None:
    assert {"README.md", "docs/guarantees.md", "docs/start/index.md"} <= {where for where, _ in pages()}
    assert "sateen check --help" in {where for where, _ in helps()}
    said = [text for _, text in messages()]
    assert any("there is no such table" in text for text in said)
    assert len(said) > 500
    assert {"help(st.observe)", "help(st.Regions.box)", "help(st.Model.load)"} <= {where for where, _ in docstrings()}


def test_the_own_words_are_sorted_and_none_is_there_twice() -> None:
    lines = WORDS.read_text(encoding="utf-8").split()
    assert lines == sorted(set(lines))
    assert own_words() == set(lines)


def test_the_pages_that_teach_are_easy_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import reading_ease

    for section in reading_ease.SECTIONS.values():
        assert reading_ease.section_ease(section) >= 50, f"{section}: run benchmarks/reading_ease.py"
    hard = "The extraordinarily sophisticated characterisation necessitates considerable interdisciplinary familiarity."
    assert reading_ease.reading_ease(hard)[0] < 0 < 80 < reading_ease.reading_ease("The cat sat. It saw a dog.")[0]
    sys.modules.pop("reading_ease")
