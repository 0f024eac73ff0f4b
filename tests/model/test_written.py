"""Models written to files: they read back as equal models, or are refused by name."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from sateen.core.errors import ModelError, ModelWarning
from sateen.language.expression import Name, Number, number
from sateen.language.grammar import parse_condition, parse_expression
from sateen.model.model import Event, Model, Parameter, Transition, Variable
from sateen.model.prism import read_prism
from strategies import models

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ALL = """species x = 0 in [0, 3], y = -1 in (-inf, inf), z = 0 in (-inf, 9], w = 4 in [2, inf)
real k = 0.5
species A = n
constant N = 10
parameter n = 3
grow: x := min(x + 1, 3), y := y - N @ k when x < 3
take: A -> 2 w, y := 0 @ A
event dose: x := 0, k := 2 * k when time >= 5
event `first of all`: y := 1 when A > 0 or time < 2 initially false
event nothing: 0 when A > 7
"""
QUEUE = """ctmc
const int n = 3;
module line
    jobs : [0..n];
    busy : bool;
    free : int;
    [] jobs<n        -> 2 : (jobs'=jobs+1);
    [go] jobs>0      -> 1 : (jobs'=jobs-1) & (busy'=!busy) & (free'=free-1);
    [] true          -> 3 : (jobs'=0);
    [] jobs>1        -> 4 : (jobs'=jobs-2);
endmodule
module gate
    open : bool init true;
    [go] open        -> 5 : (open'=false);
    [] !open         -> 0.5 : (open'=true);
endmodule
"""


def load(file: Path) -> Model:
    """The model, whatever the reader doubts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return Model.load(file)


def model(name: str = "A", **others: object) -> Model:
    """A death process of a species of this name."""
    transition = Transition("die", Name(name), ((name, 1),))
    return Model((Variable(name, Number(1.0)),), (transition,), **others)  # type: ignore[arg-type]


def test_the_text_of_a_model_says_everything() -> None:
    assert str(Model.parse(ALL)) == ALL


def test_a_model_of_the_prism_language_is_the_same_as_text(tmp_path: Path) -> None:
    queue = read_prism(QUEUE).model
    queue.save(tmp_path / "queue.sateen")
    assert load(tmp_path / "queue.sateen") == queue


@pytest.mark.parametrize("suffix", [".sateen", ".txt", ".SATEEN"])
def test_a_model_is_saved_as_text(suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"all{suffix}"
    Model.parse(ALL).save(file)
    assert file.read_text(encoding="utf-8") == ALL
    assert load(file) == Model.parse(ALL)
    Model.parse(ALL).save(str(file))


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(any_model=models())
def test_any_model_of_the_intermediate_form_is_saved_and_loaded(any_model: Model, tmp_path: Path) -> None:
    any_model.save(tmp_path / "any.sateen")
    assert load(tmp_path / "any.sateen") == any_model


@pytest.mark.parametrize(
    ("unsayable", "message"),
    [
        (model("a`b"), "the name 'a`b' cannot be written as text"),
        (model("a\nb"), r"the name 'a\nb' cannot be written as text"),
        (model(" "), "the name ' ' cannot be written as text"),
        (model("__a"), "as text this cannot be read: __a: names do not begin with two underscores"),
        (model("a" * 101), "as text this cannot be read: a name of 101 characters"),
        (model(parameters=(Parameter("k"), Parameter("k"))), "as text this cannot be read: k is declared twice"),
        (
            Model((Variable("A", Number(1.0)),), (Transition("", Number(1.0), (), (("A", 1),)),)),
            "the name '' cannot be written as text",
        ),
        (
            Model((Variable("A", Number(1.0)),), (Transition("r", parse_expression("-k"), (), (("A", 1),)),)),
            "as text this cannot be read: the rate -k is never positive",
        ),
        (
            Model((Variable("A", Number(1.0)),), (Transition("r", Number(1.0), (), (("A", 1), ("A", 1))),)),
            "r is not the same once it is written as text and read",
        ),
        (
            Model((Variable("A", number(1.0)),), (Transition("r", Name("k"), (), (("A", 1),)),)),
            "this model is not the same once it is written as text and read",
        ),
    ],
)
def test_what_text_cannot_say_is_refused_by_name_and_nothing_is_written(
    unsayable: Model, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelError) as raised:
        unsayable.save(tmp_path / "m.sateen")
    assert raised.value.message == message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("example", ["gene_switch.xml", "epidemic.ant", "sir.sateen"])
@pytest.mark.parametrize("suffix", [".xml", ".sbml", ".sateen"])
def test_a_model_of_any_language_is_saved_in_any_other_and_stays_the_same(
    example: str, suffix: str, tmp_path: Path
) -> None:
    read = Model.load(EXAMPLES / example)
    read.save(tmp_path / f"saved{suffix}")
    assert Model.load(tmp_path / f"saved{suffix}") == read


def test_a_language_that_is_not_known_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no writer for \.prism") as raised:
        model().save(tmp_path / "m.prism")
    assert raised.value.remedy == "known: .sateen, .txt, .xml, .sbml"
    with pytest.raises(ModelError, match="no writer for a file without suffix"):
        model().save(tmp_path / "m")


def test_a_file_that_was_there_is_replaced_whole_or_stays(tmp_path: Path) -> None:
    file = tmp_path / "m.sateen"
    file.write_text("species old = 1\n0 -> old @ 1\n", encoding="utf-8")
    with pytest.raises(ModelError):
        model("a`b").save(file)
    assert load(file).species == ("old",)
    model().save(file)
    assert load(file) == model()
    assert os.listdir(tmp_path) == ["m.sateen"]


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        model().save(tmp_path / "none" / "m.sateen")


def test_an_event_is_written_with_its_trigger() -> None:
    event = Event("e", (("A", Number(2.0)),), parse_condition("time >= 5 and A > 1"), initially=False)
    assert str(model(events=(event,))).endswith("event e: A := 2 when time >= 5 and A > 1 initially false\n")
