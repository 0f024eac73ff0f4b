"""How files are read: regular ones only, up to a limit."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sateen.core.errors import InputError
from sateen.core.reading import read_bytes, read_text


def test_a_file_of_just_the_limit_is_read_and_one_byte_more_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_bytes(b"x" * 10)
    assert read_bytes(file, 10) == b"x" * 10
    with pytest.raises(InputError, match="has 10 bytes, and at most 9 are read"):
        read_bytes(file, 9)


def test_a_sparse_file_is_refused_by_its_size_and_not_expanded(tmp_path: Path) -> None:
    file = tmp_path / "huge"
    with open(file, "wb") as stream:
        stream.truncate(2**40)
    with pytest.raises(InputError, match=r"has 1,099,511,627,776 bytes"):
        read_bytes(file, 2**20)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_does_not_block(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="not a regular file"):
        read_bytes(pipe, 10)


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="this system has no /dev/zero")
def test_a_link_to_an_endless_file_is_refused(tmp_path: Path) -> None:
    link = tmp_path / "link.csv"
    link.symlink_to("/dev/zero")
    with pytest.raises(InputError, match="not a regular file"):
        read_bytes(link, 10)


def test_a_folder_and_an_impossible_name_are_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        read_bytes(tmp_path, 10)
    with pytest.raises(InputError, match=r"'a\\x00b' cannot be the name of a file"):
        read_bytes("a\0b", 10)


def test_text_is_utf_8_with_or_without_a_mark(tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_bytes("\ufeffθ".encode())
    assert read_text(file) == "θ"
    file.write_bytes(b"ab\xff")
    with pytest.raises(InputError, match="byte 2 is wrong"):
        read_text(file)
