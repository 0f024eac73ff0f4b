"""How fast the page of `sateen serve` is, in a real Chromium that is driven through a visit.

    python benchmarks/serve_page.py     prints a table and writes results/serve_page.json

Wall times: they hold for an idle machine, and the result says how loaded it was. The page is loaded several times, by
new servers and by one whose workers are warm; the rest is one visit. The threshold's redraws and the drawing of frames
are measured inside the page.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import machine

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from served_pages import Server, Visit, browsing, serving, visiting

CLICKS, MOVES = 20, 50
SECOND = 5.0  # seconds in which the second worker, which begins when the first is warm, is warm too
LOADS = 5  # of the page, of a new server and of one that is warm
UNDER_WAY = 0.1  # seconds after a start or a command, in which it does not end
# A chain whose simulator takes long to compile, so that a preview comes first, and clicks while it compiles.
LINKS = 240
CHAIN = "\n".join(
    [
        f"species X0 = 20, {', '.join(f'X{k} = 0' for k in range(1, LINKS + 1))}",
        *(
            f"X{k} -> X{k + 1} @ {'ab'[k % 2]} * X{k} / (1 + X{k}) * (2 + X{(k + 7) % LINKS}) / (3 + X{k} * X{k // 2})"
            for k in range(LINKS)
        ),
    ]
)
# What is measured, with its limit in seconds on an idle core (SERVE.md, "To reach").
LIMITS = {
    "page usable, median": 0.3,
    "page usable with warm workers, median": 0.3,
    "worker warm": 4.0,
    "start to the first map, kernel cached": 0.5,
    "start to the first picture, kernel not cached": 1.5,
    "between frames, median": 0.3,
    "between frames, longest": 2.0,
    "click to 20 runs while learning, 95th percentile": 0.4,
    "click to 20 runs while compiling, longest": 0.4,
    "redraw after a move of the threshold, median": 0.008,
    "drawing a frame, median": None,
    "stop while learning": 0.5,
    "stop while compiling": 0.5,
    "stop while certifying": 0.5,
    "stop while refining": 0.5,
    "stop while saving": 0.5,
}
READY = "performance.getEntriesByName('ready')[0].startTime"
# The page's own times, kept aside before it clears them; and the instants at which frames were drawn.
RECORDER = """() => {
  window.drawn = { frame: [], threshold: [], at: [] };
  new PerformanceObserver(list => list.getEntries().forEach(entry => {
    window.drawn[entry.name]?.push(entry.duration);
    if (entry.name === "frame") window.drawn.at.push(entry.startTime + entry.duration);
  })).observe({ type: "measure" });
}"""


def click(visit: Visit, across: float, up: float) -> float:
    """Seconds from a click on the map to its 20 verdicts."""
    began = time.perf_counter()
    visit.click_map(across, up)
    return time.perf_counter() - began


def stop(visit: Visit) -> float:
    """Seconds from a click on Stop to the state that says so."""
    began = time.perf_counter()
    visit.page.click("#stop")
    visit.see('body[data-phase="stopped"]')
    return time.perf_counter() - began


def measure(visit: Visit, server: Server) -> dict[str, float]:
    """One visit."""
    found = {}
    page = visit.page
    page.evaluate(RECORDER)
    visit.open_example("sir")
    visit.start()  # compiles, so that the kernel is cached from here on
    visit.page.click("#stop")
    visit.see('body[data-phase="stopped"]')

    began = time.perf_counter()
    page.click("#start")
    visit.see('#map[data-preview="false"]')
    found["start to the first map, kernel cached"] = time.perf_counter() - began
    page.evaluate("drawn.at.length = drawn.frame.length = 0")
    while visit.value("Number(document.getElementById('map').dataset.points)") < 1000:
        visit.next_frame()
    at = visit.value("drawn.at")
    gaps = [(b - a) / 1000 for a, b in pairwise(at)]
    found["between frames, median"], found["between frames, longest"] = statistics.median(gaps), max(gaps)
    found["drawing a frame, median"] = statistics.median(visit.value("drawn.frame")) / 1000

    times = sorted(click(visit, 0.1 + 0.8 * k / CLICKS, 0.9 - 0.8 * k / CLICKS) for k in range(CLICKS))
    found["click to 20 runs while learning, 95th percentile"] = times[int(0.95 * CLICKS)]
    for k in range(MOVES):
        page.locator("#p").fill(str(0.2 + 0.2 * k / MOVES))
    found["redraw after a move of the threshold, median"] = statistics.median(visit.value("drawn.threshold")) / 1000
    found["stop while learning"] = stop(visit)

    began = start(visit, "G[0, 50] (I > 30 -> F[0, 1] I < 23)")
    visit.see("#map[data-frame]")
    found["start to the first picture, kernel not cached"] = time.perf_counter() - began
    start(visit, "F[0, 50] (I > 30 & G[0, 1] I > 23)")
    time.sleep(UNDER_WAY)
    found["stop while compiling"] = stop(visit)
    return found | halted(visit, server) | {"click to 20 runs while compiling, longest": clicks_while_compiling(visit)}


def halted(visit: Visit, server: Server) -> dict[str, float]:
    """How long a stop takes while each of the long commands is under way."""
    page, found = visit.page, {}
    visit.open_example("sir")
    page.fill("#p-value", "0.3")
    visit.start(frames=3)
    for what, button in (("certifying", "certify"), ("refining", "refine-unsure"), ("saving", "save")):
        page.click("#pause")
        visit.see('body[data-phase="paused"]')
        visit.rest(server)
        page.click(f"#{button}")
        if what != "refining":
            if what == "saving":
                page.fill("#save-name", "halted")
            page.click(f"#{button}-dialog .primary")
        time.sleep(UNDER_WAY)
        if what == "saving":  # its dialog waits for the answer
            page.keyboard.press("Escape")
        found[f"stop while {what}"] = stop(visit)
        visit.rest(server)
        page.get_by_role("button", name="Resume").click()
        visit.next_frame()
    return found


def clicks_while_compiling(visit: Visit) -> float:
    """Seconds from a click to 20 verdicts, of a model whose simulator is still compiled when they have come."""
    page, times = visit.page, []
    page.click("#open")
    page.click("#new")
    page.fill("#model", CHAIN)
    visit.see("#model-said", "✓")
    for name in "ab":
        page.get_by_label(f"{name} from").fill("1")
        page.get_by_label(f"{name} to").fill("10")
    start(visit, "F[0, 1] (X3 > 2 & G[0, 0.1] X2 > 1)")
    visit.see('#map[data-preview="true"]')
    while visit.data("#map", "preview") == "true" and len(times) < CLICKS:
        times.append(click(visit, 0.5, 0.1 + 0.04 * len(times)))
    return max(times)


def start(visit: Visit, formula: str) -> float:
    """Start with a formula whose simulator is compiled nowhere yet; the time of the click on Start."""
    visit.write(formula)
    visit.see("#formula-said", formula)
    visit.see("#formula-said", "✓")
    visit.until("!document.getElementById('start').disabled")
    began = time.perf_counter()
    visit.page.click("#start")
    return began


def loaded(browser: Any, server: Server) -> float:
    """Seconds from the address to a page that can be used."""
    with visiting(browser, server) as visit:
        return visit.value(READY) / 1000


def main() -> None:
    found: dict[str, float] = {}
    with browsing() as browser:
        cold = []
        for _ in range(LOADS):
            with tempfile.TemporaryDirectory() as folder, serving(Path(folder), SATEEN_CACHE_DIR=folder) as server:
                cold.append(loaded(browser, server))
        found["page usable, median"] = statistics.median(cold)
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            with serving(Path(folder), SATEEN_CACHE_DIR=folder) as server:
                while server.state["worker"] != "warm":
                    time.sleep(0.05)
                found["worker warm"] = time.perf_counter() - began
                time.sleep(SECOND)
                warm = [loaded(browser, server) for _ in range(LOADS)]
                found["page usable with warm workers, median"] = statistics.median(warm)
                with visiting(
                    browser, server, strict=False
                ) as visit:  # a save that is cut short is a line on the console
                    found |= measure(visit, server)
    rows = [{"what": name, "seconds": round(found[name], 4), "limit": limit} for name, limit in LIMITS.items()]
    for row in rows:
        limit = f"{row['limit']:8.3f} s" if row["limit"] else ""
        print(f"{row['what']:52} {row['seconds']:8.4f} s {limit}")
    machine.write("serve_page", {"rows": rows, "machine": machine.note("starlette", "uvicorn", "playwright", "numpy")})


if __name__ == "__main__":
    main()
