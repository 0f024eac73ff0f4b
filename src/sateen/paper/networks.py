"""The search for random networks of any size, as a task: it is made once, and its file is read from then on.

The rule is that of the paper's dimensions: the first three seeds from 1000 r + 1 on whose networks have an informative
property of every kind (`informative_networks`). A task that needs networks can be planned before they are found, for
the number of rates and the rule decide which they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path as FilePath
from typing import Final, TypeAlias

import sateen as st
from sateen.paper.cases.random_ctmc import LOOKED_AT, MAX_EVENTS, informative_networks
from sateen.paper.forecast import search_seconds
from sateen.paper.questions import NETWORKS_OF_A_SIZE, Question
from sateen.pipeline.folder import ResultFolder, read_checksummed, write_checksummed
from sateen.pipeline.tasks import RunContext, Save, Task, folder_task

SEARCH: Final = "search for networks"


@dataclass(frozen=True, slots=True)
class FoundNetwork:
    """The seed of a network, and its informative property of each kind."""

    seed: int
    properties: tuple[st.Formula, ...]


Found: TypeAlias = tuple[FoundNetwork, ...]  # in the order of their seeds


def search_task(folder: ResultFolder, rates: int, cores: int) -> Task[Found]:
    """The search for the networks with this many rates."""

    def make(context: RunContext) -> Save:
        found = [
            {"seed": seed, "properties": [[str(formula), formula.end] for formula in properties]}
            for seed, properties in islice(informative_networks(rates), NETWORKS_OF_A_SIZE)
        ]
        return lambda file: write_checksummed(file, {"networks": found})

    def read(file: FilePath) -> Found:
        rows = read_checksummed(file)["networks"]
        return tuple(
            FoundNetwork(row["seed"], tuple(st.stl(text, end=end) for text, end in row["properties"])) for row in rows
        )

    return folder_task(
        folder,
        f"networks r{rates:02d}",
        {"rates": rates, "networks": NETWORKS_OF_A_SIZE, "points": LOOKED_AT, "max_events": MAX_EVENTS},
        make,
        read=read,
        stage=SEARCH,
        parallel=True,
        about="draws networks until three have an informative property of every kind",
        seconds=search_seconds(rates, cores),
    )


def with_network(question: Question, search: Task[Found] | None) -> Question:
    """The question with the network that the search found, if its network was searched for."""
    if search is None:
        return question
    network = search.value()[int(question.name.rpartition("m")[2]) - 1]
    return question.found(network.seed, network.properties)
