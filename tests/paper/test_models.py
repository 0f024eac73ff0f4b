"""The three models from biology: what they are made of, what they conserve, and what is asked of them."""

from __future__ import annotations

import numpy as np
import pytest

from sateen.core.errors import InputError
from sateen.core.path import Path, Verdict
from sateen.engine.simulate import simulate
from sateen.logic.monitor import monitor
from sateen.model.model import Model
from sateen.paper.cases import lacz, phosphorelay, sir
from sateen.paper.cases.models import VARIANTS, Case

CASES = {"sir": sir, "lacz": lacz, "phosphorelay": phosphorelay}
each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)

# What each reaction of the paper's appendix does, in its order, with the typing errors of the text put right.
CHANGES = {
    "sir": [{"S": -1, "I": 1}, {"I": -1, "R": 1}],
    "lacz": [
        {"PLac": -1, "RNAP": -1, "PLacRNAP": 1},
        {"PLacRNAP": -1, "PLac": 1, "RNAP": 1},
        {"PLacRNAP": -1, "TrLacZ1": 1},
        {"TrLacZ1": -1, "RbsLacZ": 1, "PLac": 1, "TrLacZ2": 1},
        {"TrLacZ2": -1, "RNAP": 1},
        {"Ribosome": -1, "RbsLacZ": -1, "RbsRibosome": 1},
        {"RbsRibosome": -1, "Ribosome": 1, "RbsLacZ": 1},
        {"RbsRibosome": -1, "TrRbsLacZ": 1, "RbsLacZ": 1},
        {"TrRbsLacZ": -1, "LacZ": 1},
        {"LacZ": -1, "dgrLacZ": 1},
        {"RbsLacZ": -1, "dgrRbsLacZ": 1},
    ],
    "phosphorelay": [
        {"B": 1},
        {"L1": -1, "L1p": 1},
        {"L1p": -1, "L1": 1, "L2": -1, "L2p": 1},
        {"L2p": -1, "L2": 1, "L3": -1, "L3p": 1},
        {"L3p": -1, "L3": 1},
        {"B": -1},
    ],
}

INITIAL = {
    "sir": {"S": 95, "I": 5, "R": 0},
    "lacz": {
        **dict.fromkeys(("PLacRNAP", "TrLacZ1", "RbsLacZ", "TrLacZ2", "RbsRibosome", "TrRbsLacZ"), 0),
        **{"PLac": 1, "RNAP": 35, "Ribosome": 350, "LacZ": 0, "dgrLacZ": 0, "dgrRbsLacZ": 0},
    },
    "phosphorelay": {"B": 0, "L1": 32, "L2": 32, "L3": 32, "L1p": 0, "L2p": 0, "L3p": 0},
}

DEFAULTS = {
    "sir": {"beta": 0.12, "gamma": 0.05},
    "lacz": {
        **{"k1": 0.17, "k2": 10, "k3": 1, "k4": 1, "k5": 0.015, "k6": 0.17},
        **{"k7": 0.45, "k8": 0.4, "k9": 0.015, "k10": 0.0000642, "k11": 0.3},
    },
    "phosphorelay": {"kp": 0.1, "k1": 1, "k2": 1, "k3": 1, "k4": 2, "kd": 0.05},
}

CONSERVED = [
    (sir, ("S", "I", "R"), 100),
    (lacz, ("PLac", "PLacRNAP", "TrLacZ1"), 1),
    (lacz, ("RNAP", "PLacRNAP", "TrLacZ1", "TrLacZ2"), 35),
    # A ribosome that has made its protein does not come back: so the paper has it.
    (lacz, ("Ribosome", "RbsRibosome", "TrRbsLacZ", "LacZ", "dgrLacZ"), 350),
    (phosphorelay, ("L1", "L1p"), 32),
    (phosphorelay, ("L2", "L2p"), 32),
    (phosphorelay, ("L3", "L3p"), 32),
]


def rates(model: Model, state: dict[str, float]) -> list[float]:
    environment = {**model.values(), **state}
    return [float(transition.rate.evaluate(environment)) for transition in model.transitions]


@pytest.mark.parametrize("name", CASES)
def test_every_reaction_changes_what_the_paper_says(name: str) -> None:
    assert [transition.change for transition in CASES[name].model().transitions] == CHANGES[name]


@pytest.mark.parametrize("name", CASES)
def test_initial_counts_and_default_parameters_are_the_papers(name: str) -> None:
    model = CASES[name].model()
    assert model.initial(model.values()) == INITIAL[name]
    assert {parameter.name: parameter.default for parameter in model.parameters} == DEFAULTS[name]


def test_infection_is_slowed_by_the_size_of_the_population() -> None:
    assert rates(sir.model(), {"S": 40, "I": 30, "R": 30}) == pytest.approx([0.12 * 40 * 30 / 100, 0.05 * 30])


def test_gene_expression_follows_mass_action() -> None:
    model = lacz.model()
    state = {name: float(place + 2) for place, name in enumerate(model.species)}
    k = [DEFAULTS["lacz"][f"k{place}"] for place in range(1, 12)]
    consumed = [[name for name, change in changes.items() if change < 0] for changes in CHANGES["lacz"]]
    expected = [rate * np.prod([state[name] for name in names]) for rate, names in zip(k, consumed, strict=True)]
    assert rates(model, state) == pytest.approx(expected)


def test_the_third_layer_loses_phosphate_in_proportion_to_its_own() -> None:
    state = {"B": 3.0, "L1": 20.0, "L1p": 12.0, "L2": 25.0, "L2p": 7.0, "L3": 27.0, "L3p": 5.0}
    expected = [0.1, 20 * 3 / 5000, 12 * 25 / 5000, 7 * 27 / 5000, 2 * 5 / 5000, 0.05 * 3]
    assert rates(phosphorelay.model(), state) == pytest.approx(expected)


@pytest.mark.parametrize(("case", "names", "total"), CONSERVED)
def test_what_is_conserved_has_its_total_at_first_and_no_reaction_changes_it(
    case: Case, names: tuple[str, ...], total: int
) -> None:
    model = case.model()
    initial = model.initial(model.values())
    assert sum(initial[name] for name in names) == total
    for transition in model.transitions:
        assert sum(transition.change.get(name, 0) for name in names) == 0, transition.name


@pytest.mark.parametrize(("case", "until"), [(sir, 120), (lacz, 20), (phosphorelay, 600)], ids=CASES)
def test_a_run_with_the_defaults_keeps_what_is_conserved(case: Case, until: float) -> None:
    path = simulate(case.model(), until=until, seed=1)
    assert len(path.times) > 10
    for own, names, total in CONSERVED:
        if own is case:
            assert np.all(sum(path.column(name) for name in names) == total)


@each_case
def test_a_model_reads_back_from_its_own_text_and_gives_no_warning(case: Case) -> None:
    model = case.model()
    assert Model.parse(str(model)) == model
    assert model.warnings == ()


@pytest.mark.parametrize(
    ("case", "variant", "text", "horizon", "end"),
    [
        (sir, "paper-data", "(I > 0) U[100, 120] (I == 0)", 120, None),
        (sir, "as-stated", "(I > 0) U[100, 120] (I == 0)", 120, None),
        (
            lacz,
            "paper-data",
            "F[1600, 2100] (LacZ - LacZ(t-5) > 0 & G[10, 200] LacZ - LacZ(t-5) <= 0)",
            2100,
            2100,
        ),
        (lacz, "as-stated", "F[1600, 2100] (LacZ - LacZ(t-1) > 0 & G[10, 200] LacZ - LacZ(t-1) <= 0)", 2300, None),
        (phosphorelay, "paper-data", "G[0, 300] L1p - L3p >= 0 & F[300, 600] L1p > L3p", 600, None),
        (phosphorelay, "as-stated", "G[0, 300] L1p - L3p >= 0 & F[300, 600] L3p - L1p >= 0", 600, None),
    ],
)
def test_each_variant_has_its_property(case: Case, variant: str, text: str, horizon: float, end: float | None) -> None:
    formula = case.formula(variant)
    assert (str(formula), formula.horizon, formula.end) == (text, horizon, end)
    assert set(formula.species) <= set(case.model().species)


@each_case
def test_an_unknown_variant_is_refused_with_the_nearest_one(case: Case) -> None:
    with pytest.raises(InputError, match=r"'as stated' is not a variant of this case; did you mean as-stated\?"):
        case.formula("as stated")
    with pytest.raises(InputError, match="there are paper-data, as-stated"):
        case.formula("quite another")


@each_case
def test_every_case_has_every_variant(case: Case) -> None:
    assert tuple(case.properties) == VARIANTS


def verdicts(case: Case, path: Path) -> dict[str, Verdict]:
    return {variant: monitor(case.formula(variant), path) for variant in VARIANTS}


@pytest.mark.parametrize(("extinction", "verdict"), [(99, False), (100, True), (110, True), (120, True), (121, False)])
def test_an_epidemic_counts_if_it_ends_from_100_to_120(extinction: float, verdict: bool) -> None:
    path = Path(times=[0, extinction], states=[5, 0], species="I", end=150, absorbed=True)
    assert verdicts(sir, path) == dict.fromkeys(VARIANTS, Verdict.of(verdict))


def test_one_increase_of_lacz_and_then_silence_is_a_burst() -> None:
    path = Path(times=[0, 1700], states=[0, 1], species="LacZ", end=2300)
    assert verdicts(lacz, path) == dict.fromkeys(VARIANTS, Verdict.TRUE)


def test_no_lacz_at_all_is_no_burst() -> None:
    path = Path(times=[0], states=[0], species="LacZ", end=2300)
    assert verdicts(lacz, path) == dict.fromkeys(VARIANTS, Verdict.FALSE)


def test_steady_growth_is_no_burst_as_stated_but_one_on_the_path_cut_at_2100() -> None:
    times = np.arange(0, 2300, 0.5)
    path = Path(times=times, states=np.arange(len(times)), species="LacZ", end=2300)
    assert verdicts(lacz, path) == {"paper-data": Verdict.TRUE, "as-stated": Verdict.FALSE}


def test_a_path_up_to_2100_decides_the_property_of_the_papers_data_but_not_the_one_as_stated() -> None:
    path = Path(times=[0, 2079], states=[0, 1], species="LacZ", end=2100)
    assert verdicts(lacz, path) == {"paper-data": Verdict.TRUE, "as-stated": Verdict.UNKNOWN}


def layers(*jumps: tuple[float, int, int]) -> Path:
    """A path of L1p and L3p."""
    times, first, third = zip(*jumps, strict=True)
    return Path(times=times, states=np.transpose([first, third]), species=("L1p", "L3p"), end=600)


def test_the_variants_of_the_phosphorelay_disagree_on_who_leads_after_300() -> None:
    tied = layers((0, 0, 0))
    assert verdicts(phosphorelay, tied) == {"paper-data": Verdict.FALSE, "as-stated": Verdict.TRUE}
    first_ahead = layers((0, 0, 0), (10, 1, 0))
    assert verdicts(phosphorelay, first_ahead) == {"paper-data": Verdict.TRUE, "as-stated": Verdict.FALSE}
    switched = layers((0, 0, 0), (10, 1, 0), (400, 0, 1))
    assert verdicts(phosphorelay, switched) == {"paper-data": Verdict.TRUE, "as-stated": Verdict.TRUE}
    third_early = layers((0, 0, 0), (10, 0, 1), (400, 1, 0))
    assert verdicts(phosphorelay, third_early) == dict.fromkeys(VARIANTS, Verdict.FALSE)
