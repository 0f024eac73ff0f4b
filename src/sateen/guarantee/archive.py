"""Guarantees in files: the claim, the calibration, and the posterior with all that its own file would have."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict
from typing import Final

import numpy as np

from sateen.core.errors import InputError
from sateen.core.prediction import Claim, Posterior, Prediction
from sateen.core.registry import call_provider
from sateen.core.space import Space
from sateen.core.types import Array, Arrays, Content, File
from sateen.files.container import write_container
from sateen.files.plain import FAULTS, converted, fault_text
from sateen.guarantee.guarantee import Guarantee
from sateen.guarantee.methods import METHODS, Calibration
from sateen.guarantee.normaliser import NORMALISERS, centre, difficulty
from sateen.guarantee.request import check_share

KIND: Final = "guarantee"
VERSION: Final = 2
_WITHIN: Final = "posterior/"  # begins the name of every array that is the posterior's
_THRESHOLD: Final = "threshold"  # an array, for it may be infinite, which JSON cannot represent


def write_guarantee(guarantee: Guarantee, file: File) -> None:
    """Write the guarantee as one safe file, which `sateen.load` reads back; it predicts the same to the last bit."""
    write_container(file, KIND, VERSION, *guarantee_parts(guarantee))


def guarantee_parts(guarantee: Guarantee) -> tuple[dict[str, object], dict[str, Array]]:
    """All that a file keeps of a guarantee: words, and arrays."""
    if guarantee.weighted is not None:
        raise InputError(
            "this guarantee rests on a density, which is a function, and a file cannot hold functions",
            remedy="save the posterior and the held-out observations, and calibrate again",
        )
    parts: tuple[Content, Arrays] = call_provider("posterior parts", guarantee.posterior)  # type: ignore[assignment]
    posterior, arrays = parts
    content: dict[str, object] = {
        "method": guarantee.method,
        "claim": guarantee.claim.content(),
        "calibration": {name: value for name, value in asdict(guarantee.calibration).items() if name != _THRESHOLD},
        "posterior": posterior,
    }
    within = {_WITHIN + name: array for name, array in arrays.items()}
    return content, {_THRESHOLD: np.array([guarantee.calibration.threshold]), **within}


def read_guarantee(
    content: Content, arrays: Arrays, read_posterior: Callable[[Content, Arrays], Posterior], where: str = "the file"
) -> Guarantee:
    """The guarantee in a file, whose posterior `read_posterior` makes from its own content and arrays."""
    within = {name.removeprefix(_WITHIN): array for name, array in arrays.items() if name.startswith(_WITHIN)}
    try:
        (value,) = arrays[_THRESHOLD].tolist()
        told = Calibration(**content["calibration"], threshold=value)  # with no name that it does not know
        calibration = converted(asdict(told), Calibration)
        claim, method = converted(content["claim"], Claim), converted(content["method"], str)
        if method not in METHODS or calibration.normaliser not in NORMALISERS or not value >= 0.0:
            raise InputError(f"no {method} has the threshold {value} and {calibration.normaliser}")
        guarantee = Guarantee(method, read_posterior(content["posterior"], within), claim, calibration)
        _check(guarantee)
        return guarantee
    except FAULTS as error:
        raise InputError(f"{where} holds no valid guarantee: {fault_text(error)}") from error


def _check(guarantee: Guarantee) -> None:
    """Refuse a guarantee whose parts do not fit each other, by one interval that is made of them."""
    claim, calibration, method = guarantee.claim, guarantee.calibration, METHODS[guarantee.method]
    check_share(guarantee.level, "level", "0.9")
    if claim.confidence is not None:
        check_share(claim.confidence, "confidence", "0.95")
    counted = calibration.points >= 0 and calibration.normaliser_runs >= 1 and 0.0 <= calibration.floor < math.inf
    if claim.target != method.target or not counted:
        raise InputError(f"no {guarantee.method} is about the {claim.target}, by {calibration}")
    point = Space().points([{}])
    mean, std, lower, upper = np.array([[0.5], [0.1], [0.4], [0.6]])
    believed = Prediction(point, mean, std, lower, upper, guarantee.level, claim)
    reach = difficulty(calibration.normaliser, believed, calibration.normaliser_runs, calibration.floor)
    lower, upper = method.interval(calibration, centre(believed), reach * np.float64(calibration.threshold or 0.0))
    ends = np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)
    Prediction(point, believed.mean, believed.std, *ends, guarantee.level, claim)
