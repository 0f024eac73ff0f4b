"""Rewards: what a run earns on average, per unit of time in its states; asked by R in the PRISM language.

A run earns at the rate that its state has. What transitions pay is part of the rate, because on average a transition of
rate λ that pays r earns λr per unit of time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from sateen.core.errors import InputError
from sateen.core.text import number_text
from sateen.language.expression import Boolean, Expression, is_condition

Over: TypeAlias = Literal["C", "I", "F"]
_SHOWN: Final = 200  # characters of a rate


@dataclass(frozen=True, slots=True)
class Reward:
    """An expected reward: the average of `rate`, which depends on the state, as `over` says.

    `over` is "C", accumulated up to `time`, which may be infinite; "I", the rate itself at the instant `time`; "F",
    accumulated until the condition `goal` holds for the first time. A rate is never negative. If `goal` is not reached
    with probability 1, the expected reward is infinite.

    >>> from sateen.language.grammar import parse_expression
    >>> print(Reward(parse_expression("2 * X"), "C", 10))
    R[C<=10] of 2 * X
    """

    rate: Expression
    over: Over
    time: float = math.inf
    goal: Expression | None = None
    name: str = ""

    def __post_init__(self) -> None:
        if is_condition(self.rate):
            raise InputError(f"a reward is a number, and {self.rate} is true or false")
        if not self.time >= 0 or (self.over == "I" and self.time == math.inf):
            raise InputError(f"a reward is asked for at a time from 0 on, not at {self.time}")
        if (self.over == "F") != (self.goal is not None) or (self.over == "F" and self.time < math.inf):
            raise InputError("a reward until a condition holds has that condition, and no time; others have none")

    @property
    def names(self) -> tuple[str, ...]:
        """The names that its rate and its goal read, each once."""
        goal = self.reached.names
        return tuple(dict.fromkeys((*self.rate.names, *goal)))

    @property
    def reached(self) -> Expression:
        """The condition that ends it; `false` where only time does."""
        return Boolean(False) if self.goal is None else self.goal

    def __str__(self) -> str:
        window = f"C<={number_text(self.time)}" if self.time < math.inf else "C"
        window = {"C": window, "I": f"I={number_text(self.time)}", "F": f"F {self.goal}"}[self.over]
        rate = str(self.rate) if len(str(self.rate)) <= _SHOWN else f"{str(self.rate)[:_SHOWN]}..."
        name = f'{{"{self.name}"}}' if self.name else ""
        return f"R{name}[{window}] of {rate}"
