"""Chains whose rates have parameters, in all the ways that bounds over boxes tell apart; for tests of bounds."""

from __future__ import annotations

import warnings
from pathlib import Path

from hypothesis import strategies as some

import sateen as st

ROOT = Path(__file__).resolve().parents[1]

REACTIONS = (
    "0 -> A @ k when A < 3",
    "A -> 0 @ j * A",
    "A -> B @ (k + 0.3 * j * A) * A * if(B < 2, 1, 0)",
    "B -> 0 @ k * j * B",
    "0 -> B @ sqrt(k) when B < 2",
    "A + B -> 2 A @ k * A * B / (j + B) when A < 3",
    "B -> A + B @ max(k, j) * B when A < 3",
    "B -> 0 @ half * B^2",
    "A -> 0 @ j^2 / (1 + k) * A * (A + 1) / 2",
    "0 -> B @ (2 - k) * exp(-j) when B < 2",
)


@some.composite
def parametric_models(draw) -> st.Model:
    reactions = draw(some.lists(some.sampled_from(REACTIONS), unique=True, min_size=1, max_size=5))
    start = f"species A = {draw(some.integers(0, 3))}, B = {draw(some.integers(0, 2))}"
    with warnings.catch_warnings(action="ignore", category=st.ModelWarning):  # of a parameter that nothing reads
        return st.Model.parse("\n".join([start, "parameter k = 1, j = 1", "constant half = k / 2", *reactions]))


@some.composite
def boxes(draw) -> tuple[tuple[float, float], tuple[float, float]]:
    """The ends of a box in [0.1, 1.9]²."""
    ends = [sorted(draw(some.lists(some.floats(0.1, 1.9), min_size=2, max_size=2))) for _ in range(2)]
    return tuple(end[0] for end in ends), tuple(end[1] for end in ends)


SPACE = st.Space(k=(0.1, 1.9), j=(0.1, 1.9))

SIR_SPACE = st.Space(beta=(0.005, 0.3), gamma=st.Range(0.005, 0.2, scale="log"))
SIR_FORMULA = st.stl("(I > 0) U[100, 120] (I == 0)")


def sir(people: int = 100, ill: int = 5) -> st.Model:
    return st.Model.parse(f"""
        species S = {people - ill}, I = {ill}, R = 0
        infect:  S + I -> 2 I @ beta * S * I / {people}
        recover: I -> R       @ gamma * I
    """)


def queue(folder: Path) -> st.Model:
    """The help desk of the examples with two rates open, arrival and answer; a file is written to the folder."""
    text = (ROOT / "examples" / "queue.prism").read_text(encoding="utf-8")
    file = folder / "desk.prism"
    file.write_text(text.replace("const double answer = 1.5;", "const double answer;"), encoding="utf-8")
    return st.Model.load(file, constants={"capacity": 10})
