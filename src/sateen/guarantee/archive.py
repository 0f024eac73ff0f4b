"""Guarantees in files: the claim, the calibration, and the posterior with all that its own file would have."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path as FilePath
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from sateen.core.errors import InputError
from sateen.core.prediction import Claim, Posterior
from sateen.core.types import File
from sateen.files.container import read_container, write_container
from sateen.guarantee.conformal import Threshold
from sateen.guarantee.guarantee import Guarantee
from sateen.guarantee.methods import METHODS, Calibration
from sateen.guarantee.normaliser import NORMALISERS

__all__ = ["KIND", "VERSION", "ReadPosterior", "read_guarantee", "write_guarantee"]

KIND: Final = "guarantee"
VERSION: Final = 1
Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]
ReadPosterior: TypeAlias = Callable[[Mapping[str, Any], Arrays], Posterior]
_WITHIN: Final = "posterior/"  # begins the name of every array that is the posterior's
_THRESHOLD: Final = "threshold"  # an array, for it may be infinite, which JSON cannot say


def write_guarantee(guarantee: Guarantee, file: File) -> None:
    """Write the guarantee as one safe file, which `sateen.load` reads back; it predicts the same to the last bit."""
    if not isinstance(guarantee.threshold, Threshold):
        raise InputError(
            "this guarantee rests on a density, which is a function, and a file keeps no functions\n"
            "  save the posterior and the held-out observations, and calibrate them anew"
        )
    kind, version, words, arrays = _saved(guarantee.posterior)
    content = {
        "method": guarantee.method,
        "claim": guarantee.claim.content(),
        "calibration": {name: value for name, value in asdict(guarantee.calibration).items() if name != _THRESHOLD},
        "posterior": {"kind": kind, "version": version, "content": words},
    }
    own = {_THRESHOLD: np.array([guarantee.threshold.value])}
    write_container(file, KIND, VERSION, content, own | {_WITHIN + name: array for name, array in arrays.items()})


def read_guarantee(
    content: Mapping[str, Any], arrays: Arrays, read_posterior: ReadPosterior, where: str = "the file"
) -> Guarantee:
    """The guarantee that a file tells, whose posterior `read_posterior` makes from its own words and arrays."""
    within = {name.removeprefix(_WITHIN): array for name, array in arrays.items() if name.startswith(_WITHIN)}
    try:
        (value,) = arrays[_THRESHOLD].tolist()
        calibration = Calibration(**content["calibration"], threshold=value)
        claim = Claim.from_content(content["claim"])
        if content["method"] not in METHODS or calibration.normaliser not in NORMALISERS or not value >= 0.0:
            raise InputError(f"no {content['method']} has the threshold {value} and {calibration.normaliser}")
        posterior = read_posterior(content["posterior"]["content"], within)
        return Guarantee(content["method"], posterior, claim, calibration, Threshold(value))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        said = f"{error} is missing" if isinstance(error, KeyError) else error
        raise InputError(f"{where} holds no guarantee that makes sense: {said}") from error


def _saved(posterior: Posterior) -> tuple[str, int, dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """What the posterior's own file has in it: any posterior can write one, and this room knows nothing else of it."""
    with tempfile.TemporaryDirectory(prefix="sateen-") as folder:
        file = FilePath(folder) / "posterior.safetensors"
        posterior.save(file)
        return read_container(file)
