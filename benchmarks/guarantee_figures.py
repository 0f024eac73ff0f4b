"""Draws the paper's figures about guarantees, each with the lift beside it.

    python benchmarks/guarantee_figures.py [--folder FOLDER] [--quick] [--suffix .png]

The same as `sateen paper guarantees`: widths of bands as runs grow, bands over the parameter, and PAC-Bayes bounds
beside ICP and NICP, for EP-GP, SVI-GP and SVI-BNN on configuration (a).
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from sateen.study.guarantee_figures import LEARNERS, RUNS, paper_figures


class Dots:
    """Progress as a line a minute."""

    def __init__(self) -> None:
        self.label, self.done, self.total, self.said = "", 0, 0, time.monotonic()

    def start(self, label: str, total: int, unit: str) -> None:
        self.label, self.done, self.total = label, 0, total

    def advance(self, n: int) -> None:
        self.done += n
        if time.monotonic() - self.said > 60 or self.done == self.total:
            self.said = time.monotonic()
            print(f"{self.label}: {self.done} of {self.total}", flush=True)

    def note(self, text: str) -> None:
        print(text, flush=True)

    def finish(self) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("figures"))
    parser.add_argument("--suffix", default=".png", choices=[".png", ".svg", ".pdf"])
    parser.add_argument("--learners", nargs="*", default=list(LEARNERS))
    parser.add_argument("--quick", action="store_true", help="three numbers of runs and two trainings")
    options = parser.parse_args()
    runs, trainings = (RUNS[1::2], 2) if options.quick else (RUNS, 5)
    asked = {"learners": options.learners, "runs": runs, "trainings": trainings}
    for file in paper_figures(options.folder, **asked, suffix=options.suffix, progress=Dots()):
        print(file)


if __name__ == "__main__":
    main()
