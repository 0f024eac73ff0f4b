"""The three pictures of docs/serve.md, taken from the real page in a real Chromium.

python benchmarks/serve_pictures.py     writes docs/serve-map.png, docs/serve-regions.png and docs/serve-narrow.png
"""

from __future__ import annotations

import sys
import tempfile
from io import BytesIO
from pathlib import Path

from PIL import Image

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from served_pages import Visit, browsing, serving, visiting

ROOT = Path(__file__).resolve().parents[1]
WIDE, NARROW = {"width": 1400, "height": 760}, {"width": 400, "height": 800}


def take(visit: Visit, name: str) -> None:
    """One picture, with 256 colours."""
    visit.page.mouse.move(5, 5)
    visit.page.evaluate("document.activeElement.blur()")
    image = Image.open(BytesIO(visit.page.screenshot())).convert("RGB")
    image.quantize(256, dither=Image.Dither.FLOYDSTEINBERG).save(ROOT / "docs" / f"{name}.png", optimize=True)


def learn(visit: Visit, example: str, points: int, threshold: str) -> None:
    """Learn an example at so many points or more, and pause."""
    visit.open_example(example)
    visit.start()
    visit.page.fill("#p-value", threshold)
    while int(visit.data("#map", "points") or 0) < points:
        visit.next_frame()
    visit.page.click("#pause")
    visit.see('body[data-phase="paused"]')


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as server, browsing() as browser:
        with visiting(browser, server, viewport=WIDE) as visit:
            learn(visit, "sir", 400, "0.2")
            visit.click_map(0.45, 0.62)
            visit.page.locator("#chips .chip.true").first.click()
            visit.see('#run[data-verdict="true"]')
            take(visit, "serve-map")
        with visiting(browser, server, viewport=NARROW, color_scheme="dark") as visit:
            learn(visit, "gene", 256, "0.5")
            visit.click_map(0.65, 0.4)
            visit.see("#run[data-verdict]")
            visit.page.locator("#mode label", has_text="regions").click()
            visit.page.locator("#map-title").evaluate("e => e.parentElement.scrollIntoView()")
            take(visit, "serve-narrow")
            visit.page.set_viewport_size(WIDE)
            visit.page.emulate_media(color_scheme="light")
            visit.page.evaluate("scrollTo(0, 0)")
            visit.until("document.getElementById('map').width > 500")  # it was drawn again, for the wide window
            take(visit, "serve-regions")


if __name__ == "__main__":
    main()
