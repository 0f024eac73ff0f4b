"""Net rates: what is split, into what, what is refused, and that claims name it."""

from __future__ import annotations

import numpy as np
import pytest

import sateen as st
from sateen.core.seeds import stream
from sateen.language.grammar import parse_expression
from sateen.model.antimony import read_antimony
from sateen.model.sbml import read_sbml
from sateen.model.sbml_split import Splitter
from sbml_texts import document, parameter, reaction, species

X = species("X", 10)
K = parameter("k", 0.5)
DECAY = reaction("decay", {"X": 1}, law="k * X")
START = "A = 10; B = 3; C = 2; k = 1; q = 2; Vf = 1; Vr = 2; Ks = 3; Kp = 4; z = 0; m = -1"
NAMES = {"k": 1.0, "q": 2.0, "Vf": 1.0, "Vr": 2.0, "Ks": 3.0, "Kp": 4.0, "m": -1.0}
LAWS = {
    "a difference": ("k * A - q * B", "k * A", "q * B"),
    "with a factor behind": ("(A - B) * k", "A * k", "B * k"),
    "with a factor before": ("k * (A - B)", "k * A", "k * B"),
    "over something positive": ("(A - B) / (1 + A)", "A / (1 + A)", "B / (1 + A)"),
    "a sum of those": ("k * (A - B) + q * (A - C)", "k * A + q * A", "k * B + q * C"),
    "Michaelis and Menten": (
        "(Vf * A / Ks - Vr * B / Kp) / (1 + A / Ks + B / Kp)",
        "Vf * A / Ks / (1 + A / Ks + B / Kp)",
        "Vr * B / Kp / (1 + A / Ks + B / Kp)",
    ),
    "logistic growth": ("k * A * (1 - A / q)", "k * A", "k * A * (A / q)"),
    "towards a constant": ("k * (A - 3)", "k * A", "k * 3"),
    "with a negative constant": ("k * A + m * B", "k * A", "-m * B"),
    "with a negative factor": ("(q - 4) * (A - B)", "-(q - 4) * B", "-(q - 4) * A"),
    "with a negative term": ("q * A + -3 - B * (1 - C / (C + 1))", "q * A", "3 + B * (1 - C / (C + 1))"),
    "with a sum that is never positive": ("q * A + k * B * (C / (C + 1) - 1)", "q * A", "k * B * -(C / (C + 1) - 1)"),
    "in a choice": ("if(A > 3, A - B, 0)", "if(A > 3, A, 0)", "if(A > 3, B, 0)"),
}


@pytest.mark.parametrize("case", LAWS)
def test_a_net_rate_is_split_by_its_form(case):
    law, forward, backward = (parse_expression(text) for text in LAWS[case])
    split = Splitter(NAMES).split(law)
    assert split is not None
    assert split.exact
    random = stream(1, "states")
    state = {**NAMES, **{name: random.uniform(0, 100, 50) for name in "ABC"}}
    for ours, known in ((split.forward, forward), (split.backward, backward)):
        assert np.allclose(ours.evaluate(state), known.evaluate(state), rtol=1e-12, atol=0)
    assert np.allclose(split.forward.evaluate(state) - split.backward.evaluate(state), law.evaluate(state), atol=1e-9)


@pytest.mark.parametrize(
    "law", ["k * A", "k * A * (A - 1) / 2", "if(A > B, A - B, 0)", "k * A * (A - 1) * (A - 2)", "(A - B)^2"]
)
def test_what_is_negative_in_no_state_has_one_direction(law):
    assert Splitter(NAMES).split(parse_expression(law)) is None


@pytest.mark.parametrize(
    "law", ["(A - B) * (B - C)", "(A - B)^3", "k * A / (A - B)", "log(1 + A) - B * (A - C) * (B - A)"]
)
def test_a_law_whose_form_shows_no_two_rates_is_not_split(law):
    split = Splitter(NAMES).split(parse_expression(law))
    assert split is not None
    assert not split.exact
    with pytest.raises(st.ModelError, match="cannot be split") as refused:
        read_antimony(f"r: A -> B; {law.replace('log', 'ln')}\n{START}")
    assert "forward:" in str(refused.value)
    assert "back:" in str(refused.value)


def test_logistic_growth_in_antimony_is_birth_and_death():
    made = read_antimony("grow: -> Prey; growth*Prey*(1 - Prey/K)\nPrey = 10; growth = 0.5; K = 100").model
    assert made == st.Model.parse("""
        species Prey = 10
        parameter growth = 0.5, K = 100
        grow: 0 -> Prey @ growth * Prey
        grow_reverse: Prey -> 0 @ growth * Prey * (Prey / K)
    """)
    assert made.warnings == (
        "line 1: the net rate of grow is split: forward growth * Prey, back growth * Prey * (Prey / K) "
        "(as grow_reverse)",
    )


def test_a_rate_constant_that_is_0_by_default_still_has_its_direction():
    made = read_antimony(f"r: A -> B; k*A - z*B\n{START}").model
    assert [str(each.rate) for each in made.transitions] == ["k * A", "z * B"]


def test_the_attribute_reversible_is_judged_by_the_law():
    way = read_sbml(document(X, K, reaction("decay", {"X": 1}, reversible="true"))).model
    assert way == read_sbml(document(X, K, DECAY)).model
    assert way.assumptions == ()
    # Said to be irreversible, but negative at the start.
    law = {"law": "k * (3 - X)", "reversible": "false"}
    parts = read_sbml(document(X, K, reaction("r", produced={"X": 1}, **law))).model
    assert [each.name for each in parts.transitions] == ["r", "r_reverse"]
    # Said to be irreversible, and a rate at the start.
    law["law"] = "k * (30 - X)"
    with pytest.warns(st.ModelWarning, match="forward k \\* 30, back k \\* X, and is read as one rate"):
        assert len(read_sbml(document(X, K, reaction("r", produced={"X": 1}, **law))).model.transitions) == 1


@pytest.mark.parametrize(
    ("text", "scale"),
    [
        ("g: X -> 2 X; r*X*(1-X/K); X=2999900; r=1; K=3000000", None),
        ("compartment c=1e6; species X in c; g: -> X; c*r*X*(1-X/K); X=1e-3; r=1; K=10", 1),
        *((f"g: A{place} -> B; k1*A{place} - k2*B; A{place}=1; B=1; k1=1e8; k2=1", None) for place in (7, 28, 33, 36)),
    ],
)
def test_where_a_rate_becomes_negative_does_not_matter_to_the_split(text, scale):
    made = read_antimony(text, scale=scale).model
    assert [each.name for each in made.transitions] == ["g", "g_reverse"]
    assert "the net rate of g is split" in made.assumption


def test_what_is_proved_to_be_a_rate_is_no_part_of_a_split():
    made = read_antimony(f"r: 2 A -> B; k*A*(A - 1)/2 - q*B*(1 - C/(C + Ks))\n{START}").model
    assert [str(each.rate) for each in made.transitions] == ["k * A * (A - 1) / 2", "q * B * (1 - C / (C + Ks))"]


def test_a_factor_that_both_parts_of_a_rate_have_is_cancelled():
    made = read_antimony("r: A + B -> C; k*A*B*(1 - C/(A*B)/Keq)\nA = 1; B = 1; C = 0; k = 2; Keq = 3").model
    assert [str(each.rate) for each in made.transitions] == ["k * A * B", "k * C / Keq"]
    path = st.simulate(made, until=20, seed=1)
    assert path.end == 20
    assert (path.states >= 0).all()


@pytest.mark.parametrize("law", ["k*A*sin(B)", "k*A*ln(B + 0.5)", "k*A*sin(time)"])
def test_a_law_of_one_part_that_is_negative_somewhere_is_refused(law):
    with pytest.raises(st.ModelError, match="negative in some states, and cannot be split") as refused:
        read_antimony(f"r: A -> B; {law}\n{START}")
    assert "back: 0" in str(refused.value)
    assert "csymbol" not in str(refused.value)
    with pytest.warns(st.ModelWarning, match="negative in some states, where a run stops"):
        assert len(read_antimony(f"r: A => B; {law}\n{START}").model.transitions) == 1


def test_a_law_that_is_never_positive_by_a_value_of_the_file_has_one_part():
    with pytest.raises(st.ModelError, match="negative in some states, and cannot be split") as refused:
        read_antimony(f"r: A -> B; m*A\n{START}")
    assert "forward: 0" in str(refused.value)
    with pytest.warns(st.ModelWarning, match="negative in some states, where a run stops: m \\* A"):
        read_antimony(f"r: A => B; m*A\n{START}")


def test_a_law_that_is_neither_proved_nor_seen_to_be_negative_is_noted():
    made = read_antimony(f"r: A -> B; k*A*sin(1/(1 + B))\n{START}").model
    assert made.warnings == (
        "line 1: nothing shows that the rate of r is never negative; a run stops where it is: k * A * sin(1 / (1 + B))",
    )


def test_notes_call_the_clock_time():
    made = read_antimony(f"r: A -> B; k*A*(1 + time) - q*B\n{START}").model
    assert "forward k * A * (1 + time), back q * B" in made.warnings[0]


def test_without_splitting_a_net_rate_is_refused(tmp_path):
    file = tmp_path / "net.ant"
    file.write_text(f"r: A -> B; k*A - q*B\n{START}", encoding="utf-8")
    assert len(st.Model.load(file).transitions) == 2
    with pytest.raises(st.ModelError, match="reversible reaction") as refused:
        st.Model.load(file, split=False)
    assert "the rate of the second would be q * B" in str(refused.value)


@pytest.mark.parametrize("name", ["net.sateen", "net.xml"])
def test_a_split_is_still_named_after_saving(name, tmp_path):
    model = read_antimony("r: A -> B; k*A - q*B\nA = 5; B = 0; k = 1; q = 2").model
    model.save(tmp_path / name)
    again = st.Model.load(tmp_path / name)
    assert again == model
    assert again.assumptions == model.assumptions != ()
    claim = st.estimate(again, st.stl("F[0, 1] B > 2"), {}, runs=50, seed=1).claim
    assert "this assumes that the net rate of r is split" in str(claim)


def test_claims_from_a_split_model_name_the_split():
    model = read_antimony("r: A -> B; k*A - q*B\nA = 5; B = 0; k = 1; q = 2").model
    words = "this assumes that the net rate of r is split into the two directions that the form of the law shows"
    formula = st.stl("F[0, 1] B > 2")
    assert words in str(st.estimate(model, formula, {}, runs=50, seed=1).claim)
    space = st.Space(k=(0.5, 2))
    seen = st.observe(model, formula, space.uniform(20, seed=1), runs=20, seed=2)
    posterior = st.learn(seen, seed=3)
    assert words in str(posterior.predict(space.grid(2)).claim)
    held_out = st.observe(model, formula, space.uniform(80, seed=4), runs=20, seed=5)
    assert words in str(st.calibrate(posterior, held_out, level=0.8, confidence=None).claim)


@pytest.mark.parametrize(
    "law", ["rem(A, 2)", "A % 2", "k * rem(A, 3) * B", "A / q - floor(A / q)", "ceil(A / 2) - A / 2"]
)
def test_what_remains_of_a_division_is_a_rate(law):
    made = read_antimony(f"move: A -> B; {law}; {START}").model
    assert [each.name for each in made.transitions] == ["move"]
    assert made.assumptions == ()


def test_what_remains_of_a_division_less_something_is_split():
    made = read_antimony(f"move: A -> B; floor(B / 2) * A - B; {START}").model
    assert [str(each.rate) for each in made.transitions] == ["floor(B / 2) * A", "B"]


def test_a_difference_is_split_where_the_values_of_the_file_make_it_negative_everywhere():
    made = read_antimony(f"grow: -> A; k*A - q*A; {START}").model
    assert [(each.name, str(each.rate)) for each in made.transitions] == [("grow", "k * A"), ("grow_reverse", "q * A")]
    assert made.assumptions


@pytest.mark.parametrize("law", ["q*A - k*A", "k*A*(1 - k*B/(B + q))", "k*A*(A - k)"])
def test_a_difference_that_only_the_values_of_the_file_make_a_rate_is_noted(law):
    made = read_antimony(f"move: A -> B; {law}; {START}").model
    assert [each.name for each in made.transitions] == ["move"]
    assert any("because it is negative in no state under the values of the file" in note for note in made.warnings)


@pytest.mark.parametrize("law", ["k*A*(1 - B/(B + q))", "(q - k)*A", "k*A*(A - 1)/2", "k*A*(1 - A^q/(Ks^q + A^q))"])
def test_a_rate_under_all_values_or_by_one_factor_is_not_noted(law):
    made = read_antimony(f"move: A -> B; {law}; {START}").model
    assert [each.name for each in made.transitions] == ["move"]
    assert not any("under the values" in note for note in made.warnings)


def test_a_value_under_which_a_law_is_no_rate_any_more_stops_the_run_by_name():
    """The proof that k*A*(1 - c*B/(B + K)) is a rate takes c = 1 from the file."""
    made = read_antimony(f"move: A -> B; k*A*(1 - c*B/(B + K)); c = 1; K = 5; {START}").model
    assert [each.name for each in made.transitions] == ["move"]
    points, formula = st.Space(c=(1, 4)).grid(4), st.stl("F[0, 5] A < 2")
    message = r"the rate of move is -1\.25 at time 0, where A = 10, B = 3.*\n.*c = 3"
    with pytest.raises(st.SimulationError, match=message):
        st.simulate(made, {"c": 3}, times=[5], runs=10, seed=1)
    with pytest.raises(st.SimulationError, match="the rate of move is -"):
        st.observe(made, formula, points, runs=10, seed=1)
    with pytest.raises(st.SimulationError, match="the rate of move is -"):
        st.exact(made, formula, points)
