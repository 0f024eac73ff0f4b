"""Guarantees in files: the claim, the calibration, and the posterior with all that its own file would have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Final

import numpy as np

from sateen.core.errors import InputError
from sateen.core.prediction import Claim, Posterior
from sateen.core.registry import call_provider
from sateen.core.types import Arrays, Content, File
from sateen.files.container import write_container
from sateen.guarantee.guarantee import Guarantee
from sateen.guarantee.methods import METHODS, Calibration
from sateen.guarantee.normaliser import NORMALISERS

KIND: Final = "guarantee"
VERSION: Final = 2
_WITHIN: Final = "posterior/"  # begins the name of every array that is the posterior's
_THRESHOLD: Final = "threshold"  # an array, for it may be infinite, which JSON cannot represent


def write_guarantee(guarantee: Guarantee, file: File) -> None:
    """Write the guarantee as one safe file, which `sateen.load` reads back; it predicts the same to the last bit."""
    if guarantee.weighted is not None:
        raise InputError(
            "this guarantee rests on a density, which is a function, and a file keeps no functions",
            remedy="save the posterior and the held-out observations, and calibrate again",
        )
    parts: tuple[Content, Arrays] = call_provider("posterior parts", guarantee.posterior)  # type: ignore[assignment]
    posterior, arrays = parts
    content = {
        "method": guarantee.method,
        "claim": guarantee.claim.content(),
        "calibration": {name: value for name, value in asdict(guarantee.calibration).items() if name != _THRESHOLD},
        "posterior": posterior,
    }
    within = {_WITHIN + name: array for name, array in arrays.items()}
    write_container(file, KIND, VERSION, content, {_THRESHOLD: np.array([guarantee.calibration.threshold]), **within})


def read_guarantee(
    content: Content, arrays: Arrays, read_posterior: Callable[[Content, Arrays], Posterior], where: str = "the file"
) -> Guarantee:
    """The guarantee in a file, whose posterior `read_posterior` makes from its own content and arrays."""
    within = {name.removeprefix(_WITHIN): array for name, array in arrays.items() if name.startswith(_WITHIN)}
    try:
        (value,) = arrays[_THRESHOLD].tolist()
        calibration = Calibration(**content["calibration"], threshold=value)
        claim = Claim.from_content(content["claim"])
        if content["method"] not in METHODS or calibration.normaliser not in NORMALISERS or not value >= 0.0:
            raise InputError(f"no {content['method']} has the threshold {value} and {calibration.normaliser}")
        posterior = read_posterior(content["posterior"], within)
        return Guarantee(content["method"], posterior, claim, calibration)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        fault = f"{error} is missing" if isinstance(error, KeyError) else error
        raise InputError(f"{where} holds no valid guarantee: {fault}") from error
