"""What a study file may say, and how a mistake in it is told: the key, the line and what would do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

import sateen as st
from sateen.core.errors import FormulaError, ModelError, TextError
from sateen.study.spec import Design
from small_studies import SMALL, changed, small

MISTAKES = [
    # what is written instead of what; the key that is named; what is said; the remedy
    ("seed = 7", "sede = 7", "study.sede", "there is no such key", "did you mean seed?"),
    ("seed = 7", 'seed = "7"', "study.seed", "a whole number is needed, not '7'", ""),
    ("seed = 7", "seed = -1", "study.seed", "a whole number not below 0 is needed, not -1", ""),
    ("seed = 7", "", "study", "seed is missing", "see [study] with"),
    ('"decay"', '"a/b"', "study.name", "'a/b' cannot be part of the name of a file", "take letters"),
    ("[observe]", "[obsreve]", "obsreve", "there is no such table", "did you mean observe?"),
    ("points = 24", "pionts = 24", "observe.train.pionts", "there is no such key", "did you mean points?"),
    ("points = 24", "points = 0", "observe.train.points", "a whole number not below 1 is needed, not 0", ""),
    ("points = 24", "points = 2.5", "observe.train.points", "a whole number is needed, not 2.5", ""),
    ("points = 24", 'points = 24, design = "sobl"', "observe.train.design", "'sobl' is not known", "mean sobol?"),
    ("points = 24", 'points = 1, design = "grid"', "observe.train.points", "a grid has both ends", ""),
    ("{ points = 24, runs = 20 }", "3", "observe.train", "a table is needed here, not 3", "see [observe]"),
    (", runs = 20 }", " }", "observe.train", "runs is missing", "see [observe]"),
    ("runs = 20 }", "runs = 1000000000001 }", "observe.train.runs", "not above 1000000000000", ""),
    ("train     =", "trian =", "observe.trian", "there is no such key", "did you mean train?"),
    ("[space]", "[spice]", "spice", "there is no such table", "did you mean space?"),
    ("k = [0.1, 2]", "kk = [0.1, 2]", "space.kk", "the model has no such parameter", "did you mean k?"),
    ("k = [0.1, 2]", "", "space", "the parameter k has no value", "give it one: k = ..."),
    ("k = [0.1, 2]", "k = [2, 0.1]", "space.k", "a range needs low < high", ""),
    ("k = [0.1, 2]", "k = [2]", "space.k", "a range has two numbers", "write [0.005, 0.3]"),
    ("k = [0.1, 2]", "k = [true, 2]", "space.k", "a range has two numbers", ""),
    ("k = [0.1, 2]", "k = { range = [1, 2], sclae = 'log' }", "space.k.sclae", "no such key", "did you mean scale?"),
    ("k = [0.1, 2]", "k = { range = [1, 2], scale = 'lg' }", "space.k.scale", "scale is 'linear' or 'log'", ""),
    ("k = [0.1, 2]", "k = { range = [0, 2], scale = 'log' }", "space.k", "scale='log' needs low > 0", ""),
    ("k = [0.1, 2]", "k = { scale = 'log' }", "space.k", "range is missing", "write ["),
    ('"F[0, 2] A == 0"', '"F[0, 2] B == 0"', "property.gone", "the model has no B", "it has A, k"),
    ('"F[0, 2] A == 0"', "3", "property.gone", "a formula is text", "write "),
    ('"F[0, 2] A == 0"', '{ formla = "A > 0" }', "property.gone.formla", "no such key", "did you mean formula?"),
    ('"F[0, 2] A == 0"', '{ formula = "A > 0", end = -1 }', "property.gone.end", "end is a time from 0 on", ""),
    ('gone = "F[0, 2] A == 0"', "", "property", "there is no property", "add one"),
    ('"svi-gp"', '"svi-gp", "ep-pg"', "learn.learners", "there is no learner 'ep-pg'; did you mean ep-gp?", ""),
    ('"svi-gp"', '"svi-gp", "svi-gp"', "learn.learners", "svi-gp is named twice", ""),
    ('["svi-gp"]', '"svi-gp"', "learn.learners", "this is a list of learners", "they are default, ep-gp"),
    ("[learn.svi-gp]", "[learn.ep-gp]", "learn.ep-gp", "it is not among the learners", ""),
    ("learners =", "methods =", "learn.methods", "methods is now called learners", "rename the key"),
    (
        "inducing = 8",
        "inducng = 8",
        "learn.svi-gp.inducng",
        "svi-gp has no setting inducng; did you mean inducing?",
        "",
    ),
    (
        "inducing = 8",
        "inducing = 'few'",
        "learn.svi-gp.inducing",
        "inducing is a whole number from 1 up, not 'few'",
        "",
    ),
    ("inducing = 8", "inducing = -8", "learn.svi-gp.inducing", "inducing is a whole number from 1 up", ""),
    ("{ points = 40, runs = 20 }", "{ points = 40 }", "observe.calibrate", "how much may it cost?", "give one of"),
    ("{ points = 40, runs = 20 }", "{}", "observe.calibrate", "how much may it cost?", "give one of"),
    ("points = 40, runs = 20", "points = 28, runs = 20", "observe.calibrate.points", "are too few for", "observe more"),
    ("points = 40, runs = 20", "budget = 28", "observe.calibrate.budget", "is too small for", "raise the budget"),
    ("points = 40, runs = 20", "width = 6", "observe.calibrate.width", "width is a number between 0 and 1", ""),
    ("calibrate =", "# calibrate =", "guarantee", "a guarantee rests on runs of its own", "add calibrate"),
    ("normaliser =", "normalizer =", "guarantee.normalizer", "there is no such key", "did you mean normaliser?"),
    ('"constant"', '"quantile"', "guarantee.normaliser", "is one of 'predictive', 'posterior'", ""),
    ("[guarantee]", "[guarantee]\nlevel = 1", "guarantee.level", "is a number between 0 and 1, such as 0.9, not 1", ""),
    ("[guarantee]", "[guarantee]\nof = 'ep-gp'", "guarantee.of", "is not among the learners of [learn]", "there are"),
    ("[guarantee]", "[guarantee]\nsplit = 0.5", "guarantee.split", 'does not apply to method = "lift"', ""),
    ("[guarantee]", "[guarantee]\nmarginal = true\nconfidence = 0.9", "guarantee.marginal", "no confidence", ""),
    ("text = '''", "file = 'a.sateen'\ntext = '''", "model.file", "text and file are both given", "give one of"),
    ("text = '''", "constants = { N = 1 }\ntext = '''", "model.constants", "constants are for models in a file", ""),
]


@pytest.mark.parametrize(("old", "new", "key", "said", "remedy"), MISTAKES)
def test_a_mistake_names_the_key_the_line_and_what_would_do(
    old: str, new: str, key: str, said: str, remedy: str
) -> None:
    text = changed((old, new))
    with pytest.raises(TextError) as caught:
        st.Study.parse(text, file="decay.toml")
    error = caught.value
    assert error.message.startswith(f"decay.toml: {key}: ")
    assert said in error.message
    assert remedy in error.remedy
    line = text.splitlines()[error.line - 1]
    assert key.rpartition(".")[2] in line, "the caret is not under the key"


@pytest.mark.parametrize(
    ("old", "new", "kind", "line", "said"),
    [
        ("mass_action(k)", "mass_action(k", ModelError, "A -> 0 @ mass_action(k", "model.text"),
        ("A == 0", "A =< 0", FormulaError, 'gone = "F[0, 2] A =< 0"', "property.gone"),
        ('"F[0, 2] A == 0"', "{ formula = 'F[0, 2 A > 1' }", FormulaError, "gone = {", "property.gone.formula"),
        ("[0, 2]", "[0, T]", FormulaError, 'gone = "F[0, T] A == 0"', "property.gone"),
        ("seed = 7", "seed = ", TextError, "seed = ", "Invalid value"),
        ("[learn]", "[learn", TextError, "[learn", "Expected ']'"),
        ("[learn]", "[study]", TextError, "[study]", "Cannot declare"),
    ],
)
def test_a_mistake_in_a_text_is_shown_at_its_place_in_the_study(
    old: str, new: str, kind: type[TextError], line: str, said: str
) -> None:
    with pytest.raises(kind, match=re.escape(said)) as caught:
        st.Study.parse(changed((old, new)), file="decay.toml")
    assert caught.value.text.splitlines()[caught.value.line - 1].startswith(line)
    assert "constants=" not in str(caught.value)


@pytest.mark.parametrize("table", ["study", "model", "space", "property", "observe"])
def test_a_table_that_is_missing_is_named_with_an_example(table: str) -> None:
    text = re.sub(rf"\[{table}\]\n(?:[^\[]|\[(?=[0-9]))*", "", SMALL)
    with pytest.raises(TextError, match=re.escape(f"the table [{table}] is missing")) as caught:
        st.Study.parse(text)
    assert f"[{table}] with" in caught.value.remedy


@pytest.mark.parametrize("method", ["icp", "nicp", "chernoff"])
def test_a_plan_is_for_the_lift_alone(method: str) -> None:
    with pytest.raises(TextError, match=f'observe.calibrate.budget: a plan does not apply to method = "{method}"'):
        small(("points = 40, runs = 20", "budget = 1000"), ('normaliser = "constant"', f'method = "{method}"'))


def test_a_plan_chooses_the_rank() -> None:
    with pytest.raises(TextError, match=r"guarantee\.rank: rank and a plan both fix the rank"):
        small(("points = 40, runs = 20", "budget = 1000"), ("[guarantee]", "[guarantee]\nrank = 2"))


def test_what_is_not_said_has_a_default() -> None:
    text = SMALL.split("[learn]")[0]
    study = st.Study.parse(text)
    assert list(study.learners) == ["default"]
    assert (study.train.design, study.test and study.test.design) == ("sobol", "uniform")
    spec = study.guarantee
    assert spec is not None
    assert (spec.of, spec.method, spec.level, spec.confidence) == ("default", "lift", 0.9, 0.95)
    bare = st.Study.parse(re.sub(r"(?m)^(calibrate|test) .*\n", "", text))
    assert (bare.test, bare.calibration, bare.guarantee) == (None, None, None)


def test_the_study_of_the_design_is_read_as_it_is_meant() -> None:
    study = st.Study.load(Path(__file__).parents[2] / "examples" / "sir.toml")
    assert study.space == st.Space(beta=(0.005, 0.3), gamma=st.Range(0.005, 0.2, scale="log"))
    assert dict(study.properties) == {"dies_out": st.stl("(I > 0) U[100, 120] (I == 0)")}
    assert list(study.learners.values()) == [st.SVIGP(), st.EPGP(), st.SVIBNN()]
    assert study.calibration is not None
    assert study.calibration.budget == 100_000
    assert study.folder.name == "sir-result"
    assert study.folder.parent.name == "examples"


def test_constants_of_the_model_have_their_values_in_a_formula() -> None:
    named = small(("species A", "constant T = 2, none = 0\nspecies A"), ("F[0, 2] A == 0", "F[0, T] A == none"))
    assert named.properties["gone"] == st.stl("F[0, 2] A == 0")


PRISM = """\
ctmc
const int N;
const double k;
module m
  a : [0..N] init N;
  [] a > 0 -> k * a : (a' = a - 1);
endmodule
"""


def test_a_model_in_a_file_stands_beside_the_study_and_may_leave_constants_open(tmp_path: Path) -> None:
    (tmp_path / "decay.prism").write_text(PRISM)
    model, file = SMALL.split("[model]")[1].split("[space]")[0], tmp_path / "decay.toml"
    text = changed((model, '\nfile = "decay.prism"\nconstants = { N = 5 }\n\n'), ("A == 0", "a == 0"))
    file.write_text(text)
    read = st.Study.load(file).model
    assert isinstance(read, st.Model)
    assert read == st.Model.load(tmp_path / "decay.prism", constants={"N": 5})
    (tmp_path / "decay.prism").write_text(PRISM.replace("init N", "int N"))
    with pytest.raises(ModelError, match=r"^decay\.prism: .*\(line 5\)"):
        st.Study.load(file)
    file.write_text(text.replace("decay.prism", "growth.prism"))
    with pytest.raises(TextError, match=r"decay\.toml: model\.file: .*growth\.prism cannot be read"):
        st.Study.load(file)


def test_a_mistake_in_a_string_with_escapes_is_shown_as_it_is_read() -> None:
    with pytest.raises(FormulaError) as caught:
        st.Study.parse(changed(("F[0, 2] A == 0", "F[0, 2 \\u0041 == 0")), file="decay.toml")
    assert str(caught.value).splitlines()[:2] == [
        "decay.toml, line 15: property.gone: expected ']' after the interval",
        "  F[0, 2 A == 0",
    ]


def test_line_ends_of_windows_and_a_mark_at_the_start_change_nothing() -> None:
    strange = "\ufeff" + SMALL.replace("\n", "\r\n")
    assert st.Study.parse(strange).question() == small().question()


def test_none_in_quotes_is_none() -> None:
    study = small(("inducing = 8", 'length_scales = [0.5]\nbatch = "none"'))
    assert study.learners["svi-gp"] == st.SVIGP(inputs="linear", length_scales=(0.5,), batch=None)


def test_the_designs_here_are_those_of_the_library() -> None:
    designs = get_args(get_type_hints(Design)["design"])
    assert all(callable(getattr(st.Space, design)) for design in designs)


def test_a_file_that_is_no_study_is_said(tmp_path: Path) -> None:
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    for name, said in (("none.toml", "No such file"), ("a.sateen", "ends in .toml"), ("binary.toml", "UTF-8")):
        with pytest.raises(st.InputError, match=said):
            st.Study.load(tmp_path / name)


def test_names_with_quotes_are_names_of_parameters_too() -> None:
    study = small(("mass_action(k)", "mass_action(`k 1`)"), ("k = [0.1, 2]", '"k 1" = [0.1, 2]'))
    assert study.space.names == ("k 1",)


def test_a_table_nested_without_end_is_refused() -> None:
    with pytest.raises(TextError):
        st.Study.parse(f"x = {'[' * 100_000}")
