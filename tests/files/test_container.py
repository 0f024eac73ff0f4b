"""One safe file of tensors and words: everything comes back, nothing else is let in, and no failure leaves a trace."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as hs
from hypothesis.extra import numpy as hnp
from safetensors.numpy import load_file, save

import sateen as st
from sateen.core.fingerprints import checksum
from sateen.files.container import read_container, write_container

CONTENT = {"recipe": {"kernel": "matérn", "inducing": None, "log": True}, "scales": [0.1, 1, -3], "note": "a\n\x1a\\"}
ARRAYS = {
    "weights": np.arange(6.0).reshape(2, 3),
    "mask": np.array([True, False]),
    "none": np.zeros((0, 2), np.float32),
}

plain_words = hs.none() | hs.booleans() | hs.integers(-(2**63), 2**64 - 1) | hs.floats(allow_nan=False) | hs.text()
contents = hs.dictionaries(
    hs.text(),
    hs.recursive(
        plain_words.filter(lambda word: not isinstance(word, float) or abs(word) < np.inf),
        lambda inner: hs.lists(inner) | hs.dictionaries(hs.text(), inner),
        max_leaves=8,
    ),
    max_size=4,
)
dtypes = hs.sampled_from(["?", "u1", "i1", "<u2", ">i4", "<i8", ">i8", "<u8", "<f2", "<f4", ">f4", "<f8", ">f8"])
names = hs.text(hs.characters(categories=("L", "N", "P", "S")), min_size=1, max_size=8)
tables = hs.dictionaries(names, hnp.arrays(dtypes, hnp.array_shapes(min_dims=0, min_side=0, max_side=4)), max_size=4)


def tensors_file(header: Any, data: bytes = b"") -> bytes:
    """A safetensors file with this header, written as sateen writes it; bytes are taken as they are."""
    text = header if isinstance(header, bytes) else json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data


def signed(**changes: Any) -> bytes:
    """A file without arrays, whose checksum is right whatever its words say."""
    words = {"kind": "gp", "format": "1", "sateen": "0.1.0", "content": "{}", **changes}
    return tensors_file({"__metadata__": {**words, "checksum": checksum(words, {})}})


def message(folder: Path, written: bytes, name: str = "b.safetensors", **options: Any) -> str:
    """What reading a file with these bytes is refused with."""
    (folder / name).write_bytes(written)
    with pytest.raises(st.InputError) as refused:
        read_container(folder / name, **options)
    assert str(refused.value).startswith(str(folder / name))
    return str(refused.value).removeprefix(f"{folder / name} ")


def same_bits(one: np.ndarray, other: np.ndarray) -> bool:
    little = one.dtype.newbyteorder("<")
    return (little, one.shape) == (other.dtype, other.shape) and one.astype(little).tobytes() == other.tobytes()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    file = tmp_path_factory.mktemp("whole") / "a.safetensors"
    write_container(file, "gp", 1, CONTENT, ARRAYS)
    return file.read_bytes()


class TestRoundTrip:
    @given(content=contents, arrays=tables, version=hs.integers(0, 10**9 - 1))
    def test_everything_comes_back_bit_for_bit(
        self, tmp_path_factory: pytest.TempPathFactory, content: Any, arrays: Any, version: int
    ) -> None:
        file = tmp_path_factory.getbasetemp() / "round.safetensors"
        write_container(file, "gp", version, content, arrays)
        kind, told, words, tensors = read_container(file)
        assert (kind, told, words) == ("gp", version, content)
        assert tensors.keys() == arrays.keys()
        assert all(same_bits(arrays[name], tensor) for name, tensor in tensors.items())

    @pytest.mark.parametrize("dtype", ["?", "u1", "<i8", ">i8", "<f4", "<f8", ">f8"])
    @pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (4, 3)])
    def test_shapes_types_and_orders_come_back(self, tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
        array = np.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape), dtype)
        given = {"rows": array, "columns": np.asfortranarray(array), "turned": array.T, "steps": array.repeat(2)[::-2]}
        write_container(tmp_path / "a", "gp", 1, {}, given)
        tensors = read_container(tmp_path / "a")[3]
        assert all(same_bits(given[name], tensor) for name, tensor in tensors.items())

    def test_nan_and_infinities_in_arrays_keep_their_bits(self, tmp_path: Path) -> None:
        odd = np.array([0x7FF0000000000001, 0xFFF8000000000ABC, 0x7FF0000000000000, 2**63], np.uint64).view(np.float64)
        write_container(tmp_path / "a", "gp", 1, {}, {"odd": odd, "swapped": odd.astype(">f8")})
        tensors = read_container(tmp_path / "a")[3]
        assert tensors["odd"].tobytes() == odd.tobytes()
        assert tensors["swapped"].tobytes() == odd.astype(">f8").byteswap().tobytes()

    def test_arrays_come_back_read_only(self, tmp_path: Path) -> None:
        write_container(tmp_path / "a", "gp", 1, {}, ARRAYS)
        assert not any(tensor.flags.writeable for tensor in read_container(tmp_path / "a")[3].values())

    def test_tuples_mappings_and_numpy_numbers_become_plain(self, tmp_path: Path) -> None:
        content = {"a": (1, np.int64(2), np.float64(0.5), np.True_), "b": st.Space(k=1).fixed}
        write_container(tmp_path / "a", "gp", 1, content, {})
        assert read_container(tmp_path / "a")[2] == {"a": [1, 2, 0.5, True], "b": {"k": 1.0}}

    def test_the_same_content_gives_the_same_bytes_in_any_order(self, tmp_path: Path, whole: bytes) -> None:
        for _ in range(20):
            turned = {name: ARRAYS[name] for name in reversed(ARRAYS)}
            write_container(tmp_path / "a", "gp", 1, CONTENT, turned)
            assert (tmp_path / "a").read_bytes() == whole

    def test_any_program_that_reads_safetensors_reads_the_arrays_and_the_words(self, tmp_path: Path) -> None:
        from safetensors import safe_open

        write_container(tmp_path / "a", "gp", 3, CONTENT, ARRAYS)
        assert all(same_bits(ARRAYS[name], tensor) for name, tensor in load_file(tmp_path / "a").items())
        with safe_open(tmp_path / "a", "numpy") as opened:
            words = opened.metadata()
        assert (words["kind"], words["format"], words["sateen"]) == ("gp", "3", st.__version__)
        assert json.loads(words["content"]) == CONTENT

    def test_a_header_that_begins_like_a_pickle_is_still_read(self, tmp_path: Path) -> None:
        lengths = set()
        for extra in range(0, 1400, 8):
            write_container(tmp_path / "a", "gp", 1, {"note": "x" * extra}, {})
            assert len(read_container(tmp_path / "a")[2]["note"]) == extra
            lengths.add((tmp_path / "a").read_bytes()[:2])
        assert {b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"} <= lengths


class TestDamage:
    def test_no_place_can_change_unnoticed(self, tmp_path: Path, whole: bytes) -> None:
        file = tmp_path / "b.safetensors"
        for place in range(len(whole)):
            for bits in (1 << place % 8, 0xFF):
                changed = bytearray(whole)
                changed[place] ^= bits
                file.write_bytes(changed)
                with pytest.raises(st.InputError, match=r"b\.safetensors"):
                    read_container(file)

    @given(data=hs.data())
    def test_no_changed_byte_goes_unnoticed(
        self, tmp_path_factory: pytest.TempPathFactory, whole: bytes, data: hs.DataObject
    ) -> None:
        place = data.draw(hs.integers(0, len(whole) - 1))
        byte = data.draw(hs.integers(0, 255).filter(lambda byte: byte != whole[place]))
        file = tmp_path_factory.getbasetemp() / "changed.safetensors"
        file.write_bytes(whole[:place] + bytes([byte]) + whole[place + 1 :])
        with pytest.raises(st.InputError, match=r"changed\.safetensors"):
            read_container(file)

    def test_white_space_that_changes_no_meaning_is_refused_too(self, tmp_path: Path) -> None:
        write_container(tmp_path / "a", "gp", 1, {}, {"x": np.zeros(1)})
        loose = (tmp_path / "a").read_bytes()
        length = 8 + int.from_bytes(loose[:8], "little")
        padded = tensors_file(loose[8:length].rstrip() + b"\t", loose[length:])
        assert "its header was changed, or written by another program" in message(tmp_path, padded)

    def test_a_file_cut_short_anywhere_is_refused(self, tmp_path: Path, whole: bytes) -> None:
        for length in range(len(whole)):
            assert message(tmp_path, whole[:length]).startswith("is ")

    def test_a_cut_or_lengthened_file_says_how_long_it_should_be(self, tmp_path: Path, whole: bytes) -> None:
        told = f"its header declares {len(whole)}\n  restore it from a copy, or make it again"
        assert message(tmp_path, whole[:-1]) == f"is damaged: it has {len(whole) - 1} bytes, and {told}"
        assert message(tmp_path, whole + b"x") == f"is damaged: it has {len(whole) + 1} bytes, and {told}"
        assert message(tmp_path, whole[:99]).startswith("is damaged: it ends after 99 bytes, inside its header")

    @pytest.mark.parametrize("length", [2**24 + 8, 2**40, 2**60, 2**64 - 1])
    def test_an_absurd_length_takes_no_memory(self, tmp_path: Path, length: int) -> None:
        entry = {"data_offsets": [0, length], "dtype": "U8", "shape": [length]}
        words = {"kind": "gp", "format": "1", "sateen": "0", "content": "{}", "checksum": "0"}
        tracemalloc.start()
        try:
            assert "is not a safetensors file" in message(tmp_path, length.to_bytes(8, "little") + b"{}")
            assert "bytes, and its header declares" in message(
                tmp_path, tensors_file({"__metadata__": words, "x": entry})
            )
            assert tracemalloc.get_traced_memory()[1] < 2**20
        finally:
            tracemalloc.stop()

    @pytest.mark.parametrize("depth", [500, 900, 960, 980, 990, 1000, 100_000])
    def test_deep_nesting_is_refused(self, tmp_path: Path, depth: int) -> None:
        nest = "[" * depth + "]" * depth
        words = json.loads(signed()[8:])["__metadata__"]
        told = message(tmp_path, tensors_file(f'{{"__metadata__":{json.dumps(words)},"a":{nest}}}'.encode()))
        assert told.startswith("is damaged: its header")
        told = message(tmp_path, tensors_file(f'{{"__metadata__":{nest}}}'.encode()))
        assert told.startswith(("is damaged: its header", "is a safetensors file, but not from sateen"))
        assert message(tmp_path, signed(content=nest)).startswith("is damaged: its content")

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"content": "[]"}, "its content is a list"),
            ({"content": "{"}, "its content cannot be read"),
            ({"content": '{"a": NaN}'}, "NaN is not JSON"),
            ({"content": '{"a": -Infinity}'}, "-Infinity is not JSON"),
            ({"content": f'{{"a": {"9" * 5000}}}'}, "its content cannot be read"),
            ({"content": {}}, "its 'content' is not text"),
            ({"kind": ["gp"]}, "its 'kind' is not text"),
            ({"format": 1}, "its 'format' is not text"),
            ({"format": "-1"}, "its format is '-1'"),
            ({"format": "9" * 5000}, "its format is '999"),
            ({"format": "\u0661"}, r"its format is '\u0661'"),
            ({"more": "x"}, "its header was changed"),
        ],
    )
    def test_invalid_words_are_refused_even_with_a_right_checksum(
        self, tmp_path: Path, changes: Any, words: str
    ) -> None:
        (tmp_path / "good").write_bytes(signed())
        assert read_container(tmp_path / "good") == ("gp", 1, {}, {})
        told = message(tmp_path, signed(**changes))
        assert told.startswith("is damaged: ")
        assert words in told

    @pytest.mark.parametrize(
        "entry",
        [
            1,
            {},
            {"data_offsets": [0], "dtype": "U8", "shape": [0]},
            {"data_offsets": [0, 0], "dtype": "WAT", "shape": [0]},
            {"data_offsets": [0, 0], "dtype": "F64", "shape": [1]},
            {"data_offsets": [0, 0], "dtype": "BF16", "shape": [0]},
            {"data_offsets": [0, 0], "dtype": "F64", "shape": [-1]},
            {"data_offsets": [0, 0], "dtype": "F64", "shape": [0, 2**64]},
            {"data_offsets": [0, 0], "dtype": "F64", "shape": [0] * 80},
        ],
    )
    def test_an_entry_that_describes_no_array_is_refused(self, tmp_path: Path, entry: Any) -> None:
        words = json.loads(signed()[8:])["__metadata__"]
        assert message(tmp_path, tensors_file({"__metadata__": words, "x": entry})).startswith("is damaged: ")


class TestForeignFiles:
    def test_a_pickle_is_refused_by_name_and_not_run(self, tmp_path: Path) -> None:
        class Trap:
            def __reduce__(self) -> Any:
                return (Path(tmp_path / "sprung").touch, ())

        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            for thing in (Trap(), {"a": Trap()}, [Trap()], np.array([Trap()])):
                told = message(tmp_path, pickle.dumps(thing, protocol))
                assert "is a pickle: sateen reads none, because reading one runs code" in told
        assert not (tmp_path / "sprung").exists()

    def test_a_zip_is_told_from_a_posterior(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "arrays.npz", x=np.zeros(3))
        told = message(tmp_path, (tmp_path / "arrays.npz").read_bytes(), formats={"svi-gp": 1, "ep-gp": 1})
        assert told == "is a zip, not a svi-gp or ep-gp of this sateen; if an older sateen wrote it, make it again"
        assert "is a zip, not a file of this sateen" in message(tmp_path, b"PK\x05\x06" + bytes(18))

    @pytest.mark.parametrize(
        ("written", "words"),
        [
            (b"", "is empty"),
            (b"<!DOCTYPE html>\n<html><body>404", "is a web page, not the file itself; download it again"),
            (b"\xef\xbb\xbf\n <html lang='en'>", "is a web page"),
            (b"beta,satisfied\n0.5,2\n", "is text, not a safetensors file"),
            (b'{"kind": "gp"}', "is text, not a safetensors file"),
            (b"\x93NUMPY\x01\x00v\x00{'descr'", "is not a safetensors file"),
            (bytes(600), "is not a safetensors file"),
            (tensors_file(b"{not json}"), "is damaged: its header cannot be read"),
            (tensors_file(b'{"\xff": 1}'), "is damaged: its header cannot be read"),
        ],
    )
    def test_a_foreign_file_is_called_by_its_name(self, tmp_path: Path, written: bytes, words: str) -> None:
        assert message(tmp_path, written).startswith(words)

    @pytest.mark.parametrize("metadata", [None, {"format": "pt"}, {"kind": "gp", "version": "1"}])
    def test_tensors_of_another_program_are_refused(self, tmp_path: Path, metadata: dict[str, str] | None) -> None:
        told = message(tmp_path, save({"x": np.zeros(2)}, metadata=metadata))
        assert told.startswith("is a safetensors file, but not from sateen")

    def test_what_is_no_file_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match=r"none\.safetensors"):
            read_container(tmp_path / "none.safetensors")
        with pytest.raises(st.InputError, match="is a folder"):
            read_container(tmp_path)

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
    def test_a_pipe_is_refused_without_waiting_for_it(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(st.InputError, match="pipe is not a regular file"):
            read_container(tmp_path / "pipe")

    def test_another_kind_or_format_is_refused_in_one_sentence_that_says_what_to_do(self, tmp_path: Path) -> None:
        assert message(tmp_path, signed(format="9"), formats={"gp": 1}) == (
            "is of format 9, and this sateen reads format 1; update sateen"
        )
        assert message(tmp_path, signed(format="1"), formats={"gp": 2}) == (
            "is of format 1, and this sateen reads format 2; make it again, or read it with sateen '0.1.0'"
        )
        assert message(tmp_path, signed(), formats={"bnn": 1, "net": 1, "fit": 1}) == (
            "is of the kind 'gp', and only bnn, net or fit can be read here; give another file, or update sateen"
        )
        (tmp_path / "a").write_bytes(signed(format="2"))
        assert read_container(tmp_path / "a", formats={"bnn": 1, "gp": 2})[:2] == ("gp", 2)

    def test_a_file_of_a_sateen_before_formats_had_numbers_is_refused(self, tmp_path: Path) -> None:
        words = {"kind": "gp", "version": "1", "sateen": "0.1.0", "content": "{}"}
        older = tensors_file({"__metadata__": {**words, "checksum": checksum(words, {})}})
        assert message(tmp_path, older) == (
            "was written by an older sateen, in a format that this one does not read; make it again"
        )

    def test_a_later_format_may_have_other_words(self, tmp_path: Path) -> None:
        assert "update sateen" in message(tmp_path, signed(format="2", signature="x"), formats={"gp": 1})

    def test_a_hostile_kind_is_shown_short_and_without_control_characters(self, tmp_path: Path) -> None:
        told = message(tmp_path, signed(kind="\x1b[31m\u202e" + "x" * 10_000), formats={"gp": 1})
        assert told.isprintable()
        assert len(told) < 160


class TestRefusedToWrite:
    @pytest.mark.parametrize(
        ("content", "words"),
        [
            ({"a": {"b": [1, np.nan]}}, r"content\['a'\]\['b'\]\[1\] is nan, which JSON cannot represent"),
            ({"a": -np.inf}, r"content\['a'\] is -inf"),
            ({"a": np.float32("inf")}, r"content\['a'\] is inf"),
            ({"a": {1: 2}}, r"content\['a'\] has the key 1, and a key must be text"),
            ({"a": object()}, r"content\['a'\] is of type object"),
            ({"a": np.zeros(2)}, r"content\['a'\] is of type ndarray"),
            ({"a": 2**64}, r"content\['a'\] is a whole number beyond 64 bits"),
            ({"a": "x" * 2**24}, r"its text takes 16,777,\d+ bytes, and 16,777,216 is the most"),
        ],
    )
    def test_content_that_json_cannot_say_is_refused_by_its_place(
        self, tmp_path: Path, content: Any, words: str
    ) -> None:
        with pytest.raises(st.InputError, match=words):
            write_container(tmp_path / "a", "gp", 1, content, {})
        assert not list(tmp_path.iterdir())

    def test_content_inside_itself_is_refused(self, tmp_path: Path) -> None:
        loop: list[Any] = []
        loop.append(loop)
        with pytest.raises(st.InputError, match="nested deeper than 100 levels, or inside itself"):
            write_container(tmp_path / "a", "gp", 1, {"loop": loop}, {})

    @pytest.mark.parametrize("dtype", ["c16", "O", "U3", "M8[s]", "S2", [("a", "f8")]])
    def test_an_array_that_no_tensor_holds_is_refused_by_its_name(self, tmp_path: Path, dtype: Any) -> None:
        with pytest.raises(st.InputError, match=r"the array odd is of type .*, which the file cannot hold"):
            write_container(tmp_path / "a", "gp", 1, {}, {"odd": np.zeros(2, dtype)})

    @pytest.mark.parametrize("name", ["", "__metadata__", "a\nb", "\ud800"])
    def test_a_name_that_could_be_mistaken_is_refused(self, tmp_path: Path, name: str) -> None:
        with pytest.raises(st.InputError, match="cannot name an array"):
            write_container(tmp_path / "a", "gp", 1, {}, {name: np.zeros(1)})

    @pytest.mark.parametrize(("kind", "version"), [("", 1), ("a\n", 1), ("gp", -1), ("gp", 10**9)])
    def test_a_kind_is_a_word_and_a_version_a_number(self, tmp_path: Path, kind: str, version: int) -> None:
        with pytest.raises(st.InputError, match="a kind is a word and a format a whole number"):
            write_container(tmp_path / "a", kind, version, {}, {})


class TestReplacing:
    def test_a_new_file_has_the_permissions_of_any_new_file(self, tmp_path: Path) -> None:
        (tmp_path / "any").touch()
        write_container(tmp_path / "a", "gp", 1, {}, {})
        assert (tmp_path / "a").stat().st_mode == (tmp_path / "any").stat().st_mode

    def test_a_file_that_cannot_be_written_is_named_with_the_reason(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        for where, why in (("none/a", "No such file or directory"), ("file/a", "Not a directory"), (".", "directory")):
            with pytest.raises(st.InputError, match=rf"^cannot write .*{where}: .*{why}"):
                write_container(f"{tmp_path}/{where}", "gp", 1, {}, {})
        assert [each.name for each in tmp_path.iterdir()] == ["file"]

    @pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
    def test_a_read_only_folder_is_named_with_the_reason(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o500)
        try:
            with pytest.raises(st.InputError, match=r"^cannot write .*/a: Permission denied$"):
                write_container(tmp_path / "a", "gp", 1, {}, {})
        finally:
            tmp_path.chmod(0o700)

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
    def test_a_full_disk_is_named_and_a_device_is_not_replaced(self) -> None:
        with pytest.raises(st.InputError, match=r"^cannot write /dev/full: No space left on device$"):
            write_container("/dev/full", "gp", 1, {}, {})
        write_container(os.devnull, "gp", 1, {}, {})
        assert not os.path.isfile(os.devnull)

    @pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files as Linux does")
    def test_a_write_that_fails_half_way_leaves_the_old_file_and_nothing_else(self, tmp_path: Path) -> None:
        file = tmp_path / "a.safetensors"
        write_container(file, "gp", 1, CONTENT, ARRAYS)
        before = file.read_bytes()
        program = (
            "import resource, sys, numpy as np, sateen as st\n"
            "from sateen.files.container import write_container\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
            "try:\n    write_container(sys.argv[1], 'gp', 1, {}, {'x': np.zeros(10_000)})\n"
            "except st.InputError as error:\n    print(error)\n"
        )
        search = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        command = [sys.executable, "-c", program, str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=search)
        assert done.stdout == f"cannot write {file}: File too large\n"
        assert file.read_bytes() == before
        assert [each.name for each in tmp_path.iterdir()] == [file.name]

    def test_a_link_is_replaced_by_the_file(self, tmp_path: Path) -> None:
        (tmp_path / "there").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "there" / "a")
        write_container(tmp_path / "link", "gp", 1, {"note": "new"}, {})
        assert not (tmp_path / "link").is_symlink()
        assert read_container(tmp_path / "link")[2] == {"note": "new"}
        assert list((tmp_path / "there").iterdir()) == []

    def test_the_longest_name_of_a_file_can_be_written(self, tmp_path: Path) -> None:
        file = tmp_path / ("ä" * 127)
        write_container(file, "gp", 1, {}, {})
        assert read_container(file)[0] == "gp"

    def test_who_reads_while_others_write_sees_a_whole_file(self, tmp_path: Path) -> None:
        file = tmp_path / "a.safetensors"
        notes = [{"note": "x" * 50_000}, {"note": "y" * 90_000}]
        write_container(file, "gp", 1, notes[0], {})
        stop = threading.Event()

        def write(note: dict[str, str]) -> None:
            while not stop.is_set():
                write_container(file, "gp", 1, note, ARRAYS)

        writers = [threading.Thread(target=write, args=(note,)) for note in notes]
        for writer in writers:
            writer.start()
        try:
            seen = [read_container(file)[2] for _ in range(50)]
        finally:
            stop.set()
            for writer in writers:
                writer.join()
        assert all(note in notes for note in seen)
        assert [each.name for each in tmp_path.iterdir()] == [file.name]


def test_importing_the_module_does_not_load_safetensors() -> None:
    program = "import sys, sateen.files.container; print('safetensors' in sys.modules)"
    search = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", program]
    assert subprocess.run(command, capture_output=True, text=True, check=True, env=search).stdout == "False\n"
