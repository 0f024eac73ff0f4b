"""Keep what `sateen paper` has made: its tables, and with --times how long each stage took.

    sateen paper all --yes -o all && sateen paper random --yes -o random
    python benchmarks/paper.py all random --times

The tables of a folder go to results/paper-FOLDER.md, and are those of docs/paper.md; all numbers go to
results/paper.json, in the place of earlier ones from a folder of that name. Tables that compare presets are kept
apart, as `presets`, and so their comparison is all that goes to results/paper-presets.md:

    sateen paper a b c d e f g h i --preset as-run --preset faithful -l svi-bnn --yes -o all
    sateen paper all --finished --preset as-run --preset faithful --preset fast -l ep-gp,svi-gp,svi-bnn -o all
    python benchmarks/paper.py all

With --times, how long each stage took goes to results/paper-times.json. Stages come one after the other, and every
task has a file, so the times of the files tell. They do so only for folders that were made in one go, on the machine
where this runs.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, Final

import machine

STAGES: Final = {
    "runs for data sets": ("train", "test"),
    "the truth": ("truth", "exact"),
    "fits": ("fit",),
    "plans of calibrations": ("plan",),
    "runs for calibrations": ("held-out",),
    "calibrations": ("lift",),
}
PACKAGES: Final = ("numpy", "scipy", "llvmlite", "jax", "optax")
COMPARISON: Final = "The paper's methods: "  # how the caption of the table of presets begins


def stage_seconds(folder: Path) -> dict[str, float]:
    """How long each stage took, in the order of the stages."""
    pieces = folder / "pieces"
    ends = {file.name: file.stat().st_mtime for file in (pieces / "stages").iterdir()}
    before, seconds = (pieces / ".lock").stat().st_mtime, {}
    for stage, beginnings in STAGES.items():
        some = [end for name, end in ends.items() if name.startswith(beginnings)]
        if some:
            seconds[stage], before = max(some) - before, max(some)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--times", action="store_true", help="the folders were made in one go: keep the times")
    options = parser.parse_args()
    content, times = (_kept(name) for name in ("paper", "paper-times"))
    for folder in options.folders:
        found, text = json.loads((folder / "table.json").read_text()), (folder / "table.md").read_text()
        name = folder.name
        if len(found["presets"]) > 1:
            name, blocks = "presets", text.split("\n\n")
            text = blocks[next(at for at, block in enumerate(blocks) if block.lstrip().startswith(COMPARISON)) + 1]
        content[name] = {"machine": machine.note(*PACKAGES), **found}
        if options.times:
            seconds = stage_seconds(folder)
            minutes = ", ".join(f"{stage} {each / 60:.1f}" for stage, each in seconds.items())
            print(f"{name}: {sum(seconds.values()) / 60:.1f} minutes in all: {minutes}")
            times[name] = {"machine": machine.note(*PACKAGES), "seconds": seconds}
        (machine.RESULTS / f"paper-{name}.md").write_text(text.strip() + "\n")
    print(machine.write("paper", content), machine.write("paper-times", times))


def _kept(name: str) -> dict[str, Any]:
    """What earlier runs left."""
    file = machine.RESULTS / f"{name}.json"
    return dict(json.loads(file.read_text())) if file.exists() else {}


if __name__ == "__main__":
    main()
