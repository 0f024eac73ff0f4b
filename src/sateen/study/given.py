"""Training observations that are there already: train = { file = "train.safetensors" } in the place of a design."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from sateen.core.code import Code
from sateen.core.errors import InputError, StoreError
from sateen.core.observations import Observations
from sateen.core.space import Space

if TYPE_CHECKING:
    from sateen.logic.formula import Formula
    from sateen.model.model import Model
    from sateen.study.file import StudyFile

_FILE = ("observe", "train", "file")


@dataclass(frozen=True, slots=True)
class GivenTable:
    """[observe] train, where it names a file."""

    file: str


@dataclass(frozen=True, slots=True)
class GivenTraining:
    """Observations that are there already, in a `file`, in the place of a design: so many `points`, and `runs` in all.

    The fingerprint is that of the observations; a file with others makes the study another one.
    """

    file: str
    points: int
    runs: int
    fingerprint: str

    def size(self, space: Space) -> int:
        """The points in all."""
        return self.points


def read_given(
    toml: StudyFile, model: Model | Code, space: Space, folder: FilePath, properties: Mapping[str, Formula | None]
) -> GivenTraining:
    """The observations that a study names, once it is sure that they are about what the study asks."""
    name = toml.read(GivenTable, "observe", "train").file
    try:
        observations = Observations.load(folder / name)
    except (InputError, StoreError) as error:
        toml.fail(_FILE, str(error), "st.observe(...).save(file) writes one")
    except OSError as error:
        toml.fail(_FILE, f"{name} cannot be read: {error.strerror or error}")
    if len(properties) > 1:
        toml.fail(_FILE, "observations are of one property", f"the study has {len(properties)}; keep one of them")
    if observations.space != space:
        ranges = f"theirs is {observations.space!r}, and [space] is {space!r}"
        toml.fail(_FILE, f"these observations are of another space: {ranges}")
    (formula,) = properties.values()
    asked: dict[str, object] = {"formula": formula and str(formula), "end": formula and formula.end}
    if not isinstance(model, Code):
        asked["model"] = str(model)
    for key, value in asked.items():
        told = observations.provenance.get(key)
        if "model" in observations.provenance and told != value:
            toml.fail(_FILE, f"these observations are of another {key}", f"theirs is {told}, and here it is {value}")
    return GivenTraining(name, len(observations), int(observations.trials.sum()), observations.fingerprint)
