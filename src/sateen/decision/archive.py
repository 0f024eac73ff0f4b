"""Certificates in files: the predictor, the question as text, the drawn points, every count, or the cells.

A model in a file is untrusted text: it is parsed, and never run as Python. A black box is known by its name alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Final, Literal, TypedDict

import numpy as np

from sateen.core.errors import InputError
from sateen.core.posterior import complete
from sateen.core.prediction import Claim, Posterior
from sateen.core.registry import call_provider
from sateen.core.space import Points, Range, Scale, Space
from sateen.core.types import Array, Arrays, Content, File
from sateen.decision.certificate import Certificate, Evidence, claim_of
from sateen.decision.corners import CornerTest, check_monotone
from sateen.decision.evidence import MOST_LOOKS, Look, Outcome, Trial
from sateen.decision.fresh import Asked, FreshTest, Frozen, box_content
from sateen.decision.planning import CertificatePlan
from sateen.decision.regions import SIDES, Regions
from sateen.decision.rigour import CellTest
from sateen.files.container import write_container
from sateen.files.observations import check_array
from sateen.files.plain import FAULTS, converted, fault_text
from sateen.guarantee.archive import guarantee_parts, read_guarantee
from sateen.guarantee.guarantee import Guarantee
from sateen.logic.formula import Formula
from sateen.logic.parser import stl
from sateen.model.model import Model

KIND: Final = "certificate"
VERSION: Final = 1
_WITHIN: Final = "predictor/"  # begins the name of every array that is the predictor's
_MOST_POINTS: Final = 2**24  # from which the volumes of regions are computed again
_COUNTS: Final = ("trials", "satisfied", "undecided")


class _Regions(TypedDict):
    """What a file says of regions, besides their predictor and claim."""

    threshold: float
    side: Literal["above", "below"]
    level: float
    above: float
    below: float
    undecided: float
    errors: dict[str, float]
    seed: int
    points: int


class _Known(TypedDict):
    """What a file says of a certificate, besides its predictor, its claims and its arrays."""

    by: Literal["fresh", "cells"]
    evidence: Literal["fresh", "corners", "cells"]
    regions: _Regions
    asked: Asked
    volume: float
    wrong: float
    confidence: float
    attempt: int
    seed: int
    undecided: float | None
    versions: dict[str, str]
    plan: CertificatePlan | None
    margin: float | None
    tolerance: float
    box: list[tuple[str, float | tuple[float, float, Scale]]] | None
    monotone: dict[str, str]
    draw: int | None
    looks: list[int]
    alpha: float | None
    cap: int | None
    budget: int | None
    error: float | None
    cells: dict[str, Any] | None


def write_certificate(certificate: Certificate, file: File) -> None:
    """Write the certificate as one safe file, which `sateen.load` reads back and anyone can check."""
    regions, evidence = certificate.regions, certificate.evidence
    guarded = isinstance(regions.predictor, Guarantee)
    parts: Any = (
        guarantee_parts(regions.predictor)
        if isinstance(regions.predictor, Guarantee)
        else call_provider("posterior parts", regions.predictor)
    )
    content, within = parts
    frozen = evidence.frozen
    words: dict[str, object] = {
        "by": certificate.by,
        "predictor": {"kind": "guarantee" if guarded else "posterior", "content": content},
        "regions": {name: getattr(regions, name) for name in _Regions.__annotations__}
        | {"errors": dict(regions.errors)},
        "belief": regions.claim.content(),
        "claim": certificate.claim.content(),
        "asked": asdict(certificate.asked),
        "plan": None if certificate.plan is None else asdict(certificate.plan),
        "margin": frozen.z,
        "tolerance": frozen.tolerance,
        "box": None if frozen.box is None else box_content(frozen.box),
        "versions": dict(certificate.versions),
        "monotone": {} if isinstance(evidence, FreshTest) else dict(evidence.monotone),
        **{
            name: getattr(certificate, name)
            for name in ("volume", "wrong", "confidence", "attempt", "seed", "undecided")
        },
    }
    told, arrays = _evidence_parts(evidence)
    kept = {_WITHIN + name: array for name, array in within.items()}
    write_container(file, KIND, VERSION, {**words, **told}, {**arrays, **kept})


def read_certificate(
    content: Content, arrays: Arrays, read_posterior: Callable[[Content, Arrays], Posterior], where: str = "the file"
) -> Certificate:
    """The certificate in a file; nothing of it is believed before `check` has recomputed it, and nothing is run."""
    try:
        known = converted(content, _Known)
        within = {name.removeprefix(_WITHIN): array for name, array in arrays.items() if name.startswith(_WITHIN)}
        told, asked = known["regions"], known["asked"]
        if content["predictor"]["kind"] == "guarantee":
            predictor: Any = read_guarantee(content["predictor"]["content"], within, read_posterior, where)
        else:
            predictor = complete(read_posterior(content["predictor"]["content"], within))
        if set(told["errors"]) != set(SIDES) or not 0 < told["points"] <= _MOST_POINTS:
            raise InputError("the volumes of its regions have no errors, or come from too many points")
        regions = Regions(predictor, **told, claim=_claim(content["belief"]))
        box = None
        if known["box"] is not None:
            box = Space({name: Range(*v) if isinstance(v, tuple) else v for name, v in known["box"]})
        frozen = Frozen(regions, known["margin"], known["tolerance"], box)
        evidence = _evidence(known, frozen, arrays)
        model, formula = _question(asked)
        head = known["by"], regions, asked, evidence, _claim(content["claim"])
        numbers = known["volume"], known["wrong"], known["confidence"], known["attempt"], known["seed"]
        certificate = Certificate(*head, *numbers, known["plan"], known["undecided"], known["versions"], model, formula)
        if (known["by"] == "fresh") != isinstance(evidence, FreshTest):
            raise InputError(f"its evidence is not of the kind {known['by']}")
        claim_of(evidence, certificate.volume, certificate.confidence)  # that it can be said at all
        return certificate
    except FAULTS as error:
        raise InputError(f"{where} holds no valid certificate: {fault_text(error)}") from error


def _question(asked: Asked) -> tuple[Model | None, Formula | None]:
    """The model and the formula that the texts say; a black box is none that a file could hold."""
    formula = None if asked.formula is None else stl(asked.formula, end=asked.end)
    return (None if asked.black_box else Model.parse(asked.model)), formula


def _claim(content: Content) -> Claim:
    claim = converted(content, Claim)
    if content.get("sentence") != str(claim):
        raise InputError("the sentence of its claim is not what the claim says")
    return claim


def _evidence_parts(evidence: Evidence) -> tuple[dict[str, object], dict[str, Array]]:
    """Words and arrays of the evidence."""
    nothing = dict.fromkeys(("draw", "alpha", "cap", "budget", "error", "cells"))
    if isinstance(evidence, CellTest):
        words, arrays = evidence.parts()
        return {**nothing, "evidence": "cells", "looks": [], "cells": words}, arrays
    outcome, trial, points = evidence.outcome, evidence.outcome.trial, len(evidence.points)
    words = {
        "evidence": "fresh" if isinstance(evidence, FreshTest) else "corners",
        "draw": evidence.seed,
        "looks": [look.seed for look in outcome.looks],
        "alpha": trial.alpha,
        "cap": trial.cap,
        "budget": trial.budget,
        "error": evidence.error,
        "cells": None,
    }
    shape = (len(outcome.looks), points)
    counts = {name: np.reshape([getattr(look, name) for look in outcome.looks], shape) for name in _COUNTS}
    arrays = {name: column.astype(np.int64) for name, column in counts.items()}
    return words, {**arrays, "theta": evidence.points.theta, "bet": trial.bet}


def _evidence(known: _Known, frozen: Frozen, arrays: Arrays) -> Evidence:
    """The evidence that a file describes."""
    space = frozen.regions.space
    signs = check_monotone(known["monotone"], space.names) if known["monotone"] else {}
    if known["evidence"] == "cells":
        return CellTest.from_parts(frozen, signs, known["cells"], arrays)
    looks, points = len(known["looks"]), len(arrays["theta"])
    if not (looks <= MOST_LOOKS and points):
        raise InputError(f"it records {looks} looks at {points} points")
    check_array("theta", arrays["theta"], (points, len(space)), np.float64)
    check_array("bet", arrays["bet"], (points,), np.float64)
    for name in _COUNTS:
        check_array(name, arrays[name], (looks, points), np.int64)
    draw, alpha, cap, error = known["draw"], known["alpha"], known["cap"], known["error"]
    if draw is None or alpha is None or cap is None or error is None or not 0.0 < error < 1.0:
        raise InputError("it does not say how its points were tested")
    fresh = known["evidence"] == "fresh"
    if fresh and known["plan"] is None:
        raise InputError("it has no plan of its test")
    allowed = known["plan"].flags if known["plan"] is not None else 0
    trial = Trial(frozen.tested, arrays["bet"], alpha, cap, frozen.mirrored, allowed, known["budget"])
    rows = zip(known["looks"], *(arrays[name] for name in _COUNTS), strict=True)
    outcome = Outcome.of(trial, tuple(Look(*row) for row in rows))
    where = Points(arrays["theta"], space)
    if fresh:
        return FreshTest(frozen, draw, where, outcome, error)
    if list(signs) != list(space.names):
        raise InputError("it does not declare a direction of every parameter")
    return CornerTest(frozen, signs, draw, where, outcome, error)
