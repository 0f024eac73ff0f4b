"""Reports in a real browser: headless Chromium, driven through a pipe with nothing but the standard library.

A page must open without a complaint on the console, fetch nothing, show all its sections, and answer to a hand. Where
no Chromium is installed (Debian's package is `chromium`), these tests are skipped and say so.
"""

from __future__ import annotations

import base64
import json
import os
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sateen as st
from small_studies import changed

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed: apt-get install chromium"),
    pytest.mark.skipif(os.name != "posix", reason="Chromium is driven through inherited pipes, the POSIX way"),
]
PATIENCE = 60.0  # seconds, for a browser on a busy machine


class Browser:
    """A Chromium with one page, which answers to the DevTools protocol: JSON on file descriptors 3 and 4."""

    def __init__(self, profile: Path) -> None:
        import fcntl

        assert CHROMIUM is not None
        theirs, self.sending = os.pipe()
        self.receiving, answers = os.pipe()
        # Far from 3 and 4, so that neither is overwritten by the other.
        high = [fcntl.fcntl(each, fcntl.F_DUPFD, 20) for each in (theirs, answers)]

        wired = f"import os, sys; os.dup2({high[0]}, 3); os.dup2({high[1]}, 4); os.execv(sys.argv[1], sys.argv[1:])"
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe"]
        options += ["--no-first-run", "--disable-extensions", f"--user-data-dir={profile}", "--window-size=1200,900"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", wired, CHROMIUM, *options, "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=high,
        )
        for each in (theirs, answers, *high):
            os.close(each)
        self.number, self.unread, self.session = 0, b"", ""
        self.complaints: list[str] = []
        self.loaded: set[str] = set()  # documents, by the number of their loader
        self.fetched: list[str] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        self.ask("Page.setLifecycleEventsEnabled", enabled=True)

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """What the browser answers."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.sending, json.dumps(message).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == self.number:
                assert "error" not in told, told
                return dict(told["result"])
            self._note(told)

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self.unread:
            ready, _, _ = select.select([self.receiving], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"the browser said nothing for {PATIENCE:g} seconds"
            some = os.read(self.receiving, 1 << 20)
            assert some, "the browser has ended"
            self.unread += some
        message, _, self.unread = self.unread.partition(b"\0")
        return dict(json.loads(message))

    def _note(self, told: dict[str, Any]) -> None:
        """Remember complaints, and what is fetched from anywhere but the page's own file."""
        method, about = told.get("method"), told.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(about["exceptionDetails"])[:2000])
        elif method == "Runtime.consoleAPICalled" and about["type"] in ("error", "warning", "assert"):
            self.complaints.append(json.dumps(about["args"])[:2000])
        elif method == "Log.entryAdded" and about["entry"]["level"] in ("error", "warning"):
            self.complaints.append(about["entry"]["text"])
        elif method == "Page.lifecycleEvent" and about["name"] == "load":
            self.loaded.add(about["loaderId"])
        elif method == "Network.requestWillBeSent":
            self.fetched.append(about["request"]["url"])

    def value(self, script: str) -> Any:
        """What an expression of JavaScript is worth in the page; a promise is waited for."""
        told = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def open(self, file: Path) -> None:
        """Open a page, and wait until its pictures are drawn."""
        self.complaints.clear()
        self.fetched.clear()
        loader = self.ask("Page.navigate", url=file.as_uri())["loaderId"]
        while loader not in self.loaded:  # until then an answer may be of the page before
            self._note(self._next())
        self.wait("document.readyState === 'complete' && document.documentElement.dataset.drawn === 'yes'")

    def wait(self, condition: str) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + PATIENCE
        while not self.value(condition):
            assert time.monotonic() < deadline, f"never true: {condition}; {self.complaints}"
            time.sleep(0.05)

    def point_at(self, selector: str, across: float = 0.5, down: float = 0.5) -> None:
        """Bring an element into sight and move the mouse over it."""
        where = f"document.querySelector({json.dumps(selector)})"
        self.value(f"{where}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        box = self.value(f"(({{x, y, width, height}}) => [x, y, width, height])({where}.getBoundingClientRect())")
        x, y = box[0] + across * box[2], box[1] + down * box[3]
        for step in (3, 0):
            self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x - step, y=y - step)

    def press(self, key: str) -> None:
        """Press and release a key."""
        codes = {"ArrowRight": 39, "ArrowLeft": 37, "End": 35}
        for kind in ("rawKeyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key])

    def close(self) -> None:
        """End it."""
        self.session = ""
        try:
            self.ask("Browser.close")
        except (AssertionError, OSError):
            self.process.kill()  # it did not end by itself
        self.process.wait(timeout=PATIENCE)
        os.close(self.sending)
        os.close(self.receiving)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


def three_parameters() -> str:
    return changed(
        ("species A = 5", "species A = 5, B = 0"),
        ("A -> 0 @ mass_action(k)", "A -> B @ mass_action(k)\nB -> A @ mass_action(back)\nB -> 0 @ mass_action(loss)"),
        ("k = [0.1, 2]", 'k = [0.1, 2]\nback = [0.1, 1]\nloss = { range = [0.1, 2], scale = "log" }'),
        ("F[0, 2] A == 0", "F[0, 2] A + B <= 2"),
        ('learners = ["svi-gp"]', 'learners = ["svi-gp", "ep-gp"]'),
        ('inputs = "linear"', 'inputs = "auto"'),
    )


def decided(text: str, decide: str) -> str:
    """A study that decides, and has no guarantee and no scores."""
    bare = changed(
        ("calibrate = { points = 40, runs = 20 }\ntest      = { points = 10, runs = 50 }\n", ""),
        ('[guarantee]\nnormaliser = "constant"\n', ""),
        text=text,
    )
    return f"{bare}\n[decide]\nbudget = 20000\n{decide}\n"


CERTIFIED = "above = 0.4\nundecided = 0.12\ncertificate = { wrong = 0.1, confidence = 0.9 }"
BEST = 'goal = "optimum"\ngap = 0.2\ncertificate = { wrong = 0.1, confidence = 0.9 }'
STUDIES = {
    "curve": changed(),
    "maps": changed(
        ("A -> 0 @ mass_action(k)", "A -> 0 @ mass_action(k)\n0 -> A @ fresh"),
        ("k = [0.1, 2]", 'k = { range = [0.1, 2], scale = "log" }\nfresh = [0.1, 1]'),
    ),
    "slices": three_parameters(),
}
DECIDED = {
    "stretches": decided(STUDIES["curve"], CERTIFIED),
    "sides": decided(STUDIES["maps"], CERTIFIED),
    "planes": decided(three_parameters(), CERTIFIED),
    "best": decided(STUDIES["maps"], BEST),
    "width": decided(STUDIES["curve"], 'goal = "width"\nwidth = 0.3'),
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A report over one, two and three parameters."""
    return {
        name: st.Study.parse(text).run(tmp_path_factory.mktemp(name)).folder / "report.html"
        for name, text in {**STUDIES, **DECIDED}.items()
    }


PAPER = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 28)"}


@pytest.mark.parametrize(("name", "scheme"), [("curve", "dark"), ("maps", "light"), ("slices", "dark")])
def test_a_report_opens_without_a_complaint_and_fetches_nothing(
    browser: Browser, pages: dict[str, Path], name: str, scheme: str
) -> None:
    """One function makes the colours of all charts, so each page is drawn in one scheme, and then shown in both."""
    browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.open(pages[name])
    assert browser.complaints == []
    assert [url for url in browser.fetched if not url.startswith(("file:", "data:", "blob:"))] == []
    assert [url for url in browser.fetched if url.startswith("file:")] == [pages[name].as_uri()]
    sections = browser.value("[...document.querySelectorAll('.property > section')].map(one => one.className)")
    matter = [] if name == "curve" else ["matter"]
    assert sections == ["function", *matter, "scores", "coverage", "runs", "promises", "observed"]
    # Every picture has lines or colours in it, none of them empty.
    drawn = "[...document.querySelectorAll('.chart')].map(one => one.querySelectorAll('.trace, .contour').length)"
    assert all(count > 0 for count in browser.value(drawn))
    page = "getComputedStyle(document.documentElement).backgroundColor"
    assert browser.value(page) == PAPER[scheme]
    other = "light" if scheme == "dark" else "dark"
    browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": other}])
    browser.wait(f"{page} === {json.dumps(PAPER[other])}")
    assert browser.complaints == []


@pytest.mark.parametrize("name", DECIDED)
def test_a_decision_is_drawn_without_a_complaint_and_fits_the_screen(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    """Drawn on a narrow screen, then on a wide one; every other page is dark."""
    scheme = ("light", "dark")[[*DECIDED].index(name) % 2]
    browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.ask("Emulation.setDeviceMetricsOverride", width=400, height=900, deviceScaleFactor=1, mobile=False)
    try:
        browser.open(pages[name])
        assert browser.complaints == []
        charts = browser.value("[...document.querySelectorAll('.decision .chart')].map(one => one.dataset.draw)")
        assert charts == ["sides", "spent", "rounds"]
        drawn = "one.querySelectorAll('.trace, .contour, .cn, .contourlayer path, .shapelayer path').length"
        counts = browser.value(f"[...document.querySelectorAll('.decision .chart')].map(one => {drawn})")
        assert all(count > 0 for count in counts)
        assert browser.value("document.documentElement.scrollWidth") <= 400
        browser.ask("Emulation.setDeviceMetricsOverride", width=1200, height=900, deviceScaleFactor=1, mobile=False)
        browser.wait("document.querySelector('.decision .chart').getBoundingClientRect().width > 400")
        assert browser.value("document.documentElement.scrollWidth") <= 1200
        assert browser.complaints == []
    finally:
        browser.ask("Emulation.clearDeviceMetricsOverride")


def test_over_many_parameters_another_pair_changes_the_sides(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["planes"])
    shown = "JSON.stringify(document.querySelector('.decision [data-draw=sides]').data[0].z)"
    choose = "document.querySelector('.decision [data-choose=across]')"
    before = browser.value(shown)
    browser.value(f"{choose}.focus()")
    browser.press("End")
    browser.wait(f"{choose}.value === '2'")
    assert browser.value(shown) != before
    assert "with " in browser.value("document.querySelector('.decision output').textContent")
    assert browser.complaints == []


def test_the_mouse_over_a_curve_shows_the_probability_and_its_interval(
    browser: Browser, pages: dict[str, Path]
) -> None:
    browser.open(pages["curve"])
    mean = "document.querySelector('[data-draw=curve]').data.find(one => one.name.startsWith('mean'))"
    middle = browser.value(f"{mean}.y[100]")
    low, high = browser.value("document.querySelector('[data-draw=curve]').layout.yaxis.range")
    browser.point_at("[data-draw=curve] .nsewdrag", 0.5, 1 - (middle - low) / (high - low))
    browser.wait("document.querySelector('[data-draw=curve] .hoverlayer .hovertext') !== null")
    words = browser.value("document.querySelector('[data-draw=curve] .hoverlayer').textContent")
    assert "90 % credible: " in words or "frequency" in words
    assert browser.complaints == []


def test_another_choice_of_intervals_changes_the_map(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["maps"])
    choices = browser.value("[...document.querySelectorAll('[data-choose=band] option')].map(one => one.text)")
    assert choices == ["svi-gp, 90 % guaranteed", "svi-gp, 90 % credible"]
    shown = "JSON.stringify(document.querySelector('[data-draw=width]').data[0].z)"
    before = browser.value(shown)
    browser.value("document.querySelector('[data-choose=band]').focus()")
    browser.press("End")
    browser.wait("document.querySelector('[data-choose=band]').value === '1'")
    assert browser.value(shown) != before
    assert browser.complaints == []


def test_the_slider_moves_the_slices_through_the_point(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["slices"])
    said = "document.querySelector('output').textContent"
    curves = "[...document.querySelectorAll('.slice')].map(one => one.data.find(t => t.name === 'mean').y)"
    moved = browser.value("document.querySelector('[data-choose=moved]').selectedIndex")
    before, words = browser.value(curves), browser.value(said)
    browser.value("document.querySelector('[data-choose=place]').focus()")
    browser.press("ArrowRight")
    browser.wait(f"{said} !== {json.dumps(words)}")
    after = browser.value(curves)
    # The slice along the parameter that moved is the same; the others have another one to stand on.
    assert [one == other for one, other in zip(before, after, strict=True)] == [n == moved for n in range(len(before))]
    browser.press("ArrowLeft")
    browser.wait(f"{said} === {json.dumps(words)}")
    assert browser.value(curves) == before
    assert browser.complaints == []


def test_another_learner_has_slices_of_its_own_and_no_guarantee(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["slices"])
    choose = "document.querySelector('[data-choose=learner]')"
    assert browser.value(f"[...{choose}.options].map(one => one.text)") == ["svi-gp", "ep-gp"]
    curves = "[...document.querySelectorAll('.slice')].map(one => one.data.find(t => t.name === 'mean').y)"
    promised = "document.querySelector('[data-say=promised]').hidden"
    before = browser.value(curves)
    assert browser.value(promised) is False
    browser.value(f"{choose}.focus()")
    browser.press("End")
    browser.wait(promised)
    assert browser.value(curves) != before
    assert browser.value("document.querySelector('[data-say=credible]').textContent") == "90 % credible interval"
    assert browser.complaints == []


def test_the_predictions_can_be_saved_as_a_table(browser: Browser, pages: dict[str, Path], tmp_path: Path) -> None:
    browser.open(pages["slices"])
    browser.ask("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    browser.value("document.querySelector('[data-save=table]').click()")
    file, deadline = tmp_path / "decay-gone.csv", time.monotonic() + PATIENCE
    while not file.is_file():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    lines = file.read_text(encoding="utf-8").splitlines()
    header, *rows = [line.split(",") for line in lines if not line.startswith("#")]
    assert header[:3] == ["k", "back", "loss"]
    assert header[3:6] == ["svi-gp guaranteed mean", "svi-gp guaranteed lower", "svi-gp guaranteed upper"]
    own = st.Result.load(pages["slices"].parent).properties["gone"]
    shown = own.predictions["ep-gp"]
    column = [float(row[header.index("ep-gp credible mean")]) for row in rows]
    assert column == pytest.approx(shown.mean.tolist(), rel=1e-5)
    assert any(str(own.claims[0]) in line for line in lines if line.startswith("#"))
    assert browser.complaints == []


@pytest.mark.parametrize("name", ["curve", "maps", "slices", "sides"])
def test_on_a_telephone_nothing_is_cut_and_captions_say_above_and_below(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    browser.ask("Emulation.setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=1, mobile=True)
    try:
        browser.open(pages[name])
        assert browser.value("document.documentElement.scrollWidth") == 400
        wide = (
            "[...document.querySelectorAll('.wide, pre, table')].filter(one => one.scrollWidth > one.clientWidth + 1)"
        )
        assert browser.value(f"{wide}.map(one => one.innerText.slice(0, 50))") == []
        shown = "[...document.querySelectorAll('.caption')].map(one => one.innerText).join(' ')"
        words = browser.value(shown)
        if name != "curve":
            assert (
                "above: the mean" in words.lower()
                or "above is the mean" in words.lower()
                or "Above: the sides" in words
            )
        assert not re.search(r"\b(left|right)(:| is)", words.lower())
        # No two labels of an axis touch.
        close = """[...document.querySelectorAll('.chart')].flatMap(chart => ['.xtick', '.ytick'].filter(kind => {
            const boxes = [...chart.querySelectorAll(kind + ' text')].map(one => one.getBoundingClientRect());
            return boxes.some((a, n) => boxes.slice(n + 1).some(b =>
                a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom));
        }).map(kind => chart.dataset.draw + kind))"""
        assert browser.value(close) == []
        assert browser.complaints == []
    finally:
        browser.ask("Emulation.clearDeviceMetricsOverride")


def test_the_verdict_of_a_run_is_marked_at_time_0(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["curve"])
    for kind in ("satisfied", "violated"):
        marks = f"document.querySelector('[data-draw={kind}]').data.filter(one => one.name === 'verdict')"
        assert browser.value(f"{marks}.map(one => [one.x, one.y, one.hovertemplate])") == [
            [[0], [0], f"{kind} at time 0<extra></extra>"]
        ]
        pale = (
            f"document.querySelector('[data-draw={kind}]').data.filter(one => one.opacity === 0.25 && one.y[0] === 0)"
        )
        assert browser.value(f"{pale}.length") == 0  # nothing pale in the lane of the whole formula


def test_nothing_in_the_page_sends_a_picture_anywhere(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["curve"])
    buttons = browser.value("[...new Set([...document.querySelectorAll('.modebar-btn')].map(b => b.dataset.title))]")
    assert sorted(buttons) == ["Download plot as a PNG", "Pan", "Reset axes", "Zoom"]


def test_a_script_in_the_words_of_a_study_does_not_run(
    browser: Browser, pages: dict[str, Path], tmp_path: Path
) -> None:
    from dataclasses import replace

    from sateen.report.report import write_report

    hostile = "</script><script>window.taken = 1</script><img src=x onerror='window.taken = 1'>"
    result = st.Result.load(pages["curve"].parent)
    own = result.properties["gone"]
    named = {hostile: replace(own, name=hostile, verdict=hostile, posteriors={hostile: own.posteriors["svi-gp"]})}
    named[hostile] = replace(
        named[hostile],
        guaranteed=hostile,
        predictions={hostile: own.predictions["svi-gp"]},
        scores={hostile: own.scores["svi-gp"]},
        mean_widths={hostile: 0.1},
    )
    provenance = {**result.provenance, "text": hostile, "command": hostile, "machine": hostile}
    write_report(replace(result, name=hostile, properties=named, provenance=provenance), tmp_path / "report.html")
    browser.open(tmp_path / "report.html")
    assert browser.value("window.taken") is None
    assert browser.complaints == []
    assert browser.value("document.querySelector('h1').textContent") == hostile
    # Were it markup, the policy of the page would stop it all the same.
    browser.value("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.taken = 1\">')")
    browser.value("new Promise(done => setTimeout(done, 200))")
    assert browser.value("window.taken") is None


def test_it_prints_on_white_paper(browser: Browser, pages: dict[str, Path]) -> None:
    browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    browser.open(pages["slices"])
    browser.value("window.dispatchEvent(new Event('beforeprint'))")
    assert browser.value("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
    assert base64.b64decode(browser.ask("Page.printToPDF")["data"]).startswith(b"%PDF-")
    browser.value("window.dispatchEvent(new Event('afterprint'))")
    assert browser.value("getComputedStyle(document.documentElement).backgroundColor") == "rgb(20, 23, 28)"
    assert browser.complaints == []
