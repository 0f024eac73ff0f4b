"""Paths say what held when; tables of them read back unchanged; every violation says what, where and what next."""

from __future__ import annotations

import copy
import io
import math
import pickle
import sys
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sateen.core.errors import PathError, SateenError, UnknownVerdictError
from sateen.core.path import Path, Verdict

finite = st.floats(allow_nan=False, allow_infinity=False)
spans = st.one_of(st.sampled_from([0.0, 0.1, 1.0]), st.floats(0, 1e6))
names = st.one_of(
    st.sampled_from(["S", "I", "time", "t", "T", "a,b", 'say "x"', "#", "k:1", "λ β"]),
    st.text(min_size=1, max_size=6).filter(lambda name: name.isprintable() and name == name.strip()),
)


@st.composite
def paths(draw: st.DrawFn) -> Path:
    species = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    times = np.cumsum([0.0, *draw(st.lists(spans, max_size=6))])
    row = st.lists(st.one_of(finite, st.integers(-3, 3).map(float)), min_size=len(species), max_size=len(species))
    return Path(
        times=times,
        states=draw(st.lists(row, min_size=len(times), max_size=len(times))),
        species=species,
        end=times[-1] + draw(spans),
        absorbed=draw(st.booleans()),
        values=draw(st.dictionaries(names, st.floats(allow_nan=False), max_size=3)),
    )


def written(path: Path) -> str:
    stream = io.StringIO()
    path.to_csv(stream)
    return stream.getvalue()


def read(text: str, **known: float) -> Path:
    return Path.from_csv(io.StringIO(text, newline=""), **known)


def bits(path: Path) -> bytes:
    return path.times.tobytes() + path.states.tobytes() + np.array([path.end, *path.values.values()]).tobytes()


SIR = Path(times=[0, 2, 5], states=[[9, 1, 0], [8, 2, 0], [8, 1, 1]], species=("S", "I", "R"), end=10)


class TestWhatHolds:
    def test_a_state_holds_from_its_jump_until_just_before_the_next(self) -> None:
        assert SIR.at(2) == {"S": 8, "I": 2, "R": 0}
        assert SIR.at(math.nextafter(2, 0))["S"] == 9
        assert SIR.at(math.nextafter(5, 0))["R"] == 0

    def test_of_jumps_at_the_same_time_the_last_wins(self) -> None:
        path = Path(times=[0, 0, 1, 1, 1], states=[1, 2, 3, 4, 5], species="x")
        assert [path.at(time)["x"] for time in (-1, 0, 0.5, 1)] == [2, 2, 2, 5]

    @given(paths(), st.data())
    def test_at_agrees_with_a_scan_of_all_jumps(self, path: Path, data: st.DataObject) -> None:
        time = data.draw(st.one_of(st.sampled_from(path.times.tolist()), st.floats(-5, path.end)))
        expected = path.states[0]
        for jump, state in zip(path.times, path.states, strict=True):
            if jump <= max(time, 0):
                expected = state
        assert list(path.at(time).values()) == expected.tolist()
        assert tuple(path.at(time)) == path.species

    def test_before_zero_the_path_has_its_initial_value(self) -> None:
        assert SIR.at(-100) == SIR.at(-math.inf) == {"S": 9, "I": 1, "R": 0}

    def test_the_end_belongs_to_the_path_and_what_follows_is_unknown(self) -> None:
        assert SIR.at(10)["R"] == 1
        with pytest.raises(PathError, match=r"(?s)time 10.5 is unknown: the path ends at 10.*simulate further"):
            SIR.at(10.5)

    def test_an_absorbed_path_keeps_its_last_state_for_ever(self) -> None:
        assert replace(SIR, absorbed=True).at(math.inf) == SIR.at(10)

    def test_there_is_no_state_at_nan(self) -> None:
        with pytest.raises(PathError, match="the time is nan"):
            SIR.at(math.nan)


class TestTheObject:
    def test_what_was_given_is_kept_as_floats(self) -> None:
        assert SIR.times.dtype == SIR.states.dtype == np.float64
        assert SIR.states.shape == (3, 3)
        assert (SIR.species, SIR.end, SIR.absorbed, dict(SIR.values)) == (("S", "I", "R"), 10.0, False, {})

    def test_the_end_is_the_last_time_unless_given(self) -> None:
        assert Path(times=[0, 3.5], states=[1, 2], species="x").end == 3.5

    def test_its_length_counts_the_initial_state(self) -> None:
        assert len(SIR) == 3

    def test_one_species_takes_a_plain_sequence_or_a_column(self) -> None:
        plain = Path(times=[0, 1], states=[1, 2], species="x")
        assert plain == Path(times=[0, 1], states=[[1], [2]], species=["x"])

    def test_a_column_is_found_by_name(self) -> None:
        assert SIR["I"].tolist() == SIR.column("I").tolist() == [1, 2, 1]

    def test_an_unknown_species_is_named_with_the_nearest(self) -> None:
        path = Path(times=[0], states=[[1, 2]], species=("mRNA", "LacZ"))
        with pytest.raises(PathError, match=r"no species lacZ; did you mean LacZ\?"):
            path["lacZ"]
        with pytest.raises(PathError, match="no species unrelated; it has mRNA, LacZ"):
            path.column("unrelated")

    def test_nothing_in_it_can_be_changed(self) -> None:
        path = replace(SIR, values={"beta": 0.1})
        with pytest.raises(FrozenInstanceError):
            path.end = 3.0  # type: ignore[misc]
        for array in (path.times, path.states, path["I"]):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1
        with pytest.raises(TypeError):
            path.values["beta"] = 2.0  # type: ignore[index]

    def test_it_does_not_share_what_it_was_made_from(self) -> None:
        times, states, values = np.array([0.0, 1.0]), np.array([[1.0], [2.0]]), {"k": 1.0}
        path = Path(times=times, states=states, species="x", values=values)
        times[1], states[1], values["k"] = 7, 7, 7
        assert path == Path(times=[0, 1], states=[1, 2], species="x", values={"k": 1})

    @pytest.mark.parametrize(
        "change",
        [
            {"times": [0, 2, 6]},
            {"states": SIR.states + 1},
            {"species": ("S", "I", "Q")},
            {"end": 11},
            {"absorbed": True},
            {"values": {"beta": 1.0}},
        ],
    )
    def test_paths_are_equal_when_everything_is(self, change: dict[str, object]) -> None:
        assert replace(SIR) == SIR
        assert hash(replace(SIR)) == hash(SIR)
        assert replace(SIR, **change) != SIR  # type: ignore[arg-type]
        assert SIR != "a path"

    def test_copies_and_other_processes_get_an_equal_path(self) -> None:
        path = replace(SIR, values={"beta": 0.1})
        assert copy.deepcopy(path) == pickle.loads(pickle.dumps(path)) == path

    def test_repr_is_one_short_line(self) -> None:
        assert repr(SIR) == "Path(S, I, R: 3 states, 0 to 10)"
        many = Path(times=[0], states=[range(40)], species=[f"x{i}" for i in range(40)], absorbed=True)
        assert repr(many) == "Path(x0, x1, x2, x3, x4, x5, …: 1 state, 0 to 0, absorbed)"

    def test_html_shows_the_first_and_the_last_rows_and_escapes_names(self) -> None:
        html = Path(times=range(100), states=range(100), species="<b>")._repr_html_()
        assert html.count("<tr>") == 1 + 4 + 1 + 4
        assert "… 92 more …" in html
        assert "<td>99</td>" in html
        assert "<b>" not in html
        assert SIR._repr_html_().count("<tr>") == 4


class TestViolations:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"times": []}, r"times have the shape \(0,\)"),
            ({"times": [[0, 1, 2]]}, r"times have the shape \(1, 3\)"),
            ({"times": [0, "soon", 2]}, "times must be numbers: .*soon"),
            ({"times": [1, 2, 3]}, r"(?s)times\[0\]: the first time is 1, .*begins at 0.*add the initial state"),
            ({"times": [0, 3, 2]}, r"times\[2\]: time goes back from 3 to 2; sort"),
            ({"times": [0, math.nan, 2]}, r"times\[1\]: the time is nan"),
            ({"times": [0, 1, math.inf]}, r"times\[2\]: the time is inf"),
            ({"states": [[1, 2, 3]] * 2}, r"shape \(2, 3\); 3 times and 3 species \(S, I, R\) need \(3, 3\)"),
            ({"states": [1, 2, 3]}, r"shape \(3,\); 3 times and 3 species"),
            ({"states": [[1, 2, 3], [1, 2], [1, 2, 3]]}, "states must be numbers"),
            ({"states": [[1, 2, 3], [1, math.nan, 3], [1, 2, 3]]}, r"states\[1\]: I is nan"),
            ({"states": [[1, 2, 3], [1, 2, 3], [1, 2, -math.inf]]}, r"states\[2\]: R is -inf"),
            ({"species": ()}, "no species; name at least one"),
            ({"species": ("S", "I", "S")}, "species name S twice"),
            ({"species": ("S", "", "R")}, r"species\[1\] is ''"),
            ({"species": ("S", " I", "R")}, r"species\[1\] is ' I'; a name is printable text without spaces around"),
            ({"species": ("S", "I\n", "R")}, r"species\[1\]"),
            ({"species": ("S", 3, "R")}, r"species\[1\] is 3"),
            ({"end": 4}, "end is 4, before the last jump, which is at 5"),
            ({"end": math.inf}, "end is inf; it must be finite"),
            ({"end": "late"}, "end is 'late'; it must be a number"),
            ({"values": {"beta": math.nan}}, "the value beta is nan"),
            ({"values": {"beta": "high"}}, "the value beta is 'high'"),
            ({"values": {"": 1}}, r"values\[0\] is ''"),
        ],
    )
    def test_each_is_named(self, change: dict[str, object], message: str) -> None:
        with pytest.raises(PathError, match=message):
            replace(SIR, **change)  # type: ignore[arg-type]


class TestCsv:
    @given(paths())
    def test_what_is_written_reads_back_bit_by_bit(self, path: Path) -> None:
        again = read(written(path))
        assert again == path
        assert bits(again) == bits(path)

    def test_the_text_is_plain(self) -> None:
        path = replace(SIR, end=150, absorbed=True, values={"beta": 0.12, "N": 100})
        head = "# end: 150\n# absorbed: true\n# value beta: 0.12\n# value N: 100\n"
        assert written(path) == head + "time,S,I,R\n0,9,1,0\n2,8,2,0\n5,8,1,1\n"

    def test_files_are_written_and_read_by_name(self, tmp_path) -> None:
        for file in (tmp_path / "one.csv", str(tmp_path / "two.csv")):
            SIR.to_csv(file)
            assert Path.from_csv(file) == SIR

    def test_an_error_names_the_file(self, tmp_path) -> None:
        file = tmp_path / "sir.csv"
        file.write_text("time,S\n0,1\n1,x\n", encoding="utf-8")
        with pytest.raises(PathError, match=r"sir\.csv: line 3, column S is 'x'; it must be a number"):
            Path.from_csv(file)
        file.write_bytes(b"time,S\n0,\xff\n")
        with pytest.raises(PathError, match=r"sir\.csv: .*utf-8"):
            Path.from_csv(file)

    @pytest.mark.parametrize(
        "text",
        [
            "time,x,y\n0,1,2\n3,4,5\n",
            "x,Time,y\n1,0,2\n4,3,5\n",
            "t,x,y\n0,1,2\n3,4,5\n",
            "x, T, y\n1, 0, 2\n4, 3, 5\n",
            "# made by hand: see notebook\n\ntime,x,y\r\n0,1,2\r\n\r\n# a pause\r\n3,4,5",
            '"time","x","y"\n0,1.0,2e0\n3.0,4,5\n',
        ],
    )
    def test_tables_of_others_are_understood(self, text: str) -> None:
        assert read(text) == Path(times=[0, 3], states=[[1, 2], [4, 5]], species=("x", "y"))

    def test_a_byte_order_mark_is_no_part_of_the_header(self, tmp_path) -> None:
        (tmp_path / "x.csv").write_text("time,x\n0,1\n", encoding="utf-8-sig")
        assert Path.from_csv(tmp_path / "x.csv").species == ("x",)

    def test_a_column_called_time_goes_before_one_called_t(self) -> None:
        path = read("T,time\n7,0\n8,1\n")
        assert (path.species, path["T"].tolist()) == (("T",), [7, 8])

    def test_what_the_caller_says_goes_before_the_comments(self) -> None:
        text = "# end: 5\n# absorbed: true\ntime,x\n0,1\n"
        assert (read(text).end, read(text).absorbed) == (5, True)
        path = read(text, end=9, absorbed=False)
        assert (path.end, path.absorbed) == (9, False)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "no table; it begins with a header such as time,S,I"),
            ("# end: 3\n\n", "no table"),
            ("0,1\n1,2\n", r"(?s)no column is called time \(or t\): 0, 1.*name the columns first, as in time,S,I"),
            ("time;x\n0;1\n", r"no column is called time \(or t\): time;x"),
            ("time,x\n", "line 1: no rows follow the header"),
            ("time\n0\n", "no species"),
            ("time,x,\n0,1,2\n", r"line 1: species\[1\] is ''"),
            ("# hello\ntime,x,x\n0,1,2\n", "line 2: species name x twice"),
            ("time,x\n0,1\n1\n", r"line 3: 1 values under 2 columns \(time, x\)"),
            ("time,x\n0,1\n\n1,2,3\n", "line 4: 3 values under 2 columns"),
            ("time,x\n0,1\n1,many\n", "line 3, column x is 'many'; it must be a number"),
            ("time,x\n0,1\n1,\n", "line 3, column x is ''; it must be a number"),
            ("time,x\n0,nan\n", "line 2, column x is nan; it must be finite"),
            ("time,x\n0,1\ninf,1\n", "line 3, column time is inf"),
            ("time,x\n1,1\n", "line 2: the first time is 1"),
            ("# a\ntime,x\n0,1\n# b\n5,1\n4,1\n", "line 6: time goes back from 5 to 4"),
            ('time,x\n0,"1\n', "unexpected end of data"),
            ("# end: soon\ntime,x\n0,1\n", "`# end` is 'soon'"),
            ("# end: 1\ntime,x\n0,1\n2,1\n", "end is 1, before the last jump, which is at 2"),
            ("# absorbed: maybe\ntime,x\n0,1\n", "`# absorbed` says maybe; it is true or false"),
            ("# value beta: big\ntime,x\n0,1\n", "value beta is 'big'"),
        ],
    )
    def test_each_mistake_is_named_with_its_line(self, text: str, message: str) -> None:
        with pytest.raises(PathError, match=message):
            read(text)


class TestFrames:
    @given(paths())
    def test_a_frame_reads_back_as_the_same_path(self, path: Path) -> None:
        frame = path.frame()
        assert list(frame.columns) == ["time", *path.species]
        again = Path.from_frame(frame, end=path.end, absorbed=path.absorbed, values=path.values)
        assert again == path
        assert bits(again) == bits(path)

    def test_the_times_may_be_the_index(self) -> None:
        assert Path.from_frame(SIR.frame().set_index("time"), end=10) == SIR

    def test_the_time_may_stand_anywhere(self) -> None:
        assert Path.from_frame(SIR.frame().rename(columns={"time": "T"})[["S", "I", "T", "R"]], end=10) == SIR

    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            ({"x": [1, 2]}, r"no column is called time \(or t\): x"),
            ({"time": [0, 1], "x": ["a", "b"]}, "the column x must be numbers"),
            ({"time": [0, 1], "x": [1, None]}, r"states\[1\]: x is nan"),
            ({"time": [0, 1], "x": pd.array([1, None], dtype="Int64")}, r"x (must be numbers|is nan)"),
            ({"time": [0, 1]}, "no species"),
            ({"time": [], "x": []}, r"times have the shape \(0,\)"),
        ],
    )
    def test_each_mistake_is_named(self, columns: dict[str, object], message: str) -> None:
        with pytest.raises(PathError, match=message):
            Path.from_frame(pd.DataFrame(columns))

    def test_without_pandas_it_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(SateenError, match="pip install pandas"):
            SIR.frame()


class TestVerdict:
    def test_a_known_verdict_is_its_truth_value(self) -> None:
        assert Verdict.TRUE
        assert not Verdict.FALSE

    def test_an_unknown_verdict_is_neither_and_says_what_to_do(self) -> None:
        with pytest.raises(UnknownVerdictError, match=r"(?s)too short to decide.*simulate further.*is Verdict.TRUE"):
            bool(Verdict.UNKNOWN)

    @pytest.mark.parametrize(
        ("value", "verdict"),
        [(True, Verdict.TRUE), (np.False_, Verdict.FALSE), (False, Verdict.FALSE), (None, Verdict.UNKNOWN)],
    )
    def test_it_comes_from_a_truth_value_or_none(self, value: bool | None, verdict: Verdict) -> None:
        assert Verdict.of(value) is verdict

    def test_negation_swaps_true_and_false_and_keeps_unknown(self) -> None:
        assert [~verdict for verdict in Verdict] == [Verdict.FALSE, Verdict.TRUE, Verdict.UNKNOWN]

    def test_it_prints_as_one_word(self) -> None:
        assert [str(verdict) for verdict in Verdict] == ["true", "false", "unknown"]

    def test_it_equals_no_bool(self) -> None:
        assert Verdict.TRUE != True  # noqa: E712
        assert Verdict.FALSE != False  # noqa: E712
