"""Follow docs/tutorials/web-app.md in a real Chromium, and take its pictures: `python docs/tools/web_app_visit.py`.

`tests/test_web_app_tutorial.py` follows it too, and compares what it sees with what the page says.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Final

from doc_pages import DOCS, ROOT

if TYPE_CHECKING:
    from served_pages import Visit

PICTURES: Final = DOCS / "tutorials" / "pictures"
WINDOW: Final = {"width": 1400, "height": 740}
POINTS: Final = 512  # as many as the page says
PLACE: Final = (0.66, 0.72)  # where the map is clicked: beta 0.2, gamma 0.06


@dataclass(frozen=True, slots=True)
class Seen:
    """What the app said."""

    regions: str
    place: str
    claim: str
    holds: bool  # what was asked for is shown by the fresh runs


def follow(visit: Visit, take: Callable[[str], None]) -> Seen:
    """Do what the page says; `take` gets the name of each picture when there is something to see."""
    page = visit.page
    visit.open_example("sir")
    take("start")
    visit.start()
    page.fill("#p-value", "0.2")
    while int(visit.data("#map", "points") or 0) < POINTS:
        visit.next_frame()
    page.click("#pause")
    visit.see('body[data-phase="paused"]')
    visit.click_map(*PLACE)
    page.locator("#chips .chip.true").first.click()
    visit.see('#run[data-verdict="true"]')
    take("map")
    regions, before = visit.text("#p-said"), int(visit.data("#map", "runs") or 0)
    page.click("#refine-unsure")
    visit.until("Number(document.getElementById('map').dataset.runs) > x", before)
    page.click("#certify")
    page.click("#certify-dialog .primary")
    visit.see("#claims .done .sentence")
    take("certificate")
    holds = page.locator("#claims .done.unshown").count() == 0
    seen = Seen(regions, visit.text("#runs-place"), visit.text("#claims .done .sentence"), holds)
    page.click("#save")
    page.fill("#save-name", "epidemic")
    page.click("#save-dialog .primary")
    visit.until("!document.getElementById('save-dialog').open")
    return seen


def main() -> None:
    """Follow the page, and write its pictures."""
    sys.path.append(str(ROOT / "tests"))
    from PIL import Image

    from served_pages import browsing, serving, visiting

    def take(name: str) -> None:
        visit.page.mouse.move(5, 5)
        visit.page.evaluate("document.activeElement.blur()")
        image = Image.open(BytesIO(visit.page.screenshot())).convert("RGB")
        file = PICTURES / f"web-app-{name}.png"
        image.quantize(256, dither=Image.Dither.FLOYDSTEINBERG).save(file, optimize=True)

    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder)) as server,
        browsing() as browser,
        visiting(browser, server, viewport=WINDOW) as visit,
    ):
        print(follow(visit, take))


if __name__ == "__main__":
    main()
