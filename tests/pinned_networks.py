"""The random networks that are kept in tests/data/random, each with what many runs of it gave."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path as FilePath

import numpy as np
import numpy.typing as npt

import sateen as st
from sateen.paper.cases.random_ctmc import KINDS, MAX_EVENTS

IntArray = npt.NDArray[np.int64]
FOLDER = FilePath(__file__).parent / "data" / "random"


@dataclass(frozen=True, slots=True, eq=False)
class PinnedNetwork:
    """A random network that is kept in a file, with what many runs of it gave.

    `satisfied` is a read-only table of counts, a row for each of `properties` and a column for each of `points`, out
    of `runs` runs, each of at most `max_events` events.
    """

    model: st.Model
    properties: tuple[st.Formula, ...]
    points: st.Points
    satisfied: IntArray
    runs: int
    max_events: int

    @property
    def frequency(self) -> npt.NDArray[np.float64]:
        """The share of runs that satisfy each property at each point."""
        return self.satisfied / self.runs


def pinned(folder: str | FilePath, reactions: int) -> PinnedNetwork:
    """The network with so many reactions that is kept in `folder`, in the file r02_m1.json, r03_m1.json and so on."""
    file = FilePath(folder) / f"r{reactions:02d}_m1.json"
    if not file.is_file():
        there = ", ".join(sorted(other.name for other in file.parent.glob("r*_m1.json"))) or "no such file"
        raise st.InputError(f"{file} does not exist; the folder has {there}")
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        low, high = content["space"]
        names = [f"k{place}" for place in range(1, content["dimension"] + 1)]
        space = st.Space(dict.fromkeys(names, st.Range(low, high, scale="log")))
        properties = tuple(st.stl(content["properties"][kind]) for kind in KINDS)
        satisfied = np.array([content["satisfied"][kind] for kind in KINDS], dtype=np.int64)
        network = PinnedNetwork(
            st.Model.parse(content["model"]),
            properties,
            space.points(content["theta"]),
            satisfied,
            int(content["truth_runs"]),
            MAX_EVENTS,
        )
    except KeyError as error:
        raise st.InputError(f"{file} has no entry {error}; it is not a pinned network") from None
    except (TypeError, ValueError) as error:
        raise st.InputError(f"{file} is not a pinned network: {error}") from error
    if satisfied.shape != (len(KINDS), len(network.points)):
        raise st.InputError(f"{file} has counts of shape {satisfied.shape} for {len(network.points)} points")
    if satisfied.min() < 0 or satisfied.max() > network.runs:
        raise st.InputError(f"{file} has counts outside 0 to {network.runs}, its number of runs")
    satisfied.setflags(write=False)
    return network
