"""A visit to the page of `sateen serve`: from an example to a certified claim and a saved study, in a real browser."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import sateen as st
from served_pages import NEEDED, browsing, read_frame, serving, tab, visiting

pytestmark = NEEDED
EXAMPLES = Path(__file__).parents[2] / "examples"
NAMED = "document.getElementById('save-name').value === x"  # the server knows which names are taken
COLOURS = "import('/static/colours.js').then(m => Array.from(m.PIXELS))"


@pytest.fixture(scope="module")
def browser():
    with browsing() as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the examples in it."""
    folder = tmp_path_factory.mktemp("served")
    for file in EXAMPLES.iterdir():
        if file.suffix in (".sateen", ".prism", ".props", ".xml", ".ant", ".toml"):
            shutil.copy(file, folder)
    return folder


@pytest.fixture(scope="module")
def server(folder):
    with serving(folder) as found:
        yield found


@pytest.fixture(scope="module")
def other(folder):
    """Another server of the same folder."""
    with serving(folder) as found:
        yield found


def test_the_whole_visit(browser, server, folder):
    with visiting(browser, server) as visit:
        page = visit.page

        # 1 and 2: an example, a mistake with its caret, a sample run with its explanation
        visit.open_example("sir")
        assert "3 species, 2 reactions" in visit.text("#model-said")
        visit.see("#run[data-sample]")
        assert page.locator("#run .part").all_text_contents() == ["(I > 0) U[100, 120] (I == 0)", "I > 0", "I == 0"]
        visit.write("(I > 0) U[100, 120 (I == 0)")
        visit.see("#formula-said.bad", "^")
        assert page.locator("#start").is_disabled()
        lines = visit.text("#formula-said").splitlines()
        assert lines[0] == "expected ']' after the interval"
        assert lines[2].index("^") == lines[1].index(" (I == 0)") + 1
        visit.write("(I > 0) U[100, 120] (I == 0)")
        visit.see("#formula-said", "looks 120 ahead")

        # 3 and 4: a map that sharpens
        visit.start(frames=3)
        assert visit.text("#map-title") == "f(beta, gamma)"
        assert "runs at" in visit.text("#counts")

        # 5: runs at a place, each with its explanation
        visit.click_map(0.4, 0.4)
        chips = page.locator("#chips .chip")
        assert chips.count() == 20
        satisfied = page.locator("#chips .chip.true").count()
        assert visit.text("#runs-count") == f"{satisfied} of 20 runs satisfy the property"
        for kind in ("true", "false"):
            if page.locator(f"#chips .chip.{kind}").count():
                page.locator(f"#chips .chip.{kind}").last.click()
                visit.see(f'#run[data-verdict="{kind}"]')
        page.click("#another")
        visit.until("document.querySelectorAll('#chips .chip').length === 40")
        assert visit.text("#runs-count").startswith(f"{page.locator('#chips .chip.true').count()} of 40 ")

        # 7: a threshold, more runs where it is unsure, a claim
        page.fill("#p-value", "0.3")
        visit.until("document.getElementById('map').dataset.threshold === '0.3'")
        assert "unsure (hatched)" in visit.text("#p-said")
        page.locator("#mode label", has_text="regions").click()
        visit.next_frame()
        page.click("#refine-unsure")
        visit.next_frame()
        page.click("#certify")
        page.click("#certify-dialog .primary")
        shown = visit.see("#claims .done .sentence").inner_text()
        (claim,) = server.state["claims"]
        assert shown == claim["sentence"]

        # 8: saved, with its report
        page.click("#stop")
        visit.see('body[data-phase="stopped"]')
        page.click("#save")
        page.fill("#save-name", "visit")
        page.click("#save-dialog .primary")
        visit.until("!document.getElementById('save-dialog').open")
        assert st.Study.load(folder / "visit.toml").name == "visit"
        visit.until("!document.getElementById('report').disabled")
        with page.expect_download(timeout=60_000) as download:
            page.click("#report")
        assert download.value.suggested_filename == "visit.html"


def test_a_saved_study_opens_again_in_another_server_and_goes_on(browser, server, other):
    with visiting(browser, server) as visit:
        visit.open_example("decay")
        visit.start(frames=2)
        visit.page.click("#stop")
        visit.see('body[data-phase="stopped"]')
        visit.page.click("#save")
        visit.page.fill("#save-name", "again")
        visit.page.click("#save-dialog .primary")
        visit.until("!document.getElementById('save-dialog').open")
        visit.rest(server)
        counts = visit.text("#counts")
        visit.open_example("sir")  # which leaves the session to others
    with visiting(browser, other) as visit:
        visit.open("path", "again.toml")
        visit.see("#map[data-frame]")
        assert visit.text("#counts") == counts
        assert visit.page.input_value("#formula") == "F[0, 2] A == 0"
        visit.page.get_by_role("button", name="Resume").click()
        visit.see('body[data-phase="learning"]')
        visit.until("document.getElementById('counts').innerText !== x", counts)


@pytest.mark.parametrize(
    ("file", "language", "formula"),
    [
        ("sir.sateen", "sateen", ""),
        ("queue.prism", "prism", ""),
        ("gene_switch.xml", "sbml", ""),
        ("epidemic.ant", "antimony", ""),
        ("sir.toml", "sateen", "(I > 0) U[100, 120] (I == 0)"),
        ("gene_switch.toml", "sbml", None),
    ],
)
def test_models_of_every_language_and_studies_open(browser, other, file, language, formula):
    with visiting(browser, other) as visit:
        visit.open("path", file)
        if file == "queue.prism":
            visit.see("#model-said.bad", "capacity, which has no value")
            visit.page.get_by_label("Add a constant").fill("capacity")
            visit.page.keyboard.press("Enter")
        visit.see("#model-said", "✓")
        assert visit.page.input_value("#language") == language
        assert visit.page.locator("#ranges tbody tr").count() > 0
        if formula is None:
            visit.see("#formula-said", "✓")
        else:
            assert visit.page.input_value("#formula") == formula


def test_twenty_parameters_have_eighteen_sliders(browser, server):
    names = [f"k{n}" for n in range(1, 21)]
    lines = [f"parameter {name} = 1\n0 -> X @ {name}\nX -> 0 @ {name} * X\n" for name in names]
    model = "".join(["species X = 5\n", *lines])
    with visiting(browser, server) as visit:
        visit.page.click("#open")
        visit.page.click("#new")
        visit.page.fill("#model", model)
        visit.see("#model-said", "20 parameters")
        assert visit.page.locator("#ranges [aria-label^=vary]:checked").count() == 2
        for name in names[2:]:
            visit.page.get_by_label(f"vary {name}", exact=True).check()
        visit.write("F[0, 1] X > 8")
        visit.start()
        assert visit.page.locator("#sliders input").count() == 18
        visit.click_map(0.5, 0.5)
        said = visit.see("#runs-place", "At k1 = ")
        assert " and 16 more" in said.inner_text()
        assert said.get_attribute("title").count(" = ") == 20
        assert " and 16 more" in visit.text("#readout")


def test_the_value_under_the_crosshair_is_that_of_the_frame(browser, server):
    with visiting(browser, server) as visit:
        visit.open_example("sir")
        visit.start()
        visit.page.click("#pause")
        visit.see('body[data-phase="paused"]')
        visit.rest(server)
        frame = read_frame(server.ask("frame?after=0"))
        visit.until("Number(document.getElementById('map').dataset.frame) === x", frame["frame"])
        visit.page.focus("#map")
        visit.page.keyboard.press("ArrowRight")
        visit.page.keyboard.press("Shift+ArrowUp")
        across, up = 0.5 * (frame["nx"] - 1), 0.6 * (frame["ny"] - 1)
        shown = visit.text("#readout")
        for name, words in (("mean", "f = "), ("lower", "band "), ("upper", " to ")):
            text = shown.rpartition(words)[2].split(",")[0].split()[0]
            value, half = bilinear(frame[name], across, up), 0.5 * 10 ** -len(text.partition(".")[2])
            assert float(text) == pytest.approx(value, abs=1.1 * half)


def test_the_value_under_a_pointer_at_rest_is_that_of_the_newest_frame(browser, server):
    with visiting(browser, server) as visit:
        visit.open_example("sir")
        visit.start()
        visit.page.hover("#map", position={"x": 300, "y": 200})
        before = visit.see("#readout", "f = ").inner_text()
        visit.until("document.getElementById('readout').textContent !== x", before)
        visit.page.get_by_label("beta to").fill("0.2")
        visit.page.click("#start")
        visit.until("document.getElementById('readout').textContent === ''")


def test_runs_of_another_question_are_forgotten(browser, server):
    with visiting(browser, server) as visit:
        visit.open_example("decay")
        visit.write("F[0, 2] A < 0")
        visit.see("#formula-said", "✓")
        visit.start()
        sent = []
        visit.page.on(
            "request", lambda request: request.url.endswith("/api/run") and sent.append(request.post_data_json)
        )
        visit.click_map(0.3, 0.5)
        assert visit.text("#runs-count") == "0 of 20 runs satisfy the property"
        visit.see('#run[data-verdict="false"]')
        assert sent[-1]["by"] in ("replay", "simulate")
        with tab(visit.page.context, server) as other:
            other.see("#map[data-frame]")
            other.write("F[0, 2] A >= 0")
            other.see("#formula-said", "✓")
            other.start()
            visit.see("#runs-place", "Click the map to make 20 runs at a point.")
            assert visit.page.locator("#chips .chip").count() == 0
            assert visit.text("#runs-count") == visit.text("#run") == ""
            assert visit.page.locator("#another").is_disabled()
            other.click_map(0.3, 0.5)
            assert other.text("#runs-count") == "20 of 20 runs satisfy the property"
            other.write("F[0, 2] A < 0")
            other.see("#formula-said", "✓")
            other.start()
            assert other.page.locator("#chips .chip").count() == 0
            other.click_map(0.3, 0.5)
            assert other.text("#runs-count") == "0 of 20 runs satisfy the property"


def test_runs_around_a_point_need_no_threshold(browser, server):
    with visiting(browser, server) as visit:
        visit.open_example("decay")
        visit.start()
        visit.page.click("#stop")
        visit.see('body[data-phase="stopped"]')
        visit.rest(server)
        visit.page.fill("#p-value", "0")
        visit.click_map(0.5, 0.5)
        points = int(visit.data("#map", "points"))
        visit.page.click("#refine-here")
        visit.until("Number(document.getElementById('map').dataset.points) > x", points)
        assert visit.page.locator("#banner").is_hidden()
        visit.page.click("#refine-unsure")
        visit.see("#banner", "the threshold p is between 0 and 1, and not 0 itself")
        visit.page.click("#certify")
        visit.page.click("#certify-dialog .primary")
        visit.see("#certify-said", "the threshold p is between 0 and 1")


def test_sessions_and_studies_get_names_that_fit(browser, other):
    with visiting(browser, other) as visit:
        visit.open("path", "sir_beta.toml")
        visit.start()
        assert visit.text("#session") == "sir_beta"
        visit.page.click("#save")
        visit.see("#save-dialog")
        visit.until(NAMED, "sir_beta-2")  # the other one is the user's own
        for name, fits in (("a.b", False), ("-a", False), ("_a-1", True)):
            visit.page.fill("#save-name", name)
            assert visit.value("document.getElementById('save-name').checkValidity()") == fits
        visit.page.fill("#save-name", "sir_beta-2")
        visit.page.click("#save-dialog .primary")
        visit.until("!document.getElementById('save-dialog').open")
        visit.until("!document.getElementById('report').disabled")
        visit.page.click("#save")
        visit.see("#save-dialog")
        visit.until(NAMED, "sir_beta-2")
        visit.page.keyboard.press("Escape")
        visit.page.click("#open")
        visit.page.click("#new")
        visit.page.fill("#model", "species A = 3\nA -> 0 @ 0.5 * k * A\nparameter k = 1\n")
        visit.see("#model-said", "✓")
        visit.write("F[0, 2] A == 0")
        visit.see("#formula-said", "✓")
        visit.start()
        assert visit.text("#session").startswith("session")


def test_what_a_study_sets_beyond_the_fields_is_shown_and_goes_with_its_learner(browser, other):
    with visiting(browser, other) as visit:
        visit.open("path", "phosphorelay.toml")
        visit.see("#formula-said", "✓")
        visit.page.click("#settings summary")
        visit.see("#carried", "From the study: inducing = 300.")
        visit.page.select_option("#learner", "ep-gp")
        visit.page.locator("#carried").wait_for(state="hidden")
        visit.open("path", "birth_death.toml")
        visit.see("#carried", "From the study: max_events = 100000.")


def bilinear(values, x, y):
    i, j = min(int(x), values.shape[1] - 2), min(int(y), values.shape[0] - 2)
    s, t = x - i, y - j
    corners = values[j : j + 2, i : i + 2]
    return float(np.array([1 - t, t]) @ corners @ np.array([1 - s, s]))


def test_four_parameters_have_two_sliders_and_a_slice_makes_no_runs(browser, server):
    with visiting(browser, server) as visit:
        visit.open_example("gene")
        visit.start()
        visit.page.click("#pause")
        visit.see('body[data-phase="paused"]')
        visit.rest(server)
        runs, number = visit.text("#counts"), int(visit.data("#map", "frame"))
        sliders = visit.page.locator("#sliders input")
        assert sliders.count() == 2
        name = sliders.first.get_attribute("aria-label")
        sliders.first.fill("0.9")
        visit.until("Number(document.getElementById('map').dataset.frame) > x", number)
        frame = read_frame(server.ask("frame?after=0"))
        shown = float(visit.page.locator("#sliders output").first.inner_text())
        assert frame["view"]["sliders"][name] == pytest.approx(shown, rel=0.01)
        visit.page.select_option("#y-axis", "")
        visit.see("#map-title", f"f({frame['view']['x']})")
        visit.until("Number(document.getElementById('map').dataset.frame) > x", frame["frame"])
        assert visit.text("#counts") == runs


def test_one_parameter_has_a_curve(browser, server):
    with visiting(browser, server) as visit:
        visit.open_example("decay")
        visit.start(frames=2)
        assert visit.text("#map-title") == "f(k)"
        visit.page.hover("#map", position={"x": 300, "y": 100})
        visit.see("#readout", "f = ")
        visit.click_map(0.5, 0.5)
        assert visit.page.locator("#chips .chip").count() == 20
        assert visit.page.locator("#mode input").first.is_disabled()


def test_the_colours_of_the_map_rise_in_lightness_for_all_eyes(browser, server):
    """Lightness alone orders the values, also without red or green cones (Viénot, Brettel and Mollon's matrices)."""
    with visiting(browser, server) as visit:
        pixels = np.array(visit.page.evaluate(COLOURS), dtype=np.uint32)
    colours = np.stack([pixels & 255, pixels >> 8 & 255, pixels >> 16 & 255], axis=1) / 255
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    eyes = {
        "all cones": np.eye(3),
        "no red cones": [[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]],
        "no green cones": [[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]],
    }
    for eye, matrix in eyes.items():
        luminance = np.clip(linear @ np.array(matrix).T, 0, 1) @ [0.2126, 0.7152, 0.0722]
        steps = luminance[::8]
        assert all(b > a for a, b in pairwise(steps)), eye
        assert luminance[-1] - luminance[0] > 0.6, eye
