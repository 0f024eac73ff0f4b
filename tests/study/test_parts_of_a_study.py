"""A study in parts, merged, comes to the same bits as on one machine; what cannot be merged is refused by name."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as hs

import sateen as st
from sateen.pipeline.folder import ResultFolder, read_summary, write_summary
from sateen.sampling.parts import length, part_runs
from sateen.study.loading import stage_question
from sateen.study.spec import Design
from small_studies import DECIDE, SMALL, WITHOUT, changed, small

ROOT = Path(__file__).resolve().parents[2]
TOTALS = {"train": 480, "test": 500, "calibrate": 800}
BUDGET = (("points = 40, runs = 20", "budget = 1500"), ('normaliser = "constant"', ""))


def told(folder: Path) -> bytes:
    return (folder / "result.json").read_bytes()


def study_design(study: st.Study, stage: str) -> Design:
    design = {"train": study.train, "test": study.test, "calibrate": study.calibration and study.calibration.design}
    found = design[stage]
    assert found is not None
    return found


def runs_made(folder: Path) -> int:
    """How many runs the store of a folder has; the same before and after, where none is made."""
    with sqlite3.connect(folder / "stages" / "runs.db") as connection:
        return int(connection.execute("SELECT coalesce(sum(stop - first), 0) FROM chunk").fetchone()[0])


def plant(folder: Path, row: int) -> int:
    """Change the counts of a row of the store of a folder, and its checksum; where its runs begin."""
    with sqlite3.connect(folder / "stages" / "runs.db") as connection:
        question = "SELECT campaign, first, content FROM chunk ORDER BY campaign, first LIMIT 1 OFFSET ?"
        campaign, first, content = connection.execute(question, (row,)).fetchone()
        text, _, counts = zlib.decompress(content).partition(b"\n")
        table = np.frombuffer(counts, "<i8").copy()
        table[0] += 1 if table[0] == 0 else -1
        packed = zlib.compress(text + b"\n" + table.tobytes())
        connection.execute("UPDATE chunk SET content = ? WHERE campaign = ? AND first = ?", (packed, campaign, first))
    return int(first)


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the small study, run on one machine."""
    return small().run(tmp_path_factory.mktemp("once") / "decay").folder


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The four parts of the small study."""
    folder = tmp_path_factory.mktemp("parts")
    return [small().run_part((number, 4), folder / f"{number}").folder for number in (1, 2, 3, 4)]


@pytest.fixture
def copies(parts: list[Path], tmp_path: Path) -> list[Path]:
    """Copies of the parts, to be spoilt."""
    return [shutil.copytree(part, tmp_path / f"part-{part.name}") for part in parts]


class TestParts:
    def test_a_part_makes_its_runs_of_every_stage_that_needs_no_fit_and_no_more(self, tmp_path: Path) -> None:
        study = small()
        done = study.run_part((2, 3), tmp_path / "part", workers=1)
        assert dict(done.runs) == {stage: length(part_runs(total, (2, 3))) for stage, total in TOTALS.items()}
        assert done.made == sum(done.runs.values()) == runs_made(tmp_path / "part")
        assert done.waiting == ("learn", "guarantee", "score")
        assert sorted(os.listdir(tmp_path / "part")) == [".lock", "parts.json", "stages"]
        assert study.run_part((2, 3), tmp_path / "part").made == 0

    def test_a_calibration_that_is_planned_waits_for_the_fit(self, tmp_path: Path) -> None:
        done = small(*BUDGET).run_part((1, 5), tmp_path / "part")
        assert list(done.runs) == ["train", "test"]
        assert done.waiting == ("learn", "plan", "calibrate", "guarantee", "score")

    def test_by_default_a_part_stands_beside_the_study_and_a_listing_has_them_in_order(self, tmp_path: Path) -> None:
        (tmp_path / "decay.toml").write_text(changed())
        study = st.Study.load(tmp_path / "decay.toml")
        assert study.run_part((7, 40)).folder == tmp_path / "decay-part-07-of-40"

    def test_a_folder_may_have_several_parts(self, once: Path, tmp_path: Path) -> None:
        for number in (3, 1, 2):
            small().run_part((number, 3), tmp_path / "part")
        merged = st.merge([tmp_path / "part"], into=tmp_path / "all")
        assert (merged.complete, merged.missing) == (True, ())
        small().run(tmp_path / "all")
        assert told(tmp_path / "all") == told(once)

    def test_a_part_of_a_study_that_was_changed_begins_anew(self, copies: list[Path], tmp_path: Path) -> None:
        done = small(("points = 24", "points = 25")).run_part((1, 4), copies[0])
        assert done.made == 125  # test and calibration are as they were
        with pytest.raises(st.InputError, match=r"part-2 is of another study than .*part-1: its design is"):
            st.merge(copies[:2], into=tmp_path / "all")

    def test_a_forecast_says_what_the_part_will_make_and_writes_nothing(self, copies: list[Path]) -> None:
        study = small()
        before = sorted(copies[0].rglob("*"))
        fresh = study.forecast(copies[0].parent / "nothing", part=(2, 4))
        assert (fresh.runs, np.isnan(fresh.seconds)) == (445, True)
        assert [(step.stage, step.about) for step in fresh.steps[:2]] == [
            ("train", "120 of 480 runs"),
            ("test", "125 of 500 runs"),
        ]
        assert [step.about for step in fresh.steps[3:]] == ["after the merge"] * 3
        known = study.forecast(copies[0], part=(2, 4))
        assert known.runs == 445
        assert 0 < known.seconds < 60
        done = study.forecast(copies[0], part=(1, 4))
        assert (done.runs, {step.state for step in done.steps[:3]}) == (0, {"reused"})
        assert small(("seed = 7", "seed = 8")).forecast(copies[0], part=(1, 4)).runs == 445
        assert sorted(copies[0].rglob("*")) == before
        assert not (copies[0].parent / "nothing").exists()

    def test_two_runs_at_once_in_one_folder_are_refused(self, copies: list[Path], tmp_path: Path) -> None:
        with ResultFolder(copies[0]).held():
            with pytest.raises(st.StoreError, match="another run is in progress in"):
                small().run_part((1, 4), copies[0])
            with pytest.raises(
                st.StoreError, match=r"a run is in progress in .*\n  wait until it has ended, or leave it"
            ):
                st.merge(copies, into=tmp_path / "all")
        assert not (tmp_path / "all").exists()

    def test_a_function_is_run_only_where_code_may_be(self, tmp_path: Path) -> None:
        shutil.copy(ROOT / "examples" / "ruin.py", tmp_path)
        text = (ROOT / "examples" / "ruin.toml").read_text()
        (tmp_path / "ruin.toml").write_text(text)
        study = st.Study.load(tmp_path / "ruin.toml")
        with pytest.raises(st.InputError, match="this would run ruin"):
            study.run_part((1, 2), tmp_path / "1", code=False)
        for number in (1, 2):
            study.run_part((number, 2), tmp_path / f"{number}")
        (tmp_path / "ruin.py").write_text((tmp_path / "ruin.py").read_text() + "\n# changed\n")
        st.Study.load(tmp_path / "ruin.toml").run_part((2, 2), tmp_path / "3")
        with pytest.raises(st.InputError, match=r"3 is of another study than .*1: its model is .*'code'"):
            st.merge([tmp_path / "1", tmp_path / "3"], into=tmp_path / "all")
        shutil.copy(ROOT / "examples" / "ruin.py", tmp_path)
        merged = st.merge([tmp_path / "2", tmp_path / "1"], into=tmp_path / "all")
        assert merged.complete
        again = st.Study.load(tmp_path / "ruin.toml").run(tmp_path / "all")
        alone = st.Study.load(tmp_path / "ruin.toml").run(tmp_path / "alone")
        assert told(again.folder) == told(alone.folder)


class TestMerged:
    @pytest.mark.slow
    @settings(max_examples=3, deadline=None)
    @given(data=hs.data())
    def test_any_division_order_and_doubling_comes_to_the_same_bits(
        self, data: Any, once: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        folder = tmp_path_factory.mktemp("any")
        many = data.draw(hs.integers(1, 5))
        dealt = data.draw(
            hs.permutations([*range(1, many + 1), *data.draw(hs.lists(hs.integers(1, many), max_size=2))])
        )
        folders = []
        for place, number in enumerate(dealt):
            small().run_part((number, many), folder / f"{place}", workers=data.draw(hs.integers(1, 2)))
            folders.append(folder / f"{place}")
        cut = data.draw(hs.integers(0, len(folders)))
        for some in (folders[:cut], folders[cut:]):
            if some:
                merged = st.merge(some, into=folder / "all")
        assert (merged.complete, merged.missing, merged.study) == (True, (), "decay")
        assert dict(merged.has) == TOTALS
        study, wanted = small(), st.Result.load(once).properties["gone"]
        assert isinstance(study.model, st.Model)
        for stage in TOTALS:
            points, runs, seed = stage_question(study, stage, study_design(study, stage))
            asked = (study.model, st.stl("F[0, 2] A == 0"), points, runs)
            assert st.observe(*asked, seed=seed, store=folder / "all/stages/runs.db") == getattr(wanted, stage)
        assert runs_made(folder / "all") == sum(TOTALS.values())  # none was made again

    def test_the_study_goes_on_without_a_run_and_to_the_same_bytes(
        self, parts: list[Path], once: Path, tmp_path: Path
    ) -> None:
        st.merge(parts[::-1], into=tmp_path / "all")
        result = small().run(tmp_path / "all")
        assert runs_made(tmp_path / "all") == sum(TOTALS.values())
        assert told(tmp_path / "all") == told(once)
        assert set(result.stages.values()) == {"computed"}
        own, wanted = (st.Result.load(folder).properties["gone"] for folder in (tmp_path / "all", once))
        assert (own.train, own.test, own.calibrate) == (wanted.train, wanted.test, wanted.calibrate)

    def test_missing_parts_are_listed_and_the_study_makes_their_runs(
        self, parts: list[Path], once: Path, tmp_path: Path
    ) -> None:
        merged = st.merge([parts[0], parts[2]], into=tmp_path / "all")
        assert (merged.complete, merged.missing) == (False, ((2, 4), (4, 4)))
        assert merged.added == runs_made(tmp_path / "all") == 890
        later = st.merge([parts[3]], into=tmp_path / "all")
        assert (later.missing, later.added) == (((2, 4),), 445)
        small().run(tmp_path / "all")
        assert runs_made(tmp_path / "all") == sum(TOTALS.values())
        assert told(tmp_path / "all") == told(once)

    def test_parts_of_two_divisions_that_were_merged_are_not_called_missing(
        self, parts: list[Path], tmp_path: Path
    ) -> None:
        small().run_part((2, 5), tmp_path / "fifth")
        merged = st.merge([*parts[:1], tmp_path / "fifth"], into=tmp_path / "all")
        assert not merged.complete
        assert merged.missing
        assert (2, 5) not in merged.missing
        assert (1, 4) not in merged.missing

    def test_a_part_that_never_began_to_run_is_missing(self, copies: list[Path], tmp_path: Path) -> None:
        (copies[1] / "stages" / "runs.db").unlink()
        merged = st.merge(copies, into=tmp_path / "all")
        assert merged.missing == ((2, 4),)
        (copies[2] / "stages" / "runs.db").unlink()
        merged = st.merge(copies[1:3], into=tmp_path / "none")
        assert (merged.added, merged.missing) == (0, ((1, 4), (2, 4), (3, 4), (4, 4)))

    def test_merged_folders_can_be_merged_and_sources_stay_as_they_are(
        self, copies: list[Path], once: Path, tmp_path: Path
    ) -> None:
        before = {file: file.read_bytes() for copy in copies for file in copy.rglob("*") if file.is_file()}
        st.merge(copies[:2], into=tmp_path / "left")
        st.merge(copies[2:], into=tmp_path / "right")
        merged = st.merge([tmp_path / "left", tmp_path / "right"], into=tmp_path / "all")
        assert merged.complete
        assert {file: file.read_bytes() for copy in copies for file in copy.rglob("*") if file.is_file()} == before

    def test_what_was_run_on_one_machine_is_kept_and_parts_come_on_top(
        self, parts: list[Path], once: Path, tmp_path: Path
    ) -> None:
        folder = shutil.copytree(once, tmp_path / "all")
        assert st.merge(parts, into=folder).added == 0
        assert told(folder) == told(once)
        assert small().run(folder).stages["score gone"] == "reused"

    def test_another_learner_needs_no_other_parts(self, parts: list[Path], tmp_path: Path) -> None:
        study = small(("inducing = 8", "inducing = 9"))
        again = study.run_part((1, 4), tmp_path / "1")
        st.merge([again.folder, *parts[1:]], into=tmp_path / "all")
        study.run(tmp_path / "all")
        study.run(tmp_path / "alone")
        assert told(tmp_path / "all") == told(tmp_path / "alone")

    @pytest.mark.slow
    def test_several_properties_and_a_decision(self, tmp_path: Path) -> None:
        text = changed(('gone = "F[0, 2] A == 0"', 'gone = "F[0, 2] A == 0"\nearly = "F[0, 1] A == 0"'), text=WITHOUT)
        decide = DECIDE.replace("[decide]\n", '[decide]\nproperty = "gone"\n').replace("bounds = ", "# ")
        study = st.Study.parse(text + decide)
        folders = [study.run_part((number, 3), tmp_path / f"{number}").folder for number in (1, 2, 3)]
        assert st.merge(folders, into=tmp_path / "all").complete
        study.run(tmp_path / "all")
        study.run(tmp_path / "alone")
        assert told(tmp_path / "all") == told(tmp_path / "alone")


FOREIGN: dict[str, tuple[tuple[str, str], str]] = {
    "seed": (("seed = 7", "seed = 8"), "its seed is 8, and not 7"),
    "model": (("A -> 0 @ mass_action(k)", "A -> 0 @ mass_action(2*k)"), "another model|its model is"),
    "space": (("k = [0.1, 2]", "k = [0.1, 3]"), "its space is .*3.0.*, and not .*2.0"),
    "design": (("points = 10, runs", "points = 11, runs"), "its design is .*'points': 11.*, and not .*'points': 10"),
    "caps": (("[observe]", "[observe]\nmax_events = 50"), "its caps is .*50"),
}


class TestRefused:
    @pytest.mark.parametrize("kind", FOREIGN)
    def test_a_part_of_another_study_is_named_with_what_differs(
        self, kind: str, parts: list[Path], tmp_path: Path
    ) -> None:
        change, words = FOREIGN[kind]
        small(change).run_part((2, 4), tmp_path / "stray")
        with pytest.raises(st.InputError, match=rf"stray is of another study than .*1: ({words})(.|\n)*leave it out"):
            st.merge([parts[0], tmp_path / "stray", parts[2]], into=tmp_path / "all")
        assert not (tmp_path / "all").exists()
        st.merge(parts[:1], into=tmp_path / "all")
        with pytest.raises(st.InputError, match=r"stray is of another study than .*all: "):
            st.merge([tmp_path / "stray"], into=tmp_path / "all")

    @pytest.mark.parametrize(
        ("edit", "words"),
        [
            (lambda record: record | {"format": 9}, "is of the format 9, and this sateen reads 1"),
            (lambda record: record | {"sateen": "0.0.1"}, "its version of sateen is 0.0.1, and not"),
            (lambda record: record | {"properties": {"gone": ["F A == 0", 2.0]}}, "its property is .*F A == 0.*, and"),
            (lambda record: record | {"parts": [[5, 4]]}, "is not a part"),
            (lambda record: record | {"store": "../../runs.db"}, "which is not a file in"),
            (lambda record: {**record, "seed": "7"}, "expected `int`, got `str`"),
        ],
    )
    def test_a_record_that_this_sateen_cannot_join_is_refused(
        self, edit: Callable[[dict[str, Any]], dict[str, Any]], words: str, copies: list[Path], tmp_path: Path
    ) -> None:
        record = read_summary(copies[3] / "parts.json", 1)
        write_summary(copies[3] / "parts.json", edit(record))
        with pytest.raises(st.SateenError, match=rf"part-4(.|\n)*{words}"):
            st.merge(copies, into=tmp_path / "all")
        assert not (tmp_path / "all").exists()

    def test_runs_of_another_engine_are_refused(self, copies: list[Path], tmp_path: Path) -> None:
        record = read_summary(copies[3] / "parts.json", 1)
        record["stages"]["train"]["key"] = "0" * 64
        write_summary(copies[3] / "parts.json", record)
        with pytest.raises(st.InputError, match=r"part-4 is of another study than .*part-1: its engine is"):
            st.merge(copies, into=tmp_path / "all")

    def test_a_record_that_was_changed_by_hand_is_refused(self, copies: list[Path], tmp_path: Path) -> None:
        text = (copies[1] / "parts.json").read_text()
        (copies[1] / "parts.json").write_text(text.replace('"seed": 7', '"seed": 8'))
        with pytest.raises(st.StoreError, match=r"part-2/parts.json was changed(.|\n)*run the part again"):
            st.merge(copies, into=tmp_path / "all")

    def test_a_damaged_row_names_its_folder_and_the_row(self, copies: list[Path], tmp_path: Path) -> None:
        with sqlite3.connect(copies[1] / "stages" / "runs.db") as connection:
            connection.execute("UPDATE chunk SET content = zeroblob(9) WHERE campaign = 2 AND first > 0")
        with pytest.raises(st.StoreError, match=r"part-2/stages/runs.db is damaged(.|\n)*the row of the runs"):
            st.merge(copies, into=tmp_path / "all")
        assert not (tmp_path / "all").exists()
        assert st.merge([copies[0], *copies[2:]], into=tmp_path / "all").missing == ((2, 4),)

    def test_a_planted_row_names_both_folders_and_nothing_is_merged(self, copies: list[Path], tmp_path: Path) -> None:
        twice = shutil.copytree(copies[1], tmp_path / "requeued")
        first = plant(twice, row=3)
        with pytest.raises(st.StoreError, match=rf"of train have different results in .*\(the row {first:,} to") as e:
            st.merge([*copies, twice], into=tmp_path / "all")
        assert str(twice) in str(e.value)
        assert str(copies[1]) in str(e.value)
        assert not (tmp_path / "all").exists()
        assert st.merge(copies, into=tmp_path / "all").complete

    def test_a_target_that_is_contradicted_is_named_and_stays(self, copies: list[Path], tmp_path: Path) -> None:
        into = tmp_path / "all"
        st.merge(copies[:1], into=into)
        plant(into, row=0)
        with pytest.raises(st.StoreError, match=r"if it is .*all/stages/runs\.db, which was there before, merge in"):
            st.merge(copies, into=into)
        assert into.exists()

    def test_parts_of_studies_with_other_learners_do_not_say_which_study_continues(self, tmp_path: Path) -> None:
        for number, name in enumerate(("one", "other"), 1):
            file = tmp_path / f"{name}.toml"
            file.write_text(SMALL)
            st.Study.load(file).run_part((number, 2), tmp_path / name)
        merged = st.merge([tmp_path / "one", tmp_path / "other"], into=tmp_path / "all")
        assert (merged.complete, merged.file) == (True, "")

    def test_what_is_no_part_is_refused(self, parts: list[Path], once: Path, tmp_path: Path) -> None:
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "notes.txt").touch()
        cases: list[tuple[list[Path], Path, str]] = [
            ([once], tmp_path / "all", "has no part of a study: there is no parts.json in it"),
            ([tmp_path / "gone"], tmp_path / "all", "there is no folder or store .*gone"),
            ([parts[0], parts[1]], parts[1], "2 is the target itself; leave it out"),
            (parts, tmp_path / "other", "has files, and none of a study"),
        ]
        for sources, into, words in cases:
            with pytest.raises(st.SateenError, match=words):
                st.merge(sources, into=into)

    @pytest.mark.skipif(os.name != "posix", reason="needs links")
    def test_links_in_a_part_are_not_followed(self, copies: list[Path], tmp_path: Path) -> None:
        shutil.move(copies[0] / "stages" / "runs.db", tmp_path / "runs.db")
        (copies[0] / "stages" / "runs.db").symlink_to(tmp_path / "runs.db")
        with pytest.raises(st.StoreError, match="is a link"):
            st.merge(copies, into=tmp_path / "all")


def test_the_record_is_plain_and_says_which_parts_were_begun(parts: list[Path], tmp_path: Path) -> None:
    st.merge(parts[1:], into=tmp_path / "all")
    record = json.loads((tmp_path / "all" / "parts.json").read_text())
    assert record["parts"] == [[2, 4], [3, 4], [4, 4]]
    assert {stage: each["total"] for stage, each in record["stages"].items()} == TOTALS
