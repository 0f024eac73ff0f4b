"""Model files of other languages on the command line: their constants, their properties, and what `inspect` shows."""

from __future__ import annotations

import json
import math
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

import sateen as st
from command_line import as_json, sateen
from sateen.language.expression import Number

QUEUE = """ctmc
const int capacity;
const double arrival;
const double service = 2;
module queue
    jobs : [0..capacity];
    [] jobs < capacity -> arrival : (jobs'=jobs+1);
    [] jobs > 0        -> service : (jobs'=jobs-1);
endmodule
label "full" = jobs = capacity;
"""
PROPS = """const double T;
const double soon = T / 2;
"full": P=? [ F<=T "full" ];
P=? [ F<=soon jobs>1 ];
"likely": P>=0.2 [ F<=T "full" ];
"often": S=? [ "full" ];
"""
TEXT = """species X = 3 in [-1, 9], busy = 0 in [0, 1], free = 0 in (-inf, inf)
real dose = 0.5
constant N = 10
parameter k = 2, share = 0.25, n, size = 4, zero = 0
species Y = size
up: X -> Y @ k * X * (1 - share)
set: busy := 1, free := free - 1 @ dose + n + zero when X > 0
event boost: dose := 2, X := 0 when time >= 5 initially false
"""


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model in the PRISM language, its properties, and a model as text."""
    for name, text in (("queue.prism", QUEUE), ("queue.props", PROPS), ("mixed.sateen", TEXT)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_check_prints_what_its_interval_assumes(tmp_path: Path) -> None:
    file = tmp_path / "net.ant"
    file.write_text("r: A -> B; k*A - q*B\nA = 5; B = 0; k = 1; q = 2", encoding="utf-8")
    printed = sateen("check", file, "-p", "F[0, 1] B > 2", "--runs", "1e2").stdout.splitlines()
    place = next(place for place, line in enumerate(printed) if line.startswith("P is from"))
    assert printed[place + 1] == (
        "this assumes that the net rate of r is split into the two directions that the form of the law shows"
    )


def full(capacity: int, arrival: float, time: float) -> float:
    """The probability that the queue is full by then, from the same chain written as text."""
    reactions = f"0 -> jobs @ {arrival} when jobs < {capacity}\njobs -> 0 @ min(jobs, 1) * 2"
    model = st.Model.parse(f"species jobs = 0 in [0, {capacity}]\n{reactions}")
    return float(st.exact(model, st.stl(f"F[0, {time}] jobs == {capacity}"), {})[0])


CHECK = ("check", "queue.prism", "--const", "capacity=5", "--at", "arrival=1.5", "--runs", "100")
ONE_RUN = ("simulate", "queue.prism", "--const", "capacity=5", "--at", "arrival=1.5")  # compiles nothing


@pytest.mark.usefixtures("desk")
class TestConstants:
    def test_constants_of_the_model_and_of_the_properties_are_given_together(self) -> None:
        found = as_json(*CHECK, "--const", "T=10", "-p", "queue.props:full", "--exact")
        assert found["exact"] == pytest.approx(full(5, 1.5, 10), abs=1e-8)
        assert found["property"] == "queue.props:full"
        assert found["formula"] == "F[0, 10] jobs == capacity"

    def test_an_open_constant_that_bounds_nothing_is_a_parameter_or_a_constant(self) -> None:
        given = ("simulate", "queue.prism", "--until", "9")
        as_constant = as_json(*given, "--const", "capacity=5,arrival=1.5")
        as_parameter = as_json(*given, "--const", "capacity=5", "--at", "arrival=1.5")
        assert as_constant["path"]["times"] == as_parameter["path"]["times"]

    @pytest.mark.parametrize(
        "command", [["check", "-p", "F[0, 1] jobs > 0"], ["simulate", "--until", "1"], ["inspect"]]
    )
    def test_a_missing_one_is_told_with_all_that_are_open(self, command: list[str]) -> None:
        said = sateen(command[0], "queue.prism", *command[1:], code=1).stderr
        assert "the range of jobs reads capacity, which has no value (line 6)" in said
        assert "give it one: --const capacity=5\n  open here: capacity, arrival\n" in said

    @pytest.mark.parametrize(
        "command",
        [
            ["check", "-p", "F[0, 1] jobs > 0", "--at", "arrival=1"],
            ["check", "-p", "queue.props:full", "--at", "arrival=1"],
            ["simulate", "--until", "1", "--at", "arrival=1"],
            ["inspect"],
            ["inspect", "-p", "queue.props"],
        ],
    )
    def test_an_unknown_one_is_told_with_all_that_are_open(self, command: list[str]) -> None:
        given = ("--const", "capacity=5,capacty=3")
        said = sateen(command[0], "queue.prism", *command[1:], *given, code=1).stderr
        assert said.startswith("InputError: --const capacty: no constant capacty is left open; did you mean capacity?")
        assert "\n  queue.prism leaves open: capacity, arrival\n" in said
        assert ("\n  queue.props leaves open: T\n" in said) == any("props" in word for word in command)

    def test_one_that_has_a_value_is_refused(self) -> None:
        said = sateen("inspect", "queue.prism", "--const", "capacity=5,service=3", code=1).stderr
        assert "the constant service has a value already" in said

    def test_other_models_leave_none_open(self) -> None:
        said = sateen("simulate", "mixed.sateen", "--at", "n=1", "--const", "k=5", "--until", "1", code=1).stderr
        assert "no constant k is left open" in said
        assert "k is a parameter of mixed.sateen: give it with --at k=..." in said

    def test_a_formula_may_name_a_constant_that_is_only_given(self) -> None:
        named = as_json(*ONE_RUN, "--const", "last=3", "-p", "F[0, last] jobs > 2")
        assert named["formula"] == "F[0, 3] jobs > 2"

    @pytest.mark.parametrize(("written", "value"), [("true", 1.0), ("false", 0.0)])
    def test_true_and_false_are_values_of_a_bool(self, written: str, value: float, desk: Path) -> None:
        (desk / "b.sm").write_text(
            "ctmc const bool b; module m x : [0..1]; [] b -> 1 : (x'=1); [] x=2 -> 1 : true; endmodule"
        )
        found = as_json("inspect", "b.sm", "--const", f"b={written}")
        assert found["constants"] == [{"name": "b", "value": value}]

    def test_what_is_no_constant_is_wrong_usage(self) -> None:
        assert "'capacity' is not NAME=NUMBER" in sateen("inspect", "queue.prism", "--const", "capacity", code=2).stderr


@pytest.mark.usefixtures("desk")
class TestProperties:
    @pytest.mark.parametrize(
        ("chosen", "formula"),
        [
            ("queue.props:full", "F[0, 10] jobs == capacity"),
            ('queue.props:"full"', "F[0, 10] jobs == capacity"),
            ("queue.props:1", "F[0, 10] jobs == capacity"),
            ("queue.props:2", "F[0, 5] jobs > 1"),
            ("queue.props:property_2", "F[0, 5] jobs > 1"),
            ('P=? [ F<=10 "full" ]', "F[0, 10] jobs == capacity"),
            ('P >= 0.5 [ G<=2 !"full" ]', "G[0, 2] !(jobs == capacity)"),
        ],
    )
    def test_one_is_chosen_by_name_or_by_place_or_written_out(self, chosen: str, formula: str) -> None:
        given = ("--const", "T=10") if "queue" in chosen else ()
        assert as_json(*ONE_RUN, *given, "-p", chosen)["formula"] == formula

    def test_a_file_of_one_property_needs_no_name(self, desk: Path) -> None:
        (desk / "one.csl").write_text("P=? [ G<=3 jobs < 4 ]", encoding="utf-8")
        assert as_json(*ONE_RUN, "-p", "one.csl")["formula"] == "G[0, 3] jobs < 4"

    def test_a_file_of_many_lists_them_and_what_is_refused(self) -> None:
        assert sateen(*ONE_RUN, "--const", "T=1", "-p", "queue.props", code=1).stderr == (
            "InputError: queue.props has 4 properties; say which, by name or by place, such as :1\n"
            "  queue.props:full\n"
            "  queue.props:property_2\n"
            "  queue.props:likely\n"
            "  queue.props:often  (refused: the steady-state operator S is not supported)\n"
        )

    def test_one_that_is_refused_is_shown_with_its_place(self) -> None:
        said = sateen(*ONE_RUN, "--const", "T=1", "-p", "queue.props:4", code=1).stderr
        assert said.startswith("FormulaError: queue.props: the steady-state operator S is not supported (line 6)\n")

    def test_one_whose_constant_has_no_value_says_which_are_open(self) -> None:
        said = sateen(*ONE_RUN, "-p", "queue.props:full", code=1).stderr
        assert "queue.props: the constant T has no value (line 3)" in said
        assert "give it one: --const T=10\n  open here: T\n" in said

    @pytest.mark.parametrize(
        ("chosen", "said"),
        [
            ("queue.props:5", "queue.props has 4 properties; there is no property 5"),
            ("queue.props:0", "there is no property 0"),
            ("queue.props:ful", "queue.props has no property ful; did you mean full?"),
            ("queue.props:zzz", "there are full, property_2, likely, often"),
            ("none.props", "none.props cannot be read: No such file or directory"),
            ("none.props:1", "none.props cannot be read: No such file or directory"),
            ("empty.props", "empty.props has no property"),
            ("bytes.props", "bytes.props is not text in UTF-8"),
            ("huge.props", "huge.props has 2,000,000 bytes, and at most 1,000,000 are read"),
            ("S=? [ jobs>0 ]", "the steady-state operator S is not supported"),
            ('R{"x"}=? [ C<=5 ]', "the model has no rewards"),
            ("P=? [ F<=5 job>0 ]", "job is not a variable, constant or formula"),
        ],
    )
    def test_a_wrong_choice_is_told(self, chosen: str, said: str, desk: Path) -> None:
        (desk / "empty.props").write_text("// nothing\n", encoding="utf-8")
        (desk / "bytes.props").write_bytes(b"P=? [ F \xff ]")
        (desk / "huge.props").write_bytes(b" " * 2_000_000)
        given = ("--const", "T=1") if "queue" in chosen else ()
        assert said in sateen(*ONE_RUN, *given, "-p", chosen, code=1).stderr

    def test_a_bound_on_the_probability_is_a_test(self) -> None:
        at = ("--const", "capacity=5,arrival=1.5")
        found = as_json("check", "queue.prism", *at, "--const", "T=10", "-p", "queue.props:likely")
        assert (found["comparison"], found["bound"]) == (">=", 0.2)
        assert found["decision"] == ("accepted" if full(5, 1.5, 10) >= 0.2 else "rejected")
        counted = as_json("check", "queue.prism", *at, "--const", "T=10", "-p", "queue.props:likely", "--runs", "50")
        assert (counted["runs"], counted["decision"]) == (50, None)

    def test_a_bound_that_runs_cannot_tell_from_0_or_1_is_not_tested(self) -> None:
        done = sateen(*CHECK[:-2], "-p", 'P>=1 [ F<=10 "full" ]', "--json")
        assert (
            "warning: P >= 1.0 is not tested, for 1 ± 0.01 does not lie between 0 and 1; runs are counted"
            in done.stderr
        )
        assert json.loads(done.stdout)["decision"] is None

    def test_the_end_of_a_path_can_be_given(self) -> None:
        assert as_json(*ONE_RUN, "--const", "T=10", "-p", "queue.props:full", "--end", "2")["end"] == 2

    def test_a_file_of_properties_may_be_about_a_model_of_another_language(self, desk: Path) -> None:
        (desk / "x.csl").write_text("const double T; P=? [ F<=T free<N & Y>size ]", encoding="utf-8")
        command = ("simulate", "mixed.sateen", "--at", "n=1", "--const", "T=2", "-p", "x.csl")
        assert as_json(*command)["formula"] == "F[0, 2] (free < N & Y > size)"

    def test_a_run_is_judged_by_a_property_of_a_file(self) -> None:
        given = ("--const", "capacity=5,T=3", "--at", "arrival=1.5")
        found = as_json("simulate", "queue.prism", *given, "-p", "queue.props:full")
        assert (found["formula"], found["until"]) == ("F[0, 3] jobs == capacity", 3)


@pytest.mark.usefixtures("desk")
class TestInspect:
    def test_it_shows_bounds_ranges_assignments_and_events(self) -> None:
        assert sateen("inspect", "mixed.sateen").stdout.splitlines() == [
            "species",
            "  X     3     in [-1, 9]",
            "  busy  0     in [0, 1]",
            "  free  0     in (-inf, inf)",
            "  dose  0.5   a real number",
            "  Y     size",
            "constants",
            "  N  10",
            "parameters",
            "  k      2              perhaps 0.2 to 20, log",
            "  share  0.25           perhaps 0 to 1",
            "  n      needs a value",
            "  size   4",
            "  zero   0",
            "reactions",
            "  up   X -> Y                       @ k * X * (1 - share)",
            "  set  busy := 1, free := free - 1  @ dose + n + zero      when X > 0",
            "events",
            "  boost  dose := 2, X := 0  when time >= 5  initially false",
        ]

    def test_json_holds_the_same(self) -> None:
        found = as_json("inspect", "mixed.sateen")
        assert found["species"][0] == {"name": "X", "initial": 3, "low": -1, "high": 9, "whole": True}
        assert found["species"][3] == {"name": "dose", "initial": 0.5, "low": None, "high": None, "whole": False}
        assert found["parameters"][0] == {"name": "k", "default": 2, "range": {"low": 0.2, "high": 20, "scale": "log"}}
        assert found["parameters"][2] == {"name": "n", "default": None, "range": None}
        assert found["events"] == [
            {"name": "boost", "happens": "dose := 2, X := 0", "trigger": "time >= 5", "initially": False}
        ]

    def test_it_shows_labels_and_what_properties_ask(self) -> None:
        shown = sateen("inspect", "queue.prism", "--const", "capacity=5,T=10", "-p", "queue.props").stdout
        assert shown.splitlines()[-7:] == [
            "labels",
            "  full  jobs == capacity",
            "properties",
            "  full        F[0, 10] jobs == capacity",
            "  property_2  F[0, 5] jobs > 1",
            "  likely      P >= 0.2: F[0, 10] jobs == capacity",
            "  often       refused, line 6: the steady-state operator S is not supported",
        ]

    def test_it_shows_properties_without_their_model(self) -> None:
        assert sateen("inspect", "queue.props").stdout.splitlines() == [
            "constants",
            "  T     double  needs a value",
            "  soon  double",
            "properties",
            '  full        P=? [ F<=T "full" ]',
            "  property_2  P=? [ F<=soon jobs>1 ]",
            '  likely      P>=0.2 [ F<=T "full" ]',
            "  often       refused, line 6: the steady-state operator S is not supported",
        ]
        assert [each["line"] for each in as_json("inspect", "queue.props")["properties"]] == [3, 4, 5, 6]

    def test_a_mistake_in_properties_is_pointed_at_without_their_model(self, desk: Path) -> None:
        (desk / "wrong.props").write_text("P=? [ F<=5 ];\n", encoding="utf-8")
        said = sateen("inspect", "wrong.props", code=1).stderr
        assert said.startswith("FormulaError: wrong.props: ")
        assert "^" in said

    @pytest.mark.parametrize("option", [["--const", "T=5"], ["-p", "queue.props"]])
    def test_what_is_for_models_is_refused_elsewhere(self, option: list[str]) -> None:
        assert "are for a model" in sateen("inspect", "queue.props", *option, code=2).stderr


@pytest.mark.usefixtures("desk")
def test_constants_are_for_a_model_that_is_observed() -> None:
    said = sateen("learn", "runs.csv", "--const", "capacity=4", "-o", "f.safetensors", code=2).stderr
    assert "--const says how a model is observed" in said


@pytest.mark.usefixtures("desk")
def test_a_model_of_another_language_is_learned_and_calibrated() -> None:
    """What was learned keeps the model as text, from which `calibrate` makes fresh runs: the text must be lossless."""
    learn = ("learn", "queue.prism", "--const", "capacity=4,T=3", "-p", "queue.props:full", "--vary", "arrival=0.5:3")
    sateen(*learn, "--learner", "ep-gp", "--points", "20", "--runs", "20", "-o", "f.safetensors")
    sateen("calibrate", "f.safetensors", "--points", "60", "--runs", "20", "-o", "g.safetensors")
    assert isinstance(st.load("g.safetensors"), st.Guarantee)


# The examples: a gene switch in SBML, a queue in the PRISM language, an epidemic in Antimony; each with the study that
# `init` made of it. What a study says is observed here; `sateen run` reads the very same files.

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
STUDIES = {
    "gene_switch.toml": (
        *("gene_switch.xml", "--vary", "make=10:40", "--vary", "half=2:8"),
        *("-p", "F[0, 50] (B > A + 10)"),
    ),
    "queue.toml": (
        *("queue.prism", "--const", "capacity=10,T=20", "--vary", "arrival=0.5:3"),
        *("-p", "examples/queue.props:full", "-p", "examples/queue.props:half_first"),
    ),
    "epidemic.toml": (
        *("epidemic.ant", "--vary", "apart=0.05:0.5", "--vary", "many=20:60"),
        *("-p", "G[0, 60] (I <= 40)"),
    ),
}


def test_an_sbml_model_is_inspected() -> None:
    found = as_json("inspect", str(EXAMPLES / "gene_switch.xml"))
    assert [each["name"] for each in found["species"]] == ["A", "B"]
    first = found["reactions"][0]
    assert (first["name"], first["happens"], first["rate"]) == ("make_A", "0 -> A", "make / (1 + (B / half)^steep)")
    assert found["parameters"][1] == {"name": "half", "default": 4, "range": {"low": 0.4, "high": 40, "scale": "log"}}


def test_an_antimony_model_is_inspected_and_run_with_its_events() -> None:
    epidemic = str(EXAMPLES / "epidemic.ant")
    assert [each["trigger"] for each in as_json("inspect", epidemic)["events"]] == ["I >= many", "I <= 5"]
    path = st.Path(**as_json("simulate", epidemic, "--until", "30", "--seed", "1")["path"])
    crowded = path["I"] >= 40
    assert crowded.any()  # else this run tells nothing
    assert path["contact"][crowded.argmax()] == 0.15
    assert (path["contact"][: crowded.argmax()] == 0.5).all()


@pytest.mark.parametrize("study", STUDIES)
def test_the_study_of_an_example_is_what_init_makes(
    study: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("*.toml"))
    monkeypatch.chdir(tmp_path)
    model, *options = STUDIES[study]
    assert sateen("init", f"examples/{model}", *options, "-o", f"examples/{study}").stderr == ""
    assert (tmp_path / "examples" / study).read_text(encoding="utf-8") == (EXAMPLES / study).read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("study", STUDIES)
def test_the_study_of_an_example_can_be_observed(study: str) -> None:
    said = tomllib.loads((EXAMPLES / study).read_text(encoding="utf-8"))
    model = st.Model.load(EXAMPLES / said["model"]["file"], constants=said["model"].get("constants"))
    assert model.warnings == ()
    assert st.Model.parse(str(model)) == model
    constants = {constant.name: float(constant.value.evaluate({})) for constant in model.constants}
    formulas = {name: st.stl(text, constants=constants) for name, text in said["property"].items()}
    points = st.Space(said["space"]).sobol(8, seed=1)
    for seen in st.observe(model, formulas, points, runs=100, seed=2).values():
        assert seen.undecided.sum() == 0
        assert 0 < seen.satisfied.sum() < seen.trials.sum()


@pytest.mark.slow
@pytest.mark.parametrize(("place", "name"), [(1, "full"), (2, "neglected"), (3, "half_first")])
def test_the_runs_of_the_queue_agree_with_its_exact_probabilities(place: int, name: str) -> None:
    options = ("--const", "capacity=10,T=20", "--at", "arrival=1", "--runs", "20000", "--level", "0.999999", "--exact")
    queue, props = str(EXAMPLES / "queue.prism"), str(EXAMPLES / "queue.props")
    found = as_json("check", queue, *options, "-p", f"{props}:{place}")
    assert found["property"] == f"{props}:{name}"
    assert found["lower"] <= found["exact"] <= found["upper"]


@pytest.mark.slow
def test_the_gene_switch_has_two_sides() -> None:
    """A and B follow the same laws, so from equal counts each is as likely as the other to be ahead at time 3."""
    model = st.Model.load(EXAMPLES / "gene_switch.xml")
    even = replace(model, variables=tuple(replace(each, initial=Number(8.0)) for each in model.variables))
    runs = 40_000
    ahead = {"A": st.stl("F[3, 3] (A > B)"), "B": st.stl("F[3, 3] (B > A)")}
    seen = st.observe(even, ahead, st.Space(make=20.0).uniform(1, seed=1), runs=runs, seed=2)
    a, b = (int(seen[name].satisfied.sum()) for name in ahead)
    assert abs(a - b) < 4.9 * math.sqrt(a + b)  # given that one is ahead, which one is a fair coin


REWARDED = """ctmc
module line
    jobs : [0..3];
    [come]  jobs < 3 -> 1.5 : (jobs'=jobs+1);
    [serve] jobs > 0 -> 3   : (jobs'=jobs-1);
endmodule
label "full" = jobs = 3;
rewards "served" [serve] true : 1; endrewards
rewards true : jobs; endrewards
"""
ASKED = """"served": R{"served"}=? [ C<=5.5 ];
"many": R{"served"}>9 [ C<=5.5 ];
"until": R{"served"}=? [ F "full" ];
"long": R{2}=? [ S ];
"""


@pytest.mark.usefixtures("desk")
class TestRewards:
    @pytest.fixture(autouse=True)
    def files(self, desk: Path) -> None:
        (desk / "line.prism").write_text(REWARDED, encoding="utf-8")
        (desk / "line.props").write_text(ASKED, encoding="utf-8")

    def test_check_estimates_a_reward_and_computes_it(self) -> None:
        found = as_json("check", "line.prism", "-p", "line.props:served", "--runs", "400", "--exact")
        assert found["exact"] == pytest.approx(7.069019518168792, rel=1e-9)
        assert found["lower"] < found["normal_lower"] < found["value"] < found["normal_upper"] < found["upper"]
        assert found["claim"]["target"] == "reward"
        shown = sateen("check", "line.prism", "-p", "line.props:served", "--runs", "400", "--exact").stdout
        assert shown.startswith(
            'line.prism, seed 1\nline.props:served: R{"served"}[C<=5.5] of if(jobs > 0, 3, 0)\n\nR = '
        )
        assert shown.endswith("exact: R = 7.069019518, inside the interval\n")

    def test_a_bound_is_compared_with_the_whole_interval(self) -> None:
        given = ("check", "line.prism", "--runs", "400", "-p")
        assert as_json(*given, "line.props:many")["holds"] is False
        assert "R > 9 does not hold: the whole interval lies below 9" in sateen(*given, "line.props:many").stdout
        assert as_json(*given, 'R{"served"}<9 [ C<=5.5 ]')["holds"] is True
        assert "R < 7.1 stays open" in sateen(*given, 'R{"served"}<7.1 [ C<=5.5 ]').stdout

    def test_undecided_runs_are_said(self) -> None:
        shown = sateen("check", "line.prism", "-p", "line.props:until", "--runs", "50", "--max-events", "4").stdout
        assert "R is left open by undecided runs" in shown
        assert "runs are undecided: they reached max_events = 4" in shown
        found = as_json("check", "line.prism", "-p", "line.props:until", "--runs", "50", "--max-events", "4")
        assert (found["value"], found["upper"]) == (None, "inf")

    def test_what_is_not_for_rewards_is_refused(self) -> None:
        for option in (["--width", "0.1"], ["--test", "P>0.5"], ["--error", "0.1"]):
            said = sateen("check", "line.prism", "-p", "line.props:served", *option, code=1).stderr
            assert f"{option[0]} is about a probability, and this is an expected reward" in said
        said = sateen("check", "line.prism", "-p", "line.props:served", "--replay", "1", code=2).stderr
        assert "a reward has none" in said
        said = sateen("check", "line.prism", "-p", "line.props:served", "--end", "1", code=1).stderr
        assert "--end says how a formula is read, and this is a reward" in said
        said = sateen("simulate", "line.prism", "-p", "line.props:served", code=1).stderr
        assert "line.props:served asks for an expected reward, and a formula is needed here" in said

    def test_inspect_shows_rewards_and_what_is_asked_of_them(self) -> None:
        shown = sateen("inspect", "line.prism", "-p", "line.props").stdout.splitlines()
        assert shown[shown.index("rewards") :] == [
            "rewards",
            "  served  0 in a state     if(jobs > 0, 3, 0) per unit of time with transitions",
            "  2       jobs in a state",
            "labels",
            "  full  jobs == 3",
            "properties",
            '  served  R{"served"}[C<=5.5] of if(jobs > 0, 3, 0)',
            '  many    R > 9: R{"served"}[C<=5.5] of if(jobs > 0, 3, 0)',
            '  until   R{"served"}[F jobs == 3] of if(jobs > 0, 3, 0)',
            "  long    refused, line 4: rewards in the long run (S) are not supported",
        ]
        found = as_json("inspect", "line.prism", "-p", "line.props")
        assert found["properties"][1] == {
            **{"name": "many", "asks": "R", "formula": 'R{"served"}[C<=5.5] of if(jobs > 0, 3, 0)'},
            **{"comparison": ">", "bound": 9, "horizon": 5.5},
        }
        alone = sateen("inspect", "line.props").stdout
        assert '  served  R{"served"}=? [ C<=5.5 ]\n' in alone
        assert "refused, line 4: rewards in the long run" in alone
