"""What a report says and draws of a decision: the sides of a threshold, the rounds, where the runs went, what is best.

Beside the rounds stands what a design that fills the space is forecast to need. It is a forecast and no measurement:
the figure of the start falls like a power of the runs, between the slowest and the fastest that benchmarks found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np

import sateen as st
from sateen.core.errors import InputError
from sateen.core.observations import Observations
from sateen.core.posterior import FullPosterior
from sateen.core.space import Space
from sateen.core.text import number_text, percent, plural
from sateen.report.data import (
    COLUMNS,
    CURVE,
    MOST_SLICES,
    SLICE,
    Json,
    axis_data,
    evenly,
    plane_rows,
    short,
    six_digits,
)

if TYPE_CHECKING:
    from sateen.study.decided import DecisionResult

_MAP: Final = 61  # values of each of two parameters: the borders are drawn between them
_RATES: Final = (0.3, 0.46)  # powers of the runs with which the figure of a Sobol design falls
_MATTER_POINTS: Final = 2048  # for the indices of a study that does not ask for them itself
_MOST_DOTS: Final = 2000
_MOST_FLAGS: Final = 50  # that are listed
_SMALLEST: Final = 1e-6  # figure that a log scale shows
_FARTHEST: Final = 1e12  # runs that a forecast speaks of


def decision_words(decision: DecisionResult, begun: int) -> Json:
    """What the page says of a decision; `begun` are the runs of the training."""
    regions, done, best = decision.regions, decision.refinement, decision.best
    return {
        "goal": str(decision.goal) + _subject_to(decision.best),
        "source": _source(decision),
        "reason": _sentence(done.reason if done is not None else best.reason if best is not None else ""),
        "facts": list(_facts(decision)),
        "threshold": None if regions is None else number_text(regions.threshold),
        "level": None if regions is None else percent(regions.level),
        "kind": _kind(decision.posterior.space),
        "forecast": None if done is None else _forecast_words(done),
        "begun": begun,
        "certificate": None if decision.certificate is None else _certificate(decision.certificate),
        "box": None if decision.box is None else _box(decision.box, decision.posterior.space),
        "side": None if regions is None else regions.side,
        "best": None if best is None else _best(best),
        "bounds": None if decision.bounds is None else _bounds(decision.bounds),
    }


def decision_data(decision: DecisionResult, begun: int) -> Json:
    """What the page draws of a decision; the first `begun` points are those of the training."""
    posterior, regions = decision.posterior, decision.regions
    observations = posterior.training.observations
    best = None if decision.best is None else dict(decision.best.theta)
    return {
        "threshold": None if regions is None else regions.threshold,
        "map": _map(posterior, _level(decision), _places(decision)),
        "box": None if decision.box is None else {n: [r.low, r.high] for n, r in decision.box.ranges.items()},
        "best": best,
        "flags": [] if decision.certificate is None else _flags(decision.certificate),
        "runs": _runs(observations, begun),
        "rounds": _rounds(decision),
    }


def which_matter(
    decision: DecisionResult | None, learned: FullPosterior, *, seed: int
) -> tuple[FullPosterior, st.Sensitivity | None]:
    """Which parameters matter, and to which posterior: as the study found, or as computed now; None if none does."""
    if len(learned.space) < 2:
        return learned, None
    if decision is not None and decision.sensitivity is not None:
        return decision.posterior, decision.sensitivity
    try:
        return learned, st.sensitivity(learned, seed=seed, points=_MATTER_POINTS)
    except InputError:  # f is constant according to the posterior
        return learned, None


def _source(decision: DecisionResult) -> str:
    """Which posterior decides, and from how many runs."""
    posterior = decision.posterior
    stage = "after the search" if decision.refinement is None else "after refinement"
    runs = plural(int(posterior.training.observations.trials.sum()), "run")
    return f"The maps below show {posterior.kind} {stage}, from {runs}." if posterior.space.names else ""


def _subject_to(best: st.BestPoint | None) -> str:
    limits = [f"{name} {each.sense} {each.limit:g}" for name, each in best.constraints.items()] if best else []
    return f", subject to {' and '.join(limits)}" if limits else ""


def _level(decision: DecisionResult) -> float:
    return 0.95 if decision.regions is None else decision.regions.level


def _kind(space: Space) -> str:
    return ("point", "curve", "plane")[min(len(space), 2)] if len(space) <= 2 else "slices"


def _facts(decision: DecisionResult) -> Iterator[tuple[str, str, str]]:
    """The few numbers that stand out: label, value, and what goes with it."""
    if (regions := decision.regions) is not None:
        p = number_text(regions.threshold)
        for name, label in (("above", f"above {p}"), ("below", f"below {p}"), ("undecided", "undecided")):
            error = 200 * regions.errors[name]
            yield (
                label,
                f"{100 * getattr(regions, name):.1f} %",
                f"of the space, known to about {error:.1g} percentage points",
            )
    if (best := decision.best) is not None:
        at = ", ".join(f"{name} = {value:.4g}" for name, value in best.theta.items())
        yield "best probability", f"{best.value:.3g}", f"from {best.lower:.3g} to {best.upper:.3g}, at {at}"
        yield "runs", f"{best.runs:,}", "for the search and for what is claimed"
    if (done := decision.refinement) is not None:
        word = "reached" if done.reached else "not reached"
        yield "runs", f"{done.runs:,}", f"in {len(done.rounds)} rounds, with those of the training; the goal is {word}"
    if (certificate := decision.certificate) is not None:
        held = "as asked" if certificate.holds else "less than was asked for"
        yield "certified", f"{100 * certificate.volume:.1f} %", f"of the space, {held}"


def _forecast_words(done: st.Refinement) -> Json | None:
    """How many runs a design that fills the space is forecast to need, from its figure at the start."""
    ends = _forecast(done)
    if ends is None:
        return None
    low, high = (f"{_two_digits(runs):,}" for runs in ends[::-1])
    return {"low": low, "high": high, "aim": done.goal.words(done.goal.aim)}


def _forecast(done: st.Refinement | None) -> tuple[float, float] | None:
    """The runs at which the aim is met if the figure of the start falls with the slowest rate, and with the fastest."""
    if done is None or len(done.rounds) < 2:
        return None
    start = done.rounds[0]
    factor = start.figure / done.goal.aim
    slow, fast = (min(start.runs * factor ** (1.0 / rate), _FARTHEST) for rate in _RATES)
    return slow, fast


def _two_digits(runs: float) -> int:
    return int(float(f"{runs:.1e}"))


def _rounds(decision: DecisionResult) -> Json | None:
    """The figure after each round, and the forecast of a design that fills the space, which no optimum has."""
    done, best, goal = decision.refinement, decision.best, decision.goal
    rounds = done.rounds if done is not None else best.rounds if best is not None else ()
    if not rounds:
        return None
    forecast, ends, start = None, _forecast(done), rounds[0]
    if ends is not None:
        runs = np.geomspace(start.runs, max(ends), 24)
        low, high = (np.maximum(start.figure * (runs / start.runs) ** -rate, goal.aim) for rate in _RATES[::-1])
        forecast = {"runs": six_digits(runs), "low": six_digits(low), "high": six_digits(high)}
    return {
        "name": goal.name,
        "share": goal.name == "undecided share",
        "aim": goal.aim,
        "runs": [each.runs for each in rounds],
        "points": [each.points for each in rounds],
        "figures": [max(each.figure, _SMALLEST) for each in rounds],
        "forecast": forecast,
    }


def _runs(observations: Observations, begun: int) -> Json:
    """Where the runs went: each point with its runs, the most of them where there are too many to draw."""
    rows = np.flatnonzero(observations.trials > 0)
    if len(rows) > _MOST_DOTS:
        rows = rows[evenly(len(rows), _MOST_DOTS)]
    theta = {name: six_digits(observations.theta[rows, n]) for n, name in enumerate(observations.space.names)}
    first = (rows < begun).tolist()
    return {"theta": theta, "runs": observations.trials[rows].tolist(), "first": first, "all": len(observations)}


def _places(decision: DecisionResult) -> dict[str, dict[str, float]]:
    """Points through which slices go, besides the middle of the space."""
    places: dict[str, dict[str, float]] = {}
    if decision.best is not None:
        places["the best point"] = dict(decision.best.theta)
    if (box := decision.box) is not None:
        middle = {name: float(range_.from_unit(np.zeros(1))[0]) for name, range_ in box.ranges.items()}
        places["the middle of the largest box"] = middle
    return places


def _map(posterior: FullPosterior, level: float, places: Mapping[str, Mapping[str, float]]) -> Json:
    """The mean and the bands: along one parameter, over two, or over pairs through each place."""
    space, kind = posterior.space, _kind(posterior.space)
    if kind == "slices":
        return _slices(posterior, level, places)
    points = space.grid(CURVE if kind == "curve" else _MAP) if space.names else space.points({})
    axes = [axis_data(space, name, CURVE if kind == "curve" else _MAP) for name in space.names]
    predicted = posterior.predict(points, level=level)
    table = {name: short(getattr(predicted, name)) for name in COLUMNS}
    return {"kind": kind, "axes": axes, "through": [{"words": "", "values": {}, "tables": [table]}], "left_out": []}


def _slices(posterior: FullPosterior, level: float, places: Mapping[str, Mapping[str, float]]) -> Json:
    space = posterior.space
    names = list(posterior.importance())[:MOST_SLICES]
    unit, pairs = np.linspace(-1.0, 1.0, SLICE), list(combinations(names, 2))
    middle = np.zeros(len(space))
    units = {words: space.to_unit(np.array([[at[name] for name in space.names]]))[0] for words, at in places.items()}
    through, size = [], SLICE * SLICE
    for words, at in {**units, "the middle of the space": middle}.items():
        inputs = np.tile(at, (size * len(pairs), 1))
        for place, pair in enumerate(pairs):
            part = slice(place * size, (place + 1) * size)
            rows = plane_rows(space, pair, np.zeros(len(space), np.intp))
            for name in pair:
                column = space.names.index(name)
                inputs[part, column] = unit[rows[:, column]]
        predicted = posterior.predict(space.from_unit(inputs), level=level)
        parts = [slice(n * size, (n + 1) * size) for n in range(len(pairs))]
        tables = [{name: short(getattr(predicted, name)[part]) for name in COLUMNS} for part in parts]
        values = space.from_unit(at[None, :])[0]
        told = {name: float(f"{value:.6g}") for name, value in zip(space.names, values, strict=True)}
        through.append({"words": words, "values": told, "tables": tables})
    axes = [axis_data(space, name, SLICE) for name in names]
    left_out = [name for name in space.names if name not in names]
    return {"kind": "slices", "axes": axes, "through": through, "left_out": left_out}


def _certificate(certificate: st.Certificate) -> Json:
    """A certificate in words: its paragraph, and the points at which the claim was not shown."""
    flags = _flags(certificate)
    names = [name for name in (flags[0] if flags else {}) if name != "runs"]
    rows = [[*(f"{flag[name]:.6g}" for name in names), f"{int(flag['runs']):,}"] for flag in flags[:_MOST_FLAGS]]
    return {"words": str(certificate), "holds": certificate.holds, "names": names, "flags": rows, "all": len(flags)}


def _flags(certificate: st.Certificate) -> list[dict[str, float]]:
    from sateen.study.decided import flags_of

    return flags_of(certificate)


def _box(box: Space, space: Space) -> list[tuple[str, str, str, str]]:
    """The box as a table: each parameter, from, to, and how much of its range that is."""
    rows = []
    for name, range_ in box.ranges.items():
        low, high = space.ranges[name].to_unit(np.array([range_.low, range_.high]))
        rows.append((name, f"{range_.low:.5g}", f"{range_.high:.5g}", f"{50 * (high - low):.1f} %"))
    return rows


def _best(best: st.BestPoint) -> Json:
    """The best point as a table: where, the probability there, what else may be better, and the limits."""
    way = "less" if best.minimise else "more"
    regret = "nothing is claimed" if best.regret is None else f"at most {best.regret:.3g} {way}"
    rows = [(name, f"{value:.6g}") for name, value in best.theta.items()]
    rows.append(("probability there", f"{best.value:.4g}, from {best.lower:.4g} to {best.upper:.4g}"))
    rows.append(("elsewhere", regret))
    for name, each in best.constraints.items():
        shown = "shown" if each.holds else "NOT shown"
        rows.append((f"{name} {each.sense} {each.limit:g}", f"{shown}: {each.estimate:.4g}, bound {each.bound:.4g}"))
    return {"rows": rows, "claims": [_sentence(str(claim)) for claim in best.claims]}


def _bounds(found: st.BoundMap) -> str:
    """A map of bounds in words."""
    (low, high), (least, most) = found.supremum, found.infimum
    apart = (
        f"{len(found):,} cells, whose bounds are at most {found.widest:.3g} apart and {found.mean_width:.3g} on average"
    )
    ends = (
        f"the largest probability is between {low:.4g} and {high:.4g}, the smallest between {least:.4g} and {most:.4g}"
    )
    return _sentence(f"{apart} ({found.reason}); {ends}")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
