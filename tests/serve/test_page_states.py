"""The states that people meet on the page of `sateen serve`: each has its words, and the controls that make sense."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from itertools import groupby
from pathlib import Path

import pytest

from served_pages import NEEDED, browsing, serving, tab, visiting
from serving import wait_until

pytestmark = NEEDED
SIR = """parameter beta = 0.12, gamma = 0.05
species S = 95, I = 5, R = 0
infect: S + I -> 2 I @ beta * S * I / 100
recover: I -> R @ gamma * I
"""
# The style of the ring, the identifier and the words of an element; three radios share the ring of their frame.
FOCUSED = """e => [getComputedStyle(e.name === "mode" ? e.closest("fieldset") : e).outlineStyle,
  e.id || e.tagName, e.textContent.trim()]"""
EXAMPLES = Path(__file__).parents[2] / "examples"
CONTRAST = Path(__file__).with_name("contrast.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def browser():
    with browsing() as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("states")) as found:
        yield found


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """A server in whose cache nothing is compiled, and in which nothing was opened before the first test."""
    folder = tmp_path_factory.mktemp("fresh")
    with serving(folder, SATEEN_CACHE_DIR=str(folder)) as found:
        yield found, folder


def write_model(visit, text, formula):
    visit.page.click("#open")
    visit.page.click("#new")
    visit.page.fill("#model", text)
    visit.see("#model-said", "✓")
    visit.write(formula)
    visit.see("#formula-said", "✓")


def test_before_anything_is_opened_the_page_says_what_to_do(browser, fresh):
    with visiting(browser, fresh[0]) as visit:
        assert visit.text("#overlay") == "Open a model or type one, write a property, and press Start."
        for name in ("start", "pause", "stop", "save", "report", "refine-unsure", "refine-here", "certify", "another"):
            assert visit.page.locator(f"#{name}").is_disabled(), name
        visit.page.focus("#map")
        visit.page.keyboard.press("Enter")
        assert visit.text("#readout") == ""


def test_compiling_learning_paused_and_stopped(browser, fresh):
    server, _ = fresh
    with visiting(browser, server) as visit:
        write_model(visit, SIR, "(I > 0) U[100, 119] (I == 0)")
        visit.start(frames=2)
        visit.page.click("#pause")
        visit.see('body[data-phase="paused"]')
        # A busy page may hear of the compiler only when it is done; test_campaign.py has all that is told.
        assert visit.value("import('/static/words.js').then(m => m.phase({ phase: 'compiling' }))").startswith(
            "Compiling"
        )
        assert visit.text("#phase") == "Paused"
        visit.rest(server)
        runs = visit.text("#counts")
        visit.click_map(0.5, 0.5)
        assert visit.text("#counts") == runs  # a click adds no counted run
        visit.page.get_by_role("button", name="Resume").click()
        visit.see('body[data-phase="learning"]')
        visit.next_frame()
        assert visit.text("#counts") != runs
        visit.page.click("#stop")
        visit.see('body[data-phase="stopped"]')
        assert visit.page.locator("#stop").is_disabled()
        assert visit.data("#map", "frame")
        passing = ("starting", "empty", "checking", "compiling", "preview", "stopping")
        order = [phase for phase, _ in groupby(phase for phase in visit.phases if phase not in passing)]
        assert order == ["learning", "paused", "learning", "stopped"]

        # A start while another simulator is compiled wins over it.
        for formula in ("(I > 0) U[100, 119] (I < 1)", "F[0, 119] G[0, 1] I < 1"):  # other numbers compile nothing
            visit.write(formula)
            visit.see("#formula-said", formula)
            before = visit.text("#session")
            visit.page.click("#start")
            visit.until("!['', x].includes(document.getElementById('session').textContent)", before)
        visit.see('#map[data-preview="false"]')
        opened = json.loads(server.ask("hello"))["open"]
        assert opened["formula"] == formula
        assert visit.text("#session") == server.state["session"]
        assert server.state["phase"] != "failed"


@pytest.mark.parametrize(("formula", "did"), [("F[0, 5] S >= 0", "satisfied"), ("F[0, 5] S > 1000", "violated")])
def test_a_property_that_is_the_same_everywhere_is_said_to_be(browser, server, formula, did):
    with visiting(browser, server) as visit:
        write_model(visit, SIR, formula)
        visit.start(frames=2)
        visit.see("#notes", f"Every run so far {did} the property")


def test_a_black_box_has_the_parameters_that_one_adds_and_undecided_runs_are_explained(browser, tmp_path):
    """Three of ten of its runs stop at time 1, before F[0, 2] is decided."""
    (tmp_path / "decay.py").write_text(
        "import sateen as st\n"
        "MODEL = st.Model.parse('species A = 3\\nA -> 0 @ k * A')\n"
        "def decay(theta, rng):\n"
        "    until = 1.0 if rng.random() < 0.3 else 3.0\n"
        "    return st.simulate(MODEL, {'k': theta['k']}, until=until, seed=int(rng.integers(2**31)))\n"
    )
    with serving(tmp_path, "decay.py:decay") as server, visiting(browser, server) as visit:
        visit.see("#model-said", "a Python function")
        visit.see("#space-said", "Add the parameters that your function reads.")
        visit.page.get_by_label("Add a parameter").fill("k")
        visit.page.keyboard.press("Enter")
        visit.page.get_by_label("k from").fill("0.2")
        visit.page.get_by_label("k to").fill("2")
        visit.write("F[0, 2] A == 0")
        visit.start()
        visit.see("#notes", "ended undecided")
        visit.click_map(0.2, 0.5)
        assert visit.page.locator("#chips .chip").count() == 20
        assert visit.page.locator("#chips .chip.undecided").count() > 0
        assert "undecided" in visit.text("#runs-count")


def test_an_error_in_the_model_has_its_caret(browser, server):
    with visiting(browser, server) as visit:
        visit.page.fill("#model", SIR.replace("2 I @", "2 I"))
        said = visit.see("#model-said.bad", "^").inner_text()
        assert "line 3" in said
        assert visit.page.locator("#model").get_attribute("aria-invalid") is not None
        assert visit.page.locator("#start").is_disabled()
        visit.page.fill("#model", SIR)
        visit.see("#model-said", "✓")
        assert visit.page.locator("#model").get_attribute("aria-invalid") is None


def test_a_range_that_is_none_is_told_beside_it(browser, server):
    with visiting(browser, server) as visit:
        write_model(visit, SIR, "F[0, 50] I == 0")
        visit.page.get_by_label("beta from").fill("3000")
        visit.see("#space-said.bad", "beta: 3000 is not below 0.379.")
        visit.page.get_by_label("beta from").fill("-1")
        visit.see("#space-said.bad", "a log scale needs a range above 0")
        assert visit.page.locator("#start").is_disabled()
        visit.page.get_by_label("vary beta").uncheck()
        visit.page.get_by_label("value of beta").fill("0.1")
        visit.until("!document.getElementById('start').disabled")


def test_an_edited_document_says_that_the_map_is_older(browser, server):
    with visiting(browser, server) as visit:
        write_model(visit, SIR, "F[0, 50] I == 0")
        visit.start()
        visit.write("F[0, 51] I == 0")
        visit.see("#notes", "You have edited the document since.")
        visit.write("F[0, 50] I == 0")
        visit.until("!document.body.hasAttribute('data-edited')")


def test_a_second_tab_shows_the_same_session(browser, server):
    with visiting(browser, server) as visit:
        write_model(visit, SIR, "F[0, 40] I == 0")
        visit.start()
        with tab(visit.page.context, server) as second:
            second.see("#map[data-frame]")
            assert second.page.input_value("#formula") == "F[0, 40] I == 0"
            assert second.page.input_value("#x-axis") == visit.page.input_value("#x-axis")
            visit.see("#notes", "open in 2 tabs")
            second.page.click("#pause")
            visit.see('body[data-phase="paused"]')
        visit.until("!document.getElementById('notes').textContent.includes('tabs')")


def test_killed_workers_are_replaced_and_counted_runs_stay(browser, server):
    with visiting(browser, server) as visit:
        write_model(visit, SIR, "F[0, 60] I == 0")
        visit.start(frames=2)
        wait_until(lambda: len(server.workers) == 2)  # the second one begins when the first is warm
        runs, killed = server.state["runs"], server.workers
        for worker in killed:
            os.kill(worker, signal.SIGKILL)
        visit.see("#notes", "worker process")
        wait_until(lambda: not set(killed) & set(server.workers))
        visit.until("Number(document.getElementById('map').dataset.frame) > x", server.state["frame"])
        assert server.state["runs"] >= runs
        visit.click_map(0.5, 0.5)


def test_a_server_that_is_gone_is_said_and_looked_for_again(browser, fresh):
    """After this nobody can use the fresh server."""
    server, folder = fresh
    with visiting(browser, server, strict=False) as visit:
        server.process.send_signal(signal.SIGINT)
        wait_until(lambda: server.process.poll() is not None)
        visit.see("#banner", "The server does not answer.")
        visit.see('body[data-connection="lost"]')
        assert visit.page.locator("#start").is_disabled()
        with serving(folder, "--port", server.base.rpartition(":")[2]):  # another key: only its own address opens it
            visit.see("#banner", "This page has no valid key.")
        assert [line for line in visit.complaints if "ERR_CONNECTION_REFUSED" not in line and "403" not in line] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_can_be_read_and_fit_a_narrow_window(browser, server, scheme):
    with visiting(browser, server, color_scheme=scheme, viewport={"width": 400, "height": 800}) as visit:
        page = visit.page
        assert (visit.page.evaluate(CONTRAST)["page"] < 0.2) == (scheme == "dark")
        fits = "document.documentElement.scrollWidth <= 400"
        assert visit.value(fits)
        visit.open_example("sir")
        visit.see("#run[data-sample]")
        visit.start()
        visit.click_map(0.5, 0.5)
        visit.write("(I > 0) U[100, 120 (I == 0)")
        visit.see("#formula-said.bad", "^")
        visit.see("#notes p")
        assert visit.value(fits)
        least = page.evaluate(CONTRAST)
        assert least["contrast"] >= 4.5, least
        for name in ("open", "save", "certify"):
            page.click(f"#{name}")
            dialog = visit.see(f"#{name}-dialog").bounding_box()
            assert dialog["x"] >= 0
            assert dialog["x"] + dialog["width"] <= 400
            least = page.evaluate(CONTRAST)
            assert least["contrast"] >= 4.5, least
            page.keyboard.press("Escape")


def test_a_visit_by_keyboard_alone(browser, server):
    with visiting(browser, server) as visit:
        keyboard = visit.page.keyboard

        def go_to(target):
            """Press Tab until an element has the focus; every stop on the way has a visible ring."""
            for _ in range(60):
                keyboard.press("Tab")
                ring, name, label = visit.value(f"({FOCUSED})(document.activeElement)")
                if name == "BODY":
                    continue  # past the last element, from where Tab begins again
                assert ring not in ("none", ""), name or label
                if target in (name, label):
                    return
            raise AssertionError(f"Tab does not lead to {target}")

        go_to("open")
        keyboard.press("Enter")
        visit.see("#open-lists button", "birth-death")
        go_to("birth-death")
        keyboard.press("Enter")
        visit.until("!document.getElementById('open-dialog').open")
        visit.see("#formula-said", "✓")
        visit.until("!document.getElementById('start').disabled")
        go_to("start")
        keyboard.press("Enter")
        visit.see('#map[data-preview="false"]')
        go_to("map")
        keyboard.press("ArrowRight")
        keyboard.press("ArrowUp")
        first = visit.see("#readout", "f = ").inner_text()
        keyboard.press("Shift+ArrowRight")
        assert visit.text("#readout") != first
        keyboard.press("Enter")
        visit.see("#chips[data-click]")
        go_to("another")
        keyboard.press("Tab")
        keyboard.press("Tab")
        keyboard.press("Enter")
        visit.see('#chips .chip:nth-child(2)[aria-pressed="true"]')
        assert re.match(r"run 2 (satisfies|violates) the property", visit.value("document.activeElement.ariaLabel"))
        go_to("stop")
        keyboard.press("Enter")
        visit.see('body[data-phase="stopped"]')
        assert visit.text("#live").startswith("Stopped")


def test_what_is_typed_into_a_range_stays_while_a_check_comes_back(browser, server):
    """A check draws the table again; the caret and half a number are where they were."""
    with visiting(browser, server) as visit:
        write_model(visit, SIR, "F[0, 50] I == 0")
        field = visit.page.get_by_label("beta from")
        field.fill("0.05")
        visit.page.keyboard.press("ArrowLeft")
        visit.value("document.querySelector('#ranges [aria-label=\"beta from\"]').before('marked')")
        visit.write("F[0, 51] I == 0")
        field.focus()
        visit.page.keyboard.press("End")
        visit.page.keyboard.press("Backspace")
        visit.page.keyboard.press("Backspace")  # "0."
        visit.until("!document.getElementById('ranges').textContent.includes('marked')")
        assert field.input_value() == "0."
        visit.page.keyboard.type("07")
        assert field.input_value() == "0.07"
        visit.until("!document.getElementById('start').disabled")


def test_the_dialog_to_save_opens_at_once_and_leaves_a_name_that_was_typed(browser, server):
    with visiting(browser, server) as visit:
        visit.open_example("decay")
        visit.start()
        asked = []
        visit.page.route("**/api/hello", lambda route: asked.append(route))  # no answer comes yet
        visit.page.click("#save")
        assert visit.page.locator("#save-dialog").is_visible()
        assert visit.page.input_value("#save-name") == visit.text("#session")
        visit.page.fill("#save-name", "mine")
        wait_until(lambda: bool(asked) or visit.page.wait_for_timeout(20))
        taken = [{"path": f"{visit.text('#session')}.toml", "kind": "study"}]
        asked[0].fulfill(json={**json.loads(server.ask("hello")), "files": taken})
        visit.until("fetch('/static/words.js').then(() => true)")
        assert visit.page.input_value("#save-name") == "mine"
        visit.page.keyboard.press("Escape")


def test_a_model_that_is_pasted_brings_its_language_and_errors_wrap(browser, server):
    with visiting(browser, server, viewport={"width": 1100, "height": 800}) as visit:
        for file, language in (("gene_switch.xml", "sbml"), ("queue.prism", "prism"), ("sir.sateen", "prism")):
            visit.page.fill("#model", "")
            visit.page.fill("#model", (EXAMPLES / file).read_text())  # what looks like no language changes none
            assert visit.page.input_value("#language") == language
            visit.see("#model-said", {"gene_switch.xml": "✓", "queue.prism": "capacity", "sir.sateen": "^"}[file])
        visit.page.fill("#model", (EXAMPLES / "queue.prism").read_text())
        said = visit.see("#model-said.bad", "^")
        visit.see("#model-said", "give it one: capacity = 5 below Parameters")
        lines = said.inner_text().splitlines()
        caret = next(place for place, line in enumerate(lines) if line.strip() == "^")
        assert lines[caret - 1][lines[caret].index("^") :].startswith("capacity]")
        cut = "[...document.querySelectorAll('#model-said .wraps')].some(each => each.scrollWidth > each.clientWidth)"
        assert not visit.value(cut)


def test_why_a_file_cannot_be_opened_can_be_read_without_scrolling(browser, tmp_path):
    for number in range(40):
        (tmp_path / f"model-{number}.sateen").write_text("species A = 1\n")
    (tmp_path / "study.toml").write_text("[study\n")
    with serving(tmp_path) as server, visiting(browser, server) as visit:
        visit.page.click("#open")
        visit.page.locator("#open-lists").get_by_text("study.toml", exact=True).click()
        said = visit.see("#open-said.bad", "study.toml")
        box, dialog = said.bounding_box(), visit.page.locator("#open-dialog").bounding_box()
        assert dialog["y"] <= box["y"] < box["y"] + box["height"] <= dialog["y"] + dialog["height"]


def test_what_a_study_says_of_its_model_and_property_is_shown(browser, tmp_path):
    shutil.copy(EXAMPLES / "gene_switch.xml", tmp_path)
    (tmp_path / "ended.toml").write_text(
        'study = { name = "ended", seed = 3 }\n'
        'model = { file = "gene_switch.xml", scale = 2.0, split = false }\n'
        "space = { make = [10, 40] }\n"
        'property = { few = { formula = "G B < 30", end = 3 } }\n'
        "observe = { train = { points = 8, runs = 5 } }\n"
        'learn = { learners = ["ep-gp-faithful"] }\n'
    )
    with serving(tmp_path) as server, visiting(browser, server) as visit:
        visit.open("path", "ended.toml")
        visit.see("#formula-said", "read on each run up to time 3 ✓")
        assert visit.text("#source") == "from gene_switch.xml; scale = 2; split = false"
        assert visit.page.input_value("#learner") == "ep-gp-faithful"
