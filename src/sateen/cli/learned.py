"""What was learned, as the commands `learn`, `calibrate` and `inspect` show it: lines for people, data for programs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, fields, is_dataclass
from typing import TYPE_CHECKING

import sateen as st
from sateen.cli.output import range_text, table
from sateen.core.text import values_text

if TYPE_CHECKING:
    from sateen.learning.posterior import LearnedPosterior

__all__ = ["guarantee_content", "guarantee_lines", "learned_content", "learned_lines"]


def learned_lines(posterior: LearnedPosterior) -> Iterator[str]:
    """From what and by what it was learned, whether the fit converged, and which parameters matter."""
    yield str(posterior.training.observations)[1:-1]
    ranges = [f"{name} {range_text(range_)}" for name, range_ in posterior.space.ranges.items()]
    fixed = values_text(posterior.space.fixed)
    yield f"over {', '.join(ranges) or 'a single point'}" + (f", with {fixed}" if fixed else "")
    if not any(note.startswith(f"{posterior.kind}: ") for note in posterior.record.notes):
        yield f"{posterior.kind}{_settings(posterior.recipe)}"
    yield from str(posterior.record).splitlines()
    importance = posterior.importance()
    if importance:
        yield ""
        yield "how much f changes along the whole range of each parameter (root mean square):"
        inputs = posterior.inputs.names
        rows = [[name, f"{change:.3g}" if name in inputs else "left out"] for name, change in importance.items()]
        yield from table(rows, indent="  ")
    yield ""
    yield str(_claim(posterior))


def learned_content(posterior: LearnedPosterior) -> dict[str, object]:
    """The same as plain data; JSON has no NaN."""
    observed, record = posterior.training.observations, posterior.record
    last = float(record.values[-1]) if len(record.values) else math.nan
    return {
        "learner": posterior.kind,
        "recipe": asdict(posterior.recipe),
        "space": {
            name: value if isinstance(value, float) else asdict(value) for name, value in posterior.space.parameters
        },
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


def guarantee_lines(guarantee: st.Guarantee) -> Iterator[str]:
    """What a guarantee promises, how it was made, and what its posterior is."""
    yield f"{guarantee.method}: {guarantee.claim}"
    yield str(guarantee.calibration)
    yield ""
    yield from learned_lines(guarantee.posterior)


def guarantee_content(guarantee: st.Guarantee) -> dict[str, object]:
    """The same as plain data."""
    about = {"method": guarantee.method, "claim": guarantee.claim.content()}
    calibration = asdict(guarantee.calibration)
    return {**about, "calibration": calibration, "posterior": learned_content(guarantee.posterior)}


def _settings(recipe: object) -> str:
    """The settings of a recipe that differ from their defaults."""
    if not is_dataclass(recipe):
        return ""
    usual = type(recipe)()
    given = [f.name for f in fields(recipe) if getattr(recipe, f.name) != getattr(usual, f.name)]
    return f" with {', '.join(f'{name}={getattr(recipe, name)}' for name in given)}" if given else ""


def _claim(posterior: LearnedPosterior) -> st.Claim:
    """What its 95 % intervals promise."""
    return posterior.predict(posterior.training.observations.points[:1]).claim
