"""Only files below the folder are read, whatever a name says, and black boxes only if they were named."""

from __future__ import annotations

import os

import pytest

import sateen as st
from sateen.serve.files import Folder


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "models"
    (root / "deep").mkdir(parents=True)
    (root / "decay.sateen").write_text("species A = 1\nA -> 0 @ k")
    (root / "deep" / "queue.prism").write_text("ctmc")
    (root / "study.toml").write_text("")
    (root / "notes.md").write_text("secret")
    (tmp_path / "outside.sateen").write_text("species B = 1")
    return Folder(root, ("ruin.py:ruined",))


def test_a_file_in_the_folder_is_read(folder):
    assert folder.text("decay.sateen").startswith("species A")
    assert folder.text("deep/queue.prism") == "ctmc"


@pytest.mark.parametrize(
    "name",
    [
        *("../outside.sateen", "deep/../../outside.sateen", "/etc/passwd", "", ".", "..", "a\0b.sateen"),
        *("..\\outside.sateen", "deep/../decay.sateen", "nowhere.sateen", "deep", "notes.md", "x" * 5000 + ".ant"),
    ],
)
def test_another_name_is_refused(folder, name):
    with pytest.raises(st.InputError):
        folder.text(name)


def test_an_absolute_name_of_a_file_inside_is_refused_too(folder):
    with pytest.raises(st.InputError, match="not the name of a file below"):
        folder.text(str(folder.root / "decay.sateen"))


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="the system has no links")
def test_a_link_that_leads_out_is_refused_and_not_listed(folder, tmp_path):
    (folder.root / "link.sateen").symlink_to(tmp_path / "outside.sateen")
    (folder.root / "out").symlink_to(tmp_path)
    (folder.root / "loop.sateen").symlink_to(folder.root / "loop.sateen")
    (folder.root / "inside.sateen").symlink_to(folder.root / "decay.sateen")
    for name in ("link.sateen", "out/outside.sateen", "loop.sateen"):
        with pytest.raises(st.InputError):
            folder.text(name)
    assert folder.text("inside.sateen").startswith("species A")
    names = {each["path"] for each in folder.listed()}
    assert names & {"link.sateen", "out/outside.sateen", "loop.sateen"} == set()
    assert "inside.sateen" in names


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_does_not_block(folder):
    os.mkfifo(folder.root / "pipe.sateen")
    with pytest.raises(st.InputError, match="not a regular file"):
        folder.text("pipe.sateen")


def test_models_and_studies_are_listed_and_black_boxes_that_are_allowed(folder):
    (folder.root / ".hidden").mkdir()
    (folder.root / ".hidden" / "x.sateen").write_text("")
    (folder.root / "sir-result").mkdir()
    (folder.root / "sir-result" / "x.xml").write_text("")
    listed = {each["path"]: each["kind"] for each in folder.listed()}
    assert listed == {
        "decay.sateen": "model",
        "deep/queue.prism": "model",
        "study.toml": "study",
        "ruin.py:ruined": "black-box",
    }


def test_a_black_box_that_was_not_named_is_refused(folder):
    assert folder.black_box("ruin.py:ruined") == "ruin.py:ruined"
    for address in ("ruin.py:other", "os:system", "", None):
        with pytest.raises(st.InputError, match="not allowed here"):
            folder.black_box(address)
