"""What was learned, as the commands `learn`, `calibrate` and `inspect` show it: lines for people, data for programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import sateen as st
from sateen.cli.output import range_text, table
from sateen.core.text import values_text

if TYPE_CHECKING:
    from sateen.core.posterior import FullPosterior
    from sateen.study.extremes import Extreme


def learned_lines(learned: FullPosterior | st.Guarantee) -> Iterator[str]:
    """From what and by what it was learned, whether the fit converged, and which parameters matter.

    Of a guarantee first what it promises, and how it was made.
    """
    if isinstance(learned, st.Guarantee):
        yield from (f"{learned.method}: {learned.claim}", str(learned.calibration), "")
    posterior = _posterior(learned)
    yield str(posterior.training.observations)[1:-1]
    ranges = [f"{name} {range_text(range_)}" for name, range_ in posterior.space.ranges.items()]
    fixed = values_text(posterior.space.fixed)
    yield f"over {', '.join(ranges) or 'a single point'}" + (f", with {fixed}" if fixed else "")
    if not any(note.startswith(f"{posterior.kind}: ") for note in posterior.record.notes):
        yield f"{posterior.kind}{_settings(_recipe(posterior))}"
    yield from str(posterior.record).splitlines()
    if _runs_code(posterior):
        return
    importance = posterior.importance()
    if importance:
        yield ""
        yield "how much f changes along the whole range of each parameter (root mean square):"
        inputs = _inputs(posterior)
        rows = [[name, f"{change:.3g}" if name in inputs else "left out"] for name, change in importance.items()]
        yield from table(rows, indent="  ")
    yield ""
    yield str(_claim(posterior))


def extreme_of_runs(posterior: FullPosterior, held_out: st.Observations | st.Truth | None = None) -> Extreme | None:
    """What all runs have in common if none, or every one, satisfied the property: of the training, and held out."""
    from sateen.study.extremes import extreme_of

    parts = (posterior.training.observations, held_out)
    return extreme_of(each for each in parts if isinstance(each, st.Observations))


def extreme_lines(extreme: Extreme | None, learned: FullPosterior | st.Guarantee) -> Iterator[str]:
    """What all runs have in common, and what this bounds: to be said first."""
    if extreme is not None:
        name = _posterior(learned).training.observations.provenance.get("formula") or "the property"
        sentence = extreme.sentence(f"{name}")
        yield sentence[0].upper() + sentence[1:]


def learned_content(learned: FullPosterior | st.Guarantee) -> dict[str, object]:
    """The same as plain data."""
    from sateen.learning.registry import settings_content

    posterior = _posterior(learned)
    if isinstance(learned, st.Guarantee):
        about = {"method": learned.method, "claim": learned.claim.content()}
        return {**about, "calibration": asdict(learned.calibration), "posterior": learned_content(posterior)}
    observed, record = posterior.training.observations, posterior.record
    return {
        "learner": posterior.kind,
        "recipe": settings_content(_recipe(posterior)),
        "space": {
            name: value if isinstance(value, float) else asdict(value) for name, value in posterior.space.parameters
        },
        "inputs": _inputs(posterior),
        "training": {
            "points": len(observed),
            "runs": int(observed.trials.sum()),
            "design": observed.points.design,
            "seeds": observed.seeds,
            "formula": observed.provenance.get("formula"),
            "fingerprint": posterior.training.fingerprint,
        },
        "record": {
            **record.content(),
            "converged": record.converged,
            "value": next(reversed(record.values.tolist()), None),
        },
        "importance": None if _runs_code(posterior) else posterior.importance(),
        "claim": None if _runs_code(posterior) else _claim(posterior).content(),
    }


def _posterior(learned: FullPosterior | st.Guarantee) -> FullPosterior:
    from sateen.core.posterior import complete

    return complete(learned.posterior) if isinstance(learned, st.Guarantee) else learned


def _runs_code(posterior: FullPosterior) -> bool:
    """Whether asking it for more than was written down of it runs the code of a learner that is not sateen's own."""
    from sateen.learning.stored import RefitPosterior

    return isinstance(posterior, RefitPosterior)


def _recipe(posterior: FullPosterior) -> st.Learner:
    """The learner, with its settings; one that is not sateen's own is not imported."""
    from sateen.learning.stored import RefitPosterior

    return posterior.learner if isinstance(posterior, RefitPosterior) else posterior.recipe


def _settings(recipe: st.Learner) -> str:
    """The settings of a learner that differ from their defaults, if it has defaults."""
    from sateen.learning.registry import settings_content

    settings = settings_content(recipe)
    try:
        usual = settings_content(type(recipe)())
    except TypeError:
        usual = {}
    given = [f"{name}={value}" for name, value in settings.items() if name not in usual or value != usual[name]]
    return f" with {', '.join(given)}" if given else ""


def _inputs(posterior: FullPosterior) -> dict[str, str]:
    """The parameters that the learner takes, each with its scale; a user's own learner takes all of them."""
    inputs = getattr(posterior, "inputs", None)
    if inputs is None:
        return {name: range_.scale for name, range_ in posterior.space.ranges.items()}
    return dict(zip(inputs.names, inputs.scales, strict=True))


def _claim(posterior: FullPosterior) -> st.Claim:
    """What its 95 % intervals promise."""
    return posterior.predict(posterior.training.observations.points[:1]).claim
