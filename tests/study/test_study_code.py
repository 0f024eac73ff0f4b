"""Code that a study names runs when the study is run, and never before: not by reading, inspecting or reporting it."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import sateen as st
from command_line import as_json, sateen, words
from sateen.core.code import Code, find_code, refuse_code, watching_code
from sateen.learning.registry import OwnLearner, find_learner
from small_studies import changed
from watchers import Watcher

CANARY = "from pathlib import Path\nPath(__file__).with_name('sang').touch()\n"
BOX = f"{CANARY}\ndef box(theta, rng):\n    return bool(rng.random() < theta['k'] / 3)\n"
LEARNER = f"{(Path(__file__).parents[1] / 'own_learners.py').read_text()}\n{CANARY}"
SMALLER = ("points = 24, runs = 20", "points = 12, runs = 5")
NO_SETTINGS = ('[learn.svi-gp]\ninputs = "linear"\ninducing = 8\n', "")


class Place:
    """A folder with a study and the code that it names; `study` is its file."""

    def __init__(self, folder: Path, code: str, change: tuple[tuple[str, str], ...], text: str) -> None:
        self.folder, self.study, self.code = folder, folder / "decay.toml", folder / code
        self.code.write_text(text)
        self.study.write_text(changed(*change, SMALLER))

    @property
    def sang(self) -> bool:
        """Whether the code has run."""
        return (self.folder / "sang").exists()

    def rewrite(self, *changes: tuple[str, str]) -> None:
        self.study.write_text(changed(*changes, text=self.study.read_text()))


@pytest.fixture(params=["callable", "learner"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A study that names a callable, or a learner of a package in the current folder."""
    if request.param == "callable":
        model = changed().split("[model]")[1].split("[space]")[0]
        change = ((model, '\ncallable = "box.py:box"\n\n'), ('[property]\ngone = "F[0, 2] A == 0"\n', ""))
        return Place(tmp_path, "box.py", change, BOX)
    (tmp_path / "songs").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in [name for name in sys.modules if name.partition(".")[0] == "songs"]:
        monkeypatch.delitem(sys.modules, name)
    (tmp_path / "songs" / "__init__.py").write_text(
        "from pathlib import Path\nPath(__file__).parents[1].joinpath('sang').touch()\nfrom .birds import Pooled\n"
    )
    return Place(tmp_path, "songs/birds.py", (('["svi-gp"]', '["songs:Pooled"]'), NO_SETTINGS), LEARNER)


READERS: dict[str, Callable[[Place], object]] = {
    "load": lambda place: st.Study.load(place.study),
    "parse": lambda place: st.Study.parse(place.study.read_text(), file=place.study),
    "forecast": lambda place: st.Study.load(place.study).forecast(),
    "notebook": lambda place: st.Study.load(place.study)._repr_html_(),
    "inspect": lambda place: sateen("inspect", place.study),
    "inspect as json": lambda place: as_json("inspect", place.study),
    "dry run": lambda place: sateen("run", place.study, "--dry-run"),
}


@pytest.mark.parametrize("read", READERS)
def test_reading_a_study_runs_no_code(place: Place, read: str) -> None:
    READERS[read](place)
    assert not place.sang


@pytest.mark.parametrize(
    "mistake",
    [
        ("[guarantee]", "[guarantee]\nlevel = 2"),
        ("k = [0.1, 2]", "k = [2, 0.1]"),
        ("seed = 7", "seed = -1"),
        ("runs = 5", "runs = 0"),
        ('normaliser = "constant"', "normaliser ="),
    ],
)
def test_a_study_that_is_wrong_elsewhere_runs_no_code(place: Place, mistake: tuple[str, str]) -> None:
    place.rewrite(mistake)
    sateen("run", place.study, code=1)
    assert not place.sang


def test_a_run_names_the_code_and_its_hash_before_it_runs(place: Place) -> None:
    seen: list[tuple[str, bool]] = []

    class Listening(Watcher):
        def note(self, text: str) -> None:
            seen.append((text, place.sang))

    st.Study.load(place.study).run(progress=Listening())
    assert place.sang
    told = [(text, sang) for text, sang in seen if text.startswith("running code of yours: ")]
    digest = hashlib.sha256(place.code.read_bytes()).hexdigest()
    assert len(told) == 1
    assert told[0][0].endswith(f" in {place.code} (sha256 {digest[:12]}…)")
    assert [sang for text, sang in seen[: seen.index(told[0]) + 1]] == [False] * (seen.index(told[0]) + 1)


def test_no_code_refuses_to_run_it_and_says_what_would_run(place: Place) -> None:
    refused = words(sateen("run", place.study, "--no-code", code=1))
    assert f" in {place.code} (sha256 " in refused
    assert refused.startswith("InputError: this would run ")
    assert refused.endswith("read it first; if you trust it, leave out --no-code")
    with pytest.raises(st.InputError, match=r"this would run .*\n  .* leave out code=False") as caught:
        st.Study.load(place.study).run(code=False)
    assert caught.value.argument == "code"
    assert not place.sang
    assert not (place.folder / "decay-result").exists()


def test_a_study_without_code_runs_without_code(tmp_path: Path) -> None:
    file = tmp_path / "decay.toml"
    file.write_text(changed(SMALLER))
    sateen("run", file, "--no-code")
    assert (tmp_path / "decay-result" / "report.html").is_file()


def test_the_json_of_a_run_is_one_object_and_the_code_is_named_on_stderr(place: Place) -> None:
    done = sateen("run", place.study, "--json")
    assert done.stdout.count("\n") == 1
    assert done.stdout.startswith("{")
    assert done.stderr.count("running code of yours: ") == 1


def test_what_is_finished_needs_no_code_again(place: Place) -> None:
    first = st.Study.load(place.study).run()
    (place.folder / "sang").unlink()
    _forget(place)
    again = st.Study.load(place.study).run(code=False)
    assert set(again.stages.values()) == {"reused"}
    assert again.content == first.content
    assert not place.sang


def test_a_result_is_loaded_inspected_and_reported_without_code(place: Place) -> None:
    result = st.Study.load(place.study).run()
    shutil.rmtree(place.folder / "__pycache__", ignore_errors=True)
    (place.folder / "sang").unlink()
    _forget(place)
    loaded = st.Result.load(result.folder)
    assert repr(next(iter(loaded.properties.values())).posteriors)
    for file in (result.folder / "stages").glob("*.safetensors"):
        if file.name.startswith(("learn", "guarantee")):
            assert words(sateen("inspect", file)) == ""
            as_json("inspect", file)
    assert not place.sang
    if place.code.name == "box.py":
        sateen("report", result.folder)
        assert not place.sang
        return
    posterior = next((result.folder / "stages").glob("learn*.safetensors"))
    refused = words(sateen("report", result.folder, code=1))
    assert refused.endswith("read it first; if you trust it, pass --code")
    refused = words(sateen("predict", posterior, "--at", "k=1", "--no-code", code=1))
    assert refused.startswith("InputError: this would run songs.birds:Pooled in ")
    assert not place.sang
    shown = sateen("predict", posterior, "--at", "k=1")
    assert shown.stderr.startswith("running code of yours: songs.birds:Pooled in ")
    assert place.sang
    sateen("report", result.folder, "--code")


def _forget(place: Place) -> None:
    """Python forgets what it has imported, as a new process does."""
    for name in [name for name in sys.modules if name.partition(".")[0] in ("songs", "study_box")]:
        del sys.modules[name]


def test_learn_names_the_code_and_refuses_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "lark_of_mine", raising=False)
    (tmp_path / "lark_of_mine.py").write_text(LEARNER)
    (tmp_path / "runs.csv").write_text("k,satisfied,trials\n0.5,3,10\n1,5,10\n1.5,7,10\n")
    command = ("learn", "runs.csv", "--space", "k=0:2", "--learner", "lark_of_mine:Pooled", "-o", "out.safetensors")
    assert "leave out --no-code" in words(sateen(*command, "--no-code", code=2))
    assert "no_such.csv cannot be read" in words(sateen("learn", "no_such.csv", *command[2:], code=1))
    assert not (tmp_path / "sang").exists()
    assert sateen(*command).stderr.startswith("running code of yours: lark_of_mine:Pooled in ")
    assert (tmp_path / "sang").exists()


class TestFinding:
    def test_what_runs_is_what_was_read(self, tmp_path: Path) -> None:
        (tmp_path / "box.py").write_text("def box(theta, rng): return 1\n")
        code = find_code("box.py:box", tmp_path)
        (tmp_path / "box.py").write_text("def box(theta, rng): return 2\n")
        box = code.load()
        assert callable(box)
        assert box({}, None) == 1
        assert code.load() is box

    def test_a_module_runs_as_it_was_read_however_it_is_imported(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.syspath_prepend(tmp_path)
        (tmp_path / "hen_house").mkdir()
        (tmp_path / "hen_house" / "__init__.py").write_text("from .hen import Hen as Bird\n")
        (tmp_path / "hen_house" / "hen.py").write_text("class Hen:\n    eggs = 1\n")
        code = find_code("hen_house:Bird", tmp_path)
        assert (code.module, code.name) == ("hen_house.hen", "Hen")
        assert "hen_house" not in sys.modules
        (tmp_path / "hen_house" / "hen.py").write_text("class Hen:\n    eggs = 2\n")
        bird: object = code.load()
        assert bird.eggs == 1  # type: ignore[attr-defined]
        assert sys.modules["hen_house"].Bird is bird
        for name in ("hen_house", "hen_house.hen"):
            monkeypatch.delitem(sys.modules, name)

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("def bax(theta, rng): ...", "has no box; did you mean bax"),
            ("def box(theta: ...", "is not Python: '\\(' was never closed"),
            ("# -*- coding: no-such -*-\ndef box(): ...", "is not Python: unknown encoding"),
            ("x = " + "(" * 5000 + ")" * 5000 + "\ndef box(): ...", "is not Python: "),
            ("x = " + "-" * 200_000 + "1\ndef box(): ...", "is not Python: it is nested too deeply"),
            ("x = " + "9" * 5000 + "\ndef box(): ...", "is not Python: Exceeds the limit"),
            ("x = 0\0\ndef box(): ...", "is not Python: source code string cannot contain null bytes"),
            ("#" * 2**20 + "\ndef box(): ...", "has 1,048,591 bytes, and at most 1,048,576 are read"),
        ],
    )
    def test_a_file_that_is_not_python_is_refused_unrun(self, tmp_path: Path, text: str, said: str) -> None:
        (tmp_path / "box.py").write_text(text)
        with pytest.raises(st.InputError, match=said):
            find_code("box.py:box", tmp_path)

    @pytest.mark.parametrize("address", ["", "box", ":", "box:", ":box", "box.py:", "box:a b", "box:f()", "a:b:c"])
    def test_what_is_no_address_is_refused(self, tmp_path: Path, address: str) -> None:
        with pytest.raises(st.InputError, match=r"is not the address of code|cannot be imported"):
            find_code(address, tmp_path)

    @pytest.mark.parametrize(
        "text",
        [
            "if True:\n    def box(theta, rng): ...",
            "try:\n    from fast import box\nexcept ImportError:\n    def box(theta, rng): ...",
            "from somewhere import *",
            "def __getattr__(name): ...",
            "import somewhere as box",
        ],
    )
    def test_a_name_that_may_be_there_is_not_refused(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "box.py").write_text(text)
        assert find_code("box.py:box", tmp_path).name == "box"

    def test_code_that_ends_the_program_is_an_error(self, tmp_path: Path) -> None:
        (tmp_path / "box.py").write_text("import sys\nsys.exit(3)\ndef box(theta, rng): ...\n")
        with pytest.raises(st.InputError, match=r"box\.py:box cannot be run: SystemExit: 3"):
            find_code("box.py:box", tmp_path).load()

    def test_code_is_refused_only_inside_the_block(self, tmp_path: Path) -> None:
        (tmp_path / "box.py").write_text("def box(theta, rng): ...\n")
        code = find_code("box.py:box", tmp_path)
        with watching_code(refuse_code), pytest.raises(st.InputError, match=r"this would run box\.py:box in "):
            code.load()
        assert callable(code.load())


class TestLearnersUnrun:
    @pytest.mark.parametrize(
        ("text", "known"),
        [
            ("from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Bird:\n    size: int = 3\n", ["size"]),
            ("class Bird:\n    def __init__(self, size=3, *, wings=2): ...\n", ["size", "wings"]),
            ("class Bird:\n    legs = 2\n", []),
        ],
    )
    def test_a_setting_that_its_text_does_not_have_is_refused_unrun(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, known: list[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "quiet_birds.py").write_text(CANARY + text)
        for setting in known:
            assert isinstance(find_learner("quiet_birds:Bird", {setting: 1}), OwnLearner)
        with pytest.raises(st.InputError, match="quiet_birds:Bird has no setting sice") as caught:
            find_learner("quiet_birds:Bird", {"sice": 1})
        assert caught.value.argument == "sice"
        assert not (tmp_path / "sang").exists()

    @pytest.mark.parametrize(
        "text",
        [
            "class Bird(Other):\n    pass\n",
            "@mark\nclass Bird:\n    pass\n",
            "class Bird:\n    def __init__(self, **all): ...\n",
            "Bird = make()\n",
        ],
    )
    def test_settings_that_only_running_it_tells_are_left_for_then(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "quiet_birds.py").write_text(text)
        assert isinstance(find_learner("quiet_birds:Bird", {"sice": 1}), OwnLearner)

    def test_a_file_is_no_address_of_a_learner(self, tmp_path: Path) -> None:
        with pytest.raises(st.InputError, match=r"name its module, as package\.module:Class"):
            find_learner("birds.py:Bird")


def test_code_is_known_by_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "box.py").write_text("def box(theta, rng): ...\n")
    code = find_code("box.py:box", tmp_path)
    assert isinstance(code, Code)
    assert code == find_code("box.py:box", tmp_path)
    assert code.digest == hashlib.sha256(b"def box(theta, rng): ...\n").hexdigest()
