"""`sateen serve` as people meet it: the real server in a process of its own, its page in a real Chromium.

Nothing sleeps: a visit waits for what the page says in its data attributes. A visit that ends with a line on the
console, an error of the page or a request to the outside has failed, unless its test expects just that.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

CHROMIUM: Final = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PATIENCE: Final = 60_000  # ms that a page may take for anything, on a busy machine
NEEDED: Final = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed: apt-get install chromium"),
    pytest.mark.skipif(find_spec("starlette") is None, reason="Starlette is missing: pip install '.[serve]'"),
    pytest.mark.skipif(os.name != "posix", reason="worker processes are found through /proc"),
]
_PHASES: Final = """
window.phases = [];
new MutationObserver(records => {
  // Two states may come at once: then the first one is only the old value of the second change.
  const each = records.filter(record => record.type === "attributes").map(record => record.oldValue).slice(1);
  for (const phase of [...each, document.body?.dataset.phase]) {
    if (phase && phase !== window.phases.at(-1)) window.phases.push(phase);
  }
}).observe(document, {
  subtree: true, childList: true, attributes: true, attributeFilter: ["data-phase"], attributeOldValue: true,
});
"""


@dataclass
class Server:
    """A running `sateen serve`."""

    process: subprocess.Popen[str]
    address: str

    @property
    def base(self) -> str:
        return self.address.partition("/#")[0]

    @property
    def token(self) -> str:
        return self.address.partition("token=")[2]

    def ask(self, path: str, body: object = None) -> bytes:
        """What the server answers to a program."""
        headers = {"Authorization": f"Bearer {self.token}"}
        data = None
        if body is not None:
            headers |= {"Content-Type": "application/json", "X-Sateen": "1"}
            data = json.dumps(body).encode()
        request = urllib.request.Request(f"{self.base}/api/{path}", data, headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return bytes(answer.read())

    @property
    def state(self) -> dict[str, Any]:
        """The state that it tells every page."""
        with self._events() as stream:
            line = next(line for line in stream if line.startswith(b"data:"))
        return dict(json.loads(line[5:])["state"])

    def _events(self) -> Any:
        """The stream of states."""
        request = urllib.request.Request(f"{self.base}/api/events", headers={"Authorization": f"Bearer {self.token}"})
        return urllib.request.urlopen(request, timeout=60)

    @property
    def workers(self) -> list[int]:
        """The processes that it has started, the oldest first; Python's resource tracker is none of them."""
        threads = Path(f"/proc/{self.process.pid}/task").iterdir()  # each has the children that it has started
        children = sorted(int(pid) for thread in threads for pid in _told(thread / "children").split())
        return [pid for pid in children if b"spawn_main" in _told(Path(f"/proc/{pid}/cmdline"))]

    def rest(self) -> dict[str, Any]:
        """The state, once no worker takes over any more; `Serving.settled` says why a question is asked first."""
        with suppress(urllib.error.HTTPError):
            self.ask("predict", {"points": [{}]})
        return self.state

    def stop(self) -> None:
        """End what goes on, which would take time from the next test; a server that is gone has ended it."""
        with suppress(OSError):
            self.ask("stop", {})


def _told(file: Path) -> bytes:
    """What a file of /proc tells; nothing if the thread or process has ended meanwhile."""
    try:
        return file.read_bytes()
    except OSError:
        return b""


@contextmanager
def serving(folder: Path, *options: str, **environment: str) -> Iterator[Server]:
    """A server of a folder, ended as Ctrl-C does."""
    surroundings = {**os.environ, **environment}
    command = [sys.executable, "-m", "sateen", "serve", "--no-browser", "--port", "0", *options]
    process = subprocess.Popen(
        command, cwd=folder, env=surroundings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            if found := re.search(r"http://\S+/#token=\S+", line):
                yield Server(process, found[0])
                break
        else:
            raise AssertionError("".join(said))
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


@contextmanager
def browsing() -> Iterator[Any]:
    """A browser."""
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: pip install '.[test]'")
    with api.sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield browser
        browser.close()


@dataclass
class Visit:
    """One tab of the page, and what it complained of."""

    page: Any
    complaints: list[str] = field(default_factory=list)

    def see(self, selector: str, words: str = "") -> Any:
        """Wait until an element is visible and has the words."""
        found = self.page.locator(selector).filter(has_text=words).first
        found.wait_for()
        return found

    def until(self, condition: str, argument: object = None) -> None:
        """Wait until an expression of JavaScript is true; its argument is `x`."""
        self.page.wait_for_function(f"x => {condition}", arg=argument)

    def value(self, expression: str, argument: object = None) -> Any:
        return self.page.evaluate(f"x => {expression}", argument)

    def text(self, selector: str) -> str:
        return str(self.page.locator(selector).inner_text())

    def data(self, selector: str, name: str) -> str | None:
        return self.page.locator(selector).get_attribute(f"data-{name}")

    @property
    def phases(self) -> list[str]:
        """All phases that the page has shown, in order."""
        return list(self.value("window.phases"))

    def open(self, kind: str, name: str) -> None:
        """Open a path, an example or a session, by the dialog."""
        self.page.click("#open")
        self.page.locator(f'#open-lists [data-open="{kind}"]').get_by_text(name, exact=True).click()
        self.until("!document.getElementById('open-dialog').open")

    def open_example(self, name: str) -> None:
        self.open("example", name)
        self.see("#formula-said", "✓")

    def write(self, formula: str) -> None:
        self.page.fill("#formula", formula)

    def start(self, frames: int = 1) -> None:
        """Start, and wait for so many counted frames."""
        self.until("!document.getElementById('start').disabled")
        self.page.click("#start")
        self.see('#map[data-preview="false"]')
        for _ in range(frames - 1):
            self.next_frame()

    def next_frame(self) -> None:
        self.until("Number(document.getElementById('map').dataset.frame) > x", int(self.data("#map", "frame") or 0))

    def rest(self, server: Server) -> None:
        """Wait until nothing is learned any more, after Pause or Stop, and the page shows all that was observed."""
        runs, points, frame = (server.rest()[name] for name in ("runs", "points", "frame"))
        said = f"{runs:,} runs at {points:,} points"
        self.until("document.getElementById('counts').textContent === x", said)
        self.until("document.getElementById('map').dataset.runs === x", str(runs))
        self.until("Number(document.getElementById('map').dataset.frame) >= x", frame)

    def click_map(self, across: float, down: float) -> None:
        """Click the map, and wait for the runs there."""
        before = int(self.data("#chips", "click") or 0)
        box = self.page.locator("#map").bounding_box()
        left, top, width, height = 58, 12, box["width"] - 128, box["height"] - 56
        self.page.locator("#map").click(position={"x": left + across * width, "y": top + down * height})
        self.until("Number(document.getElementById('chips').dataset.click || 0) > x", before)


@contextmanager
def visiting(browser: Any, server: Server, *, strict: bool = True, **options: Any) -> Iterator[Visit]:
    """A tab that shows the server's page. A strict visit fails if the page complained or asked for anything outside."""
    options = {"viewport": {"width": 1400, "height": 900}, **options}
    context = browser.new_context(**options)
    context.add_init_script(_PHASES)
    try:
        with tab(context, server, strict) as visit:
            yield visit
    finally:
        context.close()
        server.stop()


@contextmanager
def tab(context: Any, server: Server, strict: bool = True) -> Iterator[Visit]:
    """One more tab of a browser's window."""
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    visit = Visit(page)
    page.on("console", lambda message: visit.complaints.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: visit.complaints.append(f"error: {error}\n{error.stack}"))

    def asked(request: Any) -> None:
        if not request.url.startswith((f"{server.base}/", "blob:", "data:")):
            visit.complaints.append(f"outside: {request.url}")

    page.on("request", asked)
    page.goto(server.address)
    try:
        visit.see("body[data-ready]")
        yield visit
    except Exception as error:
        error.add_note(f"phases {visit.phases}, banner {visit.text('#banner')!r}, complaints {visit.complaints}")
        raise
    finally:
        page.close()
    if strict:
        assert visit.complaints == []


def read_frame(content: bytes) -> dict[str, Any]:
    """A frame's header and arrays, read by numpy."""
    (size,) = struct.unpack_from("<I", content)
    frame = dict(json.loads(content[4 : 4 + size]))
    shape = len(frame["arrays"]), frame["ny"], frame["nx"]
    numbers = (np.frombuffer(content, "<u2", offset=4 + size).reshape(shape) / 65535) ** 2
    return {**frame, **{name: frame["scale"][name] * each for name, each in zip(frame["arrays"], numbers, strict=True)}}
