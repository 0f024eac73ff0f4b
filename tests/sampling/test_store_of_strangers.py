"""A store that somebody else has made: its rows and tables are checked before anything is made of them."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sateen as st

POINTS = st.Space(p=(0.1, 0.9)).uniform(10, seed=1)
POSIX = pytest.mark.skipif(os.name != "posix", reason="needs links and pipes")


def shaky(theta: dict[str, float], rng: np.random.Generator) -> bool:
    if rng.random() < 0.2:
        raise ValueError("no\udc80 " + "long " * 1000)
    return bool(rng.random() < theta["p"])


def observe(store: Path) -> st.Observations:
    return st.observe(shaky, None, POINTS, 20, seed=2, workers=1, chunk=50, store=store)


def change(store: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(store)
    connection.execute(statement, values)
    connection.commit()
    connection.close()


def with_first_row(store: Path, edit: Callable[[dict[str, Any], bytes], tuple[bytes, bytes]]) -> None:
    """Replace the text and the counts of the first row by what `edit` makes of them, compressed as they should be."""
    connection = sqlite3.connect(store)
    ((content,),) = connection.execute("SELECT content FROM chunk WHERE first = 0").fetchall()
    text, _, counts = zlib.decompress(content).partition(b"\n")
    packed = zlib.compress(b"\n".join(edit(json.loads(text), counts)))
    connection.execute("UPDATE chunk SET content = ? WHERE first = 0", (packed,))
    connection.commit()
    connection.close()


def test_errors_of_runs_are_kept_short_and_whole_so_that_a_store_gives_them_back(tmp_path: Path) -> None:
    first, again = observe(tmp_path / "runs.db"), observe(tmp_path / "runs.db")
    assert first.failures == again.failures
    assert len(first.failures) > 10
    assert all(each.error.startswith("ValueError: no\\udc80") and len(each.error) <= 2005 for each in first.failures)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"[" * 100_000, "nested 100,000 deep"),
        (b"9" * 5000, "5,000 digits"),
        (b"null", "expected `object`, got `null`"),
        (b"\xff", "can't decode byte"),
        (b"", "Expecting value"),
    ],
)
def test_garbage_in_a_row_is_refused(tmp_path: Path, text: bytes, words: str) -> None:
    observe(tmp_path / "runs.db")
    with_first_row(tmp_path / "runs.db", lambda _, counts: (text, counts))
    with pytest.raises(st.StoreError, match=rf"runs\.db is damaged\n  move it away(.|\n)*{words}"):
        observe(tmp_path / "runs.db")


@pytest.mark.parametrize(
    "wrong",
    [
        {"seconds": "1"},
        {"seconds": -1.0},
        {"failures": {}},
        {"failures": [{"theta": 1, "seed": 1, "point": 1, "run": 1, "error": ""}]},
        {"failures": [{"theta": {}, "seed": 1, "point": "1", "run": 1, "error": ""}]},
        {"failures": [7]},
        {"runs": "0 to 50"},
        {"key": None},
    ],
)
def test_words_of_a_wrong_type_in_a_row_are_refused(tmp_path: Path, wrong: dict[str, object]) -> None:
    observe(tmp_path / "runs.db")
    with_first_row(tmp_path / "runs.db", lambda words, counts: (json.dumps(words | wrong).encode(), counts))
    with pytest.raises(st.StoreError, match=r"runs\.db is damaged\n  move it away"):
        observe(tmp_path / "runs.db")


def test_counts_whose_sum_leaves_64_bits_are_refused(tmp_path: Path) -> None:
    observe(tmp_path / "runs.db")

    def swollen(words: dict[str, Any], counts: bytes) -> tuple[bytes, bytes]:
        table = np.frombuffer(counts, "<i8").copy()
        table[:] = 0
        table.reshape(3, -1)[1:, 0] = 2**62  # undecided for two reasons: together -2^63
        return json.dumps(words).encode(), table.tobytes()

    with_first_row(tmp_path / "runs.db", swollen)
    with pytest.raises(st.StoreError, match="has more verdicts than runs"):
        observe(tmp_path / "runs.db")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON chunk BEGIN DELETE FROM chunk; END",
        "CREATE VIEW v AS WITH RECURSIVE x (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x) SELECT * FROM x",
        "ALTER TABLE chunk ADD COLUMN more AS (zeroblob(100000000))",
    ],
)
def test_tables_that_would_run_something_are_refused_before_they_are_read(tmp_path: Path, statement: str) -> None:
    observe(tmp_path / "runs.db")
    change(tmp_path / "runs.db", statement)
    with pytest.raises(st.StoreError, match="its tables are not those of a store"):
        observe(tmp_path / "runs.db")


@POSIX
@pytest.mark.parametrize("end", ["-wal", "-journal", "-shm"])
def test_a_link_beside_the_store_is_refused_and_what_it_leads_to_stays(tmp_path: Path, end: str) -> None:
    (tmp_path / "victim").write_text("mine")
    (tmp_path / f"runs.db{end}").symlink_to(tmp_path / "victim")
    with pytest.raises(st.StoreError, match=rf"runs\.db{end} is a link\n  move it away"):
        observe(tmp_path / "runs.db")
    assert (tmp_path / "victim").read_text() == "mine"


@POSIX
def test_a_pipe_is_no_store(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "runs.db")
    with pytest.raises(st.StoreError, match=r"runs\.db is not a regular file"):
        observe(tmp_path / "runs.db")


@POSIX
def test_a_small_row_that_expands_to_256_megabytes_is_refused_without_being_expanded(tmp_path: Path) -> None:
    program = """
import resource, sys, zlib
sys.path.insert(0, sys.argv[1])
import sateen as st, test_store_of_strangers as test
test.observe(sys.argv[2])
bomb = zlib.compressobj(9)
content = b"".join([*(bomb.compress(b" " * 2**24) for _ in range(16)), bomb.flush()])
test.change(sys.argv[2], "UPDATE chunk SET content = ? WHERE first = 0", content)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    test.observe(sys.argv[2])
except st.StoreError as error:
    print("has more than" in str(error), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024 < 100)
"""
    command = [sys.executable, "-c", program, str(Path(__file__).parent), str(tmp_path / "runs.db")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "True True\n"
