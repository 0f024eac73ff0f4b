"""SBML that is written reads back as the same model, or is refused by name."""

from __future__ import annotations

import warnings
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as draws

import sateen as st
from sateen.language.expression import Expression, Name, Number, Operation
from sateen.model.antimony import read_antimony
from sateen.model.model import CLOCK, Constant, Event, Model, Parameter, Transition, Variable
from sateen.model.prism import read_prism
from sateen.model.sbml import read_sbml
from sateen.model.sbml_written import write_sbml
from strategies import models

MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def back(model: Model) -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", st.ModelWarning)
        return read_sbml(write_sbml(model)).model


def with_ids(model: Model) -> Model:
    """The same model with names that are ids, the real numbers last, and no assignments by transitions.

    Amounts at the start that read parameters must be whole under their defaults; here they have none.
    """
    new = {name: Name(f"n{place}") for place, name in enumerate(model.names)}

    def put(expression: Expression) -> Expression:
        return expression.substitute(new)

    def side(pairs: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
        return tuple((new[name].name, count) for name, count in pairs)

    variables = [replace(each, name=new[each.name].name, initial=put(each.initial)) for each in model.variables]
    read = {name for each in variables for name in each.initial.names}
    return Model(
        tuple(sorted(variables, key=lambda each: not each.whole)),
        tuple(
            Transition(
                f"t{place}",
                put(each.rate),
                side(each.consumed),
                side(each.produced),
                guard=None if each.guard is None else put(each.guard),
            )
            for place, each in enumerate(model.transitions)
        ),
        tuple(
            Parameter(new[each.name].name, None if new[each.name].name in read else each.default)
            for each in model.parameters
        ),
        tuple(Constant(new[each.name].name, put(each.value)) for each in model.constants),
        tuple(
            Event(
                f"e{place}",
                tuple((new[name].name, put(value)) for name, value in each.update),
                put(each.trigger),
                each.initially,
            )
            for place, each in enumerate(model.events)
        ),
    )


def plain(expression: Expression) -> Expression:
    """Without brackets around the first of a sum or of a chain of conditions, and with the clock on the left."""
    if not isinstance(expression, Operation):
        return expression
    operands = tuple(map(plain, expression.operands))
    symbol = expression.symbol
    if symbol in ("+", "and", "or") and isinstance(operands[0], Operation) and operands[0].symbol == symbol:
        operands = (*operands[0].operands, *operands[1:])
    if symbol in MIRRORED and operands[1] == Name(CLOCK):
        return Operation(MIRRORED[symbol], (operands[1], operands[0]))
    return Operation(symbol, operands)


def plain_model(model: Model) -> Model:
    transitions = []
    for each in model.transitions:
        rate, guard = plain(each.rate), None if each.guard is None else plain(each.guard)
        if guard is None and isinstance(rate, Operation) and rate.symbol == "if" and rate.operands[2] == Number(0.0):
            guard, rate = rate.operands[:2]
        transitions.append(replace(each, rate=rate, guard=guard))
    return replace(
        model,
        variables=tuple(replace(each, initial=plain(each.initial)) for each in model.variables),
        transitions=tuple(transitions),
        constants=tuple(replace(each, value=plain(each.value)) for each in model.constants),
        events=tuple(
            replace(
                each, trigger=plain(each.trigger), update=tuple((name, plain(value)) for name, value in each.update)
            )
            for each in model.events
        ),
    )


def tiny(model: Model) -> bool:
    """Whether a default is so small that libsbml does not read it."""
    return any(each.default and abs(each.default) < 2.3e-308 for each in model.parameters)


@settings(max_examples=50)
@given(models())
def test_what_is_written_reads_back_as_the_same_model(model):
    model = replace(with_ids(model), assumptions=("nobody is born & #1 < \x00 dies",))
    set_by_events = {name for event in model.events for name, _ in event.update}
    if any(not each.whole and each.name not in set_by_events for each in model.variables):
        with pytest.raises(st.ModelError, match="no event sets the real number"):
            write_sbml(model)
    elif not tiny(model):
        again = back(model)
        assert again == plain_model(model)
        assert again.assumptions == model.assumptions


def test_all_of_the_intermediate_form_but_assignments_reads_back():
    model = st.Model.parse("""
        species X = 10 in [0, 50], Y = Y0, Z = 0 in [-5, 5]
        real k3 = 0.5
        constant c = 2 * Y0
        constant d = 3
        parameter Y0 = 4, k = 1e-5, q
        a: X -> 2 Y @ k * X when X > 2 and Y < 5
        b: 0 -> X @ if(X > 3, min(k, 2), max(c, d)) * k3 + 1 - q
        event reset: X := 50, k3 := 0.25 when time >= 25
        event again: X := 3 when X > 40 or time > 3 initially false
    """)
    assert back(model) == model


def test_a_scaled_model_with_a_rule_and_an_event_reads_back():
    model = read_antimony(
        "compartment c=2; species A in c, B in c; r: A -> B; c*(k*A - kr*B*B); tot := A + B; A=.5; B=.25; k=1; kr=2; "
        "at tot<.3: A=.7",
        scale=100,
    ).model
    again = back(model)
    assert again == model
    assert again.meaning("[A]") is not None
    assert again.assumptions == model.assumptions != ()


def test_a_concentration_keeps_its_place_among_observables():
    model = st.Model.parse("species A = 1\nobservable [A] = A / 2\nobservable twice = 2 * A\ndecay: A -> 0 @ A")
    assert back(model) == model


def test_a_concentration_is_the_same_where_the_counts_are_scaled_again():
    model = read_antimony("compartment c=2; species A in c; r: A -> ; A; A=.5", scale=100).model
    again = read_sbml(write_sbml(model), scale=10).model
    assert str(again.meaning("[A]")) == "A_count_count / scale_ / scale / c"


def test_a_variable_that_may_be_negative_stays_so():
    model = Model((Variable("x", Number(0.0), None, None),), (Transition("up", Number(1.0), produced=(("x", 1),)),))
    assert back(model) == model


def test_assignments_that_add_a_number_are_reactions():
    x, step = Variable("x", Number(5.0)), Operation("+", (Name("x"), Number(2.0)))
    up = Transition("up", Number(1.0), update=(("x", step),))
    assert back(Model((x,), (up,))).transitions == (Transition("up", Number(1.0), produced=(("x", 2),)),)
    down = Operation("+", (Name("x"), Operation("-", (Number(2.0),))))
    taken = back(Model((x,), (Transition("down", Name("x"), update=(("x", down),)),)))
    assert taken.transitions == (Transition("down", Name("x"), consumed=(("x", 2),)),)


def test_a_model_from_the_prism_language_goes_through_sbml():
    queue = read_prism("""
        ctmc
        const double arrival;
        module queue
            jobs : [0..5];
            [] jobs < 5 -> arrival : (jobs'=jobs+1);
            [] jobs > 0 -> 2 : (jobs'=jobs-1);
        endmodule
    """).model
    assert back(queue) == queue


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Model((Variable("a b", Number(1.0)),), ()), "SBML cannot express the name a b"),
        (Model((Variable("größe", Number(1.0)),), ()), "SBML cannot express the name größe"),
        (
            Model((Variable("x", Number(1.0)),), (Transition("x", Number(1.0)),)),
            "two things are called x, and SBML has one id for each",
        ),
        (
            Model((Variable("x", Number(1.0)),), (Transition("r", Number(1.0), update=(("x", Number(0.0)),)),)),
            "r sets x to 0, which SBML cannot express",
        ),
    ],
)
def test_what_sbml_cannot_say_is_refused_by_name(model, words):
    with pytest.raises(st.ModelError, match=words):
        write_sbml(model)


@given(draws.floats(min_value=2.3e-308, allow_infinity=False))
def test_every_number_reads_back(value):
    model = Model(
        (Variable("x", Number(1.0)),),
        (Transition("r", Operation("*", (Number(value), Name("x"))), consumed=(("x", 1),)),),
        (Parameter("k", -value),),
        (Constant("c", Number(value)),),
    )
    assert back(model) == model


def test_the_compartment_does_not_take_the_name_of_something_else():
    model = st.Model.parse("species compartment = 3\ncompartment_: compartment -> 0 @ compartment")
    assert back(model) == model


def test_rates_in_time_are_written_with_the_time_of_sbml():
    model = Model.parse("species X = 1\nparameter k\nup: 0 -> X @ k * (1 + sin(time)) when time >= 2 and X < 9")
    assert back(model) == model
    assert 'definitionURL="http://www.sbml.org/sbml/symbols/time"' in write_sbml(model)
    with pytest.raises(st.ModelError, match="in SBML time would be taken for the clock"):
        write_sbml(Model.parse("species X = 1\nparameter time\nup: 0 -> X @ time"))
