"""The page itself: whole, offline, and deaf to whatever stands in the words of a study."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

import sateen as st
from sateen.report.report import _data, render
from small_studies import small

HOSTILE = """</script><script>alert("1")</script><img src=x onerror=alert(1)>'"{{ 7 * 7 }}{% raw %}<!-- &lt;"""


class Page(HTMLParser):
    """What a browser would find: elements with their attributes, the scripts, and the words."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.words: list[str] = []
        self._inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._inside = tag
            (self.scripts if tag == "script" else self.styles).append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = "" if tag == self._inside else self._inside

    def handle_data(self, data: str) -> None:
        if self._inside:
            (self.scripts if self._inside == "script" else self.styles)[-1] += data
        else:
            self.words.append(data)


def decision(words: str) -> dict[str, Any]:
    """All that the template asks for about a decision."""
    flags = {"words": words, "holds": True, "names": [words], "flags": [(words, words)], "all": 1}
    told = dict.fromkeys(("goal", "source", "reason", "threshold", "level", "side", "bounds"), words)
    facts = {"facts": [(words, words, words)], "kind": "slices", "begun": 3}
    box = {"box": [(words,) * 4], "best": {"rows": [(words, words)], "claims": [words]}}
    return {**told, **facts, **box, "certificate": flags, "forecast": {"low": words, "high": words, "aim": words}}


def page(words: str = "sir") -> dict[str, Any]:
    """All that the template asks for, with `words` wherever words of a study stand."""
    bar = {"text": words, "ends": words, "share": 50.0, "low": 40.0, "high": 60.0}
    own = {
        "id": "property-1",
        "name": words,
        "formula": words,
        "end": 3.0,
        "verdict": [("", words), (words, words)],
        "level": words,
        "facts": [(words, words, words)],
        "claims": [words],
        "intervals": [(words, words)],
        "doubts": [words],
        "notes": [(words, words)],
        "offers": [(words,) * 4],
        "bought": words,
        "guaranteed": True,
        "dots": words,
        "sources": [words],
        "kind": "slices",
        "names": [words],
        "bands": [],
        "learner": words,
        "left_out": [words],
        "decision": decision(words),
        "matter": [{"name": words, "way": words, **dict.fromkeys(("first", "total", "elasticity"), bar)}],
        "matters_to": words,
        "matter_claim": words,
        "covered": {"points": 10, "design": words, "guarantee": {"level": 0.9, "inside": 0.8, "met": 0.95}},
        "runs": {"satisfied": words},
        "missing": [words],
        "scores": [(words,) * 6],
        "exactly": False,
        "errors": None,
        "observed": [(words,) * 6],
    }
    pairs = [(words, words)]
    head = {"name": words, "seed": 1, "sateen": words, "model": words, "callable": False, "varies": True, "text": words}
    rest = {
        "space": pairs,
        "fixed": pairs,
        "command": words,
        "timings": pairs,
        "seeds": pairs,
        "versions": pairs,
        "machine": words,
    }
    return {**head, **rest, "properties": [own]}


def test_the_words_of_a_study_are_words_whatever_they_are() -> None:
    tame, wild = Page(render(page(), {})), Page(render(page(HOSTILE), {"property-1": HOSTILE}))
    assert [tag for tag, _ in wild.elements] == [tag for tag, _ in tame.elements]
    assert [sorted(own) for _, own in wild.elements] == [sorted(own) for _, own in tame.elements]
    assert sum(HOSTILE in words for words in wild.words) >= 20
    assert json.loads(wild.scripts[0]) == {"property-1": HOSTILE}
    assert wild.scripts[1:] == tame.scripts[1:]


@given(some.dictionaries(some.text(), some.text() | some.floats(allow_nan=False, allow_infinity=False)))
def test_data_in_the_page_is_the_data_and_cannot_leave_its_element(data: dict[str, Any]) -> None:
    text = _data(data)
    assert json.loads(text) == data
    assert not set("<>&\u2028\u2029") & set(text)


def test_the_page_has_no_address_but_its_own() -> None:
    found = Page(render(page(), {}))
    addresses = [own[key] or "" for _, own in found.elements for key in ("src", "href", "action", "data") if key in own]
    assert addresses
    assert all(address.startswith("#") for address in addresses)
    ours = [*found.styles, found.scripts[0], found.scripts[2], *(str(own) for _, own in found.elements)]
    assert not [text for text in ours if re.search(r"https?://|url\(|@import", text)]


def test_the_policy_lets_exactly_the_scripts_of_the_page_run_and_nothing_be_fetched() -> None:
    found = Page(render(page(), {}))
    (policy,) = [own["content"] or "" for tag, own in found.elements if tag == "meta" and "http-equiv" in own]
    assert policy.startswith("default-src 'none';")
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in found.scripts[1:]]
    assert re.findall(r"'sha256-([^']*)'", policy) == hashes
    assert "unsafe-eval" not in policy
    assert "script-src 'unsafe-inline'" not in policy


def test_the_library_stands_in_the_page_once() -> None:
    text = render(page(), {})
    assert text.count("plotly.js v") == 1
    assert len(text) < 6_000_000


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> st.Result:
    return small().run(tmp_path_factory.mktemp("study"))


class TestOfAStudy:
    def test_a_run_leaves_a_page_that_says_what_was_found(self, result: st.Result) -> None:
        words = " ".join(Page((result.folder / "report.html").read_text(encoding="utf-8")).words)
        own = result.properties["gone"]
        assert own.verdict.replace("\n", " ") in " ".join(words.split())
        assert own.formula is not None
        assert own.formula in words
        for claim in own.claims:
            assert str(claim)[1:] in words
        assert f"{own.scores['svi-gp'].rmse:.4f}" in words
        assert result.command in words
        for seed in result.provenance["seeds"].values():
            assert str(seed) in words

    def test_the_runs_shown_are_runs_that_were_counted_with_these_verdicts(self, result: st.Result) -> None:
        from sateen.report.report import examples

        own = result.properties["gone"]
        shown = examples(result, own)
        assert list(shown) == ["satisfied", "violated"]
        assert own.formula is not None
        for kind, example in shown.items():
            assert getattr(own.train, kind)[example.point] > 0
            assert st.monitor(st.stl(own.formula), example.path) is bool_verdict(kind)
            assert isinstance(own.train.seed, int)
            again = st.replay(
                st.Model.parse(result.model),
                own.train.points[example.point],
                until=2.0,
                seed=own.train.seed,
                point=example.point,
                run=example.run,
            )
            assert again == example.path

    def test_a_kind_of_run_that_never_happened_is_not_shown(self, tmp_path: Path) -> None:
        from sateen.report.report import examples

        result = small(("F[0, 2] A == 0", "A <= 5")).run(tmp_path / "always")
        assert list(examples(result, result.properties["gone"])) == ["satisfied"]
        assert "<p>No training run violates the property.</p>" in (result.folder / "report.html").read_text(
            encoding="utf-8"
        )

    def test_an_unbounded_formula_is_followed_until_it_is_decided(self, tmp_path: Path) -> None:
        from sateen.report.report import examples

        result = small(("F[0, 2] A == 0", "(A > 3) U (A == 2)")).run(tmp_path / "unbounded")
        (kind,) = examples(result, result.properties["gone"])
        assert kind == "violated"

    def test_a_study_with_neither_test_nor_guarantee_has_a_page_too(self, tmp_path: Path) -> None:
        changes = [("calibrate = { points = 40, runs = 20 }\n", ""), ("test      = { points = 10, runs = 50 }\n", "")]
        result = small(*changes, ('[guarantee]\nnormaliser = "constant"\n', "")).run(tmp_path / "bare")
        text = (result.folder / "report.html").read_text(encoding="utf-8")
        classes = [own.get("class") for tag, own in Page(text).elements if tag == "section"]
        assert classes == ["property", "function", "runs", "promises", "observed", "made"]

    def test_a_study_of_one_point_tells_it_in_a_table(self, tmp_path: Path) -> None:
        result = small(("k = [0.1, 2]", "k = 1.0"), ('inputs = "linear"\n', "")).run(tmp_path / "point")
        words = Page((result.folder / "report.html").read_text(encoding="utf-8")).words
        assert "90 % guaranteed" in words
        assert "90 % credible" in words
        assert not any("95 % credible" in text for text in words)

    def test_the_page_is_the_same_each_time_and_changes_nothing(self, result: st.Result, tmp_path: Path) -> None:
        from sateen.report.report import write_report

        before = (result.folder / "result.json").read_bytes()
        write_report(st.Result.load(result.folder), tmp_path / "again.html")
        assert (tmp_path / "again.html").read_bytes() == (result.folder / "report.html").read_bytes()
        assert (result.folder / "result.json").read_bytes() == before

    def test_a_page_that_shows_the_same_is_kept_and_any_other_written_again(self, tmp_path: Path) -> None:
        folder = tmp_path / "kept"
        small().run(folder)
        page = folder / "report.html"
        made = page.stat().st_mtime_ns
        small().run(folder)
        assert page.stat().st_mtime_ns == made
        page.write_text("something else")
        small().run(folder)
        assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def bool_verdict(kind: str) -> st.Verdict:
    return st.Verdict.TRUE if kind == "satisfied" else st.Verdict.FALSE
