"""The tutorial of the web app can be followed, and one sees what it says."""

from __future__ import annotations

import re
from pathlib import Path

import sateen as st
from doc_pages import DOCS, ROOT
from pages import read
from served_pages import NEEDED, browsing, serving, visiting
from web_app_visit import WINDOW, follow

pytestmark = NEEDED


def test_the_tutorial_of_the_web_app_can_be_followed(tmp_path: Path) -> None:
    page, taken = " ".join(read(DOCS / "tutorials" / "web-app.md").split()), list[str]()
    with serving(tmp_path) as server, browsing() as browser, visiting(browser, server, viewport=WINDOW) as visit:
        seen = follow(visit, taken.append)
    assert [f"pictures/web-app-{name}.png" for name in taken] == re.findall(r"\]\((pictures/[\w-]+\.png)\)", page)
    shares = [int(share) for share in re.findall(r"(\d+) %", seen.regions)][1:]  # the first is the level
    told = re.findall(r"above on (\d+) %, below on (\d+) %, unsure on (\d+) %", page)[0]
    assert all(abs(share - int(each)) <= 3 for share, each in zip(shares, told, strict=True)), seen.regions
    place = {name: float(value) for name, value in re.findall(r"(beta|gamma) = ([\d.]+)", seen.place)}
    low, high = map(float, re.findall(r"\(([\d.]+) to ([\d.]+)\)", seen.place)[0])
    model = st.Model.load(ROOT / "examples" / "sir.sateen")
    assert low < st.exact(model, "(I > 0) U[100, 120] (I == 0)", place)[0] < high
    # A round that the pause cut short is completed first, so what the map adds may be more than the refinement.
    (refined,) = (tmp_path / "sir-session" / "stages").glob("round-*.safetensors")
    assert f"{st.Observations.load(refined).trials.sum():,} runs" in page
    # The share that the fresh runs show depends on where the learning was paused. Where it is less than the 95 % asked
    # for, which is rare, the claim is marked.
    claimed = re.match(
        r"with probability 95 % over the draw, the probability is at least 0\.2 for at least (\S+) % of", seen.claim
    )
    assert claimed, seen.claim
    assert 80 <= float(claimed[1]) < 100
    assert (float(claimed[1]) >= 95) == seen.holds
    assert st.Study.load(tmp_path / "epidemic.toml").name == "epidemic"
