"""One model in four languages: the same transitions, the same runs for the same seed, the same probabilities."""

from __future__ import annotations

from functools import cache

import pytest

import sateen as st
from sateen.model.antimony import read_antimony
from sateen.model.prism import read_prism
from sateen.model.sbml import read_sbml
from sateen.model.sbml_written import write_sbml
from sbml_texts import document, event, parameter, reaction, species

TEXT = """
    species well = 8, ill = 2, safe = 0
    parameter beta = 0.12, k = 0.05
    infect: well + ill -> 2 ill @ beta * well * ill / 10
    recover: ill -> safe @ k * ill
"""
PARTS = [
    *(species(name, count) for name, count in (("well", 8), ("ill", 2), ("safe", 0))),
    parameter("beta", 0.12),
    parameter("k", 0.05),
    reaction("infect", {"well": 1, "ill": 1}, {"ill": 2}, "beta * well * ill / 10"),
    reaction("recover", {"ill": 1}, {"safe": 1}, "k * ill"),
]
ANTIMONY = """
    infect: well + ill -> 2 ill; beta * well * ill / 10
    recover: ill -> safe; k * ill
    well = 8; ill = 2; safe = 0; beta = 0.12; k = 0.05
"""
PRISM = """
    ctmc
    const double beta;
    const double k;
    module epidemic
        well : [0..10] init 8;
        ill : [0..10] init 2;
        safe : [0..10] init 0;
        [infect]  well > 0 & ill > 0 -> beta * well * ill / 10 : (well'=well-1) & (ill'=ill+1);
        [recover] ill > 0         -> k * ill : (ill'=ill-1) & (safe'=safe+1);
    endmodule
"""
POINTS = [{"beta": 0.12, "k": 0.05}, {"beta": 0.3, "k": 0.02}]


@cache
def models() -> dict[str, st.Model]:
    text = st.Model.parse(TEXT)
    return {
        "text": text,
        "SBML": read_sbml(document(*PARTS)).model,
        "Antimony": read_antimony(ANTIMONY).model,
        "PRISM": read_prism(PRISM).model,
        "written SBML": read_sbml(write_sbml(text)).model,
        "PRISM in SBML": read_sbml(write_sbml(read_prism(PRISM).model)).model,
    }


def test_text_sbml_and_antimony_are_equal_models():
    found = models()
    assert found["SBML"] == found["Antimony"] == found["written SBML"] == found["text"]


def test_all_languages_have_the_same_changes_and_rates():
    state = {"well": 5.0, "ill": 4.0, "safe": 1.0, **POINTS[0]}
    wanted = [(each.change, float(each.rate.evaluate(state))) for each in models()["text"].transitions]
    for model in models().values():
        assert [(each.change, float(each.rate.evaluate(state))) for each in model.transitions] == wanted


def test_the_same_seed_gives_the_same_path():
    wanted = st.simulate(models()["text"], POINTS[0], until=100, seed=7)
    for model in models().values():
        found = st.simulate(model, POINTS[0], until=100, seed=7)
        assert found.species == wanted.species
        assert (found.times == wanted.times).all()
        assert (found.states == wanted.states).all()


def test_the_same_seed_gives_the_same_counts_and_exact_the_same_probabilities():
    asked = st.stl("(ill > 0) U[20, 60] (ill == 0)")
    space = st.Space(beta=(0.05, 0.3), k=(0.02, 0.1))
    points = space.uniform(3, seed=1)
    counts = {name: st.observe(model, asked, points, runs=2000, seed=3).satisfied for name, model in models().items()}
    for name in ("SBML", "Antimony", "PRISM"):
        assert (counts[name] == counts["text"]).all(), name
    wanted = st.exact(models()["text"], asked, points)
    for model in models().values():
        assert st.exact(model, asked, points) == pytest.approx(wanted, abs=1e-12)


def test_events_are_the_same_in_text_sbml_and_antimony():
    text = st.Model.parse(TEXT + "\n    event wave: ill := ill + 5 when time >= 30 initially false")
    parts = [*PARTS, event("wave", "time >= 30", {"ill": "ill + 5"}, initial="false")]
    assert read_sbml(document(*parts)).model == text
    antimony = read_antimony(ANTIMONY + "\n    wave: at time >= 30, t0 = false: ill = ill + 5").model
    assert antimony == text
    assert read_sbml(write_sbml(text)).model == text
