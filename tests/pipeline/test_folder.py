"""The folder of a result: one run at a time, whole files, and clear words when something is wrong with it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from shutil import copytree

import pytest

import sateen as st
from sateen.core.fingerprints import fingerprint, plain_json
from sateen.pipeline.folder import ResultFolder, write_summary
from small_studies import SMALL, small

POSIX = pytest.mark.skipif(os.name != "posix", reason="this test speaks to a POSIX system")
RUN = "import sys, sateen as st; st.Study.load(sys.argv[1]).run()"


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the small study, run once."""
    return small().run(tmp_path_factory.mktemp("done") / "decay").folder


@pytest.fixture
def folder(done: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    return copytree(done, tmp_path / "decay")


def stage(folder: Path, name: str) -> Path:
    (file,) = (folder / "stages").glob(f"{name}.*")
    return file


class TestDamage:
    @pytest.mark.parametrize("name", ["train", "test", "calibrate", "learn", "guarantee", "score"])
    @pytest.mark.parametrize("how", ["cut", "changed", "emptied"])
    def test_a_damaged_file_is_named_and_recomputed_when_it_is_deleted(
        self, done: Path, folder: Path, name: str, how: str
    ) -> None:
        file = stage(folder, name)
        whole = file.read_bytes()
        middle = len(whole) // 2
        turned = bytes(byte ^ 1 for byte in whole[middle : middle + 40])
        damaged = {"cut": whole[:middle], "changed": whole[:middle] + turned + whole[middle + 40 :], "emptied": b""}
        file.write_bytes(damaged[how])
        others = {each: each.read_bytes() for each in (folder / "stages").iterdir() if each != file}
        with pytest.raises(st.StoreError) as caught:
            small().run(folder)
        assert str(file) in str(caught.value)
        assert "delete the file and run the study again" in str(caught.value)
        assert {each: each.read_bytes() for each in others} == others
        file.unlink()
        small().run(folder)
        assert (folder / "result.json").read_bytes() == (done / "result.json").read_bytes()

    def test_a_damaged_store_is_named_and_left_as_it_is(self, done: Path, folder: Path) -> None:
        store = folder / "stages" / "runs.db"
        store.write_bytes(b"\x00" * 4096 + store.read_bytes()[4096:])
        before = store.read_bytes()
        small().run(folder)  # all stages are there, so it is not needed
        stage(folder, "train").unlink()
        with pytest.raises(st.StoreError, match=rf"the store {re.escape(str(store))} is"):
            small().run(folder)
        assert store.read_bytes() == before
        store.unlink()
        small().run(folder)
        assert (folder / "result.json").read_bytes() == (done / "result.json").read_bytes()

    def test_not_a_digit_of_the_scores_can_change_unnoticed(self, folder: Path) -> None:
        file = stage(folder, "score")
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace('"rmse": 0.', '"rmse": 1.', 1), encoding="utf-8")
        assert file.read_text(encoding="utf-8") != text
        with pytest.raises(st.StoreError, match="its content does not match its checksum"):
            small().run(folder)

    @pytest.mark.parametrize("name", ["result.json", "provenance.json"])
    def test_a_damaged_summary_is_written_again(self, done: Path, folder: Path, name: str) -> None:
        (folder / name).write_text("{ no json")
        if name == "result.json":
            with pytest.raises(st.StoreError, match=r"result\.json is damaged"):
                st.Result.load(folder)
        small().run(folder)
        assert (folder / "result.json").read_bytes() == (done / "result.json").read_bytes()
        assert st.Result.load(folder).text == SMALL

    def test_what_is_no_result_is_said(self, folder: Path, tmp_path: Path) -> None:
        with pytest.raises(st.InputError, match="has no result of a study; give another"):
            st.Result.load(tmp_path / "none")
        (folder / "result.json").unlink()
        with pytest.raises(st.InputError, match="is not finished there"):
            st.Result.load(folder)
        (folder / "result.json").write_text('{"format": 1}')
        with pytest.raises(st.StoreError, match="is of the format 1, and this sateen reads 4"):
            st.Result.load(folder)
        (folder / "result.json").write_text('{"format": 99}')
        with pytest.raises(st.StoreError, match="is of the format 99, and this sateen reads 4"):
            st.Result.load(folder)
        write_summary(folder / "result.json", {"format": 4})
        with pytest.raises(st.StoreError, match="is invalid"):
            st.Result.load(folder)

    def test_halves_of_files_that_a_killed_run_left_are_removed(self, folder: Path) -> None:
        half = folder / "stages" / ".train.gone.1234.safetensors.99-99.part"
        half.write_bytes(b"half")
        small().run(folder)
        assert not half.exists()


class TestOthers:
    def test_a_folder_with_other_files_is_not_written_to(self, tmp_path: Path) -> None:
        (tmp_path / "letter.txt").write_text("dear")
        with pytest.raises(st.StoreError, match="has files, and none of a study"):
            small().run(tmp_path)
        assert [file.name for file in tmp_path.iterdir()] == ["letter.txt"]

    def test_a_file_is_no_folder(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(st.StoreError, match="cannot write to the folder"):
            small().run(tmp_path / "file")

    @pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="this system has no /proc")
    def test_a_folder_that_cannot_be_made_is_said(self) -> None:
        with pytest.raises(st.StoreError, match=r"cannot write to the folder /proc/decay: .*\n  allow it, or choose"):
            small().run("/proc/decay")

    @pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root writes to read-only folders")
    def test_a_read_only_folder_is_said_and_left_as_it_is(self, folder: Path) -> None:
        for each in (folder / "stages", folder):
            each.chmod(0o500)
        try:
            with pytest.raises(st.StoreError, match="Permission denied"):
                small().run(folder)
        finally:
            for each in (folder, folder / "stages"):
                each.chmod(0o700)

    def test_two_runs_in_one_folder_are_not_allowed_and_the_second_says_so(self, folder: Path) -> None:
        with ResultFolder(folder).held(), pytest.raises(st.StoreError, match="another run is in progress in"):
            small().run(folder)
        small().run(folder)

    @POSIX
    def test_a_killed_run_leaves_no_lock(self, folder: Path) -> None:
        program = (
            "import sys, pathlib, time; from sateen.pipeline.folder import ResultFolder, write_summary\n"
            "with ResultFolder(pathlib.Path(sys.argv[1])).held():\n    print('held', flush=True)\n    time.sleep(600)"
        )
        with subprocess.Popen([sys.executable, "-c", program, folder], stdout=subprocess.PIPE) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"held\n"
            with pytest.raises(st.StoreError, match="another run is in progress in"):
                small().run(folder)
            holder.send_signal(signal.SIGKILL)
        small().run(folder)


def with_files_of_at_most(size: int) -> str:
    """The beginning of a program that may write no file of more than `size` bytes, as on a disk that is full."""
    return f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))\n"


@POSIX
@pytest.mark.parametrize("limit", [1000, 5000, 30_000])
def test_on_a_full_disk_the_run_says_so_and_goes_on_when_there_is_room(done: Path, tmp_path: Path, limit: int) -> None:
    file = tmp_path / "decay.toml"
    file.write_text(SMALL)
    command = [sys.executable, "-c", with_files_of_at_most(limit) + RUN, str(file)]
    full = subprocess.run(command, capture_output=True, text=True, check=False)
    assert full.returncode == 1
    said = full.stderr.strip().splitlines()
    assert any("StoreError: " in line for line in said), full.stderr
    assert "run the same again" in full.stderr
    folder = tmp_path / "decay-result"
    assert not (folder / "result.json").exists()
    assert not list(folder.rglob("*.part"))
    st.Study.load(file).run()
    assert (folder / "result.json").read_bytes() == (done / "result.json").read_bytes()


def test_a_fingerprint_tells_data_apart_and_nothing_else() -> None:
    assert fingerprint({"a": [1, 2.5, None], "b": "x"}) == fingerprint({"b": "x", "a": (1, 2.5, None)})
    assert len({fingerprint(one) for one in (1, 1.5, "1", [1], {"1": 1}, None, True, float("inf"))}) == 8
    assert plain_json({"a": float("-inf"), "b": (float("nan"), 1)}) == {"a": "-inf", "b": [None, 1]}
