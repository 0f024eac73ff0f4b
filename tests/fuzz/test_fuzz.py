"""Whatever a reader is given, it reads it, or refuses it in plain words, in little time and memory."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

import fuzzing
from fuzz.planted import FAULTS, WAYS
from fuzzing import CORPUS, case_data, formats, fuzz, fuzz_case, judged, load_format

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory and signals are measured as Linux has them")
FORMATS = formats()
IN_CI = [name for name in FORMATS if FORMATS[name].in_ci]
MANY = int(os.environ.get("SATEEN_FUZZ_CASES", "20000"))


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A folder for each format: what is made once to be spoilt serves all tests of the format."""
    return cache(tmp_path_factory.mktemp)


@pytest.mark.parametrize("name", IN_CI)
def test_spoilt_inputs_and_what_once_failed_are_read_or_refused_in_plain_words(
    name: str, folder_of: Callable[[str], Path]
) -> None:
    """In one child process, as most of the time goes into starting it and loading what it needs."""
    once = sorted(file.name for file in (CORPUS / name).glob("*"))
    tally = fuzz(name, [*once, *range(FORMATS[name].in_ci)], folder_of(name))
    assert tally.cases == len(once) + FORMATS[name].in_ci
    assert not tally.complaints, tally.report(name)


def test_every_kept_input_is_of_a_format_that_is_tried_here() -> None:
    kept = {folder.name: len(list(folder.iterdir())) for folder in CORPUS.iterdir()}
    assert kept.keys() <= set(IN_CI)
    assert sum(kept.values()) > 100


@pytest.mark.nightly
@pytest.mark.parametrize("name", FORMATS)
def test_many_spoilt_inputs_are_read_or_refused_in_plain_words(name: str, tmp_path: Path) -> None:
    # A case of the kernel cache starts a process of its own.
    tally = fuzz(name, range(MANY // 200 if name == "kernel" else MANY), tmp_path)
    print(tally.report(name))
    assert not tally.complaints, tally.report(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FORMATS if FORMATS[name].large])
def test_inputs_of_nearly_ten_megabytes_take_little_memory(name: str, folder_of: Callable[[str], Path]) -> None:
    tally = fuzz(name, [f"large {how}" for how in FORMATS[name].large], folder_of(name), seconds=60)
    assert not tally.complaints, tally.report(name)


@pytest.mark.parametrize("name", [name for name in IN_CI if name != "kernel"])
def test_what_is_spoilt_was_right_before(name: str, folder_of: Callable[[str], Path]) -> None:
    folder = folder_of(name)
    prepared = load_format(name).prepare(folder)
    for data in prepared if isinstance(prepared, list) else [load_format(name).warm(prepared)]:
        outcome, complaint = judged(name, data, prepared, folder)
        assert outcome == "read", (data, complaint)


def test_a_case_is_fixed_by_its_format_and_its_number() -> None:
    seeds = [b"species A = 3\nA -> 0 @ k * A\n", b"species B = 1\n"]
    assert [case_data("model", case, seeds) for case in range(50)] == [
        case_data("model", case, seeds) for case in range(50)
    ]
    assert len({case_data("model", case, seeds) for case in range(50)}) > 40


def test_the_fuzzer_notices_every_fault_and_names_its_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "corpus" / "planted"
    folder.mkdir(parents=True)
    for way in WAYS:
        (folder / way).write_text(way)
    (tmp_path / "work").mkdir()
    monkeypatch.setattr(fuzzing, "CORPUS", folder.parent)
    monkeypatch.setenv("SATEEN_FUZZ_CORPUS", str(folder.parent))
    tally = fuzz("planted", WAYS, tmp_path / "work", seconds=2)
    found = {
        way: next((start for start in FAULTS.values() if complaint.startswith(start)), complaint)
        for way, complaint in tally.complaints.items()
    }
    assert found == FAULTS
    assert tally.cases == len(WAYS)
    with pytest.raises(AssertionError, match=r'fuzz_case\("planted", \'a foreign error\'\): KeyError'):
        fuzz_case("planted", "a foreign error")
