"""Random expressions, conditions, formulas, models and paths.

Two kinds. `expressions()`, `conditions()`, `nodes()`, `formulas()` and `models()` are hypothesis strategies of
everything that can be written. `random_pair(rng)` draws a formula and a short path for it, fast and made to meet: on a
grid of decimals where shifted instants coincide, with tied jumps, single-instant windows, delays, and ends that fall
short.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from functools import cache

from hypothesis import strategies as st

from sateen.core.path import Path
from sateen.language.expression import (
    COMPARISONS,
    FUNCTIONS,
    Boolean,
    Delayed,
    Expression,
    Name,
    Number,
    Operation,
    in_order,
    number,
)
from sateen.logic.formula import (
    ALWAYS,
    FORMULA_RESERVED,
    And,
    Atom,
    Eventually,
    Formula,
    Globally,
    Iff,
    Implies,
    Interval,
    Node,
    Not,
    Or,
    Truth,
    Until,
    subformulas,
)
from sateen.model.checks import negative_by_sign
from sateen.model.model import CLOCK, Constant, Event, Model, Parameter, Transition, Variable
from sateen.model.reactions_text import mass_action

# Everything that can be written.

PLAIN_NAMES = ("x", "S", "I0", "beta_1", "_k", "Fx", "inflow", "nottingham", "β", "été")
ODD_NAMES = ("a b", "2x", "x-1", "x(t-1)", "p53/Mdm2", "G[0,1]", "a & b", "#1", "'", "x>0")


@cache
def names() -> st.SearchStrategy[str]:
    """Names of species and parameters: plain ones, reserved words, and ones that only backquotes can hold."""
    characters = st.characters(categories=("L", "N", "P", "S"), include_characters=" ", exclude_characters="`")
    free = st.text(characters, min_size=1, max_size=12).filter(lambda name: name.strip() and name[:2] != "__")
    return st.sampled_from(PLAIN_NAMES) | st.sampled_from((*sorted(FORMULA_RESERVED), *ODD_NAMES)) | free


@cache
def literals() -> st.SearchStrategy[float]:
    """Finite numbers from 0 on: whole, decimal, tiny and huge."""
    decimals = st.integers(0, 10_000).map(lambda ticks: ticks / 100)
    return st.integers(0, 12).map(float) | decimals | st.floats(0, allow_infinity=False, allow_nan=False).map(abs)


def expressions(delays: bool = False) -> st.SearchStrategy[Expression]:
    """Arithmetic trees that the parser can make; delayed values only where asked for, as only formulas have them."""
    return _arithmetic(3, delays).filter(_constants_are_finite)


def conditions() -> st.SearchStrategy[Expression]:
    """Comparisons and truth values under and, or, not."""
    return _conditions(3, 2).filter(_constants_are_finite)


@cache
def windows() -> st.SearchStrategy[Interval]:
    """Windows of temporal operators: bounded, of a single instant, unbounded, and the one that is not written."""
    bounds = st.tuples(literals(), literals()).map(sorted)
    return (
        st.just(ALWAYS)
        | bounds.map(lambda pair: Interval(*pair))
        | literals().map(lambda bound: Interval(bound, bound))
        | literals().map(lambda bound: Interval(bound, math.inf))
    )


def nodes() -> st.SearchStrategy[Node]:
    """Subformulas of every kind, of up to three operators one below the other."""
    return _nodes(3)


def formulas(ends: st.SearchStrategy[float | None] | None = None) -> st.SearchStrategy[Formula]:
    """Formulas of every kind, by default under the infinite reading."""
    return st.builds(Formula, nodes(), st.none() if ends is None else ends)


@st.composite
def models(draw: st.DrawFn) -> Model:
    """Small models of everything that the intermediate form holds: bounds, assignments, events, real numbers too."""
    known = draw(st.lists(names().filter(lambda name: name != CLOCK), min_size=4, max_size=8, unique=True))
    cut = draw(st.integers(1, min(4, len(known) - 2)))
    changing, others = known[:cut], known[cut:]
    constants, parameters = others[: len(others) // 2], others[len(others) // 2 :]
    variables = tuple(draw(_variables(name, parameters, whole=not place)) for place, name in enumerate(changing))
    whole = [variable.name for variable in variables if variable.whole]
    transitions = draw(st.lists(_transitions(known, whole), min_size=1, max_size=3, unique_by=lambda each: each.name))
    events = draw(st.lists(_events(known, variables), max_size=2, unique_by=lambda each: each.name))
    defaults = st.none() | st.floats(allow_nan=False, allow_infinity=False).map(lambda value: value + 0.0)
    return Model(
        variables,
        tuple(transitions),
        parameters=tuple(Parameter(name, draw(defaults)) for name in parameters),
        constants=tuple(Constant(name, draw(_among(parameters))) for name in constants),
        events=tuple(events),
    )


def _among(known: list[str]) -> st.SearchStrategy[Expression]:
    """Expressions that read nothing but these names."""
    return _arithmetic(2, named=known).filter(_constants_are_finite)


@st.composite
def _variables(draw: st.DrawFn, name: str, parameters: list[str], whole: bool) -> Variable:
    if not whole and draw(st.booleans()):
        return Variable(name, draw(_among(parameters)), None, None, whole=False)
    low, high = draw(st.sampled_from([(0, None), (0, None), (0, 7), (-3, 4), (2, None), (None, 9), (None, None)]))
    least, most = -5 if low is None else low, 12 if high is None else high
    return Variable(name, draw(st.integers(least, most).map(number) | st.sampled_from(parameters).map(Name)), low, high)


@st.composite
def _transitions(draw: st.DrawFn, known: list[str], whole: list[str]) -> Transition:
    pairs = st.lists(st.tuples(st.sampled_from(whole), st.integers(1, 3)), max_size=2, unique_by=lambda pair: pair[0])
    consumed = tuple(draw(pairs))
    rate = mass_action(draw(_among(known)), consumed if draw(st.booleans()) else ())
    assigned = st.lists(st.tuples(st.sampled_from(whole), _among(whole)), max_size=2, unique_by=lambda pair: pair[0])
    update = tuple((name, value) for name, value in draw(st.just([]) | assigned) if value.names)
    guard = draw(st.none() | _conditions(2, 1, named=known).filter(_constants_are_finite))
    label = draw(st.sampled_from(("r1", "r2", "r3")) | names())
    rate = Operation("abs", (rate,)) if negative_by_sign(rate) else rate
    return Transition(label, rate, consumed, tuple(draw(pairs)), update, guard)


@st.composite
def _events(draw: st.DrawFn, known: list[str], variables: tuple[Variable, ...]) -> Event:
    values = st.integers(2, 4).map(number) | _among(known).filter(lambda value: bool(value.names))
    targets = st.sampled_from([variable.name for variable in variables])
    update = draw(st.lists(st.tuples(targets, values), max_size=3, unique_by=lambda pair: pair[0]))
    sides = draw(st.permutations((Name(CLOCK), draw(_among(known)))))
    at_a_time = Operation(draw(st.sampled_from(COMPARISONS)), tuple(sides))
    state = draw(_conditions(1, 1, named=known).filter(_constants_are_finite))
    joined = Operation(draw(st.sampled_from(("and", "or"))), (Operation("not", (at_a_time,)), state))
    return Event(draw(names()), tuple(update), draw(st.sampled_from((at_a_time, state, joined))), draw(st.booleans()))


# Trees are drawn from the top, and depth is counted down: a composite strategy stays small however deep its trees.


@st.composite
def _arithmetic(draw: st.DrawFn, depth: int, delays: bool = False, named: list[str] | None = None) -> Expression:
    leaves = ("number", "name", "delayed" if delays else "name")
    larger = ("-", "*", "/", "^", "+", "if", *FUNCTIONS)
    kind = draw(st.sampled_from((*leaves, *leaves, *larger) if depth else leaves))
    if kind == "number":
        return Number(draw(literals()))
    if kind == "name":
        return Name(draw(names() if named is None else st.sampled_from(named)))
    if kind == "delayed":
        return Delayed(draw(names()), draw(literals().filter(bool)))
    smaller = _arithmetic(depth - 1, delays, named)
    if kind == "if":
        return Operation("if", (draw(_conditions(depth - 1, depth - 1, delays, named)), draw(smaller), draw(smaller)))
    many = st.integers(2, 3) if kind in ("+", "min", "max") else st.just(2 if kind in ("*", "/", "^") else 1)
    return Operation(kind, tuple(draw(smaller) for _ in range(draw(many))))


@st.composite
def _comparisons(draw: st.DrawFn, depth: int, delays: bool = False, named: list[str] | None = None) -> Expression:
    symbol = draw(st.sampled_from(COMPARISONS))
    sides = _arithmetic(depth, delays, named)
    return Operation(symbol, (draw(sides), draw(sides)))


@st.composite
def _conditions(
    draw: st.DrawFn, depth: int, depth_of_sides: int, delays: bool = False, named: list[str] | None = None
) -> Expression:
    leaves = ("comparison", "comparison", "truth")
    kind = draw(st.sampled_from((*leaves, "not", "and", "or") if depth else leaves))
    if kind == "comparison":
        return draw(_comparisons(depth_of_sides, delays, named))
    if kind == "truth":
        return Boolean(draw(st.booleans()))
    smaller = _conditions(depth - 1, depth_of_sides, delays, named)
    many = 1 if kind == "not" else draw(st.integers(2, 3))
    return Operation(kind, tuple(draw(smaller) for _ in range(many)))


def _constants_are_finite(expression: Expression) -> bool:
    """Whether no part without names is infinite or undefined, such as log(0): the parser refuses those."""
    constant = (node for node in in_order(expression) if not node.names)
    return all(math.isfinite(node.evaluate({})) for node in constant)


@st.composite
def _nodes(draw: st.DrawFn, depth: int) -> Node:
    leaves = (Atom, Atom, Truth)
    kind = draw(
        st.sampled_from((*leaves, Not, And, Or, Implies, Iff, Eventually, Globally, Until) if depth else leaves)
    )
    if kind is Atom:
        return Atom(draw(_comparisons(1, delays=True).filter(_constants_are_finite)))
    if kind is Truth:
        return Truth(draw(st.booleans()))
    smaller = _nodes(depth - 1)
    if kind in (And, Or):
        return kind(tuple(draw(smaller) for _ in range(draw(st.integers(2, 3)))))
    window = (draw(windows()),) if kind in (Eventually, Globally, Until) else ()
    operands = (draw(smaller) for _ in range(2 if kind in (Implies, Iff, Until) else 1))
    node: Node = kind(*window, *operands)
    return node


# A formula and a path that meet.

_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_KINDS = ("until", "eventually", "globally", "and", "or", "not", "implies", "iff")
_KIND_WEIGHTS = (34, 17, 17, 11, 10, 5, 3, 3)
PARAMETERS = {"k": 1.0, "half": 0.5}


def random_pairs(seed: int, count: int) -> Iterator[tuple[Formula, Path]]:
    """`count` random formulas, each with a path."""
    rng = random.Random(seed)
    return (random_pair(rng) for _ in range(count))


def random_pair(rng: random.Random) -> tuple[Formula, Path]:
    """A formula of up to four levels and a path of up to six states, on one grid or with irregular jump times."""
    step = rng.choice((0.1, 0.1, 0.1, 0.25, 0.5, 1.0))
    path = random_path(rng, step)
    atoms = [random_comparison(rng, step) for _ in range(rng.randint(1, 4))]
    if rng.random() < 0.15:
        root = _two_ways(rng, step, atoms)
    else:
        root = random_node(rng, step, atoms, depth=rng.choices((1, 2, 3, 4), (6, 20, 34, 40))[0])
    end = None
    if rng.random() < 0.25:
        end = rng.choice((_steps(rng, step, 10), _steps(rng, step, 10), path.times.tolist()[-1], path.end))
    return Formula(root, end), path


def random_path(rng: random.Random, step: float) -> Path:
    """Up to five jumps of x and y between 0 and 2, some of them tied, some of them changing nothing."""
    times = [0.0, *sorted(_jump_times(rng, step, rng.randint(0, 5)))]
    values = (0, 1) if rng.random() < 0.6 else (0, 1, 2)
    states = [[rng.choice(values), rng.choice(values)] for _ in times]
    later = rng.choice((0.0, 0.0, _steps(rng, step, 2), _steps(rng, step, 3), 50.0))
    end = max(times[-1], round(times[-1] + later, 9))
    return Path(times, states, ("x", "y"), end, absorbed=rng.random() < 0.15, values=PARAMETERS)


def random_node(rng: random.Random, step: float, atoms: list[Operation], depth: int) -> Node:
    """A subformula of at most `depth` operators one below the other, over a few atoms and their opposites."""
    if depth == 0:
        comparison = rng.choice(atoms)
        if rng.random() < 0.06:
            return Truth(rng.random() < 0.5)
        return Atom(_opposite(comparison) if rng.random() < 0.3 else comparison)
    kind = rng.choices(_KINDS, _KIND_WEIGHTS)[0]
    below = [random_node(rng, step, atoms, depth - 1), random_node(rng, step, atoms, rng.randrange(depth))]
    rng.shuffle(below)
    left, right = below
    match kind:
        case "until":
            if rng.random() < 0.5:
                left, right = _handing_over(rng, rng.choice(atoms), left, right)
            return Until(random_window(rng, step), left, right)
        case "eventually":
            return Eventually(random_window(rng, step), left)
        case "globally":
            return Globally(random_window(rng, step), left)
        case "not":
            return Not(left)
        case "implies":
            return Implies(left, right)
        case "iff":
            return Iff(left, right)
    operands = (left, right) if rng.random() < 0.7 else (left, right, random_node(rng, step, atoms, 0))
    return And(operands) if kind == "and" else Or(operands)


def random_window(rng: random.Random, step: float) -> Interval:
    """A window on the grid: from 0 or later, of any length, none and infinite included."""
    low = 0.0 if rng.random() < 0.35 else _steps(rng, step, 4)
    chance = rng.random()
    if chance < 0.12:
        return Interval(low, math.inf)
    return Interval(low, low if chance < 0.3 else round(low + _steps(rng, step, 6), 9))


def random_comparison(rng: random.Random, step: float) -> Operation:
    """A comparison of x, y, their delayed values, parameters and small numbers; exact in floats too."""
    x, y = rng.sample((Name("x"), Name("y")), 2)
    symbol = rng.choice(COMPARISONS)
    whole = number(rng.choice((0, 1, 1, 2)))
    delayed = Delayed(x.name, rng.choice((step, 2 * step, round(3 * step, 9))))
    choices: tuple[tuple[Expression, Expression], ...] = (
        (x, number(rng.choice((0.5, 1.5)))),
        (Operation("+", (x, Operation("-", (delayed,)))), number(rng.choice((0, 1, -1)))),
        (delayed, whole),
        (Operation("+", (x, y)), whole),
        (Operation("*", (Number(2), x)), Operation("+", (y, Name("half")))),
        (Operation("*", (x, y)), whole),
        (x, Name("k")),
        (Name("k"), Name("half")),
    )
    weights = (20, 14, 6, 8, 5, 5, 4, 1)
    left, right = rng.choices(choices, weights)[0] if rng.random() < 0.6 else (x, whole)
    return Operation(symbol, (left, right))


def size(formula: Formula, path: Path) -> int:
    """How large a pair is, to find the smallest."""
    return sum(1 for _ in subformulas(formula.root)) + len(path) + (formula.end is not None)


def written_out(formula: Formula, path: Path) -> str:
    """A pair as Python that makes it again."""
    states = [[int(count) for count in state] for state in path.states.tolist()]
    return (
        f"formula = {formula!r}\n"
        f"path = Path({path.times.tolist()}, {states}, {path.species}, end={path.end}, absorbed={path.absorbed}, "
        f"values={dict(path.values)})"
    )


def _handing_over(rng: random.Random, comparison: Operation, left: Node, right: Node) -> tuple[Node, Node]:
    """Operands of until of which the left one stops where the right one begins, as in (x > 0) U (x == 0)."""
    chance = rng.random()
    return Atom(_opposite(comparison)) if chance < 0.7 else left, Atom(comparison) if chance > 0.2 else right


def _two_ways(rng: random.Random, step: float, atoms: list[Operation]) -> Node:
    """One subformula, shifted in time in two ways that nearly agree, compared over a window.

    Whether F[0.1, 0.1] F[0.2, 0.2] φ and F[0.3, 0.3] φ are ever different hangs on the equality of decimals.
    """
    node = random_node(rng, step, atoms, depth=rng.randint(0, 1))
    shift = rng.randint(2, 5)
    left = _shifted(rng, step, node, shift)
    right = _shifted(rng, step, node, shift if rng.random() < 0.8 else shift + 1)
    compared = rng.choice((Iff(left, right), Implies(left, right), Or((Not(left), right)), And((left, Not(right)))))
    return rng.choice((Eventually, Globally))(random_window(rng, step), compared)


def _shifted(rng: random.Random, step: float, node: Node, shift: int) -> Node:
    """`node` as it is `shift` steps later, through windows of a single instant."""
    while shift:
        part = rng.randint(1, shift)
        instant = round(part * step, 9)
        node = rng.choice((Eventually, Globally))(Interval(instant, instant), node)
        shift -= part
    return node


def _opposite(comparison: Operation) -> Operation:
    return Operation(_NEGATED[comparison.symbol], comparison.operands)


def _steps(rng: random.Random, step: float, most: int) -> float:
    """A multiple of `step` as the float that prints as that decimal."""
    return round(rng.randint(0, most) * step, 9)


def _jump_times(rng: random.Random, step: float, jumps: int) -> list[float]:
    chance = rng.random()
    if chance < 0.55:
        return [_steps(rng, step, 10) for _ in range(jumps)]
    if chance < 0.85:
        return [rng.uniform(0, 10 * step) for _ in range(jumps)]
    # Irregular, but some differences are on the grid.
    first = round(rng.uniform(0, 5 * step), 6)
    return [round(first + _steps(rng, step, 5), 9) for _ in range(jumps)]
