"""Errors say what, where and what next: the caret stands under the place, wherever that is."""

from __future__ import annotations

import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sateen
from sateen.core import errors
from sateen.core.errors import (
    ExpressionError,
    FormulaError,
    InputError,
    MissingValueError,
    ModelError,
    ModelWarning,
    PathError,
    SateenError,
    SateenWarning,
    SimulationError,
    SpaceError,
    StoreError,
    TextError,
    UnknownVerdictError,
    nearest,
)
from sateen.guarantee.request import CalibrateRequest


def test_the_caret_stands_under_the_place_and_the_remedy_below() -> None:
    error = FormulaError("expected ']'", "F[0, 5 x > 0", 7, "windows look like [0, 5]")
    assert str(error) == "expected ']'\n  F[0, 5 x > 0\n         ^\n  windows look like [0, 5]"
    assert (error.line, error.column) == (1, 8)


def test_without_a_text_there_is_no_caret() -> None:
    assert str(ModelError("this model has no species")) == "this model has no species"
    assert str(ModelError("no reader", remedy="known: .txt")) == "no reader\n  known: .txt"


def test_of_many_lines_the_one_with_the_mistake_is_shown_with_its_number() -> None:
    text = "species A = 1\nA -> 0 @ 2 A\nA -> 0 @ A\n"
    error = ModelError("an operator is missing", text, text.index("2 A") + 2)
    assert str(error) == "an operator is missing (line 2)\n  A -> 0 @ 2 A\n             ^"
    assert (error.line, error.column) == (2, 12)


def test_one_line_between_empty_ones_needs_no_number() -> None:
    assert str(ModelError("no", "\n\nA B\n", 4)) == "no\n  A B\n    ^"
    assert ModelError("no", "\n\nA B\n", 4).line == 3


def test_a_remedy_may_have_many_lines() -> None:
    assert str(TextError("no", "a", 0, "this\nor that")) == "no\n  a\n  ^\n  this\n  or that"


def test_a_tab_stays_a_tab_above_the_caret() -> None:
    assert str(TextError("no", "\ta\tb c", 4)) == "no\n  \ta\tb c\n  \t \t ^"


def test_a_carriage_return_at_the_end_of_a_line_is_not_shown() -> None:
    assert str(TextError("no", "a\r\nb c\r\nd", 5)) == "no (line 2)\n  b c\n    ^"


@pytest.mark.parametrize("position", [3, 4, 100])
def test_a_place_behind_the_text_is_its_end(position: int) -> None:
    error = TextError("no", "abc", position)
    assert str(error) == "no\n  abc\n     ^"
    assert (error.position, error.column) == (3, 4)


def test_a_place_before_the_text_is_its_beginning() -> None:
    assert str(TextError("no", "abc", -5)) == "no\n  abc\n  ^"


def test_the_end_of_a_line_belongs_to_that_line() -> None:
    error = TextError("no", "ab\ncd", 2)
    assert str(error) == "no (line 1)\n  ab\n    ^"
    assert (error.line, error.column) == (1, 3)


def test_what_cannot_be_seen_is_shown_escaped_with_the_caret_in_its_place() -> None:
    line = "a\x1b[31m\t\u202eb\ud800 \x9b?"
    error = TextError("no\x07", f"{line}\nrest", line.index("?"), remedy="see\r\x00it")
    shown = "  a\\x1b[31m\t\\u202eb\\ud800 \\x9b?"
    caret = "  " + " " * len("a\\x1b[31m") + "\t" + " " * len("\\u202eb\\ud800 \\x9b") + "^"
    assert str(error) == "\n".join(["no\\x07 (line 1)", shown, caret, "  see\\r\\x00it"])


def test_a_message_that_quotes_a_long_text_is_cut_in_its_middle() -> None:
    error = TextError(f"{'a' * 9_000}{'b' * 9_000} is no name", remedy="c" * 9_000)
    message, remedy = str(error).split("\n")
    assert message == f"{'a' * 500} … {'b' * 489} is no name"
    assert remedy == f"  {'c' * 500} … {'c' * 500}"


@pytest.mark.parametrize("kind", [SateenError, InputError, StoreError, SimulationError, ModelError])
def test_no_error_sends_control_characters_to_a_terminal(kind: type[SateenError]) -> None:
    assert str(kind("a\x1b]0;b\x07")) == "a\\x1b]0;b\\x07"


def test_of_a_long_line_only_the_part_around_the_place_is_shown() -> None:
    text = "".join(str(place % 10) for place in range(1_000))
    message, shown, caret = str(TextError("no", text, 505)).split("\n")
    assert message == "no"
    assert shown.startswith("  …")
    assert shown.endswith("…")
    assert len(shown) == 104
    assert shown[caret.index("^")] == "5"
    assert shown[3:-1] == text[455:555]


def test_a_long_line_is_not_cut_on_the_side_where_little_is_left() -> None:
    text = "x" * 300
    at_start = str(TextError("no", text, 0)).split("\n")
    assert at_start == ["no", f"  {'x' * 100}…", "  ^"]
    at_end = str(TextError("no", text, 300)).split("\n")
    assert at_end == ["no", f"  …{'x' * 50}", "  " + " " * 51 + "^"]


@given(st.text(st.sampled_from("ab \t\nc"), max_size=400), st.data())
def test_the_caret_always_stands_under_the_character_at_the_place(text: str, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(text)))
    error = TextError("no", text, position)
    lines = text.split("\n")
    assert sum(len(line) + 1 for line in lines[: error.line - 1]) + error.column - 1 == position
    if not text:
        assert str(error) == "no"
        return
    _, shown, caret = str(error).split("\n")
    column = caret.index("^")
    wanted = text[position : position + 1]
    assert shown[column : column + 1] == ("" if wanted == "\n" else wanted)
    # Whatever stands before the caret is as wide as what stands above it.
    assert [mark == "\t" for mark in caret[:column]] == [mark == "\t" for mark in shown[:column]]
    assert len(shown) <= 104


@pytest.mark.parametrize(
    ("error", "base"),
    [
        (InputError, SateenError),
        (InputError, ValueError),
        (TextError, InputError),
        (ExpressionError, TextError),
        (ModelError, TextError),
        (FormulaError, TextError),
        (SpaceError, InputError),
        (PathError, InputError),
        (MissingValueError, InputError),
        (SimulationError, SateenError),
        (UnknownVerdictError, SateenError),
        (SateenWarning, UserWarning),
        (ModelWarning, SateenWarning),
    ],
)
def test_the_tree_at_the_top_of_the_file_is_the_tree_of_the_classes(error: type, base: type) -> None:
    assert issubclass(error, base)


def test_only_what_was_given_wrongly_is_a_value_error() -> None:
    assert not issubclass(SimulationError, ValueError)
    assert not issubclass(UnknownVerdictError, ValueError)


def test_every_error_is_public() -> None:
    for name in errors.__all__:
        if name != "nearest":
            assert getattr(sateen, name) is getattr(errors, name)


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("gama", ["beta", "gamma"], "did you mean gamma?"),
        ("Gamma", ["gamma"], "did you mean gamma?"),
        ("S", ["s", "I"], "did you mean s?"),
        ("GAMMA", ["beta", "gamma"], "did you mean gamma?"),
        ("zeta_9", ["alpha", "I0"], ""),
        ("x", [], ""),
        ("beta1", ["beta2", "beta"], "did you mean beta?"),
    ],
)
def test_the_nearest_known_name_is_offered_if_one_is_near(name: str, known: list[str], hint: str) -> None:
    assert nearest(name, known) == hint
    assert nearest(name, iter(known)) == hint


NAMES = st.from_regex(r"[a-z]([a-z_]{0,10}[a-z])?", fullmatch=True)


def as_option(name: str, value: str | None) -> str:
    """An argument as the command line writes it."""
    option = f"--{name.replace('_', '-')}"
    return option if value in (None, "True") else f"{option} {value}"


def as_key(name: str, value: str | None) -> str:
    """An argument as a study file writes it."""
    return name if value is None else f"{name} = {value.lower() if value in ('True', 'False') else value}"


def test_an_input_error_is_worded_by_the_door_it_comes_out_of() -> None:
    error = InputError(
        "{level} is too high", argument="level", remedy="lower it, or pass {allow_trivial=True}\nor {rank=2}"
    )
    assert str(error) == "level is too high\n  lower it, or pass allow_trivial=True\n  or rank=2"
    assert error.worded(as_option) == "--level is too high\n  lower it, or pass --allow-trivial\n  or --rank 2"
    assert error.worded(as_key) == "level is too high\n  lower it, or pass allow_trivial = true\n  or rank = 2"
    assert (error.message, error.argument) == ("{level} is too high", "level")


@given(NAMES, st.one_of(st.none(), st.from_regex(r"[A-Za-z0-9_.']{1,8}", fullmatch=True)))
def test_a_mark_is_replaced_by_what_the_door_says_and_by_nothing_else(name: str, value: str | None) -> None:
    mark = f"{{{name}}}" if value is None else f"{{{name}={value}}}"
    error = InputError(f"a {mark} b {mark}", argument=name)
    assert error.worded(lambda *given: f"<{given}>") == f"a <{(name, value)}> b <{(name, value)}>"
    assert str(error) == f"a {mark[1:-1]} b {mark[1:-1]}"


@pytest.mark.parametrize("text", ["{level}", "{1, 2}", "{}", "{Level}", "{a b}"])
def test_braces_are_text_where_no_argument_is_named_or_where_they_hold_none(text: str) -> None:
    assert str(InputError(text)) == text
    if text != "{level}":
        assert str(InputError(text, argument="level")) == text


def test_what_a_door_says_is_not_worded_again() -> None:
    assert InputError("{a}", argument="a").worded(lambda name, value: "{b}") == "{b}"


def test_a_text_error_takes_no_arguments_from_its_text() -> None:
    assert str(FormulaError("no {level}", "{level} > 0", 0)) == "no {level}\n  {level} > 0\n  ^"


MADE = [
    InputError("{level} is bad", argument="level", remedy="pass {level=0.9}"),
    InputError("plain"),
    SpaceError("a range"),
    ModelError("an operator is missing", "A -> 0 @ 2 A", 11, "write 2*A"),
    FormulaError("no", "", 0),
]


def same(one: InputError, other: BaseException) -> bool:
    return (
        type(one) is type(other)
        and one.__dict__ == other.__dict__
        and str(one) == str(other)
        and one.args == other.args
    )


@pytest.mark.parametrize("error", MADE, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_an_error_survives_the_way_between_processes(error: InputError, protocol: int) -> None:
    assert same(error, pickle.loads(pickle.dumps(error, protocol)))


def test_an_error_of_a_worker_process_arrives_with_its_argument_and_remedy() -> None:
    check = CalibrateRequest.of().check_points
    with pytest.raises(InputError) as made_here:
        check(5)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        error = pool.submit(check, 5).exception(timeout=60)
    assert error is not None
    assert same(made_here.value, error)
    assert error.argument == "points"
    assert "pass --allow-trivial" in error.worded(as_option)
