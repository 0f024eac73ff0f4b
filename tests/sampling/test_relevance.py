"""Relevant parameters: what a verdict can depend on, and proof that it does not depend on the rest."""

from __future__ import annotations

import numpy as np
import pytest

import sateen as st
from sateen.language.expression import Number
from sateen.language.grammar import parse_condition, parse_expression
from sateen.model.model import Event, Model, Parameter, Transition, Variable
from sateen.sampling.source import relevant

SIR_AND_MORE = Model.parse("""
    species S = 18, I = 2, R = 0, X = 3, Y = 0
    constant N = 20
    infect:  S + I -> 2 I  @ beta * S * I / N
    recover: I -> R        @ mass_action(gamma)
    there:   X -> Y        @ forth * X
    back:    Y -> X        @ return_ * Y
""")


def test_a_module_that_the_formula_does_not_see_is_irrelevant() -> None:
    assert relevant(SIR_AND_MORE, st.stl("F[0, 5] I == 0")) == ("beta", "gamma")
    assert relevant(SIR_AND_MORE, st.stl("F[0, 5] X == 0")) == ("forth", "return_")
    assert relevant(SIR_AND_MORE, st.stl("F[0, 5] (I == 0 & X == 0)")) == ("beta", "gamma", "forth", "return_")


def test_what_only_follows_is_irrelevant() -> None:
    model = Model.parse("species A = 5, B = 0, C = 0\nA -> B @ mass_action(k1)\nB -> C @ mass_action(k2)")
    assert relevant(model, st.stl("G[0, 1] A > 0")) == ("k1",)
    assert relevant(model, st.stl("G[0, 1] B > 0")) == ("k1", "k2")
    assert relevant(model, st.stl("G[0, 1] C > 0")) == ("k1", "k2")


@pytest.mark.parametrize(
    ("text", "formula", "names"),
    [
        ("species A = n\nA -> 0 @ mass_action(k)", "F[0, 1] A == 0", ("n", "k")),
        ("species A = 5, B = n\nA -> 0 @ k * A * B", "F[0, 1] A == 0", ("n", "k")),
        ("species A = 5\nparameter level\nA -> 0 @ mass_action(k)", "F[0, 1] A < level", ("level", "k")),
        ("species A = 5\nconstant c = a * 2\nA -> 0 @ c * A\n0 -> A @ z", "F[0, 1] A == 0", ("a", "z")),
        ("species A = 5\nconstant c = a * 2\nconstant d = c + 1\nA -> 0 @ A", "F[0, 1] A < d", ("a",)),
        ("species A = 5\nparameter unused\nA -> 0 @ mass_action(k)", "F[0, 1] A == 0", ("k",)),
        ("species A = 5, B = 1\nA -> 0 @ A\nA + B -> A + B @ k * A * B", "F[0, 1] A == 0", ()),
        ("species A = 5, B = 1\nA + B -> B @ k * A", "F[0, 1] A == 0", ("k",)),
        ("species A = 5\nA -> 0 @ mass_action(k)", "F[0, 1] A - A(t-0.5) < 0", ("k",)),
        ("species A = 5\nA -> 0 @ mass_action(k)", "true", ()),
    ],
)
@pytest.mark.filterwarnings("ignore::sateen.ModelWarning")
def test_influence_goes_through_rates_counts_constants_and_atoms(
    text: str, formula: str, names: tuple[str, ...]
) -> None:
    assert set(relevant(Model.parse(text), st.stl(formula))) == set(names)


def test_guards_and_values_that_are_assigned_have_influence() -> None:
    one = Number(1.0)
    model = Model(
        variables=tuple(Variable(name, one) for name in "ABCD"),
        transitions=(
            Transition("a", one, update=(("A", parse_expression("A + p")), ("D", parse_expression("D + s")))),
            Transition("b", one, consumed=(("A", 1),), guard=parse_condition("C > q")),
            Transition("c", one, produced=(("B", 1),), guard=parse_condition("C > r")),
        ),
        parameters=tuple(Parameter(name) for name in "pqrs"),
    )
    assert relevant(model, st.stl("F[0, 1] A == 5")) == ("p", "q")
    assert relevant(model, st.stl("F[0, 1] B == 5")) == ("r",)
    assert relevant(model, st.stl("F[0, 1] C == 5")) == ()


@pytest.mark.parametrize("text", ["F I == 0", "G[3, inf) I > 0", "F[0, 1] G I > 0"])
def test_an_unbounded_operator_may_depend_on_everything(text: str) -> None:
    assert relevant(SIR_AND_MORE, st.stl(text)) == ("beta", "gamma", "forth", "return_")


def test_an_end_makes_it_bounded() -> None:
    assert relevant(SIR_AND_MORE, st.stl("F I == 0", end=5)) == ("beta", "gamma")


def test_an_event_may_depend_on_everything() -> None:
    event = Event("e", (("S", Number(3.0)),), trigger=parse_condition("X > 2"))
    model = Model(SIR_AND_MORE.variables, SIR_AND_MORE.transitions, SIR_AND_MORE.parameters, events=(event,))
    assert set(relevant(model, st.stl("F[0, 5] I == 0"))) == {"beta", "gamma", "forth", "return_"}


def test_the_exact_probability_does_not_move_with_an_irrelevant_parameter() -> None:
    space = st.Space(beta=(0.0, 2.0), gamma=(0.0, 2.0), forth=(0.0, 9.0), return_=(0.0, 9.0))
    rng = np.random.default_rng(1)
    formula = st.stl("(I > 0) U[1, 4] (I == 0)")
    fixed = {"beta": 0.4, "gamma": 0.7}
    others = [{"forth": float(a), "return_": float(b), **fixed} for a, b in rng.uniform(0, 9, (3, 2))]
    found = st.exact(SIR_AND_MORE, formula, space.points(others))
    assert np.ptp(found) < 1e-9
    moved = st.exact(SIR_AND_MORE, formula, space.points({**others[0], "gamma": 0.9}))
    assert abs(moved[0] - found[0]) > 0.01


def test_the_counts_do_not_move_in_distribution_with_an_irrelevant_parameter() -> None:
    from scipy.stats import fisher_exact

    space = st.Space(beta=(0.0, 2.0), gamma=(0.0, 2.0), forth=(0.0, 90.0), return_=1.0)
    points = space.points({"beta": 0.4, "gamma": 0.7, "forth": [0.01, 80.0]})
    obs = st.observe(SIR_AND_MORE, st.stl("(I > 0) U[1, 4] (I == 0)"), points, 20_000, seed=5)
    assert obs.relevant == ("beta", "gamma")
    table = np.column_stack([obs.satisfied, obs.violated])
    assert fisher_exact(table).pvalue > 1e-6
    assert 0.05 < obs.frequency[0] < 0.95


def test_only_parameters_of_the_space_are_listed_in_its_order() -> None:
    space = st.Space(forth=(0.1, 1.0), gamma=(0.1, 1.0), beta=(0.1, 1.0), return_=1.0)
    obs = st.observe(SIR_AND_MORE, st.stl("F[0, 5] I == 0"), space.uniform(2, seed=1), 5, seed=5)
    assert obs.relevant == ("gamma", "beta")
    fixed = st.Space(forth=(0.1, 1.0), gamma=0.4, beta=0.4, return_=1.0)
    assert st.observe(SIR_AND_MORE, st.stl("F[0, 5] I == 0"), fixed.uniform(2, seed=1), 5, seed=5).relevant == ()
