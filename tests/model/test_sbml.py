"""SBML, construct by construct: what is read is the model that sateen's own text describes."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest

import sateen as st
from sateen.core.text import number_text
from sateen.language.grammar import parse_expression
from sateen.model.sbml import read_sbml
from sateen.model.sbml_written import write_sbml
from sbml_texts import (
    assignment,
    compartment,
    document,
    element,
    event,
    formula,
    function,
    parameter,
    reaction,
    reference,
    rule,
    species,
)

X = species("X", 10)
K = parameter("k", 0.5)
DECAY = reaction("decay", {"X": 1})


def read(*parts: str, **more: object) -> st.Model:
    return read_sbml(document(*parts, **more)).model


def same(text: str, *parts: str, **more: object) -> None:
    assert read(*parts, **more) == st.Model.parse(text)


def test_a_species_a_parameter_and_a_reaction():
    same("species X = 10\nparameter k = 0.5\ndecay: X -> 0 @ k * X", X, K, DECAY)


def test_level_2_has_its_own_defaults():
    file = """<?xml version="1.0" encoding="UTF-8"?>
    <sbml xmlns="http://www.sbml.org/sbml/level2/version4" level="2" version="4"><model id="m">
      <listOfCompartments><compartment id="C" size="2"/></listOfCompartments>
      <listOfSpecies><species id="X" compartment="C" initialConcentration="5"/></listOfSpecies>
      <listOfReactions><reaction id="decay">
        <listOfReactants><speciesReference species="X"/></listOfReactants>
        <kineticLaw><math xmlns="http://www.w3.org/1998/Math/MathML">
          <apply><times/><ci>C</ci><ci>k</ci><ci>X</ci></apply></math>
          <listOfParameters><parameter id="k" value="0.5"/></listOfParameters></kineticLaw>
      </reaction></listOfReactions>
    </model></sbml>"""
    text = "species X = 10\nconstant C = 2\nparameter k = 0.5\ndecay: X -> 0 @ C * k * (X / C)"
    text += "\nobservable [X] = X / C"
    assert read_sbml(file).model == st.Model.parse(text)


@pytest.mark.parametrize("amounts", ["true", "false"])
def test_in_a_compartment_of_size_1_a_concentration_is_an_amount(amounts):
    text = "species X = 10\nparameter k = 0.5\ndecay: X -> 0 @ k * X"
    same(text, species("X", 10, hasOnlySubstanceUnits=amounts), K, DECAY)


def test_a_concentration_is_the_amount_over_the_size_wherever_it_is_read_or_set():
    model = read(
        compartment(size=0.5),
        species("X", None, initialConcentration=20, hasOnlySubstanceUnits="false"),
        K,
        DECAY,
        event("more", "X < 3", {"X": "X + 2"}),
    )
    same_model = """
        species X = 10
        constant C = 0.5
        parameter k = 0.5
        observable [X] = X / C
        decay: X -> 0 @ k * (X / C)
        event more: X := (X / C + 2) * C when X / C < 3
    """
    assert model == st.Model.parse(same_model)


def test_an_amount_that_is_whole_up_to_rounding_is_whole():
    assert 0.29 * 100 != 29
    model = read(compartment(size=0.29), species("X", None, initialConcentration=100), K, DECAY)
    assert str(model.variables[0].initial) == "29"


def test_a_size_that_nothing_reads_may_be_missing():
    same("species X = 10\nparameter k = 0.5\ndecay: X -> 0 @ k * X", compartment(size=None), X, K, DECAY)


@pytest.mark.parametrize("kind", [{"constant": "true", "boundaryCondition": "true"}, {"boundaryCondition": "true"}])
def test_constant_and_boundary_species_are_constants_that_reactions_do_not_change(kind):
    model = read(X, species("Sink", 3, **kind), K, reaction("decay", {"X": 1, "Sink": 2}, {"Sink": 1}, "k * X * Sink"))
    text = "species X = 10\nconstant Sink = 3\nparameter k = 0.5\ndecay: X -> 0 @ k * X * Sink"
    text += "\nobservable [Sink] = Sink"
    assert model == st.Model.parse(text)


def test_a_boundary_species_that_an_event_sets_is_changed_by_the_event_only():
    model = read(
        X,
        species("B", 1, boundaryCondition="true"),
        K,
        reaction("decay", {"X": 1, "B": 1}, law="k * X * B"),
        event("stop", "X < 5", {"B": "0"}),
    )
    text = """
        species X = 10, B = 1
        parameter k = 0.5
        decay: X -> 0 @ k * X * B
        event stop: B := 0 when X < 5
    """
    assert model == st.Model.parse(text)


def test_a_constant_species_need_not_be_a_whole_number():
    model = read(X, species("E", 0.25, constant="true", boundaryCondition="true"), K, DECAY)
    assert [str(each.value) for each in model.constants] == ["0.25"]


def test_local_parameters_keep_their_names_if_nothing_else_has_them():
    two = parameter("own", 2).replace("<parameter", "<localParameter").replace(' constant="true"', "")
    three = two.replace('"2"', '"3"')
    shadow = three.replace('"own"', '"k"')
    same(
        "species X = 10\nparameter k = 0.5, own = 2\ndecay: X -> 0 @ own * k * X",
        X,
        K,
        reaction("decay", {"X": 1}, law="own * k * X", local=two),
    )
    same(
        """
        species X = 10
        parameter k = 0.5, a_own = 2, b_own = 3, b_k = 3
        a: X -> 0 @ a_own * k * X
        b: X -> 0 @ b_own * b_k * X
        """,
        X,
        K,
        reaction("a", {"X": 1}, law="own * k * X", local=two),
        reaction("b", {"X": 1}, law="own * k * X", local=three + shadow),
    )


def test_a_parameter_without_a_value_is_one_that_must_be_given():
    same("species X = 10\nparameter k\ndecay: X -> 0 @ k * X", X, parameter("k"), DECAY)


def test_functions_are_put_in_where_they_are_called():
    same(
        "species X = 10\nparameter k = 0.5\ndecay: X -> 0 @ k * (X * 2) + X * 2",
        X,
        K,
        function("twice", "lambda(x, x * 2)"),
        function("scaled", "lambda(x, y, x * twice(y))"),
        reaction("decay", {"X": 1}, law="scaled(k, X) + twice(X)"),
    )


def test_an_initial_assignment_makes_a_constant_of_a_parameter_and_an_expression_of_an_amount():
    same(
        """
        species X = 3 * k2, Y = 5
        constant k2 = 2 * k
        constant k3 = k2 + 5
        parameter k = 4
        decay: X -> Y @ k3 * X
        """,
        species("X", None),
        species("Y", 5),
        parameter("k", 4),
        parameter("k3", 7),
        parameter("k2"),
        assignment("k3", "k2 + Y"),
        assignment("k2", "2 * k"),
        assignment("X", "3 * k2"),
        reaction("decay", {"X": 1}, {"Y": 1}, "k3 * X"),
    )


def test_what_rules_set_is_put_in_where_it_is_read():
    made = read_sbml(
        document(
            X,
            species("Y", 0),
            species("total", 0),
            K,
            parameter("speed", constant="false"),
            parameter("fixed", constant="false"),
            rule("speed", "fixed * total"),
            rule("fixed", "2 * k"),
            rule("total", "X + Y"),
            reaction("decay", {"X": 1}, {"Y": 1}, "speed * X", modifiers=("total",)),
        )
    )
    text = "species X = 10, Y = 0\nconstant fixed = 2 * k\nparameter k = 0.5\ndecay: X -> Y @ fixed * (X + Y) * X"
    text += "\nobservable total = X + Y, speed = fixed * (X + Y)"
    assert made.model == st.Model.parse(text)
    assert {name: str(value) for name, value in made.rules.items()} == {"total": "X + Y", "speed": "fixed * (X + Y)"}
    assert [note.split(": ", 1)[1] for note in made.model.warnings] == [
        "total is inlined: total = X + Y",
        "speed is inlined: speed = fixed * (X + Y)",
    ]


def test_a_rule_for_a_concentration_gives_the_amount_times_the_size():
    made = read_sbml(
        document(
            compartment(size=2),
            species("X", 10),
            species("y", None, hasOnlySubstanceUnits="false"),
            K,
            rule("y", "2 * X"),
            DECAY,
        )
    )
    assert str(made.rules["y"]) == "2 * X * C"


def test_at_the_start_rules_and_amounts_are_read_as_they_are_then():
    same(
        "species X = 10, Y = (10 + 1) * 2 + 0\nparameter k = 0.5\n"
        "observable twice = (X + 1) * 2\ndecay: X -> 0 @ k * X",
        X,
        species("Y", None),
        K,
        parameter("twice", constant="false"),
        rule("twice", "(X + 1) * 2"),
        assignment("Y", "twice + time"),
        DECAY,
    )


def test_the_id_of_a_reaction_is_its_rate():
    same(
        "species X = 10\nparameter k = 0.5\ndecay: X -> 0 @ k * X\nback: 0 -> X @ k * X / 2",
        X,
        K,
        DECAY,
        reaction("back", produced={"X": 1}, law="decay / 2"),
    )


def test_references_to_one_species_are_added_up_and_modifiers_change_nothing():
    same(
        "species X = 10, Y = 0, Z = 1\nparameter k = 0.5\nr: 3 X -> 10 Y @ k * X * (X - 1) * (X - 2) * Z",
        X,
        species("Y"),
        species("Z", 1),
        K,
        reaction(
            "r", reference("X", 1) + reference("X", 2), {"Y": 10}, "k * X * (X - 1) * (X - 2) * Z", modifiers=("Z",)
        ),
    )


def test_a_stoichiometry_may_be_set_by_a_constant_which_is_then_no_parameter():
    text = "species X = 10\nconstant n = 2\nparameter k = 0.5\nr: 0 -> 3 X @ k * 3"
    many = element("speciesReference", species="X", id="s", stoichiometry=1, constant="true")
    parts = [X, K, parameter("n", 2), reaction("r", produced=many, law="k * s"), assignment("s", "n + 1")]
    same(text, *parts)
    math_of = element("stoichiometryMath", formula("n + 1"))
    old = element("speciesReference", math_of, species="X")
    attributes = {"fast": None, "modifiers": ()}
    same(
        text.replace("k * 3", "k"),
        element("species", id="X", compartment="C", initialAmount=10, hasOnlySubstanceUnits="true"),
        K,
        parameter("n", 2),
        reaction("r", produced=old, law="k", **attributes),
        level=(2, 4),
    )


def test_a_rational_stoichiometry_of_level_2_is_divided():
    def taking(rational: str) -> st.Model:
        math = f'<cn type="rational">{rational}</cn>'
        many = element("speciesReference", element("stoichiometryMath", formula(math)), species="X")
        old = element("species", id="X", compartment="C", initialAmount=10, hasOnlySubstanceUnits="true")
        return read(old, K, reaction("r", many, law="k * X * (X - 1)", fast=None), level=(2, 4))

    assert taking("4<sep/>2").transitions[0].change == {"X": -2}
    with pytest.raises(st.ModelError, match=r"is 1\.5.*\n(.*\n)*.*whole number from 0 on"):
        taking("3<sep/>2")


def test_the_avogadro_constant_is_that_of_the_version_of_sbml():
    for version, fast, value in ((1, "false", "6.02214179e+23"), (2, None, "6.02214076e+23")):
        made = read(X, K, reaction("r", {"X": 1}, law="X / avogadro", fast=fast), level=(3, version))
        assert str(made.transitions[0].rate) == f"X / {value}"


def test_a_constant_whole_conversion_factor_multiplies_what_reactions_change():
    model = read(
        species("X", 10, conversionFactor="f"), K, parameter("f", 2), reaction("r", produced={"X": 3}, law="k")
    )
    assert model == st.Model.parse("species X = 10\nconstant f = 2\nparameter k = 0.5\nr: 0 -> 6 X @ k")


def test_a_rate_that_is_0_but_for_one_condition_has_a_guard():
    same(
        "species X = 10\nparameter k = 0.5\ndecay: X -> 0 @ k * X when X > 3",
        X,
        K,
        reaction("decay", {"X": 1}, law="piecewise(k * X, X > 3, 0)"),
    )


def test_bounds_are_read_from_constraints_and_other_constraints_are_noted():
    bounded = [element("constraint", formula(each)) for each in ("X <= 12", "X >= 2", "Y >= -inf", "X + Y <= 20")]
    model = read(X, species("Y"), K, reaction("decay", {"X": 1}, {"Y": 1}), *bounded)
    assert [(each.low, each.high) for each in model.variables] == [(2, 12), (None, None)]
    assert [note.split(": ")[1] for note in model.warnings if "constraint" in note] == [
        "the constraint is not checked during runs"
    ]


FORMULAS = {
    "X + k - 2": "X + k - 2",
    "-X": "-X",
    "X * k / 4": "X * k / 4",
    "X^k": "X^k",
    "sqrt(X)": "sqrt(X)",
    "root(3, X)": "X^(1/3)",
    "exp(X) + ln(X)": "exp(X) + log(X)",
    "log10(X)": "log(X) / log(10)",
    "log(2, X)": "log(X) / log(2)",
    "abs(X) + floor(k) + ceil(k)": "abs(X) + floor(k) + ceil(k)",
    "piecewise(1, X > 5, 2, X > 3, 4)": "if(X > 5, 1, if(X > 3, 2, 4))",
    "pi * exponentiale": f"{math.pi!r} * {math.e!r}",
    "avogadro / 1e23": "602214179000000000000000 / 1e23",
    "1.5e-5": "1.5e-5",
    "6.02e23 * X": "6.02e23 * X",
    "(1/2) * X": "0.5 * X",
    "piecewise(1, X > 5 && k < 1 || !(X == 2), 0)": "if(X > 5 and k < 1 or not X == 2, 1, 0)",
    "piecewise(1, xor(X > 1, k > 1), 0)": "if(X > 1 and not k > 1 or not X > 1 and k > 1, 1, 0)",
    "piecewise(1, 1 < X < 5, 0)": "if(1 < X and X < 5, 1, 0)",
    "piecewise(1, X != 3, 0)": "if(X != 3, 1, 0)",
    "piecewise(1, true, 0)": "if(true, 1, 0)",
}


@pytest.mark.parametrize(("written", "meant"), FORMULAS.items())
def test_a_formula_is_read_as_the_expression_it_is(written, meant):
    model = read(X, K, parameter("value"), assignment("value", written.replace("X", "k2")), parameter("k2", 3), DECAY)
    (constant,) = model.constants
    assert constant.value == parse_expression(meant.replace("X", "k2"))


ONLY_IN_VERSION_2 = {
    "min(X, k, 2) + max(X, k)": "min(X, k, 2) + max(X, k)",
    "quotient(X, 3)": "if(X / 3 >= 0, floor(X / 3), ceil(X / 3))",
    "rem(X, 3)": "X - 3 * if(X / 3 >= 0, floor(X / 3), ceil(X / 3))",
    "(X > 2) * k": "if(X > 2, 1, 0) * k",
    "piecewise(1, implies(X > 1, k > 1), 0)": "if(not X > 1 or k > 1, 1, 0)",
    "piecewise(1, X && true, 0)": "if(X != 0 and true, 1, 0)",
    "piecewise(1, piecewise(X > 1, k > 1, X > 2), 0)": "if(k > 1 and X > 1 or not k > 1 and X > 2, 1, 0)",
}


@pytest.mark.parametrize(("written", "meant"), ONLY_IN_VERSION_2.items())
def test_version_2_mixes_conditions_and_numbers_and_has_more_functions(written, meant):
    parts = [X, K, parameter("value"), assignment("value", written.replace("X", "k2")), parameter("k2", 3)]
    model = read(*parts, reaction("decay", {"X": 1}, fast=None), level=(3, 2))
    assert model.constants[0].value == parse_expression(meant.replace("X", "k2"))


@pytest.mark.parametrize("value", [0.1, 1e-300, 123456789.125, 2.25e-308, 1.7976931348623157e308, 0.1 + 0.2])
def test_every_digit_of_a_number_is_kept(value):
    mantissa, _, exponent = f"{value!r}".partition("e")
    written = [f"<cn>{value!r}</cn>", f'<cn type="e-notation">{mantissa}<sep/>{exponent or 0}</cn>']
    for each in written:
        model = read(X, parameter("k", repr(value)), parameter("c"), assignment("c", each), DECAY)
        assert model.parameters[0].default == value
        assert str(model.constants[0].value) == number_text(value)


def test_rates_read_the_time_as_the_clock_by_themselves_and_by_rules():
    same(
        """
        species X = 10
        parameter k = 0.5
        wave:  0 -> X @ k * (1 + sin(time / 4))
        early: 0 -> X @ k when time < 5
        decay: X -> 0 @ k * X * if(time > 3, 2, time)
        """,
        X,
        K,
        parameter("drug", constant="false"),
        rule("drug", "piecewise(2, time > 3, time)"),
        reaction("wave", produced={"X": 1}, law="k * (1 + sin(time / 4))"),
        reaction("early", produced={"X": 1}, law="piecewise(k, time < 5, 0)"),
        reaction("decay", {"X": 1}, law="k * X * drug"),
    )


def test_what_a_rule_sets_from_the_time_is_no_observable_and_a_note_says_so():
    model = read(
        X, K, parameter("drug", constant="false"), rule("drug", "k * time"), reaction("d", {"X": 1}, law="drug * X")
    )
    (note,) = (each for each in model.warnings if "drug" in each)
    assert note.endswith("drug is inlined: drug = k * time; it reads the time, so formulas and paths cannot show it")
    assert model.observables == ()


def test_a_net_rate_in_time_is_split_and_its_parts_read_the_clock():
    split = read(
        species("X", 10), species("Y"), K,
        reaction("turn", {"X": 1}, {"Y": 1}, law="k * X * (1 + cos(time)) - k * Y", reversible="true"),
    )  # fmt: skip
    assert [str(each.rate) for each in split.transitions] == ["k * X * (1 + cos(time))", "k * Y"]
    assert split.timed


def test_a_dose_at_a_time_is_followed_as_its_solution_says():
    """X decays at rate 1 until time 1, and then at rate 3."""
    model = read(species("X", 400), reaction("decay", {"X": 1}, law="X * piecewise(1, time < 1, 3)"))
    ensemble = st.simulate(model, times=[1, 1.5], runs=2000, seed=1)
    for place, mean in enumerate((math.exp(-1), math.exp(-2.5))):
        assert abs(ensemble.mean[place, 0] - 400 * mean) < 4.9 * math.sqrt(400 * mean * (1 - mean) / 2000)


def test_events_on_time_and_on_state_set_species_and_parameters():
    same(
        """
        species X = 10
        real k = 0.5
        decay: X -> 0 @ k * X
        event reset: X := 50, k := k / 2 when time >= 25 initially false
        event low: X := 10 when X < 3 and time < 40
        """,
        X,
        parameter("k", 0.5, constant="false"),
        DECAY,
        event("reset", "time >= 25", {"X": "50", "k": "k / 2"}, initial="false"),
        event("low", "X < 3 && time < 40", {"X": "10"}),
    )


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("25 <= time", "time >= 25"),
        ("time - 5 > k", "time > k + 5"),
        ("k < time + X", "time > k - X"),
        ("!(time < 3)", "not time < 3"),
        ("2*time > 3", "time > 3 / 2"),
        ("10 - time*4/2 <= X", "time >= (-X + 10) / 2"),
        ("-(time) < -k", "time > k"),
    ],
)
def test_the_clock_is_brought_alone_to_the_left_of_its_comparison(written, meant):
    model = read(X, K, DECAY, event("e", written, {"X": "1"}))
    assert (
        model.events[0].trigger
        == st.Model.parse(f"species X = 10\nparameter k\nX -> 0 @ k * X\nevent e: X := 1 when {meant}")
        .events[0]
        .trigger
    )


def test_events_of_level_2_do_not_fire_at_the_start_and_may_be_nameless():
    old = event("", "X < 5", {"X": "7"}, initial=None, persistent=None, useValuesFromTriggerTime=None)
    x = element("species", id="X", compartment="C", initialAmount=10, hasOnlySubstanceUnits="true")
    decay = reaction("decay", element("speciesReference", species="X"))
    model = read(x, K, decay, old, level=(2, 4))
    assert [(each.name, each.initially) for each in model.events] == [("event_1", True)]


def test_what_version_2_leaves_out_says_nothing():
    never = event("never", "X < 5", {"X": "1"}).partition("<trigger")[0] + "</event>"
    parts = [X, K, parameter("p", 2), element("initialAssignment", symbol="p"), never]
    model = read(*parts, reaction("decay", {"X": 1}, law="p * k * X", fast=None), level=(3, 2))
    assert model == st.Model.parse("species X = 10\nparameter k = 0.5, p = 2\ndecay: X -> 0 @ p * k * X")
    assert [note.partition(": ")[2] for note in model.warnings] == [
        "the event never has no trigger, so it never happens"
    ]


def test_a_size_may_be_computed_and_a_point_has_none():
    text = "species X = 10\nconstant C = 2 * k\nparameter k = 0.5\ndecay: X -> 0 @ k * (X / C)"
    text += "\nobservable [X] = X / C"
    x = species("X", 10, hasOnlySubstanceUnits="false")
    same(text, compartment(size=None), assignment("C", "2 * k"), x, K, DECAY)
    same(text, compartment(size=None, constant="false"), rule("C", "2 * k"), x, K, DECAY)
    point = compartment(size=None, spatialDimensions=0)
    same("species X = 10\nparameter k = 0.5\ndecay: X -> 0 @ k * X", point, x, K, DECAY)


def test_priorities_order_events_and_those_without_come_last_as_they_stand():
    def priority(value: str) -> str:
        return element("priority", formula(value))

    model = read(
        X,
        K,
        DECAY,
        event("a", "X < 5", {"X": "1"}),
        event("b", "X < 5", {"X": "2"}, priority("-1")),
        event("c", "X < 5", {"X": "3"}, priority("3")),
        event("d", "X < 5", {"X": "4"}),
        event("e", "X < 5", {"X": "5"}, priority("3")),
    )
    assert [each.name for each in model.events] == ["c", "e", "b", "a", "d"]


def test_a_delay_of_nothing_is_none_and_a_single_event_may_be_as_impatient_as_it_likes():
    none = element("delay", formula("0"))
    model = read(
        X, K, DECAY, event("e", "X < 5", {"X": "1"}, none, persistent="false", useValuesFromTriggerTime="false")
    )
    assert len(model.events) == 1


def test_what_may_go_below_0_is_doubted():
    with pytest.warns(st.ModelWarning, match="drain consumes X, which its rate k does not see: X could fall below 0"):
        model = read(X, K, reaction("drain", {"X": 1}, law="k"))
    assert model.warnings[0].startswith("line 14: drain consumes X")


def test_packages_that_need_not_be_understood_and_moles_are_noted():
    layout = ' xmlns:layout="http://www.sbml.org/sbml/level3/version1/layout/version1" layout:required="false"'
    with pytest.warns(st.ModelWarning, match="the unit of amounts is the mole"):
        model = read(X, K, DECAY, attributes=layout, substanceUnits="mole")
    assert model.warnings == (
        "the package layout is not read",
        "line 3: the unit of amounts is the mole; they are read as molecules, unless a scale says how many it has",
    )


def test_a_model_from_sbml_runs_in_all_engines_and_they_agree_with_the_closed_form():
    model = read(X, K, DECAY, event("late", "time >= 2", {"X": "3"}, initial="false"))
    assert st.simulate(model, until=2, seed=1).at(2) == {"X": 3.0}
    alive = st.stl("F[4, 4] X == 0")
    expected = (1 - math.exp(-0.5 * 2)) ** 3
    assert st.exact(model, alive, {})[0] == pytest.approx(expected, abs=1e-9)
    runs = st.observe(model, alive, st.Space().uniform(1, seed=1), runs=20_000, seed=2)
    assert abs(runs.frequency[0] - expected) < 4.9 * math.sqrt(expected * (1 - expected) / 20_000)


@pytest.mark.parametrize("encoding", ["utf-8", "US-ASCII", "ISO-8859-1"])
def test_an_encoding_that_changes_nothing_may_be_declared(encoding):
    assert read_sbml(document(X, K, DECAY).replace("UTF-8", encoding)).model == read(X, K, DECAY)


def test_the_first_line_may_be_missing_or_say_less():
    text, model = document(X, K, DECAY), read(X, K, DECAY)
    for other in (text.partition("\n")[2], text.replace(' encoding="UTF-8"', ""), f"\ufeff{text}"):
        assert read_sbml(other).model == model


@pytest.mark.parametrize("name", ["min", "inf", "when", "if", "_x", "lambda"])
def test_a_name_that_means_something_here_is_still_a_name(name):
    law = f"<apply><times/><ci>k</ci><ci>{name}</ci></apply>"
    model = read(species(name, 3), K, reaction("decay", {name: 1}, law=law))
    assert model.species == (name,)
    assert st.Model.parse(str(model)) == model
    assert read_sbml(write_sbml(model)).model == model


def test_files_are_found_by_their_suffix(tmp_path):
    for suffix in (".xml", ".sbml", ".XML"):
        file = tmp_path / f"model{suffix}"
        file.write_text("\ufeff" + document(X, K, DECAY), encoding="utf-8")
        assert st.Model.load(file) == read(X, K, DECAY)


def test_a_chain_of_rules_is_read_however_long_it_is_unless_it_is_too_deep():
    def chain(length: int) -> list[str]:
        rules = [rule(f"y{each}", f"y{each - 1} + 1" if each else "X + 1") for each in range(length)]
        return [parameter(f"y{each}", constant="false") for each in range(length)] + rules[::-1]

    model = read(X, K, *chain(150), reaction("decay", {"X": 1}, law="y149 * X"))
    assert len(model.transitions[0].rate.names) == 1
    deep = [each.replace("+ 1", "* 2") for each in chain(150)]
    deep = [each.replace("<plus/>", "<divide/>") for each in deep]
    with pytest.raises(st.ModelError, match="more than 100 levels of operations"):
        read(X, K, *deep, DECAY)


@pytest.mark.parametrize(("library", "suffix"), [("libsbml", ".xml"), ("antimony", ".ant")])
def test_without_its_library_a_file_is_refused_with_how_to_install_it(library, suffix, tmp_path, monkeypatch):
    file = tmp_path / f"model{suffix}"
    file.write_text(document(X, K, DECAY) if suffix == ".xml" else "A -> ; A; A = 1", encoding="utf-8")
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(st.ModelError, match="which is not installed") as error:
        st.Model.load(file)
    assert error.value.remedy.startswith("install it with  pip install antimony python-libsbml, or in a clone")


def test_import_sateen_loads_neither_library():
    program = "import sys, sateen; sateen.Model; print(*{'libsbml', 'antimony', 'lark'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
