"""Pictures in notebooks: SVG without script, in colours that follow light and dark, whatever stands in the words."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import sateen as st
from known_functions import LINE, PLANE, observed
from sateen.core.display import paragraph, pictured
from sateen.plot.inline import _INKS, svg
from sateen.plot.style import COLOURS, new_axes

FORMULA = st.stl("F[0, 4] x > 1")
PATH = st.Path(times=[0, 2, 5], states=[[0, 3], [2, 2], [1, 1]], species=("x", "y"), end=8)
CUBE = st.Space(a=(0, 1), b=(0, 1), c=(0, 1))
HOSTILE = "<script>alert(1)</script>"


@cache
def posterior(space: st.Space) -> Any:
    return st.SVIGP(inducing=8).fit(observed(space, 30, 20, seed=1), seed=2)


@cache
def guarantee(space: st.Space) -> Any:
    return st.calibrate(posterior(space), observed(space, 40, 20, seed=3), normaliser="predictive")


THINGS: dict[str, Callable[[], Any]] = {
    "path": lambda: PATH,
    "explanation": lambda: st.explain(FORMULA, PATH),
    "observations over one": lambda: observed(LINE, 30, 20, seed=1),
    "observations over two": lambda: observed(PLANE, 30, 20, seed=1),
    "posterior over one": lambda: posterior(LINE),
    "posterior over two": lambda: posterior(PLANE),
    "prediction over one": lambda: posterior(LINE).predict(LINE.grid(50)),
    "prediction of few": lambda: posterior(LINE).predict(LINE.grid(3)),
    "prediction over three": lambda: posterior(CUBE).predict(CUBE.uniform(40, seed=1)),
    "prediction over two": lambda: posterior(PLANE).predict(PLANE.grid(12)),
    "guarantee over one": lambda: guarantee(LINE),
    "guarantee over two": lambda: guarantee(PLANE),
    "regions over one": lambda: st.decide(posterior(LINE), above=0.5, seed=1),
    "regions over two": lambda: st.decide(posterior(PLANE), above=0.5, seed=1),
    "ensemble": lambda: st.Ensemble(times=[0, 1, 2], states=np.arange(12).reshape(2, 3, 2), species=("x", "y")),
}


def picture_in(html: str) -> ElementTree.Element:
    """The only picture, as the tree that it is."""
    (found,) = re.findall(r"<svg.*?</svg>", html, re.DOTALL)
    return ElementTree.fromstring(found.replace("<svg", '<svg xmlns:xlink="http://www.w3.org/1999/xlink"', 1))


@pytest.mark.parametrize("name", THINGS)
class TestEveryPicture:
    def test_it_is_one_well_formed_svg_without_script_that_fetches_nothing(self, name: str) -> None:
        html = THINGS[name]()._repr_html_()
        tags = {each.tag for each in picture_in(html).iter()}
        assert {"g", "path"} <= tags
        assert not tags & {"script", "foreignObject", "metadata", "a"}
        assert not re.search(r"\son\w+=|javascript:|https?://|@import", html)
        addresses = re.findall(r'href="([^"]*)"', html) + re.findall(r"url\(([^)]*)\)", html)
        assert all(each.startswith(("#", "data:image/png;base64,")) for each in addresses)

    def test_no_rule_of_its_style_reaches_beyond_it(self, name: str) -> None:
        (style,) = re.findall(r"<style>(.*?)</style>", THINGS[name]()._repr_html_(), re.DOTALL)
        for rule in re.findall(r"([^{}]+)\{[^{}]*\}", re.sub(r"@media[^{]*\{", "", style)):
            assert all(".sateen" in selector for selector in rule.split(","))

    def test_every_colour_of_letters_and_lines_has_a_light_and_a_dark_value(self, name: str) -> None:
        html = THINGS[name]()._repr_html_()
        used = set(re.findall(r"var\(--sateen-([a-z]+),", html))
        assert {"ink", "paper"} <= used
        (style,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
        for one in used:
            values = re.findall(rf"--sateen-{one}:(#[0-9a-f]{{6}})", style)
            assert len(values) == 4  # the system's, and the notebook's own: light and dark each
            assert len(set(values)) == 2
        body = html.replace(style, "")
        assert not [each for each in _INKS if re.search(rf"(?<!,){each}", body)]

    def test_it_is_the_same_each_time_but_for_measured_times(self, name: str) -> None:
        thing = THINGS[name]()
        assert thing._repr_html_() == thing._repr_html_()


def test_the_words_below_keep_their_lines_and_are_escaped() -> None:
    assert paragraph(f"a < b\n{HOSTILE}") == "<p>a &lt; b<br>&lt;script&gt;alert(1)&lt;/script&gt;</p>"
    shown = posterior(LINE)._repr_html_()
    assert f"{posterior(LINE).record}".splitlines()[0] + "<br>" in shown


def test_a_name_that_looks_like_markup_is_a_name() -> None:
    shown = st.Path(times=[0, 1], states=[1, 2], species=HOSTILE)._repr_html_()
    assert HOSTILE not in shown
    assert HOSTILE in "".join(picture_in(shown).itertext())


def test_the_numbers_are_folded_away_below_the_picture() -> None:
    shown = PATH._repr_html_()
    assert shown.index("</svg>") < shown.index("<details>") < shown.index("<td>5</td>")


def test_a_long_path_is_drawn_at_some_instants_and_says_so() -> None:
    rng = np.random.default_rng(1)
    times = np.append(0.0, np.cumsum(rng.exponential(size=50_000)))
    shown = st.Path(times, np.cumsum(rng.choice([-1, 1], size=50_001)), "x")._repr_html_()
    assert len(shown) < 200_000
    assert "drawn at 2,000 of its 50,001 instants" in shown


def test_what_cannot_be_drawn_is_told_in_words() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        huge = st.Path(times=[0, 1], states=[-1.7e308, 1.7e308], species="x")._repr_html_()
    assert "Path(x: 2 states" in huge
    assert "<td>1</td>" in huge

    def impossible() -> Any:
        raise OverflowError("a number that no axis has")

    assert pictured(impossible, "words", "<b>table</b>") == "<p>words</p><b>table</b>"


def test_an_error_that_is_no_matter_of_numbers_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        svg(lambda: 1 / 0)  # type: ignore[arg-type, return-value]


def test_colours_of_the_palette_all_have_a_partner_in_the_dark() -> None:
    assert {each.lower() for each in COLOURS} <= set(_INKS)
    assert len({dark for _, dark in _INKS.values()} - set(_INKS)) > 10


def test_over_more_parameters_observations_are_a_table_and_a_posterior_has_slices() -> None:
    cube = st.Space(a=(0, 1), b=(0, 1), c=(0, 1))
    rng = np.random.default_rng(3)
    points = cube.uniform(60, seed=1)
    satisfied = rng.binomial(20, points.theta.mean(axis=1))
    seen = st.Observations.from_counts(cube, points, satisfied, 20)
    assert "<svg" not in seen._repr_html_()
    assert "<table>" in seen._repr_html_()
    shown = st.SVIGP(inducing=16).fit(seen, seed=1)._repr_html_()
    words = set("".join(picture_in(shown).itertext()).split())
    assert {"a", "b", "c"} <= words


def test_ticks_of_a_short_log_axis_do_not_touch() -> None:
    space = st.Space(gamma=st.Range(0.02, 0.2, scale="log"))
    axes = observed(space, 20, 20, seed=1).plot()
    figure = axes.figure
    figure.draw_without_rendering()
    labels = [*axes.get_xticklabels(), *axes.get_xticklabels(minor=True)]
    boxes = sorted(each.get_window_extent().extents.tolist() for each in labels if each.get_text())
    assert len(boxes) >= 3
    assert all(one[2] < other[0] for one, other in itertools.pairwise(boxes))


def test_a_drawing_can_be_a_figure_or_axes() -> None:
    axes = new_axes(2.0, 1.0)
    assert svg(lambda: axes).startswith('<svg class="sateen"')
    assert svg(lambda: axes.figure).startswith('<svg class="sateen"')


def test_a_prediction_at_a_single_point_is_a_sentence_with_its_numbers() -> None:
    shown = posterior(PLANE).predict(PLANE.grid(4))[:1]._repr_html_()
    assert "<svg" not in shown
    assert re.match(r"<p>Mean 0\.\d+, 95 % interval 0\.?\d* to 0\.\d+</p>", shown)


def test_regions_are_shapes_so_that_their_colours_follow_the_theme() -> None:
    shown = THINGS["regions over two"]()._repr_html_()
    assert "<image" not in shown
    assert {"blue", "orange", "open"} <= set(re.findall(r"var\(--sateen-([a-z]+),", shown))


def test_an_estimate_is_a_paragraph_that_wraps() -> None:
    model = st.Model.parse("species A = 5\nA -> 0 @ mass_action(1)")
    shown = st.estimate(model, st.stl("F[0, 2] A == 0"), runs=200, seed=1, progress=None)._repr_html_()
    assert re.match(r"<p>Frequency 0\.\d+ among 200 runs<br>", shown)
    assert shown.endswith("</p>")
