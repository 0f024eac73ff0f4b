"""Keep what `sateen paper` has made: its tables, and how long each stage took.

    sateen paper all --yes -o all && sateen paper random --yes -o random
    python benchmarks/paper.py all random

Stages come one after the other, and every task has a file, so the times of the files tell how long a stage took. They
do so only for folders that were made in one go, on the machine where this runs. The tables go to results/paper.md, and
are those of docs/paper.md; all numbers go to results/paper.json.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, Final

import machine

STAGES: Final = {
    "search for networks": ("networks",),
    "runs for data sets": ("train", "test"),
    "the truth": ("truth", "exact"),
    "fits": ("fit",),
    "plans of calibrations": ("plan",),
    "runs for calibrations": ("held-out",),
    "calibrations": ("lift",),
}
PACKAGES: Final = ("numpy", "scipy", "numba", "jax", "optax")


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
    options = parser.parse_args()
    content: dict[str, Any] = {"machine": machine.note(*PACKAGES)}
    texts = []
    for folder in options.folders:
        seconds = stage_seconds(folder)
        minutes = ", ".join(f"{stage} {each / 60:.1f}" for stage, each in seconds.items())
        print(f"{folder.name}: {sum(seconds.values()) / 60:.1f} minutes in all: {minutes}")
        content[folder.name] = {"seconds": seconds, **json.loads((folder / "table.json").read_text())}
        texts.append((folder / "table.md").read_text())
    (machine.RESULTS / "paper.md").write_text("\n".join(texts))
    print(machine.write("paper", content))


if __name__ == "__main__":
    main()
