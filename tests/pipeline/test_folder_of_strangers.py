"""A result folder that somebody else has filled: no link is followed, no name leads out, no file is believed unread."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

import sateen as st
from sateen.pipeline.folder import ResultFolder, write_summary
from sateen.report.report import write_report
from small_studies import small

POSIX = pytest.mark.skipif(os.name != "posix", reason="needs links and pipes")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the small study, run once."""
    return small().run(tmp_path_factory.mktemp("done") / "decay").folder


@pytest.fixture
def folder(done: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return copytree(done, tmp_path / "decay")


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file elsewhere, that must stay as it is."""
    file = tmp_path / "victim"
    file.write_text("mine")
    return file


def stage(folder: Path, name: str) -> Path:
    (file,) = (folder / "stages").glob(f"{name}.*")
    return file


def edit(file: Path, change: Callable[[dict[str, Any]], object], *, checksum: bool = True) -> None:
    """Change the content of result.json or provenance.json, and its checksum too."""
    content = json.loads(file.read_text(encoding="utf-8"))
    stored = content.pop("checksum")
    change(content)
    if checksum:
        write_summary(file, content)
    else:
        file.write_text(json.dumps({**content, "checksum": stored}), encoding="utf-8")


@POSIX
class TestLinks:
    @pytest.mark.parametrize("name", ["result.json", "provenance.json", "report.html"])
    def test_a_link_is_replaced_by_a_run(self, done: Path, folder: Path, victim: Path, name: str) -> None:
        (folder / name).unlink()
        (folder / name).symlink_to(victim)
        small().run(folder)
        assert victim.read_text() == "mine"
        assert not (folder / name).is_symlink()
        assert (folder / "result.json").read_bytes() == (done / "result.json").read_bytes()

    def test_a_link_to_the_same_page_is_replaced_too(self, folder: Path, tmp_path: Path) -> None:
        (folder / "report.html").rename(tmp_path / "page.html")
        (folder / "report.html").symlink_to(tmp_path / "page.html")
        small().run(folder)
        assert not (folder / "report.html").is_symlink()

    def test_the_page_is_not_written_through_a_link(self, folder: Path, victim: Path) -> None:
        (folder / "report.html").unlink()
        (folder / "report.html").symlink_to(victim)
        write_report(st.Result.load(folder), folder / "report.html")
        assert victim.read_text() == "mine"

    def test_links_where_files_are_opened_are_refused_by_name(self, folder: Path, victim: Path) -> None:
        names = [".lock", "stages/runs.db", "stages/runs.db-wal", f"stages/{stage(folder, 'train').name}"]
        for name in names:
            place = folder / name
            kept = place.read_bytes() if place.exists() else None
            place.unlink(missing_ok=True)
            place.symlink_to(victim)
            for door in (lambda: small().run(folder), lambda: st.Result.load(folder)):
                with pytest.raises(st.StoreError, match=rf"{name} is a link, and a result folder has ordinary files"):
                    door()
            place.unlink()
            if kept is not None:
                place.write_bytes(kept)
        assert victim.read_text() == "mine"
        small().run(folder)

    def test_stages_elsewhere_are_refused(self, folder: Path, tmp_path: Path) -> None:
        (folder / "stages").rename(tmp_path / "elsewhere")
        (folder / "stages").symlink_to(tmp_path / "elsewhere")
        (tmp_path / "elsewhere" / ".half.part").write_text("mine")
        with pytest.raises(st.StoreError, match=r"stages is a link"):
            small().run(folder)
        assert (tmp_path / "elsewhere" / ".half.part").exists()

    def test_a_result_folder_may_itself_be_a_link(self, done: Path, tmp_path: Path) -> None:
        copytree(done, tmp_path / "large disk")
        (tmp_path / "link").symlink_to(tmp_path / "large disk")
        small().run(tmp_path / "link")
        assert (tmp_path / "link").is_symlink()

    @pytest.mark.parametrize("name", ["report.html", "stages/pipe", "provenance.json"])
    def test_a_pipe_is_refused_without_waiting_for_it(self, folder: Path, name: str) -> None:
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)
        for door in (lambda: small().run(folder), lambda: st.Result.load(folder)):
            with pytest.raises(st.StoreError, match=rf"{name} is a pipe or a device"):
                door()

    def test_a_result_that_is_a_link_to_an_endless_file_is_refused(self, folder: Path) -> None:
        (folder / "provenance.json").unlink()
        (folder / "provenance.json").symlink_to("/dev/zero")
        with pytest.raises(st.StoreError, match=r"provenance\.json is a link(.|\n)*run the study again"):
            st.Result.load(folder)


class TestHashes:
    @pytest.mark.parametrize("name", ["result.json", "provenance.json"])
    def test_an_edited_summary_is_refused_and_written_anew_by_a_run(self, done: Path, folder: Path, name: str) -> None:
        edit(folder / name, lambda content: content.update(study="another"), checksum=False)
        with pytest.raises(st.StoreError, match=rf"{name} was changed after it was written(.|\n)*run the study again"):
            st.Result.load(folder)
        small().run(folder)
        assert (folder / "result.json").read_bytes() == (done / "result.json").read_bytes()
        assert st.Result.load(folder).name == st.Result.load(done).name

    def test_a_result_with_a_checksum_made_anew_is_not_what_the_provenance_knows(self, folder: Path) -> None:
        edit(folder / "result.json", lambda content: content.update(study="another"))
        with pytest.raises(st.StoreError, match=r"result\.json was changed after it was written: provenance\.json has"):
            st.Result.load(folder)

    def test_a_stage_that_was_exchanged_for_another_valid_one_is_refused(self, folder: Path, tmp_path: Path) -> None:
        other = small(("k = [0.1, 2]", "k = [0.1, 1.9]")).run(tmp_path / "other").folder
        stage(folder, "learn").write_bytes(stage(other, "learn").read_bytes())
        with pytest.raises(st.StoreError, match=r"learn\..* was changed after it was written(.|\n)*delete the file"):
            st.Result.load(folder)
        (folder / "provenance.json").unlink()
        with pytest.raises(st.StoreError, match="a posterior of other observations"):
            st.Result.load(folder)

    def test_observations_that_were_exchanged_are_told_by_their_fingerprint(self, folder: Path) -> None:
        (folder / "provenance.json").unlink()
        stage(folder, "train").write_bytes(stage(folder, "test").read_bytes())
        with pytest.raises(
            st.StoreError, match=r"result\.json is invalid: the file of train .* has other observations"
        ):
            st.Result.load(folder)


class TestContent:
    @pytest.mark.parametrize(
        "name", ["/etc/passwd", "../result.json", "..", "a/b", "a\\b", "C:x", "", ".hidden", "a\0b", 7, None, ["x"]]
    )
    def test_a_name_that_leads_out_of_the_folder_is_refused(self, folder: Path, name: object) -> None:
        (folder / "provenance.json").unlink()
        edit(folder / "result.json", lambda content: content["properties"]["gone"]["files"].update(train=name))
        with pytest.raises(st.StoreError, match=r"result\.json is invalid(.|\n)*run the study again"):
            st.Result.load(folder)
        with pytest.raises(st.InputError, match="which is not a file in"):
            ResultFolder(folder).named(name)

    @pytest.mark.parametrize(
        "change",
        [
            {"seed": "1"},
            {"seed": -1},
            {"study": 7},
            {"question": []},
            {"question": {}},
            {"properties": {"gone": {}}},
            {"properties": []},
            {"sateen": None},
        ],
    )
    def test_a_result_of_wrong_types_is_refused(self, folder: Path, change: dict[str, object]) -> None:
        (folder / "provenance.json").unlink()
        edit(folder / "result.json", lambda content: content.update(change))
        with pytest.raises(st.StoreError, match=r"result\.json is invalid(.|\n)*run the study again"):
            st.Result.load(folder)

    @pytest.mark.parametrize(
        "change",
        [
            {"seconds": [1]},
            {"seconds": {"learn": "long"}},
            {"stages": "all"},
            {"text": 7},
            {"hashes": None},
            {"seeds": {"a": 0.5}},
            {"versions": {"numpy": 2}},
        ],
    )
    def test_a_provenance_of_wrong_types_is_refused_and_written_anew(
        self, folder: Path, change: dict[str, object]
    ) -> None:
        edit(folder / "provenance.json", lambda content: content.update(change))
        with pytest.raises(st.StoreError, match=r"provenance\.json is invalid(.|\n)*run the study again"):
            st.Result.load(folder)
        small().run(folder)
        assert "learn" in {task.split()[0] for task in st.Result.load(folder).seconds}

    @pytest.mark.parametrize("text", ["[" * 100_000, '{"format": 4, "seed": ' + "9" * 5000 + "}", "[]", '"a"', "{"])
    def test_what_is_no_object_of_json_is_damaged(self, folder: Path, text: str) -> None:
        (folder / "result.json").write_text(text)
        with pytest.raises(st.StoreError, match=r"result\.json is damaged(.|\n)*run the study again"):
            st.Result.load(folder)
