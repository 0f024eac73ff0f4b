"""`exact`, against closed forms, published values, dense matrix exponentials, and simulated paths."""

from __future__ import annotations

import csv
import itertools
import math
import random
from pathlib import Path as FilePath

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from scipy.linalg import expm
from scipy.stats import binom, binomtest, poisson

import sateen as st
from sateen.engine.exact import exact
from sateen.language.grammar import parse_expression
from sateen.logic.formula import And, Eventually, Formula, Globally, Iff, Implies, Interval, Node, Not, Or, Until
from sateen.model.model import Model, Parameter, Transition, Variable
from small_chains import REACTIONS, brute_force, conditions, flat_formulas, models, windows

DATA = FilePath(__file__).parents[1] / "data"
SIR = Model.parse("""
    species S = 95, I = 5, R = 0
    constant N = 100
    infect:  S + I -> 2 I @ beta * S * I / N
    recover: I -> R       @ gamma * I
""")
EXTINCTION = st.stl("(I > 0) U[100, 120] (I == 0)")
JUMP = Model.parse("species x = 0\n0 -> x @ k when x == 0")  # one jump, after an Exp(k) time
DEATH = Model.parse("species X = 20\nX -> 0 @ X")


def probability(model: Model, text: str, theta=None, **options) -> float:
    (found,) = exact(model, st.stl(text, **options), theta or {})
    return float(found)


# Values that are known.


def oracle():
    with open(DATA / "sir_exact.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    thetas = [{"beta": float(row["beta"]), "gamma": float(row["gamma"])} for row in rows]
    return thetas, np.array([float(row["p"]) for row in rows])


def test_sir_is_right_to_nine_digits_at_some_points_of_the_oracle():
    thetas, expected = oracle()
    assert exact(SIR, EXTINCTION, thetas[::20]) == pytest.approx(expected[::20], abs=1e-9)


@pytest.mark.slow
def test_sir_is_right_to_nine_digits_at_all_164_points_of_the_oracle():
    thetas, expected = oracle()
    assert len(thetas) == 164
    assert exact(SIR, EXTINCTION, thetas) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("bound", [1, 3, 10, 40])
def test_a_pure_birth_counts_like_poisson(bound):
    """The model is infinite, but what lies beyond the bound need not be seen."""
    birth = Model.parse("species X = 0\n0 -> X @ 2.5")
    assert probability(birth, f"F[0, 4] X >= {bound}") == pytest.approx(poisson.sf(bound - 1, 10), abs=1e-10)


@pytest.mark.parametrize("bound", [2, 5, 30])
def test_a_yule_process_is_geometric(bound):
    yule = Model.parse("species X = 1\nX -> 2 X @ 0.7 * X")
    expected = (1 - math.exp(-0.7 * 3)) ** (bound - 1)
    assert probability(yule, f"F[0, 3] X >= {bound}") == pytest.approx(expected, abs=1e-10)
    assert probability(yule, f"G[0, 3] X < {bound}") == pytest.approx(1 - expected, abs=1e-10)


@pytest.mark.parametrize("time", [0.0, 0.01, 1.0, 2.5, 30.0])
def test_a_pure_death_is_binomial_at_every_time(time):
    left = math.exp(-time)
    for bound in (0, 3, 12, 20):
        found = probability(DEATH, f"F[{time}, {time}] X <= {bound}")
        assert found == pytest.approx(binom.cdf(bound, 20, left), abs=1e-10)


def test_an_mm1k_queue_settles_at_its_stationary_distribution():
    queue = Model.parse("species X = 3\n0 -> X @ 1 when X < 15\nX -> 0 @ 1.25 * min(X, 1)")
    weights = 0.8 ** np.arange(16)
    for count in (0, 1, 7, 15):
        found = probability(queue, f"F[20000, 20000] X == {count}")
        assert found == pytest.approx(weights[count] / weights.sum(), abs=1e-10)


@pytest.mark.parametrize("time", [0.5, 4.0, 25.0])
def test_an_mm1k_queue_moves_as_the_exponential_of_its_generator(time):
    queue = Model.parse("species X = 3\n0 -> X @ lam when X < 15\nX -> 0 @ 1.25 * min(X, 1)")
    generator = np.diag(np.full(15, 0.9), 1) + np.diag(np.full(15, 1.25), -1)
    generator -= np.diag(generator.sum(axis=1))
    expected = expm(generator * time)[3]
    found = [probability(queue, f"F[{time}, {time}] X == {count}", {"lam": 0.9}) for count in range(16)]
    assert found == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("up", [0.5, 0.4, 0.55])
@pytest.mark.parametrize("fortune", [1, 10, 29])
def test_an_unbounded_until_is_the_ruin_of_a_gambler(up, fortune):
    game = Model.parse("""
        species X = X0
        win:  0 -> X @ p * min(X, 1) when X < 30
        lose: X -> 0 @ (1 - p) * min(X, 1) when X < 30
    """)
    odds = (1 - up) / up
    won = fortune / 30 if up == 0.5 else (1 - odds**fortune) / (1 - odds**30)
    theta = {"p": up, "X0": fortune}
    assert probability(game, "(X > 0) U (X == 30)", theta) == pytest.approx(won, abs=1e-10)
    assert probability(game, "F X == 30", theta) == pytest.approx(won, abs=1e-10)
    assert probability(game, "F X == 0", theta) == pytest.approx(1 - won, abs=1e-10)
    assert probability(game, "F (X == 0 | X == 30)", theta) == 1.0


def test_until_needs_its_left_side_up_to_the_witness_even_before_the_window():
    k = 0.2
    assert probability(JUMP, "(x == 0) U[2, 3] (x == 1)", {"k": k}) == pytest.approx(
        math.exp(-2 * k) - math.exp(-3 * k), abs=1e-10
    )
    assert probability(JUMP, "F[2, 3] x == 1", {"k": k}) == pytest.approx(1 - math.exp(-3 * k), abs=1e-10)
    assert probability(JUMP, "(x == 0) U[2, 2] (x == 1)", {"k": k}) == 0.0  # the jump would have to be at 2 exactly
    assert probability(JUMP, "(x == 0) U[2, inf) (x == 1)", {"k": k}) == pytest.approx(math.exp(-2 * k), abs=1e-10)
    assert probability(JUMP, "(x == 0) U[2, 3] (x == 0)", {"k": k}) == pytest.approx(math.exp(-2 * k), abs=1e-10)
    assert probability(JUMP, "(x == 1) U[0, 3] (x == 0)", {"k": k}) == 1.0  # the witness is at time 0
    assert probability(JUMP, "(x == 1) U[1, 3] (x == 1)", {"k": k}) == 0.0


def test_g_holds_over_the_whole_closed_window():
    k = 0.7
    assert probability(JUMP, "G[0, 2] x == 0", {"k": k}) == pytest.approx(math.exp(-2 * k), abs=1e-10)
    assert probability(JUMP, "G[1, 2] x == 1", {"k": k}) == pytest.approx(1 - math.exp(-k), abs=1e-10)
    assert probability(JUMP, "G x == 0", {"k": k}) == 0.0
    assert probability(JUMP, "G[3, inf) x == 1", {"k": k}) == pytest.approx(1 - math.exp(-3 * k), abs=1e-10)


def test_dependent_operators_are_decided_together():
    """X only falls, so both windows ask for X at their ends: a joint binomial, far from the product."""
    left = math.exp(-1)
    first, last = 8, 3
    joint = sum(binom.pmf(count, 20, left) * binom.cdf(last, count, left) for count in range(first + 1))
    one, other = (probability(DEATH, text) for text in (f"F[0, 1] X <= {first}", f"F[1, 2] X <= {last}"))
    found = probability(DEATH, f"F[0, 1] X <= {first} & F[1, 2] X <= {last}")
    assert found == pytest.approx(joint, abs=1e-10)
    assert abs(joint - one * other) > 0.05
    either = probability(DEATH, f"F[0, 1] X <= {first} | F[1, 2] X <= {last}")
    assert either == pytest.approx(one + other - joint, abs=1e-10)
    implied = probability(DEATH, f"F[0, 1] X <= {first} -> F[1, 2] X <= {last}")
    assert implied == pytest.approx(1 - one + joint, abs=1e-10)
    same = probability(DEATH, f"F[0, 1] X <= {first} <-> F[1, 2] X <= {last}")
    assert same == pytest.approx(1 - one - other + 2 * joint, abs=1e-10)


def test_a_bounded_and_an_unbounded_operator_are_decided_together():
    """A race: `a` first, and within 2, but then still an unbounded wait for the other."""
    race = Model.parse("species a = 1, b = 1\na -> 0 @ 0.3 * a\nb -> 0 @ 0.5 * b")
    expected = 1 - math.exp(-0.3 * 2)
    assert probability(race, "F[0, 2] a == 0 & F b == 0") == pytest.approx(expected, abs=1e-10)
    first = 0.3 / 0.8 * (1 - math.exp(-0.8 * 2))
    assert probability(race, "((b == 1) U[0, 2] (a == 0)) & F b == 0") == pytest.approx(first, abs=1e-10)
    assert probability(race, "((b == 1) U (a == 0)) & G[2, inf) a == 0") == pytest.approx(
        0.3 / 0.8 * (1 - math.exp(-0.8 * 2)), abs=1e-10
    )


def test_conditions_at_time_0_are_true_or_false():
    assert probability(DEATH, "X == 20") == 1.0
    assert probability(DEATH, "X < 20 | false") == 0.0
    assert probability(DEATH, "true -> !(X < 20)") == 1.0
    assert probability(DEATH, "X == 20 & F[0, 1] X < 20") == pytest.approx(1 - math.exp(-20), abs=1e-10)
    assert probability(DEATH, "X != 20 & F[0, 1] X < 20") == 0.0
    assert probability(DEATH, "true") == 1.0
    assert probability(DEATH, "F[0, 5] false | G true") == 1.0


@pytest.mark.parametrize(
    ("text", "end", "same"),
    [
        ("F[0, 10] x == 1", 3, "F[0, 3] x == 1"),
        ("F x == 1", 3, "F[0, 3] x == 1"),
        ("G x == 0", 3, "G[0, 3] x == 0"),
        ("F[5, 10] x == 1", 3, "false"),
        ("G[5, 10] x == 1", 3, "true"),
        ("(x == 0) U[1, inf) (x == 1)", 3, "(x == 0) U[1, 3] (x == 1)"),
        ("(x == 0) U[4, inf) (x == 1)", 3, "false"),
        ("F[3, 10] x == 1", 3, "F[3, 3] x == 1"),
        ("F[1, 2] x == 1 & G[4, 5] x == 0", 3, "F[1, 2] x == 1"),
        ("x == 0", 0, "x == 0"),
    ],
)
def test_the_finite_reading_cuts_every_window(text, end, same):
    assert probability(JUMP, text, {"k": 0.4}, end=end) == probability(JUMP, same, {"k": 0.4})


def test_a_jump_that_changes_nothing_changes_no_probability():
    idle = Model.parse("species x = 0\n0 -> x @ k when x == 0\nx -> x @ 50\n0 -> 0 @ 7")
    text = "(x == 0) U[2, 3] (x == 1)"
    assert probability(idle, text, {"k": 0.2}) == pytest.approx(probability(JUMP, text, {"k": 0.2}), abs=1e-10)


def test_a_state_without_a_way_out_keeps_its_verdict():
    assert probability(Model.parse("species X = 2\nX -> 0 @ 0 * X"), "G X == 2 & !F[1, 5] X == 0") == 1.0


# What it is given.


def test_points_may_be_points_mappings_or_one_mapping():
    points = st.Space(k=(0.1, 2.0)).grid(3)
    formula = st.stl("F[0, 1] x == 1")
    expected = 1 - np.exp(-points.theta[:, 0])
    assert exact(JUMP, formula, points) == pytest.approx(expected, abs=1e-10)
    assert exact(JUMP, formula, list(points)) == pytest.approx(expected, abs=1e-10)
    alone = exact(JUMP, formula, {"k": 2.0})
    assert alone.shape == (1,)
    assert alone == pytest.approx(expected[2:], abs=1e-10)
    assert exact(JUMP, formula, []).shape == (0,)
    assert st.exact is exact


def test_parameters_may_change_what_is_reached_and_keep_their_order():
    """Initial counts, rates that become 0, and bounds in atoms, all mixed."""
    model = Model.parse("species X = n\nX -> 0 @ k * X")
    formula = st.stl("F[0, 1] X <= bound") & st.stl("F[1, 2] X < n")
    thetas = [{"n": n, "k": k, "bound": bound} for bound, n, k in itertools.product((1, 3), (4, 2, 6), (0.5, 0.0, 1.0))]
    model = Model(model.variables, model.transitions, (*model.parameters, Parameter("bound")))
    together = exact(model, formula, thetas)
    for theta, found in zip(thetas, together, strict=True):
        left, bound = math.exp(-theta["k"]), min(theta["bound"], theta["n"])
        seen = binom.cdf(min(theta["bound"], theta["n"] - 1), theta["n"], left)
        late = binom.pmf(theta["n"], theta["n"], left) * (1 - left ** theta["n"]) if bound == theta["n"] else 0.0
        assert found == pytest.approx(seen + late, abs=1e-10)
        assert exact(model, formula, theta)[0] == pytest.approx(found, abs=1e-12)


def test_a_parameter_in_an_atom_may_move_where_the_search_stops():
    birth = Model.parse("species X = 0\n0 -> X @ 2.5")
    birth = Model(birth.variables, birth.transitions, (Parameter("bound"),))
    bounds = np.array([3, 10, 1, 10, 3])
    found = exact(birth, st.stl("F[0, 4] X >= bound"), [{"bound": bound} for bound in bounds.tolist()])
    assert found == pytest.approx(poisson.sf(bounds - 1, 10), abs=1e-10)


def test_updates_that_read_parameters_are_followed_anew():
    leap = Transition("leap", parse_expression("1"), update=(("x", parse_expression("min(x + step, 6)")),))
    model = Model((Variable("x", parse_expression("0")),), (leap,), (Parameter("step"),))
    found = exact(model, st.stl("F[0, 2] x >= 6"), [{"step": step} for step in (1, 3, 2, 1)])
    assert found == pytest.approx(poisson.sf(np.array([5, 1, 2, 5]), 2), abs=1e-10)


class Told:
    """A watcher that remembers."""

    def __init__(self):
        self.calls = []

    def start(self, label, total, unit):
        self.calls.append(("start", total, unit))

    def advance(self, n):
        self.calls.append(n)

    def note(self, text):
        self.calls.append(text)

    def finish(self):
        self.calls.append("finish")


def test_progress_is_told_of_every_point_and_of_the_end_also_after_an_error():
    told = Told()
    exact(JUMP, st.stl("F[0, 1] x == 1"), [{"k": 1.0}, {"k": 2.0}], progress=told)
    assert told.calls == [("start", 2, "points"), 1, 1, "finish"]
    told = Told()
    with pytest.raises(st.SimulationError):
        exact(JUMP, st.stl("F[0, 1] x == 1"), [{"k": 1.0}, {"k": -1.0}], progress=told)
    assert told.calls[-1] == "finish"


# What it refuses.


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("F[0, 10] G (X < 20)", r"G X < 20 stands inside F\[0, 10\] G X < 20"),
        ("G[0, 5] (X > 3 -> F[0, 1] X <= 3)", r"F\[0, 1\] X <= 3 stands inside G\[0, 5\]"),
        ("(X > 1) U[0, 5] ((X > 2) U (X == 0))", r"\(X > 2\) U \(X == 0\) stands inside"),
        ("X > 0 & F[0, 5] X - X(t-1) > 0", r"X - X\(t-1\) > 0 reads X\(t-1\), which is past"),
        ("X(t-2) > 0", r"X\(t-2\) > 0 reads X\(t-2\)"),
    ],
)
def test_nesting_and_delays_are_refused_by_name_and_with_a_way_out(text, named):
    with pytest.raises(st.ExactError, match=rf"(?s){named}.*simulate"):
        probability(DEATH, text)


def test_an_infinite_model_is_refused():
    with pytest.raises(st.ExactError, match=r"more than 5,000 states.*\n.*guard.*max_states.*simulate"):
        exact(Model.parse("species X = 0\n0 -> X @ 1\nX -> 0 @ X"), st.stl("F[1, 1] X > 3"), {}, max_states=5000)


def test_the_limit_counts_pairs_of_state_and_what_is_left_of_the_formula():
    model = Model.parse("species X = 0, Y = 0\n0 -> X @ 1 when X < 9\n0 -> Y @ 1 when Y < 9\nX -> 0 @ X\nY -> 0 @ Y")
    formula = st.stl("F[1, 3] X == 8 & F[2, 3] Y == 8")
    assert 0 < exact(model, formula, {}, max_states=300)[0] < 1
    with pytest.raises(st.ExactError, match=r"100 states make more than 100 pairs.*\n.*fewer operators"):
        exact(model, formula, {}, max_states=100)


def test_names_that_the_model_does_not_have_are_errors_with_the_nearest():
    with pytest.raises(st.MissingValueError, match=r"(?s)beat is neither.*did you mean beta"):
        probability(SIR, "F[0, 1] I > beat", {"beta": 0.1, "gamma": 0.1})
    with pytest.raises(st.MissingValueError, match="gamma"):
        probability(SIR, "F[0, 1] I > 3", {"beta": 0.1})


def test_an_atom_that_is_undefined_in_a_reachable_state_is_an_error_naming_it():
    with pytest.raises(st.FormulaError, match=r"(?s)0/0.*X = 0.*if\(c, a, b\)"):
        probability(DEATH, "F[0, 1] X / X > 2")


def test_impossible_rates_are_errors_of_the_model():
    model = Model.parse("species X = 6\nlose: X -> 0 @ X\nodd: X -> X @ k * sqrt(X - 3)")
    with pytest.raises(st.SimulationError, match=r"odd is nan where X = 2 \(under k = 1\)"):
        probability(model, "F[1, 1] X == 0", {"k": 1})


def test_rates_without_measure_are_refused_at_once():
    with pytest.raises(st.ExactError, match=r"1e\+300 times per unit of time.*steps"):
        probability(Model.parse("species X = 0\n0 -> X @ 1e300 when X < 3"), "F[1, 1] X == 2")


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ((7, {"k": 1}), {}),
        ((st.stl("F x == 1"), [0.5, 1.0]), {}),
        ((st.stl("F x == 1"), {"k": 1}), {"max_states": 0}),
        ((st.stl("F x == 1"), {"k": 1}), {"max_states": 1e6}),
    ],
)
def test_other_arguments_are_refused(arguments, options):
    with pytest.raises(st.InputError):
        exact(JUMP, *arguments, **options)


# Small random chains and formulas.


@settings(max_examples=150)
@given(models(), flat_formulas())
def test_small_chains_agree_with_dense_exponentials_of_the_chain_of_statuses(model, formula):
    assert exact(model, formula, {})[0] == pytest.approx(brute_force(model, formula), abs=1e-9)


@settings(max_examples=60)
@given(models(), flat_formulas())
def test_a_formula_and_its_negation_share_all_probability(model, formula):
    assert exact(model, formula, {})[0] + exact(model, ~formula, {})[0] == pytest.approx(1, abs=2e-10)


@settings(max_examples=60)
@given(models(), windows(), conditions())
def test_f_and_g_are_dual(model, window, condition):
    eventually = exact(model, Formula(Eventually(window, condition)), {})[0]
    assert eventually == pytest.approx(1 - exact(model, Formula(Globally(window, Not(condition))), {})[0], abs=2e-10)


@settings(max_examples=60)
@given(models(), windows(), conditions(), conditions(), some.sampled_from((0.0, 0.3, 2.0, math.inf)))
def test_until_grows_with_its_window_and_stays_below_f(model, window, left, right, later):
    longer = Interval(window.low, window.high + later)
    asked = (Until(window, left, right), Until(longer, left, right), Eventually(longer, right))
    shorter, until, eventually = (exact(model, Formula(node), {})[0] for node in asked)
    assert shorter <= until + 2e-10
    assert until <= eventually + 2e-10


@settings(max_examples=60)
@given(models(), flat_formulas(), flat_formulas())
def test_joining_obeys_the_laws_of_probability(model, one, other):
    one, other = Formula(one.root), Formula(other.root)
    both, either, first, second = (exact(model, each, {})[0] for each in (one & other, one | other, one, other))
    assert both <= min(first, second) + 2e-10
    assert both + either == pytest.approx(first + second, abs=4e-10)


@settings(max_examples=40)
@given(models(), flat_formulas(), some.sampled_from((2.0, 10.0)))
def test_the_unit_of_time_does_not_matter(model, formula, factor):
    faster = Model(
        model.variables,
        tuple(
            Transition(
                each.name, parse_expression(f"{factor} * ({each.rate})"), each.consumed, each.produced, (), each.guard
            )
            for each in model.transitions
        ),
    )
    end = None if formula.end is None else formula.end / factor
    rescaled = Formula(_rescaled(formula.root, factor), end)
    assert exact(faster, rescaled, {})[0] == pytest.approx(exact(model, formula, {})[0], abs=2e-10)


def _rescaled(node: Node, factor: float) -> Node:
    match node:
        case Eventually(window, operand):
            return Eventually(Interval(window.low / factor, window.high / factor), operand)
        case Globally(window, operand):
            return Globally(Interval(window.low / factor, window.high / factor), operand)
        case Until(window, left, right):
            return Until(Interval(window.low / factor, window.high / factor), left, right)
        case Not(operand):
            return Not(_rescaled(operand, factor))
        case And(operands) | Or(operands):
            return type(node)(tuple(_rescaled(operand, factor) for operand in operands))
        case Implies(left, right) | Iff(left, right):
            return type(node)(_rescaled(left, factor), _rescaled(right, factor))
    return node


# Simulated paths, judged by the monitor.

SAMPLED = (
    "F[0, 2] A > 1",
    "G[0.5, 3] A + 2 * B < 4",
    "(B < 2) U[0.5, 3] (A == B)",
    "(A > 0) U[0, 4] (B == 2)",
    "F[0, 1] A == 0 & F[1, 3] B == 2",
    "G[0, 1] B < 2 | F[2, 3] A == 3",
    "F[1, 2] A == 0 <-> G[0, 3] B <= 1",
    "A > 0 -> ((A >= 1) U[1, 2] (B >= 1))",
    "!(F[0.5, 0.5] A > 1) & F[0, 3] A > 2",
    "((A <= 2) U[1, 1] (B == 0)) | ((B == 0) U[0, 2] (A > 2))",
)
RUNS = 300


@pytest.mark.parametrize("number", range(20))
def test_simulated_paths_satisfy_a_formula_as_often_as_exact_says(number):
    """Twenty tests, each at 5e-8: 1e-6 in all."""
    rng = random.Random(number)
    reactions = rng.sample(REACTIONS, rng.randint(3, 6))
    model = Model.parse("\n".join([f"species A = {rng.randint(0, 3)}, B = {rng.randint(0, 2)}", *reactions]))
    formula = st.stl(SAMPLED[number % len(SAMPLED)], end=rng.choice((None, None, 2.5)))
    (expected,) = exact(model, formula, {})
    paths = (st.simulate(model, until=formula.horizon, seed=1000 * number + run) for run in range(RUNS))
    satisfied = sum(bool(st.monitor(formula, path)) for path in paths)
    assert binomtest(satisfied, RUNS, expected).pvalue > 5e-8


def test_simulated_absorption_decides_unbounded_operators_as_often_as_exact_says():
    """Two tests at 5e-7 each."""
    model = Model.parse("species S = 12, I = 2\nS + I -> 2 I @ 0.15 * S * I\nI -> 0 @ I")
    for text in ("(S > 6) U (I == 0)", "G S > 3 & F[0, 2] I > 4"):
        formula = st.stl(text)
        (expected,) = exact(model, formula, {})
        paths = (st.simulate(model, until=1e6, seed=run) for run in range(RUNS))
        satisfied = sum(bool(st.monitor(formula, path)) for path in paths)
        assert 0.1 < expected < 0.9
        assert binomtest(satisfied, RUNS, expected).pvalue > 5e-7
