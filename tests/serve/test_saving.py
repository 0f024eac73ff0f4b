"""From a document to a question, to a saved study, and back: for every language of models."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sateen as st
from sateen.core.progress import SILENT
from sateen.core.seeds import stream_seed
from sateen.serve.clicks import Clicks, seed_of
from sateen.serve.decisions import certified
from sateen.serve.documents import Document, check_formula, check_model, question_of, read_body
from sateen.serve.files import Folder
from sateen.serve.halting import CompilingError
from sateen.serve.record import Record, session_folder
from sateen.serve.saving import CARRIED, PROPERTY, REPLACED, REPLACED_TABLES, document_of, save_study, with_training
from sateen.study.file import _SECTIONS, CapsTable, ModelTable, StudyTable
from serving import DECAY, document

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
BLACK_BOX = "def coin(theta, rng):\n    return rng.random() < theta['p']\n"


def texts():
    """A document in each language, and the files that it needs."""
    yield "sateen", document(), ()
    yield "odd text", document(text=DECAY + ' # a \\ and """ and \u00fc \x7f'), ()
    caps = {"max_events": 1000, "max_time": 1.5, "max_population": 12}
    yield "caps and settings", document(caps=caps, settings={"inducing": 9, "floor": False}), ()
    yield "negated", document(negate=True, fixed={}, seed=2**63 - 1), ()
    ant = "model m\n  species A; A = 10; k = 1; J: A -> ; k*A;\nend"
    pytest.importorskip("antimony")
    yield "antimony", document(language="antimony", text=ant), ()
    ranges = [{"name": "make", "low": 10, "high": 40, "log": False}, {"name": "half", "low": 2, "high": 8}]
    sbml = {"language": "sbml", "text": None, "source": "gene_switch.xml", "formula": "F[0, 5] B > A + 10"}
    yield "sbml", {**sbml, "ranges": ranges, "fixed": {"decay": 1.5}}, ("gene_switch.xml",)
    rates = [{"name": "arrival", "low": 0.5, "high": 2.0, "log": True}]
    yield (
        "sbml scaled",
        {**sbml, "scale": 2.0, "split": False, "ranges": ranges, "fixed": {"decay": 1.5}},
        ("gene_switch.xml",),
    )
    units = "model m\n  unit substance = mole;\n  species A; A = 1e-23; k = 1; J: A -> ; k*A;\nend"
    yield "antimony scaled", document(language="antimony", text=units, scale="units"), ()
    yield "up to an end", document(formula="G[0, 9] A > 0", end=1.5, negate=True), ()
    prism = {"language": "prism", "source": "queue.prism", "formula": "F[0, 5] waiting == 4", "ranges": rates}
    text = (EXAMPLES / "queue.prism").read_text()
    yield "prism", {**prism, "text": text, "fixed": {"capacity": 4}}, ("queue.prism",)
    yield "prism text", {**prism, "source": None, "text": text, "fixed": {"capacity": 4}}, ()
    coin = {"language": "black-box", "source": "coin.py:coin", "formula": ""}
    yield "black box", {**coin, "ranges": [{"name": "p", "low": 0.1, "high": 0.9}]}, ()


def asked_by(opened, folder):
    """The question of what was opened; what the page only says of it is left out."""
    return question_of(read_body(Document, {name: opened[name] for name in Document.__annotations__}), folder)


@pytest.fixture(params=texts(), ids=lambda each: each[0].replace(" ", "-"))
def asked(request, tmp_path):
    """The question of a document, in a folder with what it needs."""
    _, doc, files = request.param
    for file in files:
        shutil.copy(EXAMPLES / file, tmp_path)
    (tmp_path / "coin.py").write_text(BLACK_BOX)
    folder = Folder(tmp_path, ("coin.py:coin",))
    return question_of(read_body(Document, doc), folder), folder


def test_a_document_can_be_checked_and_saved_and_the_study_learns_the_same(asked):
    question, folder = asked
    told = check_model(question.document, folder)
    assert {each["name"] for each in told["parameters"]} >= (
        set(question.space.names) if isinstance(question.model, st.Model) else set()
    )
    if question.formula is not None:
        assert check_formula(question.document, folder)["text"] == str(question.formula)
    seen = st.observe(question.model, question.formula, question.space.sobol(40, seed=1), 10, seed=2, workers=1)
    files, posterior = save_study(question, folder, "saved", seen, SILENT)
    result = st.Result.load(folder.root / files["result"])
    assert result.properties[next(iter(result.properties))].train == seen
    points = question.space.sobol(16, seed=3)
    study = st.Study.load(folder.root / files["path"])
    again = study.run(folder.root / "again")
    (answer,) = again.properties.values()
    assert np.array_equal(answer.posteriors["svi-gp"].predict(points).mean, posterior.predict(points).mean)
    reread = asked_by(document_of("saved.toml", folder), folder)
    assert reread.space == question.space
    assert reread.formula == question.formula
    assert str(reread.model) == str(question.model)
    assert (reread.document.seed, reread.settings) == (question.document.seed, question.settings)
    assert reread.caps == question.caps
    assert study.properties.get(PROPERTY, question.formula) == question.formula


def test_a_saved_study_may_be_saved_again_and_others_may_not(tmp_path):
    folder = Folder(tmp_path)
    question = question_of(read_body(Document, document()), folder)
    seen = st.observe(question.model, question.formula, question.space.sobol(32, seed=1), 10, seed=2, workers=1)
    save_study(question, folder, "saved", seen[:16], SILENT)
    save_study(question, folder, "saved", seen, SILENT)
    assert len(next(iter(st.Result.load(tmp_path / "saved-result").properties.values())).train) == 32
    (tmp_path / "other.toml").write_text("[study]\n")
    with pytest.raises(st.InputError, match="not replaced"):
        save_study(question, folder, "other", seen, SILENT)


@pytest.mark.parametrize(
    ("doc", "kind", "words"),
    [
        (document(text=""), st.ModelError, "the model is empty"),
        (document(text=None), st.ModelError, "there is no model"),
        (document(formula=" "), st.FormulaError, "there is no property"),
        (document(formula="F[0, 2] B == 0"), st.FormulaError, "the model has no B"),
        (document(ranges=[]), st.SpaceError, "no parameter varies"),
        (document(ranges=[{"name": "m", "low": 0, "high": 1}]), st.SpaceError, "no parameter m"),
        (document(ranges=[{"name": "k", "low": 1, "high": 1}]), st.SpaceError, "k: a range needs low < high"),
        (document(ranges=[{"name": "k", "low": 0, "high": 1, "log": True}]), st.SpaceError, "needs low > 0"),
        (document(ranges=document()["ranges"] * 2), st.SpaceError, "two ranges"),
        (document(text="species A = 1\nA -> 0 @ k * A + m * A"), st.MissingValueError, "m"),
        (document(learner="svi-g"), st.InputError, "did you mean"),
        (document(source="x.sateen", text=None), st.InputError, "there is no file"),
    ],
)
def test_a_document_that_asks_nothing_is_refused_by_name(tmp_path, doc, kind, words):
    with pytest.raises(kind) as caught:
        question_of(read_body(Document, doc), Folder(tmp_path))
    assert words in str(caught.value)


BASE = {
    "study": {"name": '"s"', "seed": "3"},
    "model": {"text": '"species A = 3\\nA -> 0 @ k*A"'},
    "space": {"k": "[1, 2]"},
    "property": {"p": '"F[0, 1] A == 0"'},
    "observe": {"train": "{ points = 8, runs = 5 }"},
}
SBML = {
    "model": {"file": '"gene_switch.xml"'},
    "space": {"make": "[10, 40]"},
    "property": {"p": '"F[0, 5] B > A + 10"'},
}
QUEUE = {"model": {"file": '"queue.prism"', "constants": "{ capacity = 4 }"}, "space": {"arrival": "[0.5, 2]"}}
QUEUE |= {"property": {"p": '"F[0, 5] waiting == 4"'}}
COIN = {"model": {"callable": '"coin.py:coin"'}, "space": {"p": "[0.1, 0.9]"}, "property": {}}
# For every key of the tables that the page takes apart: a study without it, and what it says there.
SAMPLES = {
    ("study", "name"): ({}, '"other"'),
    ("study", "seed"): ({}, "4"),
    ("model", "text"): ({}, '"species A = 4\\nA -> 0 @ k*A"'),
    ("model", "file"): ({"model": {}}, '"other.sateen"'),
    ("model", "callable"): (COIN, '"coin.py:fair"'),
    ("model", "constants"): (QUEUE, "{ capacity = 5 }"),
    ("model", "scale"): (SBML, "2.0"),
    ("model", "split"): (SBML, "false"),
    ("observe", "train"): ({}, "{ points = 9, runs = 5 }"),
    ("observe", "test"): ({}, "{ points = 9, runs = 5 }"),
    ("observe", "calibrate"): ({}, "{ points = 50, runs = 5 }"),
    ("observe", "max_events"): ({}, "100"),
    ("observe", "max_time"): ({}, "0.5"),
    ("observe", "max_population"): ({}, "2"),
    ("learn", "learners"): ({}, '["ep-gp"]'),
    ("learn", "svi-gp"): ({"learn": {"learners": '["svi-gp", "ep-gp"]'}}, "{ inducing = 7 }"),
}


def written(study):
    """The text of a study."""
    lines = []
    for table, keys in study.items():
        lines += [f"[{table}]", *(f"{key} = {value}" for key, value in keys.items())] if keys else []
    return "\n".join(lines)


@pytest.fixture
def opened(tmp_path):
    """Opens a study, as the page does."""
    for file in ("gene_switch.xml", "queue.prism"):
        shutil.copy(EXAMPLES / file, tmp_path)
    (tmp_path / "other.sateen").write_text("species A = 5\nA -> 0 @ k*A")
    (tmp_path / "coin.py").write_text(BLACK_BOX + BLACK_BOX.replace("coin", "fair"))

    def open_(study):
        (tmp_path / "s.toml").write_text(written({**BASE, **study}))
        return document_of("s.toml", Folder(tmp_path, ("coin.py:coin", "coin.py:fair")))

    return open_


def test_every_key_of_a_study_is_known_to_the_page():
    """A new one needs a line in SAMPLES, and to be carried or replaced."""
    tables = {"study": StudyTable, "model": ModelTable, "observe": CapsTable}
    keys = {(table, key) for table, kind in tables.items() for key in kind.__annotations__}
    assert keys == {each for each in SAMPLES if each[0] != "learn"}
    assert set(_SECTIONS) == {*tables, *REPLACED_TABLES, "space", "property", "learn"}


@pytest.mark.parametrize(("table", "key"), SAMPLES)
def test_a_key_of_a_study_is_carried_or_replaced(opened, table, key):
    pytest.importorskip("libsbml")
    study, value = SAMPLES[table, key]
    changed = {**study, table: {**({**BASE, **study}.get(table, {})), key: value}}
    before = {} if key == "file" else opened(study)
    differs = any(before.get(name) != each for name, each in opened(changed).items())
    assert differs == (key not in REPLACED.get(table, ()))
    assert (key in CARRIED.get(table, ())) == differs or table == "learn"


@pytest.mark.parametrize("file", sorted(file.name for file in EXAMPLES.glob("*.toml")))
def test_every_example_of_a_study_opens_with_all_that_it_sets(file):
    folder = Folder(EXAMPLES, ("ruin.py:ruined",))
    doc = document_of(file, folder)
    question = asked_by(doc, folder)
    study = st.Study.load(EXAMPLES / file)
    assert question.caps == dict(study.caps)
    assert question.settings.items() >= next(iter(study.settings.values())).items()
    assert question.document.title == file.removesuffix(".toml")
    others = [*list(study.properties)[1:], *list(study.learners)[1:]]
    assert all(name in (doc["note"] or "") for name in others)


def test_a_setting_that_json_cannot_say_is_refused_by_name(opened):
    with pytest.raises(st.InputError, match="sets memory of ep-gp to inf"):
        opened({"learn": {"learners": '["ep-gp"]', "ep-gp": "{ memory = inf }"}})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"property": {"p": '"F[0, 1] A == 1"'}}, "another formula"),
        ({"observe": {**BASE["observe"], "max_events": "2"}}, "another max_events"),
        ({"space": {"k": "[1, 3]"}}, "another ranges"),
        ({"property": {"p": '{ formula = "F[0, 1] A == 0", end = 0.5 }'}}, "another end"),
    ],
)
def test_a_study_goes_on_only_from_a_result_of_what_it_asks_now(opened, tmp_path, change, words):
    folder = Folder(tmp_path)

    def resumed(study):
        question = asked_by(opened(study), folder)
        return with_training(Record({}), session_folder(tmp_path, "s"), folder, "s.toml", question)

    opened({})
    st.Study.load(tmp_path / "s.toml").run(progress=None)
    assert resumed({}).runs == 40
    with pytest.raises(st.InputError, match=words):
        resumed(change)


@pytest.mark.parametrize("cap", [{}, {"max_events": 12}, {"max_events": 9}, {"max_time": 0.7}, {"max_population": 11}])
def test_chips_are_the_runs_that_observe_makes_with_caps(tmp_path, cap):
    """Each run is the same in a process that made none of the others, whichever simulator made it."""
    text = "species A = 9\n0 -> A @ 6\nA -> 0 @ k*A"
    doc = document(text=text, formula="F[0, 2] A <= 3", caps=cap)
    question = question_of(read_body(Document, doc), Folder(tmp_path))
    at = {"k": 1.5}
    seen = st.observe(
        question.model, question.formula, question.space.points([at]), 50, seed=seed_of(question, 1), **cap
    )
    told = Clicks().batch(question, at, 50, 1, lambda: False)
    while told["by"] == "simulate":  # until the engine is compiled
        told = Clicks().batch(question, at, 50, 1, lambda: False)
    assert (told["holds"], told["undecided"]) == (int(seen.satisfied[0]), int(seen.undecided[0]))
    assert bool(told["undecided"]) == bool(cap)
    for way in ("replay", "simulate"):
        verdicts = [Clicks().one(question, at, run, 1, way)["verdict"] for run in range(50)]
        if way == "replay":
            assert verdicts == [run["verdict"] for run in told["runs"]]
        assert 0 < verdicts.count("true") < 50
        assert ("undecided" in verdicts) == bool(cap)


def test_a_batch_says_which_simulator_made_it(tmp_path, monkeypatch):
    question = question_of(read_body(Document, document()), Folder(tmp_path))

    def compiling(*_, progress=None, **__):
        raise CompilingError

    with monkeypatch.context() as patched:
        patched.setattr("sateen.serve.clicks.call_provider", compiling)
        told = Clicks().batch(question, {"k": 1.0}, 20, 0, lambda: False)
    assert told["by"] == "simulate"
    again = [Clicks().one(question, {"k": 1.0}, run, 0, told["by"])["verdict"] for run in range(20)]
    assert again == [run["verdict"] for run in told["runs"]]


def test_a_claim_is_about_runs_with_the_caps_of_the_study(tmp_path):
    question = question_of(
        read_body(Document, document(caps={"max_events": 3}, formula="F[0, 2] A < 9")), Folder(tmp_path)
    )
    seen = st.observe(question.model, question.formula, question.space.sobol(64, seed=1), 20, seed=2, max_events=3)
    posterior = st.learn(seen, question.learner, seed=3)
    asked = {"threshold": 0.3, "region": "above", "confidence": 0.9, "runs": None}
    claim = certified(question, posterior, (), asked, tmp_path / "runs.db", SILENT)
    store = st.certify(
        st.decide(posterior, seed=stream_seed(1, "serve certify", 0), above=0.3),
        question.model,
        question.formula,
        wrong=0.05,
        confidence=0.9,
        seed=stream_seed(1, "serve certify", 0),
        max_events=3,
        progress=None,
    )
    assert claim["text"] == str(store)


def test_import_sateen_and_the_command_line_load_no_server():
    program = "import sys, sateen; from sateen.cli import main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {"starlette", "uvicorn"} & set(done.stdout.split()) == set()


def test_the_server_process_loads_nothing_of_what_its_workers_do():
    program = "import sys, sateen.serve.app, sateen.serve.record; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    heavy = {"llvmlite", "jax", "scipy", "matplotlib", "plotly", "lark", "sateen.model.model", "sateen.engine.kernel"}
    assert heavy & set(done.stdout.split()) == set()


@pytest.mark.parametrize("missing", ["starlette", "uvicorn"])
def test_without_the_extra_the_command_says_what_to_install(tmp_path, missing):
    program = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from sateen.cli import main; main(['serve', '--no-browser'], prog_name='sateen')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1
    assert "pip install starlette uvicorn, or in a clone  pip install '.[serve]'" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere",), "there is no file or folder nowhere"),
        (("nowhere.py:f",), "there is no file nowhere.py"),
        (("--port", "99999"), "99999"),
    ],
)
def test_what_cannot_be_served_is_said(tmp_path, arguments, words):
    command = [sys.executable, "-m", "sateen", "serve", "--no-browser", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert words in done.stderr
