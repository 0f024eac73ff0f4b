"""Models to begin with, which are as short as they can be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final


def _range(name: str, low: float, high: float, log: bool = True) -> dict[str, object]:
    return {"name": name, "low": low, "high": high, "log": log}


EXAMPLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "sir": {
        "title": "An epidemic: does it die out between day 100 and 120?",
        "text": "species S = 95, I = 5, R = 0\nconstant N = 100\n\n"
        "infect:  S + I -> 2 I @ beta * S * I / N\nrecover: I -> R       @ gamma * I\n",
        "formula": "(I > 0) U[100, 120] (I == 0)",
        "ranges": [_range("beta", 0.005, 0.3, False), _range("gamma", 0.005, 0.2, False)],
    },
    "decay": {
        "title": "Decay, with one parameter: is all gone by time 2?",
        "text": "species A = 10\n\ndecay: A -> 0 @ mass_action(k)\n",
        "formula": "F[0, 2] A == 0",
        "ranges": [_range("k", 0.1, 4.0)],
    },
    "birth-death": {
        "title": "Birth and death: does the population stay within bounds?",
        "text": "species X = 20\n\nbirth: 0 -> X @ make\ndeath: X -> 0 @ decay * X\n",
        "formula": "G[0, 10] (X <= 100)",
        "ranges": [_range("make", 30.0, 70.0), _range("decay", 0.3, 0.8)],
    },
    "gene": {
        "title": "A gene with feedback, of four parameters: a burst by time 50?",
        "text": "species M = 0, P = 0\nparameter make = 2, fade = 0.5, build = 4, lose = 0.2\n\n"
        "transcribe: 0 -> M     @ make / (1 + P / 20)\nfade:       M -> 0     @ fade * M\n"
        "translate:  M -> M + P @ build * M\nlose:       P -> 0     @ lose * P\n",
        "formula": "F[0, 50] P > 60",
        "ranges": [
            _range("make", 0.5, 8.0),
            _range("build", 1.0, 8.0),
            _range("fade", 0.2, 1.0),
            _range("lose", 0.1, 0.4),
        ],
    },
}


def example(name: str) -> dict[str, Any]:
    """The document of an example."""
    told = EXAMPLES[name]
    rest: dict[str, Any] = {"name": name, "source": None, "negate": False, "fixed": {}, "learner": None, "seed": 1}
    return {"language": "sateen", **rest, **{key: told[key] for key in ("text", "formula", "ranges")}}
