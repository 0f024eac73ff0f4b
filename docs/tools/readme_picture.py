"""Draw the picture of the README and the start page, docs/pictures/sir.svg: `python docs/tools/readme_picture.py`.

Left: some runs of an epidemic. Middle: the learned probability that it dies out between times 100 and 120. Right: where
that is at least 0.1, where it is less, and where that is not decided yet.
"""

from __future__ import annotations

from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

import sateen as st
from doc_pages import DOCS, ROOT

FILE = DOCS / "pictures" / "sir.svg"


def draw(file: Path = FILE) -> None:
    """Draw it from runs with fixed seeds."""
    model = st.Model.load(ROOT / "examples" / "sir.sateen")
    formula = st.stl("(I > 0) U[100, 120] (I == 0)")
    space = st.Space(beta=(0.005, 0.3), gamma=st.Range(0.005, 0.2, scale="log"))
    figure = Figure(figsize=(10.5, 3.1), layout="constrained")
    runs, learned, decided = figure.subplots(1, 3)

    for seed in range(12):
        path = st.simulate(model, {"beta": 0.12, "gamma": 0.05}, until=150, seed=seed)
        runs.step(path.times, path["I"], where="post", linewidth=0.8, color="#0072B2", alpha=0.6)
    runs.axvspan(100, 120, color="#E69F00", alpha=0.25, linewidth=0)
    runs.set(xlim=(0, 150), ylim=(0, None), xlabel="time", ylabel="infected")
    runs.spines[["top", "right"]].set_visible(False)

    goal = st.Threshold(0.1, undecided=0.08)
    found = st.refine(model, formula, space, goal=goal, budget=60_000, seed=1)
    found.posterior.plot(ax=learned)
    st.decide(found.posterior, above=0.1, seed=2).plot(ax=decided)
    titles = ("1. runs of the model", "2. the learned probability", "3. where it is at least 0.1")
    for axes, title in zip((runs, learned, decided), titles, strict=True):
        axes.set_title(title, loc="left", fontsize=10)
    file.parent.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.hashsalt": "sateen"}):
        figure.savefig(file, metadata={"Date": None, "Creator": None}, facecolor="white", dpi=150)


if __name__ == "__main__":
    draw()
    print(FILE.relative_to(ROOT))
