"""`sateen run --part` and `sateen merge`: an array job on the command line, from the jobs to the result."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from command_line import as_json, sateen, words
from small_studies import changed

ROOT = Path(__file__).resolve().parents[1]
SIR = changed(
    ("points = 400, runs = 50 ", "points = 40, runs = 20 "),
    ("calibrate = { budget = 100000 }", "calibrate = { points = 40, runs = 20 }"),
    ("points = 400, runs = 1000", "points = 20, runs = 30"),
    ('"svi-gp", "ep-gp", "svi-bnn"', '"svi-gp"'),
    text=(ROOT / "examples" / "sir.toml").read_text(),
)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with a reduced sir.toml."""
    (tmp_path / "sir.toml").write_text(SIR)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_four_parts_merged_are_byte_for_byte_the_study_on_one_machine(desk: Path) -> None:
    for number in (4, 2, 1, 3):
        done = sateen("run", "sir.toml", "--part", f"{number}/4")
        assert done.stdout.splitlines() == [
            f"sir: part {number}/4 is in sir-part-{number}-of-4: 200 of train, 150 of test, 200 of calibrate; "
            "550 runs made now",
            "after the merge: learn, guarantee, score",
        ]
    assert "train, part 3/4: 200 of 800 runs" in words(done)
    folders = [f"sir-part-{number}-of-4" for number in (1, 2, 3, 4)]
    some = sateen("merge", folders[3], folders[1], "-o", "all")
    assert some.stdout.splitlines() == [
        "sir, into all: 1,100 runs added",
        "  train      400  of  800 runs",
        "  test       300  of  600 runs",
        "  calibrate  400  of  800 runs",
        "missing, all or in part: 1/4, 3/4",
        "sateen run sir.toml -o all makes the runs that are missing, and continues",
    ]
    told = as_json("merge", *folders, "-o", "all")
    assert told["runs"]["test"] == {"has": 600, "total": 600}
    assert (told["complete"], told["missing"], told["added"], told["study"]) == (True, [], 1100, "sir")
    assert sateen("merge", *folders, "-o", "all").stdout.endswith("sateen run sir.toml -o all continues\n")
    assert as_json("run", "sir.toml", "-o", "all")["stages"]["train dies_out"] == "computed"
    sateen("run", "sir.toml", "-o", "alone")
    assert (desk / "all/result.json").read_bytes() == (desk / "alone/result.json").read_bytes()


def test_a_dry_run_says_what_a_part_makes_how_long_and_what_waits(desk: Path) -> None:
    done = sateen("run", "sir.toml", "--part", "2/4", "--dry-run")
    assert done.stdout.splitlines() == [
        "sir, seed 1, into sir-part-2-of-4:",
        "  train      pending  200 of 800 runs",
        "  test       pending  150 of 600 runs",
        "  calibrate  pending  200 of 800 runs",
        "  learn      pending  after the merge",
        "  guarantee  pending  after the merge",
        "  score      pending  after the merge",
        "550 runs to make",
    ]
    assert not (desk / "sir-part-2-of-4").exists()
    made = as_json("run", "sir.toml", "--part", "1/40", "-o", "try")
    assert made == {
        **{"file": "sir.toml", "study": "sir", "part": [1, 40], "folder": "try"},
        **{"runs": {"train": 20, "test": 15, "calibrate": 20}, "made": 55},
        "waiting": ["learn", "guarantee", "score"],
    }
    done = sateen("run", "sir.toml", "--part", "2/4", "--dry-run", "-o", "try")
    assert re.search(r"^536 runs to make, about [\d.]+ m?s by one worker$", done.stdout, re.M)
    told = as_json("run", "sir.toml", "--part", "1/40", "--dry-run", "-o", "try")
    assert (told["runs"], told["seconds"], told["stages"]["train"]) == (0, None, "reused")


@pytest.mark.parametrize("part", ["0/4", "5/4", "1/0", "x/y", "3", "1/2/3", "-1/4", "1.5/4", ""])
def test_what_is_no_part_is_wrong_usage(desk: Path, part: str) -> None:
    done = sateen("run", "sir.toml", "--part", part, code=2)
    assert f"{part!r} is not a part: write I/N with 1 <= I <= N, such as 3/40, the third of forty" in words(done)


def test_a_merge_that_is_refused_says_why(desk: Path) -> None:
    (desk / "other.toml").write_text(SIR.replace("seed = 1", "seed = 2"))
    sateen("run", "sir.toml", "--part", "1/2")
    sateen("run", "other.toml", "--part", "2/2")
    done = sateen("merge", "sir-part-1-of-2", "sir-part-2-of-2", "-o", "all", code=1)
    assert words(done) == (
        "InputError: sir-part-2-of-2 is of another study than sir-part-1-of-2: its seed is 2, and not 1 "
        "leave it out, or merge it elsewhere"
    )
    done = sateen("merge", "sir-part-1-of-2", "-o", "sir-part-1-of-2", code=1)
    assert "sir-part-1-of-2 is the target itself; leave it out: what it has stays there" in words(done)
    assert "Missing argument" in words(sateen("merge", "-o", "all", code=2))


def test_code_is_refused_in_a_part_as_in_a_run(desk: Path) -> None:
    for name in ("ruin.toml", "ruin.py"):
        (desk / name).write_text((ROOT / "examples" / name).read_text())
    done = sateen("run", "ruin.toml", "--part", "1/50", "--no-code", code=1)
    assert "this would run ruin.py:ruined" in words(done)
    assert "running code of yours: ruin.py:ruined" in words(sateen("run", "ruin.toml", "--part", "1/50"))
