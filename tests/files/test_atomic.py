"""Files appear whole, or not at all, and whatever was there before stays until then."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sateen.core.errors import InputError
from sateen.files.atomic import replacing, write_text


def fail_after(file, written: bytes) -> None:
    with replacing(file) as stream:
        stream.write(written)
        raise RuntimeError("the disk is on fire")


def names(folder):
    return sorted(os.listdir(folder))


@given(some.binary(max_size=200), some.binary(max_size=200))
def test_what_is_written_is_what_is_read(tmp_path_factory, first, second):
    file = tmp_path_factory.mktemp("whole") / "file.bin"
    for content in (first, second):
        with replacing(file) as stream:
            stream.write(content)
        assert file.read_bytes() == content
    assert names(file.parent) == ["file.bin"]


@given(some.text(some.characters(codec="utf-8"), max_size=50))
def test_text_is_written_as_utf_8_with_its_line_ends_as_they_are(tmp_path_factory, text):
    file = tmp_path_factory.mktemp("text") / "file.txt"
    write_text(file, text)
    assert file.read_bytes() == text.encode()


def test_after_a_failure_nothing_remains_where_nothing_was(tmp_path):
    with pytest.raises(RuntimeError, match="on fire"):
        fail_after(tmp_path / "new", b"half")
    assert names(tmp_path) == []


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_after_a_failure_the_old_file_is_whole(tmp_path, error):
    file = tmp_path / "old"
    file.write_bytes(b"as it was")

    def work():
        with replacing(file) as stream:
            stream.write(b"half")
            stream.flush()
            raise error

    with pytest.raises(error):
        work()
    assert file.read_bytes() == b"as it was"
    assert names(tmp_path) == ["old"]


def test_until_it_is_complete_readers_see_the_old_file(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"old")
    with replacing(file) as stream:
        stream.write(b"new")
        stream.flush()
        assert file.read_bytes() == b"old"
        (temporary,) = [name for name in names(tmp_path) if name != "file"]
        assert temporary.startswith(".file.")
        assert temporary.endswith(".part")
    assert file.read_bytes() == b"new"


def test_a_link_is_replaced_and_what_it_leads_to_stays(tmp_path):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_text(link, "new")
    assert not link.is_symlink()
    assert (link.read_text(), target.read_text()) == ("new", "old")
    assert names(tmp_path) == ["link", "there"]


@pytest.mark.parametrize("target", ["nothing", "/dev/null"])
def test_a_link_to_nothing_or_to_a_device_is_replaced_too(tmp_path, target):
    (tmp_path / "link").symlink_to(target)
    write_text(tmp_path / "link", "new")
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "link").read_text() == "new"
    assert names(tmp_path) == ["link"]


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="this system has no /dev/stdout")
@pytest.mark.parametrize("redirected", [True, False])
def test_the_streams_of_the_system_are_written_to(tmp_path, redirected):
    program = "from sateen.files.atomic import write_text; write_text('/dev/stdout', 'through')"
    with open(tmp_path / "file", "wb") as file:
        ran = subprocess.run(
            [sys.executable, "-c", program], stdout=file if redirected else subprocess.PIPE, check=True
        )
    assert (ran.stdout if not redirected else (tmp_path / "file").read_bytes()) == b"through"
    assert os.path.islink("/dev/stdout")


def test_a_name_with_a_nul_is_refused_in_words():
    with pytest.raises(InputError, match=r"a\\x00b' cannot be the name of a file"):
        write_text("a\0b", "x")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    heard = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_bytes()))
    reader.start()
    write_text(pipe, "through")
    reader.join(10)
    assert heard == [b"through"]
    assert stat.S_ISFIFO(os.stat(pipe).st_mode)


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path):
    (tmp_path / "plain").write_text("x")
    write_text(tmp_path / "ours", "x")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_name_as_long_as_names_can_be_is_no_trouble(tmp_path):
    file = tmp_path / ("n" * 255)
    write_text(file, "x")
    assert file.read_text() == "x"


def test_writers_at_the_same_time_each_write_a_whole_file(tmp_path):
    file = tmp_path / "file"
    contents = [bytes([letter]) * 20_000 for letter in b"abcdefgh"]
    start = threading.Barrier(len(contents))
    failures = []

    def write(content):
        try:
            start.wait(10)
            for _ in range(5):
                with replacing(file) as stream:
                    stream.write(content[:10_000])
                    stream.write(content[10_000:])
        except BaseException as error:
            failures.append(error)

    writers = [threading.Thread(target=write, args=(content,)) for content in contents]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert not failures
    assert file.read_bytes() in contents
    assert names(tmp_path) == ["file"]


def test_a_folder_that_is_not_there_is_said_so(tmp_path):
    with pytest.raises(FileNotFoundError):
        write_text(tmp_path / "nowhere" / "file", "x")
