"""Random formulas that lanes decide as they run, as text, and the models whose runs they are compared on.

In some a condition must last or be met again, in others a count is delayed. Every model has the species `x`, `y` and
`fuel's rest` and the parameters `k` and `half`, so that each formula can be asked of each.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final, NamedTuple

from lane_checks import FUEL, disagreements, lane_verdicts
from sateen.core.path import Verdict
from sateen.engine.lanes import Lanes
from sateen.engine.run import Runner
from sateen.logic.formula import Formula
from sateen.logic.parser import stl
from sateen.model.model import Model

# Few runs end; x comes in bursts, and y is bounded by a guard.
BURSTS: Final = Model.parse("""
    species x = 1, y = 0, `fuel's rest` = 3 in [0, 12]
    parameter k = 1, half = 0.5, speed = 1
    burst: 0 -> 3 x               @ speed * k / 2
    fade:  x -> 0                 @ speed * half * x
    copy:  x -> x + y             @ speed * x when y < 3
    pair:  2 y -> 0               @ mass_action(speed)
    feed:  0 -> `fuel's rest`     @ speed when `fuel's rest` < 12
    burn:  `fuel's rest` := floor(`fuel's rest` / 2) @ speed * half
""")
# x and y change places until the first of three leaves; then all stands still.
SWAPS: Final = Model.parse("""
    species x = 2, y = 1, `fuel's rest` = 2
    parameter k = 1, half = 0.5, speed = 1
    there: x -> y               @ speed * x
    back:  y -> x               @ speed * k * y
    spend: `fuel's rest` + x -> y @ speed * half * x * if(`fuel's rest` > 0, 0.3, 0)
    stop:  x + y -> 2 `fuel's rest` @ 0.2 * half * speed * x * y
""")

GRID: Final = ("0", "0", "0.1", "0.3", "0.5", "1", "1.2", "2")
CONDITIONS: Final = (
    *("x > 0", "x > 1", "y > 0", "y < 2", "x == y", "x + y > 2", "!(x == 1)", "x < 3", "x >= 1 & y >= 1"),
    *("y == 1 | x > 2", "x^2 - y > k", "`fuel's rest` > 1"),
)


def window(rng: random.Random, unbounded: float = 0.15, instant: float = 0.1) -> str:
    """A window of an operator; some are points, some have no end."""
    low = rng.choice(GRID)
    if rng.random() < unbounded:
        return f"[{low}, inf)"
    high = float(low) if rng.random() < instant else round(float(low) + float(rng.choice(GRID[2:])), 9)
    return f"[{low}, {high}]"


def lasting(rng: random.Random) -> str:
    """F, G or U over what lasts, of one of the shapes that need no log."""
    p, q, r = (f"({rng.choice(CONDITIONS)})" for _ in range(3))
    outer, inner = window(rng), window(rng)
    at_once = f"[0, {rng.choice(GRID[2:])}]" if rng.random() < 0.8 else ""
    shapes = (
        *(f"F{outer} G{inner} {p}", f"G{outer} F{inner} {p}", f"{p} U{outer} (G{inner} {q})"),
        *(f"F{outer} ({r} & G{at_once} {p})", f"G{outer} ({r} -> F{at_once} {p})"),
        *(f"{q} U{outer} ({r} & G{at_once} {p})", f"F{outer} (G{inner} {p} & G{inner} {q})"),
        *(f"F{outer} ({r} | G{inner} {p})", f"G{outer} ({r} & F{inner} {q})", f"{q} U{outer} ({r} | G{inner} {p})"),
        *(f"F{outer} F{inner} {p}", f"G{outer} G{inner} {p}", f"F{outer} F{inner} G{window(rng)} {p}"),
        *(f"G{outer} F{inner} F{window(rng)} {p}", f"F{outer} ({r} & !F{at_once} !({p} & {q}))"),
    )
    return rng.choice(shapes)


def formula(rng: random.Random) -> str:
    """One of these, or two joined, or one beside a plain operator."""
    first = lasting(rng)
    if rng.random() < 0.7:
        return first
    second = lasting(rng) if rng.random() < 0.5 else f"F{window(rng)} ({rng.choice(CONDITIONS)})"
    joined = f"({first}) {rng.choice(('&', '|', '->', '<->'))} ({second})"
    return f"!({joined})" if rng.random() < 0.2 else joined


def past(rng: random.Random) -> str:
    """A condition that looks back."""
    x, y = rng.sample(("x", "y", "`fuel's rest`"), 2)
    lag, other = rng.choice(GRID[2:]), rng.choice(GRID[2:])
    compare = rng.choice(("<", "<=", ">", ">=", "==", "!="))
    whole = rng.randint(0, 3)
    forms = (
        *(
            f"{x} - {x}(t-{lag}) {compare} {whole - 1}",
            f"{x}(t-{lag}) {compare} {y}",
            f"{x}(t-{lag}) {compare} {whole}",
        ),
        *(f"{x}(t-{lag}) + {y}(t-{lag}) {compare} {whole}", f"{x}(t-{lag}) - {x}(t-{other}) {compare} 0"),
        *(f"abs({x} - {x}(t-{lag})) {compare} 1", f"2 * {x}(t-{lag}) - k * {y} {compare} {whole}"),
        *(f"-half * {x}(t-{lag}) {compare} -{y}", f"{x}(t-{lag}) * {y}(t-{other}) {compare} {whole}"),
        *(f"max({x}, {x}(t-{lag})) {compare} 2", f"{x}(t-{lag})^2 - {y} {compare} {whole}"),
    )
    return rng.choice(forms)


def delayed(rng: random.Random) -> str:
    """F, G or U over conditions of which some look back."""

    def condition() -> str:
        one = past(rng) if rng.random() < 0.75 else rng.choice(CONDITIONS)
        if rng.random() < 0.75:
            return f"({one})"
        return f"(({one}) {rng.choice('&|')} !({past(rng)}))"

    chance = rng.random()
    if chance < 0.4:
        return f"F{window(rng)} {condition()}"
    if chance < 0.6:
        return f"G{window(rng)} {condition()}"
    if chance < 0.9:
        return f"{condition()} U{window(rng)} {condition()}"
    return condition()


def looking_back(rng: random.Random) -> str:
    """One of these, or two joined, or one beside what lasts."""
    first = delayed(rng)
    if rng.random() < 0.6:
        return first
    second = delayed(rng) if rng.random() < 0.5 else lasting(rng)
    joined = f"({first}) {rng.choice(('&', '|', '->', '<->'))} ({second})"
    return f"!({joined})" if rng.random() < 0.2 else joined


class Case(NamedTuple):
    """Formulas of one kernel, and how they are run: nothing but the number decides what it is."""

    number: int
    runner: Runner
    theta: dict[str, float]
    caps: dict[str, float]
    until: float

    @staticmethod
    def of(number: int, kind: Callable[[random.Random], str], formulas: int = 8) -> Case:
        """Random formulas of a kind on a random model, often with a cap that leaves some undecided."""
        rng = random.Random(number)
        model = rng.choice((FUEL, FUEL, BURSTS, SWAPS))
        ends = (None, None, None, None, 0.5, 1.5, 3.0)
        asked = tuple(stl(kind(rng), end=rng.choice(ends)) for _ in range(formulas))
        fuel = rng.choice((2.0, 4.0, 12.0))
        theta = {"k": 1.0, "half": 0.5, "speed": rng.choice((0.5, 1.0, 3.0)), **({"f0": fuel} if model is FUEL else {})}
        caps = rng.choice(
            ({}, {}, {"max_events": rng.choice((1, 3, 8, 40))}, {"max_time": rng.choice((0.4, 1.3, 3.0))})
        )
        if model is not FUEL and not caps:  # without an end of the runs, some would never be decided
            caps = {"max_events": 80}
        return Case(number, Runner(model, asked), theta, caps, 2000.0 if model is FUEL else 400.0)

    @property
    def logged(self) -> list[Formula]:
        """The formulas that need a log all the same."""
        lanes = Lanes(self.runner.model, self.runner.formulas, False, False, False)
        return [self.runner.formulas[place] for place in lanes.nested]

    def apart(self, runs: int) -> list[str]:
        """The runs on which lanes and monitor differ."""
        return disagreements(self.runner, self.theta, runs, seed=self.number, until=self.until, **self.caps)

    def verdicts(self, runs: int) -> list[Verdict]:
        """Every verdict of the lanes, all formulas one after the other."""
        found = lane_verdicts(self.runner, self.theta, runs, seed=self.number, **self.caps)
        return [verdict for each in found for verdict in each]
