"""Amounts that are counted in molecules, of which a unit has many: rates, rules, events, formulas, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sateen as st
from command_line import as_json, sateen
from sateen.core.errors import ModelWarning
from sateen.model.antimony import read_antimony
from sateen.model.sbml import read_sbml
from sateen.model.sbml_scale import proposed_scale
from sbml_texts import assignment, compartment, document, element, event, parameter, reaction, rule, species

X = species("X", 10)
K = parameter("k", 0.5)
DECAY = reaction("decay", {"X": 1}, law="k * X")
DIMER = "compartment cell = 2\nspecies A in cell, D in cell\njoin: 2 A -> D; k*A^2*cell\nA = 0.75; D = 0; k = 0.5"


def test_amounts_become_counts_and_rates_follow():
    made = read_antimony(DIMER, scale=100).model
    assert made == st.Model.parse("""
        species A_count = 150, D_count = 0
        constant scale = 100
        constant cell = 2
        parameter k = 0.5
        observable A = A_count / scale, D = D_count / scale
        observable [A] = A_count / scale / cell, [D] = D_count / scale / cell
        join: 2 A_count -> D_count @ scale * (k * (A_count / scale / cell)^2 * cell) when A_count >= 2
    """)
    assert made.warnings[0] == (
        "amounts are counted: 100 molecules are in a unit of amount, A_count = scale * A; "
        "formulas read A as the file does"
    )
    assert made.warnings[1] == "line 3: join has a guard, so that no count falls below 0: when A_count >= 2"


def test_an_odd_molecule_stays_alone():
    made = read_antimony(DIMER, scale=2).model  # 3 molecules
    path = st.simulate(made, until=1e6, seed=1)
    assert path.absorbed
    assert path.at(1e6) == {"A_count": 1, "D_count": 1, "A": 0.5, "D": 0.5, "[A]": 0.25, "[D]": 0.25}


def test_only_a_species_has_a_concentration():
    made = read_antimony("compartment c = 2\nspecies A in c, $E in c\nA -> ; k*c*A*E\nA = 4; E = 3; k = 1").model
    assert str(made.meaning("[E]")) == "E / c"
    alone = read_antimony("species A, $E\nA -> ; k*A*E\nA = 4; E = 3; k = 1").model
    assert [str(alone.meaning(name)) for name in ("[A]", "[E]")] == ["A", "E"]
    for name in ("c", "k"):
        assert made.meaning(f"[{name}]") is None
        with pytest.raises(st.InputError, match=rf"\[{name}\]"):
            st.estimate(made, st.stl(f"F[0, 5] [{name}] > 1"), {}, runs=10, seed=1)


def test_the_units_are_recommended_only_where_they_can_be_counted_by():
    def remedy(*unit: str, amount: float = 0.25) -> str:
        parts = (species("X", amount, substanceUnits="n"), K, DECAY)
        nano = element("listOfUnits", element("unit", kind="mole", exponent=1, scale=unit[0], multiplier=1))
        with pytest.raises(st.ModelError) as refused:
            read_sbml(document(element("unitDefinition", nano, id="n"), *parts))
        return str(refused.value)

    assert '"units" takes what the units of the file say, 6.02214e+14' in remedy("-9", amount=0.0025)
    assert "units" not in remedy("-6")  # 0.25 µmol are too many to be counted
    with pytest.raises(st.ModelError) as refused:
        read_sbml(document(species("X", 0.25), K, DECAY))
    assert "units" not in str(refused.value).partition("is in a unit")[2]


def test_formulas_paths_and_explanations_read_amounts_and_concentrations_as_the_file_does():
    made = read_antimony(DIMER, scale=100).model
    path = st.simulate(made, until=2, seed=1)
    assert np.array_equal(path["A"], path["A_count"] / 100)
    assert np.array_equal(path["[A]"], path["A_count"] / 200)
    for text, same in (
        ("G[0, 2] [A] > 0.3", "G[0, 2] A_count > 60"),
        ("F[0, 2] A(t-1) - A > 0.645", "F[0, 2] A_count(t-1) - A_count > 64.5"),
    ):
        read, counted = st.stl(text), st.stl(same)
        assert st.monitor(read, path) is st.monitor(counted, path)
        assert str(st.explain(read, path).verdict) == str(st.monitor(counted, path))
        runs = [st.observe(made, one, st.Space().uniform(1, seed=1), runs=400, seed=2) for one in (read, counted)]
        assert runs[0].satisfied[0] == runs[1].satisfied[0]
        assert 0 < runs[0].satisfied[0] < 400
    path.plot(species="[A]")


def test_exact_reads_observables_too():
    model = st.Model.parse("species X = 3\nobservable half = X / 2\nX -> 0 @ k * X")
    known = st.exact(model, st.stl("F[0, 1] X <= 1"), {"k": 1.0})
    assert st.exact(model, st.stl("F[0, 1] half <= 0.5"), {"k": 1.0}) == known
    assert st.exact(model, st.stl("F[0, 1] [X] <= 1"), {"k": 1.0}) == known
    with pytest.raises(st.FormulaError, match="half_ is neither"):
        st.observe(model, st.stl("F[0, 1] half_ < 1"), st.Space(k=(0, 1)).uniform(1, seed=1), runs=1, seed=1)


def test_rates_rules_events_assignments_and_functions_follow_the_scale():
    text = document(
        compartment(size=0.5),
        species("X", None, initialConcentration=1.5, hasOnlySubstanceUnits="false"),
        species("Y", None, hasOnlySubstanceUnits="false"),
        K,
        parameter("total", constant="false"),
        rule("total", "X + Y"),
        assignment("Y", "X / 3"),
        reaction("decay", {"X": 1}, {"Y": 1}, "k * X * total * C"),
        event("more", "X < 0.2", {"X": "X + 0.2501"}),
    )
    made = read_sbml(text, scale=1000).model
    values = made.values()
    assert made.initial(values) == {"X_count": 750, "Y_count": 250}
    state = {**values, "X_count": 500.0, "Y_count": 100.0}
    # In the file X = 500 / 1000 / 0.5 = 1 and Y = 0.2, so the law is 0.5 * 1 * 1.2 * 0.5 = 0.3 in a unit of time.
    assert made.transitions[0].rate.evaluate(state) == pytest.approx(1000 * 0.3, rel=1e-14)
    assert made.meaning("total").evaluate(state) == pytest.approx(1.2, rel=1e-14)
    assert made.events[0].trigger.evaluate({**state, "X_count": 99.0})
    assert not made.events[0].trigger.evaluate({**state, "X_count": 100.0})
    ((name, value),) = made.events[0].update
    assert name == "X_count"
    assert value.evaluate({**state, "X_count": 99.0}) == 99 + round(1000 * 0.2501 * 0.5)


def test_rounding_is_said():
    made = read_sbml(document(species("X", 0.12345), K, DECAY), scale=100).model
    assert str(made.variables[0].initial) == "12"
    assert "X begins with 0.12345, rounded to 12 molecules" in "\n".join(made.warnings)


def test_without_a_scale_the_refusal_proposes_one_and_says_how(tmp_path):
    file = tmp_path / "small.xml"
    file.write_text(document(species("X", 0.25), K, DECAY), encoding="utf-8")
    with pytest.raises(st.ModelError, match=r"the species X begins with 0\.25") as refused:
        st.Model.load(file)
    for way in ("Model.load(file, scale=10000)", "[model] scale = 10000", "--scale 10000"):
        assert way in str(refused.value)
    assert st.Model.load(file, scale=10000).variables[0].name == "X_count"


@pytest.mark.parametrize(
    ("amounts", "scale"),
    [
        ([0.25], 10_000),
        ([1.5, 2e-3], 1_000),
        ([1e-9], 1e12),
        ([5000.5], 10),
        ([2000.0, 0.3], 10),
        ([6e17], 1e-14),
        ([], 1_000),
    ],
)
def test_a_proposed_scale_gives_the_largest_amount_about_a_thousand_molecules(amounts, scale):
    assert proposed_scale(amounts) == scale


def test_units_say_how_many_molecules_there_are():
    unit = element("listOfUnits", element("unit", kind="mole", exponent=1, scale=-24, multiplier=1))
    nano = element("unitDefinition", unit, id="yocto")
    text = document(species("X", 500), K, DECAY).replace(
        "<listOfCompartments", f"<listOfUnitDefinitions>{nano}</listOfUnitDefinitions><listOfCompartments"
    )
    text = text.replace('id="X"', 'id="X" substanceUnits="yocto"')
    made = read_sbml(text, scale="units").model
    assert made.initial(made.values()) == {"X_count": 301}  # 500 * 0.602214076
    with pytest.raises(st.ModelError, match="does not say how many molecules"):
        read_sbml(document(X, K, DECAY), scale="units")


@pytest.mark.parametrize("scale", [0, -1, math.nan, math.inf, "many", True])
def test_a_scale_is_a_positive_number(scale):
    with pytest.raises(st.ModelError, match="scale"):
        read_sbml(document(X, K, DECAY), scale=scale)


def test_other_languages_take_no_scale(tmp_path):
    file = tmp_path / "a.sateen"
    file.write_text("species X = 3\nX -> 0 @ X", encoding="utf-8")
    with pytest.raises(st.ModelError, match="takes no scale"):
        st.Model.load(file, scale=10)


def test_what_is_scaled_reads_back_as_text_and_as_sbml(tmp_path):
    made = read_antimony("decay: A -> B; k*A*A\nA = 0.5; B = 0; k = 1; total := A + B", scale=100).model
    assert st.Model.parse(str(made)) == made
    made.save(tmp_path / "a.xml")
    assert st.Model.load(tmp_path / "a.xml") == made
    dimer = read_antimony(DIMER, scale=10).model
    dimer.save(tmp_path / "b.xml")
    assert st.Model.load(tmp_path / "b.xml") == dimer


def test_the_mean_of_a_linear_model_is_the_solution_of_its_ode():
    made = read_antimony(
        "compartment c = 0.5\nspecies A in c, B in c\nr: A -> B; c*(k*A - q*B)\nA = 2; B = 0; k = 1; q = 3", scale=1000
    ).model
    assert len(made.transitions) == 2
    last = np.array([st.simulate(made, until=0.5, seed=seed).at(0.5)["[A]"] for seed in range(100)])
    known = 2 * (3 + math.exp(-4 * 0.5)) / 4
    assert abs(last.mean() - known) < 4.9 * last.std(ddof=1) / 10
    # Of 1000 molecules, each is an A with the same probability.
    share = known / 2
    assert last.std(ddof=1) * 500 == pytest.approx(math.sqrt(1000 * share * (1 - share)), rel=0.4)


def test_a_level_2_compartment_without_a_size_has_the_size_1():
    text = document(
        element("compartment", id="C"),
        element("species", id="X", compartment="C", initialConcentration=7),
        K,
        reaction("feed", produced=element("speciesReference", species="X"), law="k"),
        level=(2, 4),
    )
    with pytest.warns(ModelWarning, match="the compartment C has no size, and gets the size 1"):
        made = read_sbml(text).model
    assert made.initial(made.values()) == {"X": 7}


def test_the_command_line_and_studies_take_a_scale(tmp_path):
    file = tmp_path / "dimer.ant"
    file.write_text(DIMER, encoding="utf-8")
    assert "--scale 1000" in sateen("inspect", file, code=1).output
    shown = as_json("inspect", file, "--scale", "200")
    assert [each["name"] for each in shown["observables"]] == ["A", "D", "[A]", "[D]"]
    assert shown["species"][0]["initial"] == 300
    study = tmp_path / "dimer.toml"
    sateen("init", file, "--scale", "200", "--vary", "k=0.1:1", "-p", "F[0, 2] [A] < 0.3", "-o", study)
    read = st.Study.load(study).model
    assert isinstance(read, st.Model)
    assert read == st.Model.load(file, scale=200)
    assert "not a number of molecules" in sateen("inspect", file, "--scale", "much", code=2).output
    assert "--scale is for models" in sateen("inspect", study, "--scale", "3", code=2).output
    study.write_text(study.read_text("utf-8").replace("scale = 200", "split = false\nscale = 200"), encoding="utf-8")
    assert st.Study.load(study).model == read


def test_an_amount_far_below_one_is_not_nothing():
    text = document(species("X", "1e-22"), K, DECAY)
    with pytest.raises(st.ModelError, match=r"the species X begins with 1e-22") as refused:
        read_sbml(text)
    assert "scale=1e+25" in str(refused.value)
    assert read_sbml(text, scale=1e25).model.initial({}) == {"X_count": 1000.0}
    few = read_sbml(text, scale=1e20).model
    assert few.initial({}) == {"X_count": 0.0}
    assert any("X begins with 1e-22, rounded to 0 molecules" in note for note in few.warnings)


def test_amounts_in_another_unit_than_molecules_are_doubted_unless_a_scale_is_given():
    micromole = element("unit", kind="mole", exponent=1, scale=-6, multiplier=1)
    units = element("unitDefinition", element("listOfUnits", micromole), id="substance")
    text = document(units, X, K, DECAY, substanceUnits="substance")
    with pytest.warns(ModelWarning, match=r"the unit of amounts is substance, 6\.02214e\+17 molecules; they are read"):
        made = read_sbml(text).model
    assert made.initial({}) == {"X": 10.0}
    assert read_sbml(text, scale=2).model.initial({"scale": 2.0}) == {"X_count": 20.0}  # without a doubt
