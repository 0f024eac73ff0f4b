"""What was learned, as the commands `learn` and `inspect` tell it: lines for people, plain data for programs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from sateen.cli.text import aligned, number

if TYPE_CHECKING:
    from sateen.core.prediction import Claim
    from sateen.core.space import Range, Space
    from sateen.guarantee.guarantee import Guarantee
    from sateen.learning.posterior import LearnedPosterior

__all__ = ["guarantee_content", "guarantee_lines", "learned_content", "learned_lines"]


def learned_lines(posterior: LearnedPosterior) -> Iterator[str]:
    """What was learned and how, in words: from what, by whom, whether it converged, and which parameters matter."""
    yield str(posterior.training.observations)[1:-1]
    yield f"over {_space(posterior.space)}"
    if not any(note.startswith(f"{posterior.kind}: ") for note in posterior.record.notes):
        yield f"{posterior.kind}{_settings(posterior.recipe)}"
    yield from str(posterior.record).splitlines()
    importance = posterior.importance()
    if importance:
        yield ""
        yield "by how much f changes along the whole range of each parameter (root mean square):"
        looked_at = posterior.inputs.names
        rows = [[name, f"{much:.3g}" if name in looked_at else "left out"] for name, much in importance.items()]
        yield from (f"  {line}" for line in aligned(rows))
    yield ""
    yield str(_claim(posterior))


def learned_content(posterior: LearnedPosterior) -> dict[str, Any]:
    """The same as plain data; JSON knows no NaN."""
    from dataclasses import asdict

    observed, record = posterior.training.observations, posterior.record
    last = float(record.values[-1]) if len(record.values) else math.nan
    return {
        "method": posterior.kind,
        "recipe": asdict(posterior.recipe),
        "space": {name: _parameter(value) for name, value in posterior.space.parameters},
        "inputs": dict(zip(posterior.inputs.names, posterior.inputs.scales, strict=True)),
        "training": {
            "points": len(observed),
            "runs": int(observed.trials.sum()),
            "design": observed.points.design,
            "seeds": observed.seeds,
            "formula": observed.provenance.get("formula"),
            "fingerprint": posterior.training.fingerprint,
        },
        "record": {**record.content(), "converged": record.converged, "value": last if math.isfinite(last) else None},
        "importance": posterior.importance(),
        "claim": _claim(posterior).content(),
    }


def _space(space: Space) -> str:
    """The space in words."""
    ranges = [f"{name} in {own}" + " on a log scale" * (own.scale == "log") for name, own in space.ranges.items()]
    fixed = [f"{name} = {number(value)}" for name, value in space.fixed.items()]
    return ", ".join(ranges or ["a single point"]) + (f", with {', '.join(fixed)}" if fixed else "")


def _settings(recipe: Any) -> str:
    """The settings of a recipe that are not what they are by default."""
    from dataclasses import fields

    usual = type(recipe)()
    given = [field.name for field in fields(recipe) if getattr(recipe, field.name) != getattr(usual, field.name)]
    return f" with {', '.join(f'{name}={getattr(recipe, name)}' for name in given)}" if given else ""


def _claim(posterior: LearnedPosterior) -> Claim:
    """What its 95 % intervals promise."""
    return posterior.predict(posterior.training.observations.points[:1]).claim


def _parameter(value: Range | float) -> dict[str, Any] | float:
    return value if isinstance(value, float) else {"low": value.low, "high": value.high, "scale": value.scale}


def guarantee_lines(guarantee: Guarantee) -> Iterator[str]:
    """What a guarantee promises, how it was made, and what its posterior is."""
    yield f"{guarantee.method}: {guarantee.claim}"
    yield str(guarantee.calibration)
    yield ""
    yield from learned_lines(cast("LearnedPosterior", guarantee.posterior))


def guarantee_content(guarantee: Guarantee) -> dict[str, Any]:
    """The same as plain data."""
    from dataclasses import asdict

    own = {"method": guarantee.method, "claim": guarantee.claim.content(), "calibration": asdict(guarantee.calibration)}
    return {**own, "posterior": learned_content(cast("LearnedPosterior", guarantee.posterior))}
