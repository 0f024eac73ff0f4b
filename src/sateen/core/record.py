"""How a fit went: its objective by step, whether it converged, how long it took."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np

from sateen.core.counts import read_only
from sateen.core.registry import call_provider
from sateen.core.types import Arrays, FloatArray

Objective: TypeAlias = Literal["evidence", "elbo", "log-posterior", "objective"]  # the last where it is not known
UNKNOWN: Final = "the learner does not say whether it converged"


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """What a fit did: the `values` of its objective at `steps`, a verdict in words, and the wall time.

    `verdict` is "converged", or what is wrong and what to do. `interrupted` marks a fit that Ctrl-C ended with the
    best it had. `notes` say what was decided on the way: which scale, which parameters were dropped.
    """

    objective: Objective
    steps: FloatArray
    values: FloatArray
    verdict: str
    seconds: float
    interrupted: bool = False
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("steps", "values"):
            object.__setattr__(self, name, read_only(np.array(getattr(self, name), dtype=np.float64)))

    @property
    def converged(self) -> bool:
        """Whether the verdict is "converged"."""
        return self.verdict == "converged"

    def plot(self, ax: object = None) -> object:
        """Draw the objective by step."""
        return call_provider("plot record", self, ax=ax)

    def __str__(self) -> str:
        last = f"{self.objective} {self.values[-1]:.6g}" if len(self.values) else f"no {self.objective}"
        lines = [f"{self.verdict}: {last} after {len(self.steps)} recorded steps, {self.seconds:.3g} s", *self.notes]
        return "\n".join(lines)

    def content(self) -> dict[str, object]:
        """What a file keeps of it, besides the arrays."""
        seconds = None if math.isnan(self.seconds) else self.seconds
        words = {"objective": self.objective, "verdict": self.verdict, "seconds": seconds}
        return {**words, "interrupted": self.interrupted, "notes": list(self.notes)}

    def arrays(self) -> dict[str, FloatArray]:
        """The arrays that a file keeps of it."""
        return {"steps": self.steps, "values": self.values}

    @classmethod
    def from_content(cls, content: Mapping[str, Any], arrays: Arrays) -> Record:
        """The record that a file describes."""
        seconds = math.nan if content["seconds"] is None else content["seconds"]
        words = {**content, "seconds": seconds, "notes": tuple(content["notes"])}
        return cls(**words, steps=arrays["steps"], values=arrays["values"])
