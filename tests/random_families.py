"""Random families of models, formulas and parameters, in which everything that a kernel computes turns up.

`family(g)` is the same whatever came before. Its model is text: one to three variables, small, bounded or huge; one to
four reactions with changes or assignments, guards, and rates of every form; sometimes events. Its formulas come in
groups, each of which is one kernel. Three moods: in a "tame" family most chains are finite and most runs go well; in a
"wild" one counts grow without limit, become fractions or leave their bounds; in an "extreme" one rates and parameters
are as small or as large as doubles get.
"""

from __future__ import annotations

import math
import random
import warnings
from dataclasses import dataclass
from typing import Final

from sateen.core.errors import FormulaError, ModelError, ModelWarning
from sateen.logic.formula import Formula
from sateen.logic.parser import stl
from sateen.model.model import Model

MOODS: Final = ("tame", "tame", "tame", "wild", "wild", "extreme")
GRID: Final = (0.0, 0.1, 0.25, 0.3, 0.5, 1.0, 1.5, 2.0)
HUGE: Final = (1_000_000, 2**31, 2**52 - 1, 2**52 + 1, 2**53 - 2)
RATES: Final = {
    "tame": (0.0, 0.1, 0.3, 0.7, 1.0, 1.1, 2.5),
    "wild": (0.1, 0.5, 1.0, 3.0, 7.0),
    "extreme": (0.0, 5e-324, 1e-310, 1e-300, 1e-9, 0.3, 1.0, 1e15, 1e200, 1e300, 1.7e308),
}
NUMBERS: Final = {
    "tame": (0.1, 0.3, 0.5, 1.0, 2.0, 3.0, 49.0, 1 / 3),
    "wild": (-1.0, 0.0, 0.1, 0.7, 2.0, 3.0, 49.0),
    "extreme": (-1e308, 0.0, 5e-324, 1e-200, 0.1, 1e16, 1e200, 1e308),
}


@dataclass(frozen=True, slots=True)
class Group:
    """Formulas of one kernel, and the caps under which they are run."""

    formulas: tuple[Formula, ...]
    max_events: int
    max_time: float
    max_population: int | None


@dataclass(frozen=True, slots=True)
class Family:
    """A model, groups of formulas, and points."""

    number: int
    mood: str
    model: Model
    groups: tuple[Group, ...]
    thetas: tuple[dict[str, float], ...]


def family(g: int, groups: int = 5, points: int = 90) -> Family:
    """The family of that number."""
    rng = random.Random(g)
    mood = rng.choice(MOODS)
    while True:
        writer = _Writer(rng, mood)
        try:
            with warnings.catch_warnings(action="ignore", category=ModelWarning):
                model = Model.parse(writer.model())
            made = tuple(writer.group() for _ in range(groups))
        except (ModelError, FormulaError):  # such as a constant part log(0): what cannot be written is drawn again
            continue
        return Family(g, mood, model, made, tuple(writer.theta() for _ in range(points)))


class _Writer:
    """Draws the text of one family."""

    def __init__(self, rng: random.Random, mood: str) -> None:
        self.rng, self.mood = rng, mood
        self.species = list("ABC"[: rng.choice((1, 2, 2, 2, 3))])
        self.real = rng.random() < 0.15
        self.eventful = self.real or rng.random() < 0.2
        self.rates: list[str] = []
        self.delays = rng.random() < 0.5

    def model(self) -> str:
        """The text of the model."""
        rng = self.rng
        declared = [self.declared(name) for name in self.species]
        reactions = [self.reaction(place) for place in range(rng.randint(1, 4))]
        events = [self.event(place) for place in range(rng.randint(1, 2) if self.eventful else 0)]
        lines = [f"species {', '.join(declared)}"]
        lines += ["real r = 1"] if self.real else []
        lines.append(f"parameter {', '.join((*self.rates, 'c', 'q', 'T', 'n'))}")
        return "\n".join([*lines, *reactions, *events])

    def theta(self) -> dict[str, float]:
        """A value of every parameter."""
        rng = self.rng
        theta = {name: rng.choice(RATES[self.mood]) for name in self.rates}
        theta["c"] = rng.choice(NUMBERS[self.mood])
        theta["q"] = rng.choice(NUMBERS[self.mood])
        theta["T"] = rng.choice((0.0, 0.3, 0.5, 1.0, 1.5, 0.1 + 0.2, rng.uniform(0, 3)))
        theta["n"] = float(rng.randint(0, 3))
        return theta

    def declared(self, name: str) -> str:
        rng = self.rng
        chance = rng.random()
        if self.mood != "tame" and chance < 0.3:
            start = rng.choice(HUGE)
            return f"{name} = {start} in [0, {2**53}]" if start > 2**52 or rng.random() < 0.3 else f"{name} = {start}"
        if chance < 0.5:
            return f"{name} = {rng.randint(0, 3)}"
        if chance < 0.7:
            return f"{name} = n"
        if chance < 0.85:
            return f"{name} = {rng.randint(0, 3)} in [0, {rng.randint(3, 6)}]"
        return f"{name} = {rng.randint(-2, 2)} in {'(-inf, inf)' if rng.random() < 0.3 else '[-4, 5]'}"

    def reaction(self, place: int) -> str:
        rng, x, y = self.rng, self.any(), self.any()
        self.rates.append(f"k{place}")
        k, most = f"k{place}", rng.randint(2, 5)
        if rng.random() < 0.4:
            return self.assignment(k, x, y, most)
        tame = self.mood != "wild" or rng.random() < 0.3
        guard = f" when {self.condition()}" if rng.random() < 0.25 else ""
        limit = f" when {x} < {most}" if tame else guard
        both = f" and {self.condition()}" if limit and tame and rng.random() < 0.2 else ""
        speed = f"{k} * {self.speed()}" if rng.random() < 0.5 else k
        kinds = (
            f"0 -> {x} @ {speed}{limit}{both}",
            f"0 -> {rng.randint(2, 3)} {x} @ {speed}{limit}{both}",
            f"{x} -> 0 @ mass_action({k}){guard}",
            f"{x} -> 0 @ {speed} * {x}{guard}",
            f"2 {x} -> 0 @ mass_action({k})",
            f"{x} -> {x} + {y} @ {k} * {x} when {y} < {most}",
            f"{x} -> {y} @ {speed} when {x} > 0 and {y} < {most}",
            f"{x} + {y} -> 2 {y} @ mass_action({k}){guard}" if x != y else f"{x} -> 0 @ {k} * {x}",
        )
        return f"{k}_: {rng.choice(kinds)}"

    def assignment(self, k: str, x: str, y: str, most: int) -> str:
        rng = self.rng
        values = [
            f"floor({x} / 2)",
            f"min({x} + 2, {most})",
            f"max({x} - 1, 0)",
            f"abs({x} - {y})",
            f"abs({x} - {most})",
            "0",
            f"{x} + {y} - 2 * floor(({x} + {y}) / 2)",
            f"min({x}^2, {most})",
            f"if({x} > {y}, {y}, min({x} + 1, {most}))",
            f"ceil(sqrt({x} + 1))",
            f"floor(q * {x} / q)",
        ]
        if self.mood != "tame":
            values += [
                *(f"2 * {x} + 1", f"{x} * {x}", f"{x}^2 + 1", f"{x} / 2", f"{x} - {y}", f"-{x}", f"{x} / {y}"),
                *(f"{x}^3", f"2^{x}", f"floor({x} * q)", f"{x} + c", f"max(1, {x} / {y})", f"exp({x})", f"q * {x}"),
            ]
            values.append(self.number(2))
        given = rng.choice(values)
        other = f", {y} := {rng.choice((x, '0', f'min({y} + 1, {most})'))}" if x != y and rng.random() < 0.4 else ""
        rate = rng.choice((k, f"{k} * {x}", f"{k} * (1 + abs({y}))"))
        guard = f" when {self.condition()}" if rng.random() < 0.4 else ""
        return f"{k}_: {x} := {given}{other} @ {rate}{guard}"

    def speed(self) -> str:
        x, y = self.any(), self.any()
        forms = [
            *(f"floor({x} / 2 + 1)", f"min({x}, {y} + 1)", f"max({x}, 1)", f"abs({x} - {y})", f"(1 + {x}^2)"),
            *(f"sqrt(abs({x}))", f"exp(-abs({x}))", f"log(2 + abs({x}))", f"if({x} > 1, 2, 0.5)", f"(1 / (1 + {x}^2))"),
        ]
        if self.mood != "tame":
            forms += [f"{x}", f"{x} * {x} * {y}", f"({x} - {y})", f"(1 / {x})", f"max(1, {x} / {y})", f"exp({x})"]
            forms += [f"{x}^q", self.number(2), " * ".join([x] * 22)]
        return self.rng.choice(forms) if not self.real or self.rng.random() < 0.5 else "r"

    def event(self, place: int) -> str:
        rng, x = self.rng, self.any()
        time = rng.choice(("time >= T", "time > T", "time >= 0.5", "T < time", f"time >= 0.4 * {x} + 0.2"))
        state = rng.choice((f"{x} >= 2", f"{x} == 0", self.condition()))
        trigger = rng.choice((time, time, state, f"{time} and {state}", f"{time} or {state}", f"not {x} < 2"))
        values = [(x, f"min({x} + 1, 2)"), (x, "1"), (x, f"floor({x} / 2)"), (x, f"abs({x} - 1)")]
        if self.mood != "tame":
            values += [(x, f"2 * {x} + 1"), (x, f"{x} / 2"), (x, f"{x} * {x}"), (x, f"{x} - 1"), (x, self.number(2))]
        if self.real:
            values += [("r", f"{rng.choice(GRID)}"), ("r", "r / 2"), ("r", f"abs(r - q * {x} / 3)"), ("r", "r * r + T")]
        chosen = dict(rng.sample(values, rng.randint(1, 2)))
        sets = ", ".join(f"{name} := {value}" for name, value in chosen.items())
        return f"event e{place}: {sets} when {trigger}{' initially false' if rng.random() < 0.4 else ''}"

    def group(self) -> Group:
        """Formulas for one kernel: all flat, or flat ones beside nested ones."""
        rng = self.rng
        nested = rng.random() < 0.35
        texts = [
            self.nested() if nested and rng.random() < 0.6 else self.flat() for _ in range(rng.choice((1, 1, 1, 2)))
        ]
        ends = [rng.choice((0.5, 1.0, 2.0, 0.3)) if rng.random() < 0.12 else None for _ in texts]
        return Group(
            tuple(stl(text, end=end) for text, end in zip(texts, ends, strict=True)),
            5000 if self.eventful else rng.choice((30, 120, 400)),
            rng.choice((0.7, 3.0, 8.0)) if self.eventful or rng.random() < 0.15 else math.inf,
            rng.choice((3, 1000)) if rng.random() < 0.1 else None,
        )

    def flat(self) -> str:
        rng = self.rng
        parts = [self.operator(self.choice, self.choice) for _ in range(rng.choice((1, 1, 2)))]
        parts += [f"({self.choice()})"] if rng.random() < 0.1 else []
        joined = f" {rng.choice(('&', '|', '->', '<->'))} ".join(f"({part})" for part in parts[:2])
        return f"!({joined})" if rng.random() < 0.15 else joined

    def nested(self) -> str:
        rng = self.rng

        def below() -> str:
            if rng.random() < 0.5:
                return f"({self.operator(self.past, self.past)})"
            return self.past()

        text = self.operator(below, below)
        return f"{text} & {self.operator(self.choice, below)}" if rng.random() < 0.2 else text

    def operator(self, left, right) -> str:  # type: ignore[no-untyped-def]
        rng = self.rng
        window = self.window()
        if rng.random() < 0.35:
            return f"({left()}) U{window} ({right()})"
        return f"{rng.choice('FG')}{window} ({right()})"

    def window(self) -> str:
        rng = self.rng
        low = rng.choice((0.0, 0.0, *GRID))
        if rng.random() < 0.12:
            return rng.choice(("", f"[{low}, inf)"))
        high = round(low + rng.choice(GRID), 9)
        return f"[{low}, {high}]"

    def past(self) -> str:
        """A condition that may look back."""
        if not self.delays or self.rng.random() < 0.5:
            return self.choice()
        x, lag = self.any(), self.rng.choice(GRID[1:])
        forms = (
            *(f"{x} - {x}(t-{lag}) > 0", f"{x}(t-{lag}) == {self.any()}", f"q * {x}(t-{lag}) - q * {x} == 0"),
            *(f"abs({x} - {x}(t-{lag})) >= 1", f"max(1, {x} / {x}(t-{lag})) > 1", f"{x}(t-{lag})^2 <= c + {x}"),
        )
        return self.rng.choice(forms)

    def choice(self) -> str:
        """An atom, or two of them."""
        rng = self.rng
        if rng.random() < 0.2:
            return f"({self.condition()}) {rng.choice('&|')} !({self.condition()})"
        return self.condition()

    def condition(self) -> str:
        """A comparison of counts, parameters and functions of them."""
        rng, x, y, whole = self.rng, self.any(), self.any(), self.rng.randint(0, 3)
        if rng.random() < 0.2:
            return f"{self.number(2)} {self.compare()} {self.number(1)}"
        forms = [
            *(f"{x} {self.compare()} {whole}",) * 4,
            *(f"{x} {self.compare()} {y}", f"{x} + {y} {self.compare()} {whole}", f"{x} {self.compare()} c"),
            *(f"{x} - 2 * floor({x} / 2) == 1", f"min({x}, {y}) < 1", f"abs({x} - {y}) >= 1", f"{x}^2 + {y} > 3"),
            *(f"q * {x} - q * {y} == 0", f"{x} / q * q == {x}", f"q * {x} / c {self.compare()} {y}"),
            *(f"if({y} > 0, {x} / {y}, 0) > 1", f"sqrt(abs({x})) == floor(sqrt(abs({x})))", f"c * {x} + q > c"),
            *(f"{x}^3 - {x} * {x} * {x} == 0", f"2^{x} > 4", f"exp({x}) < 20", f"log({x} + 1) > 1"),
        ]
        if self.mood != "tame":
            forms += [f"max(1, {x} / {y}) > 1", f"min({x} / {y}, 2) == 2", f"q * {x} - q * {x} >= 0", f"{x}^q < 9"]
            forms += [f"log({x}) / log(2) == floor(log({x}) / log(2))", f"{x} / {y} > 1", f"-{x} * q <= {x}"]
        return rng.choice(forms)

    def number(self, depth: int) -> str:
        """Any expression of so many levels."""
        rng = self.rng
        if depth == 0 or rng.random() < 0.15:
            return rng.choice((self.any(), self.any(), self.any(), "c", "q", "0.1", "2", "3", "0.5"))
        a, b = self.number(depth - 1), self.number(depth - 1)
        forms = [f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"min({a}, {b})", f"max({a}, {b})", f"abs({a})"]
        forms += [f"floor({a})", f"ceil({a} * 0.5)", f"(-{a})", f"if({a} < {b}, {b}, {a})", f"({a})^2", f"({a}) / 3"]
        if self.mood != "tame":
            forms += [f"({a}) / ({b})", f"({a})^({b})", f"sqrt({a})", f"exp({a})", f"log({a})", f"({a})^5"]
        return rng.choice(forms)

    def compare(self) -> str:
        return self.rng.choice(("<", "<=", ">", ">=", "==", "!="))

    def any(self) -> str:
        """One of the variables."""
        return self.rng.choice(self.species)
