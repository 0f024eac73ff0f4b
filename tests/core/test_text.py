"""Numbers, durations and tables as people read them."""

from __future__ import annotations

import csv
import io
import math

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sateen.core.errors import InputError, PathError
from sateen.core.text import duration_text, html_table, number_text, percent, plural, read_csv_table, values_text

numbers = some.floats(allow_nan=False)
UNITS = {"s": 1.0, "min": 60.0, "hours": 3600.0, "days": 86_400.0}


@given(numbers)
def test_the_text_of_a_number_reads_back_as_the_same(value):
    assert float(number_text(value)) == value


@given(some.integers(-(10**14), 10**14))
def test_a_whole_number_has_no_point(value):
    assert number_text(float(value)) == str(value)


def test_values_are_names_with_their_numbers():
    assert values_text({"S": 95.0, "beta": 0.12, "end": math.inf}) == "S = 95, beta = 0.12, end = inf"
    assert values_text({}) == ""


@given(some.integers(0, 10**6))
def test_a_share_in_percent_is_exact_for_what_people_write(parts):
    assert float(percent(parts / 10**6).removesuffix(" %")) == pytest.approx(parts / 10**4, rel=1e-9)


def test_no_share_is_zero_percent():
    assert percent(None) == "0 %"


@given(some.integers(0, 10**12))
def test_one_is_singular_and_everything_else_plural(count):
    amount, noun = plural(count, "run").split()
    assert int(amount.replace(",", "")) == count
    assert noun == ("run" if count == 1 else "runs")


@given(some.floats(0, 1e9))
def test_a_duration_is_right_to_two_digits(seconds):
    amount, unit = duration_text(seconds).split()
    assert float(amount.replace(",", "")) * UNITS[unit] == pytest.approx(seconds, rel=0.051, abs=1e-300)


@given(some.floats(1e-3, 1e9), some.floats(1e-3, 1e9))
def test_a_longer_duration_does_not_read_as_a_much_shorter_one(one, other):
    def read(seconds):
        amount, unit = duration_text(seconds).split()
        return float(amount.replace(",", "")) * UNITS[unit]

    if one <= other:
        assert read(one) <= 1.06 * read(other)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.0123, "0.012 s"),
        (9.94, "9.9 s"),
        (89, "89 s"),
        (90, "1.5 min"),
        (3599, "60 min"),
        (3600, "1 hours"),
        (36_000, "10 hours"),
        (129_599, "36 hours"),
        (129_600, "1.5 days"),
        (1e9, "11,574 days"),
    ],
)
def test_a_duration_has_the_unit_that_suits_it(seconds, text):
    assert duration_text(seconds) == text


cells = some.text(some.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=8)


@given(some.lists(cells, min_size=2, max_size=2), some.lists(some.lists(cells, min_size=2, max_size=2), max_size=4))
def test_a_table_in_html_escapes_every_cell(header, rows):
    html = html_table("a < b", header, rows)
    assert html.count("<tr>") == html.count("</tr>") == 1 + len(rows)
    assert html.count("<td>") == 2 * len(rows)
    assert "<caption>a &lt; b</caption>" in html
    assert "<script" not in html_table("", ["<script>"], [["<script>"]])


def test_a_table_without_a_header_begins_with_its_rows():
    assert html_table("c", [], [["x"]]) == (
        "<div style='overflow-x:auto'><table><caption>c</caption><tr><td>x</td></tr></table></div>"
    )


plain = some.from_regex(r"[a-zA-Z0-9_.,;:'\"-]{1,6}", fullmatch=True)


@given(
    some.lists(plain, min_size=1, max_size=4).flatmap(
        lambda names: some.tuples(
            some.just(names), some.lists(some.lists(plain, min_size=len(names), max_size=len(names)), max_size=5)
        )
    ),
    some.lists(some.sampled_from(["", "# note: 1", "  # another"]), min_size=8, max_size=8),
)
def test_a_csv_table_reads_back_with_the_lines_that_its_rows_stand_in(table, between):
    names, rows = table
    text = io.StringIO()
    lines = []
    for number, row in enumerate([names, *rows]):
        text.write(between[number] + "\n")
        csv.writer(text, lineterminator="\n").writerow(row)
        lines.append(2 * number + 2)
    read = read_csv_table(io.StringIO(text.getvalue()))
    assert (read.names, read.line, list(read.rows)) == (names, lines[0], list(zip(lines[1:], rows, strict=True)))
    used = [note.strip() for note in between[: len(lines)] if note]
    assert read.comments == [note.removeprefix("#").strip() for note in used]


def test_a_row_of_another_length_is_refused_with_its_line():
    with pytest.raises(PathError, match=r"line 4: 1 values under 2 columns \(a, b\)"):
        list(read_csv_table(["a,b", "# c", "1,2", "3"], PathError).rows)
    with pytest.raises(InputError, match="line 2"):
        list(read_csv_table(["a,b", "1,2,3"]).rows)


def test_a_table_of_very_many_columns_is_refused_with_the_limit():
    with pytest.raises(InputError, match="line 1: the table has 10,001 columns, and at most 10,000 are read"):
        read_csv_table([",".join(["a"] * 10_001)])


def test_nothing_has_no_names_and_no_rows():
    table = read_csv_table([])
    assert (table.names, list(table.rows), table.comments) == ([], [], [])
