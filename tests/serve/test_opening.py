"""What a file that is opened may do: be read. It runs no code, and leads to no file outside of the folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import sateen as st
from sateen.core.progress import SILENT
from sateen.serve.documents import Document, question_of, read_body
from sateen.serve.files import Folder
from sateen.serve.record import Record, session_folder
from sateen.serve.saving import document_of, has_result, save_study, with_training
from serving import DECAY, Serving, client_of, document

MARKED = """
from pathlib import Path

Path(__file__).with_name("was-run").touch()
"""
LEARNER = f"""{MARKED}
from own_learners import Pooled


class Found(Pooled):
    pass
"""
TESTS = str(Path(__file__).parents[1])
NOT_HERE = "the learner found:Found is Python code, which is not run here"


def study(**changes):
    """The text of a study of decay; another table in the place of one, or beside it."""
    tables = {
        "study": '{ name = "s", seed = 3 }',
        "model": f"{{ text = {json.dumps(DECAY)} }}",
        "space": "{ k = [0.1, 2] }",
        "property": '{ gone = "F[0, 2] A == 0" }',
        "observe": "{ train = { points = 32, runs = 20 } }",
    }
    return "\n".join(f"{name} = {value}" for name, value in {**tables, **changes}.items())


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder in which a study names a learner that is code beside it; it is the current folder, as it mostly is."""
    (tmp_path / "found.py").write_text(LEARNER)
    (tmp_path / "s.toml").write_text(study(learn='{ learners = ["found:Found"] }'))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [TESTS, os.environ.get("PYTHONPATH")])))
    return tmp_path


def was_run(home):
    return (home / "was-run").exists()


def test_a_study_that_is_opened_does_not_run_its_learner_and_says_how_to_allow_it(home):
    """Nor does a document or a session that names the learner, by whatever request it comes."""
    done = subprocess.run(
        [sys.executable, "-m", "sateen", "run", "s.toml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert was_run(home)  # the user asked for it
    (home / "was-run").unlink()
    doc = document(learner="found:Found")
    session_folder(home, "left").path.mkdir()
    session_folder(home, "left").write(Record(doc))
    with Serving(home) as serving:
        answers = [
            serving.post("open", path="s.toml"),
            serving.post("open", session="left"),
            serving.post("campaign", doc=doc),
            serving.post("run", doc=doc, theta={"k": 1.0}, seed=1),
        ]
        for told in answers:
            assert told["error"]["message"].startswith(NOT_HERE)
            assert "sateen serve --learner" in told["error"]["remedy"]
        assert "found:Found" not in serving.get("hello")["learners"]
        assert serving.post("check/formula", doc=doc)["ok"]
    assert not was_run(home)


@pytest.mark.parametrize("arguments", [("s.toml",), ("--learner", "found:Found")])
def test_a_learner_that_the_command_line_names_learns(home, arguments):
    with Serving(*arguments) as serving:
        assert not was_run(home)  # not before somebody starts
        assert "found:Found" in serving.get("hello")["learners"]
        opened = serving.post("open", path="s.toml")
        assert opened["doc"]["learner"] == "found:Found"
        serving.post("campaign", doc=opened["doc"])
        serving.learned()
        serving.post("stop")
    assert was_run(home)


def test_only_the_learner_that_the_page_uses_must_be_allowed(home):
    (home / "s.toml").write_text(study(learn='{ learners = ["svi-gp", "found:Found"] }'))
    assert "found:Found" in document_of("s.toml", Folder(home))["note"]
    assert not was_run(home)


def test_a_learner_that_is_not_there_is_refused_on_the_command_line(home):
    command = [sys.executable, "-m", "sateen", "serve", "--no-browser", "--learner", "found:Other"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "found has no Other" in done.stderr
    assert not was_run(home)


@pytest.mark.skipif(os.name != "posix", reason="the processes are started otherwise")
def test_files_with_the_names_of_pythons_own_modules_are_not_run(home):
    """A worker process begins without the current folder on its path, as `sateen` itself does."""
    for name in ("multiprocessing", "struct", "tempfile", "random", "json"):
        (home / f"{name}.py").write_text(MARKED)
    start = home.parent / f"{home.name}-start.py"  # as an installed command is, it is elsewhere
    start.write_text("from sateen.cli import main\nmain()\n")
    command = [sys.executable, str(start), "serve", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout is not None
        address = next(line for line in process.stdout if "token=" in line)
        with client_of(address) as client:
            assert client.post("/api/check/model", json={"doc": document()}).json()["ok"]
    finally:
        process.terminate()
        process.communicate()
    assert not was_run(home)


def test_a_study_leads_to_no_file_outside_of_the_folder(tmp_path):
    """Not even a message tells what is in one."""
    (tmp_path / "secret.sateen").write_text("the secret is 42")
    (tmp_path / "secret.py").write_text("the secret is 42")
    (tmp_path / "secret.safetensors").write_text("the secret is 42")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link.sateen").symlink_to(tmp_path / "secret.sateen")
    folder = Folder(inside)
    names = ["../secret.sateen", str(tmp_path / "secret.sateen"), "link.sateen", ".", "nul\\u0000l", "../inside"]
    texts = [study(model=f'{{ file = "{name}" }}') for name in names]
    texts += [study(observe=f'{{ train = {{ file = "{name}" }} }}') for name in ("../secret.safetensors", "..")]
    for text in texts:
        (inside / "s.toml").write_text(text)
        for look in (document_of, has_result):
            with pytest.raises(st.InputError, match=r"outside of the folder|leads nowhere") as caught:
                look("s.toml", folder)
            assert "42" not in str(caught.value)
    for address in ("../secret.py:f", str(tmp_path / "secret.py") + ":f", "os:system"):
        (inside / "s.toml").write_text(study(model=f'{{ callable = "{address}" }}'))
        with pytest.raises(st.InputError, match=r"outside of the folder|not allowed here"):
            document_of("s.toml", folder)


def test_a_result_that_is_a_link_out_of_the_folder_is_not_read_and_not_written(tmp_path):
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    inside.mkdir()
    st.Study.parse(study()).run(outside / "s-result", progress=None)
    (inside / "s.toml").write_text(study())
    (inside / "s-result").symlink_to(outside / "s-result")
    folder = Folder(inside)
    question = question_of(read_body(Document, document()), folder)
    for look in (
        lambda: has_result("s.toml", folder),
        lambda: with_training(Record({}), session_folder(inside, "s"), folder, "s.toml", question),
    ):
        with pytest.raises(st.InputError, match="outside of the folder"):
            look()
    before = sorted((outside / "s-result").iterdir())
    (inside / "s.toml").unlink()
    seen = st.observe(question.model, question.formula, question.space.sobol(16, seed=1), 5, seed=2, workers=1)
    with pytest.raises(st.InputError, match="outside of the folder"):
        save_study(question, folder, "s", seen, SILENT)
    assert sorted((outside / "s-result").iterdir()) == before
    assert not (inside / "s.toml").exists()


def test_a_study_in_a_folder_below_names_what_is_beside_it(tmp_path):
    """Of two functions of the same name, the one beside the study is meant, and must be allowed."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "decay.sateen").write_text(DECAY)
    (tmp_path / "deep" / "up.toml").write_text(study(model='{ file = "../decay.sateen" }'))
    assert document_of("deep/up.toml", Folder(tmp_path))["source"] == "decay.sateen"
    for where in ("", "deep/"):
        (tmp_path / f"{where}coin.py").write_text("def coin(theta, rng):\n    return rng.random() < theta['k']\n")
    text = study(model='{ callable = "coin.py:coin" }').replace('property = { gone = "F[0, 2] A == 0" }', "")
    (tmp_path / "deep" / "coin.toml").write_text(text)
    with pytest.raises(st.InputError, match=r"'deep/coin\.py:coin' is not allowed here"):
        document_of("deep/coin.toml", Folder(tmp_path, ("coin.py:coin",)))
    folder = Folder(tmp_path, ("deep/coin.py:coin",))
    doc = document_of("deep/coin.toml", folder)
    asked = {name: doc[name] for name in Document.__annotations__}
    question = question_of(read_body(Document, asked), folder)
    assert Path(question.model.__code__.co_filename) == tmp_path / "deep" / "coin.py"


OPEN_RATES = """ctmc
const int most;
const double arrival;
const double service;
module queue
  waiting : [0..most] init 0;
  [] waiting < most -> arrival : (waiting' = waiting + 1);
  [] waiting > 0 -> service : (waiting' = waiting - 1);
endmodule
"""


@pytest.mark.parametrize(
    ("constants", "space"),
    [
        ("{ most = 4 }", "{ arrival = [0.5, 2], service = 1.5 }"),
        ("{ most = 4, service = 1.5 }", "{ arrival = [0.5, 2] }"),
    ],
)
def test_a_rate_that_prism_leaves_open_is_a_parameter_or_a_constant_as_the_study_says(tmp_path, constants, space):
    """So the model is the study's own, to the last character, and what was observed of it can be gone on from."""
    (tmp_path / "queue.prism").write_text(OPEN_RATES)
    text = study(
        model=f'{{ file = "queue.prism", constants = {constants} }}',
        space=space,
        property='{ p = "F[0, 5] waiting == 4" }',
    )
    (tmp_path / "s.toml").write_text(text)
    st.Study.load(tmp_path / "s.toml").run(progress=None)
    folder = Folder(tmp_path)
    doc = document_of("s.toml", folder)
    question = question_of(read_body(Document, {name: doc[name] for name in Document.__annotations__}), folder)
    assert str(question.model) == str(st.Study.load(tmp_path / "s.toml").model)
    assert with_training(Record({}), session_folder(tmp_path, "s"), folder, "s.toml", question).runs == 640
    typed = document(
        language="prism",
        text=OPEN_RATES,
        formula="F[0, 5] waiting == 4",
        ranges=[{"name": "arrival", "low": 0.5, "high": 2.0}],
        fixed={"most": 4, "service": 1.5},
    )
    assert {each.name for each in question_of(read_body(Document, typed), folder).model.parameters} == {
        "arrival",
        "service",
    }


@pytest.mark.parametrize("text", ["[study", "study = 3", "model = 3\nlearn = { learners = 3 }", "x = " + "[" * 10_000])
def test_a_study_that_is_none_is_an_error_of_the_users(tmp_path, text):
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(st.InputError, match=r"s\.toml"):
        document_of("s.toml", Folder(tmp_path))


def test_a_model_that_is_too_large_for_the_page_is_read_by_the_server(tmp_path):
    text = DECAY + "\n" + "# nothing\n" * 25_000
    (tmp_path / "large.sateen").write_text(DECAY + "\n" + "# nothing\n" * 15_000)
    assert document_of("large.sateen", Folder(tmp_path))["text"] is not None
    (tmp_path / "large.xml").write_text(text)
    assert document_of("large.xml", Folder(tmp_path))["text"] is None
