"""The monitor against RTAMT (dense time, offline): F, G and the connectives agree, until differs and should.

RTAMT reads a list of (time, value) as we read a path that is absorbed: each value holds until the next time, the last
one for ever. It answers with a robustness, whose sign is the verdict where it is not 0; hence atoms compare whole
numbers with halves. Times and bounds are quarters, which its floats add exactly. `<->` is left out: its robustness
there is never positive.
"""

from __future__ import annotations

import random
import warnings
from types import ModuleType

import pytest

from brute_force import verdict
from sateen.core.path import Path, Verdict
from sateen.core.text import number_text
from sateen.language.expression import Name, Number, Operation
from sateen.logic.formula import (
    ALWAYS,
    And,
    Atom,
    Eventually,
    Formula,
    Globally,
    Implies,
    Interval,
    Node,
    Not,
    Or,
    Until,
)
from sateen.logic.monitor import monitor
from sateen.logic.parser import stl
from strategies import written_out


@pytest.fixture(scope="module")
def rtamt() -> ModuleType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its parser's runtime imports typing.io, which is deprecated
        module: ModuleType = pytest.importorskip("rtamt", reason="RTAMT is not installed", exc_type=ImportError)
    return module


def robustness(rtamt: ModuleType, node: Node, path: Path) -> float:
    """What RTAMT says of a subformula at time 0."""
    specification = rtamt.StlDenseTimeSpecification()
    specification.declare_var("x", "float")
    specification.spec = rtamt_text(node)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        specification.parse()
    samples = [[time, value] for time, (value,) in zip(path.times.tolist(), path.states.tolist(), strict=True)]
    [(_, at_zero), *_] = ((time, value) for time, value in specification.evaluate(["x", samples]) if time == 0)
    assert at_zero != 0, "the sign of a robustness of 0 says nothing"
    return float(at_zero)


def rtamt_text(node: Node) -> str:
    """A subformula as RTAMT writes it."""
    match node:
        case Atom(comparison):
            return f"({comparison})"
        case Not(operand):
            return f"(not {rtamt_text(operand)})"
        case And(operands):
            return f"({' and '.join(map(rtamt_text, operands))})"
        case Or(operands):
            return f"({' or '.join(map(rtamt_text, operands))})"
        case Implies(left, right):
            return f"({rtamt_text(left)} -> {rtamt_text(right)})"
        case Eventually(window, operand):
            return f"(eventually{rtamt_window(window)} {rtamt_text(operand)})"
        case Globally(window, operand):
            return f"(always{rtamt_window(window)} {rtamt_text(operand)})"
        case Until(window, left, right):
            return f"({rtamt_text(left)} until{rtamt_window(window)} {rtamt_text(right)})"
    raise NotImplementedError(f"no text of RTAMT for {node!r}")


def rtamt_window(window: Interval) -> str:
    return "" if window == ALWAYS else f"[{number_text(window.low)}:{number_text(window.high)}]"


def random_path(rng: random.Random) -> Path:
    times = [0.0, *sorted(each / 4 for each in rng.sample(range(1, 30), rng.randint(0, 6)))]
    return Path(times, [rng.randrange(3) for _ in times], "x", absorbed=True)


def random_node(rng: random.Random, depth: int) -> Node:
    if depth == 0:
        return Atom(Operation(rng.choice((">=", "<=", ">", "<")), (Name("x"), Number(rng.choice((0.5, 1.5))))))
    below = [random_node(rng, depth - 1), random_node(rng, rng.randrange(depth))]
    rng.shuffle(below)
    low = rng.randint(0, 6) / 4
    window = ALWAYS if rng.random() < 0.1 else Interval(low, low + rng.randint(0, 10) / 4)
    kinds = ("F", "G", "and", "or", "not", "implies")
    match rng.choices(kinds, (30, 30, 12, 12, 8, 8))[0]:
        case "F":
            return Eventually(window, below[0])
        case "G":
            return Globally(window, below[0])
        case "and":
            return And(tuple(below))
        case "or":
            return Or(tuple(below))
        case "not":
            return Not(below[0])
    return Implies(*below)


@pytest.mark.parametrize("seed", range(4))
def test_rtamt_agrees_on_eventually_and_globally(rtamt: ModuleType, seed: int) -> None:
    rng = random.Random(seed)
    true = 0
    for _ in range(500):
        path, node = random_path(rng), random_node(rng, depth=rng.randint(1, 4))
        ours = monitor(Formula(node), path)
        assert ours is Verdict.of(robustness(rtamt, node, path) > 0), written_out(Formula(node), path)
        true += ours is Verdict.TRUE
    assert 100 < true < 400, "a comparison in which one answer is rare shows little"


def test_rtamt_wants_the_left_side_of_until_at_the_witness_and_we_do_not(rtamt: ModuleType) -> None:
    """The paper's own property of extinction could never be true in its reading; Maler and Nickovic read it so."""
    extinct_at_110 = Path([0, 110], [5, 0], "x", absorbed=True)
    formula = stl("(x > 0.5) U[100, 120] (x < 0.5)")
    assert robustness(rtamt, formula.root, extinct_at_110) < 0
    assert monitor(formula, extinct_at_110) is Verdict.TRUE
    assert verdict(formula, extinct_at_110) is True


def test_rtamt_agrees_on_until_where_the_left_side_is_wanted_at_the_witness_too(rtamt: ModuleType) -> None:
    """Whoever wants RTAMT's reading of φ U ψ writes φ U (φ & ψ)."""
    rng = random.Random(10)
    for _ in range(500):
        path = random_path(rng)
        left, right = random_node(rng, rng.randint(0, 1)), random_node(rng, rng.randint(0, 1))
        low = rng.randint(0, 6) / 4
        window = Interval(low, low + rng.randint(0, 10) / 4)
        theirs = robustness(rtamt, Until(window, left, right), path) > 0
        ours = Formula(Until(window, left, And((left, right))))
        assert monitor(ours, path) is Verdict.of(theirs), written_out(ours, path)


def test_rtamt_reads_strict_and_weak_comparisons_alike(rtamt: ModuleType) -> None:
    """Why the atoms here compare with halves: where the robustness is 0, its sign is no verdict."""
    specification = rtamt.StlDenseTimeSpecification()
    specification.declare_var("x", "float")
    answers = []
    for text in ("x > 1", "x >= 1"):
        specification.spec = text
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            specification.parse()
        answers.append(specification.evaluate(["x", [[0, 1.0]]])[0][1])
    assert answers == [0, 0]
    path = Path([0], [1], "x", absorbed=True)
    assert (monitor(stl("x > 1"), path), monitor(stl("x >= 1"), path)) == (Verdict.FALSE, Verdict.TRUE)
