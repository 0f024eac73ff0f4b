"""Generated source compiled: it computes what Python computes, refuses what it does not know, and keeps no memory."""

from __future__ import annotations

import inspect
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from sateen.engine.kernel import load_source
from sateen.engine.machine_code import fuses
from sateen.engine.translate import translated
from sateen.logic import intervals

WHOLES = some.integers(-(2**31), 2**31)
FLOATS = some.floats(allow_nan=True, allow_infinity=True)
SETS = some.lists(some.integers(0, 60), unique=True, max_size=9).map(sorted)


def in_python(text: str) -> Any:
    """The function `run` of the same source, as Python itself understands it."""
    names: dict[str, Any] = {"np": np, "U": int, "inf": math.inf, "word": int}
    names |= {name: getattr(math, name) for name in ("exp", "floor", "ceil", "sqrt")}
    exec(compile(f"from __future__ import annotations\n{text}", "<generated>", "exec"), names)
    return names["run"]


ARITHMETIC = """
def run(x: int, y: int, out: int[:]):
  out[0] = x // y
  out[1] = x % y
  out[2] = (x & y) | (x ^ 12345)
  out[3] = x * 3 - -y
  out[4] = min(x, y, 7) + max(x, y)
  out[5] = 1 if x > y and not x == 3 or y < 0 else 2
  out[6] = (x << 3) + (y >> 2)
  out[7] = int(float(x) * 0.5) if x != y else 0
  return x - y
"""


@given(WHOLES, WHOLES.filter(bool))
def test_whole_numbers_are_pythons(x: int, y: int) -> None:
    ours, theirs = np.zeros(8, np.int64), np.zeros(8, np.int64)
    assert load_source(ARITHMETIC)(x, y, ours) == in_python(ARITHMETIC)(x, y, theirs)
    assert ours.tolist() == theirs.tolist()


COMPARED = """
def run(x: float, y: float, out: int[:]):
  out[0] = 1 if x < y else 0
  out[1] = 1 if x <= y else 0
  out[2] = 1 if x == y else 0
  out[3] = 1 if x != y else 0
  out[4] = 1 if not (x > y) else 0
  out[5] = 1 if (x >= y) & (x != 0.0) | (y != y) else 0
  out[6] = 1 if x else 0
  return 0
"""


@given(FLOATS, FLOATS)
def test_comparisons_of_floats_are_pythons(x: float, y: float) -> None:
    ours, theirs = np.zeros(7, np.int64), np.zeros(7, np.int64)
    load_source(COMPARED)(x, y, ours)
    in_python(COMPARED)(x, y, theirs)
    assert ours.tolist() == theirs.tolist()


COMPUTED = """
def run(x: float, y: float, out: float[:]):
  out[0] = x + y
  out[1] = x - y
  out[2] = x * y
  out[3] = min(x, y)
  out[4] = max(x, y)
  out[5] = np.minimum(x, y)
  out[6] = np.maximum(x, y)
  out[7] = abs(x)
  out[8] = -x
  out[9] = np.floor(x) + np.ceil(y)
  out[10] = np.rint(x)
  out[11] = np.nextafter(x, y)
  return 0
"""


@given(FLOATS, FLOATS)
def test_floats_are_those_of_python_and_numpy(x: float, y: float) -> None:
    """All but the signs of zeros, of which kernels make no use."""
    ours, theirs = np.zeros(12), np.zeros(12)
    load_source(COMPUTED)(x, y, ours)
    with np.errstate(all="ignore"):
        in_python(COMPUTED)(x, y, theirs)
    np.testing.assert_array_equal(ours, theirs)


def test_functions_and_powers_are_those_of_the_mathematical_library() -> None:
    text = (
        "def run(x: float, y: float, out: float[:]):\n  out[0] = exp(x)\n  out[1] = log(x)\n  out[2] = sqrt(x)\n"
        "  out[3] = x ** y\n  out[4] = x ** 5\n  out[5] = x / y\n  out[6] = np.log2(x)\n  return 0\n"
    )
    out = np.zeros(7)
    for x, y in np.random.default_rng(1).uniform(0.01, 20.0, (200, 2)).tolist():
        load_source(text)(x, y, out)
        assert out[[2, 4, 5]].tolist() == [math.sqrt(x), x * (x * x * (x * x)), x / y]
        assert out.tolist() == pytest.approx(
            [math.exp(x), math.log(x), math.sqrt(x), x**y, x**5, x / y, math.log2(x)], rel=1e-15
        )


LOOPS = """
STOP = 40 + 2

def sums(table, row, start):
  total = start
  for k in range(table.shape[1]):
    total += table[row, k]
  return total

def shifted(x, by):
  for i in range(x.shape[0] - 1, by - 1, -1):
    x[i] = x[i - by]

def run(n: int, table: int[:, :], out: int[:]):
  i = 0
  while True:
    i += 1
    if i % 3 == 0:
      continue
    if i > n or i == STOP:
      break
    out[i % 5] += i
  for j in range(n, -4, -2):
    if j == 3:
      break
    out[5] = out[5] * 2 + j
  for j in range(2, n):
    out[6] += sums(table, j % 2, j)
  shifted(table[:, 1], 1)
  if n < table.shape[0] and table[n, 0] > 5:
    return sums(table, n, 0)
  return -i
"""


@given(some.integers(0, 60), some.lists(some.integers(-100, 100), min_size=12, max_size=12))
def test_loops_calls_and_views_are_pythons(n: int, entries: list[int]) -> None:
    tables = [np.array(entries).reshape(4, 3) for _ in range(2)]
    ours, theirs = np.zeros(7, np.int64), np.zeros(7, np.int64)
    assert load_source(LOOPS)(n, tables[0], ours) == in_python(LOOPS)(n, tables[1], theirs)
    assert ours.tolist() == theirs.tolist()
    assert tables[0].tolist() == tables[1].tolist()


ALGEBRA = (
    inspect.getsource(intervals)
    + """
def run(x: int[:], y: int[:], low: int, high: int, out: int[:, :], sizes: int[:]):
  spare = np.empty(200, int)
  n = x.shape[0]
  m = y.shape[0]
  sizes[0] = union(x, n, y, m, out[0])
  sizes[1] = intersection(x, n, y, m, out[1])
  sizes[2] = complement(x, n, out[2])
  sizes[3] = eventually(x, n, low, high, out[3])
  sizes[4] = until(x, n, y, m, low, high, spare, out[4])
  sizes[5] = known_until(x, n, high, low > 2, out[5])
  sizes[6] = 1 if contains(x, n, low) else 0
  return 0
"""
)


@given(SETS, SETS, some.integers(0, 9).map(lambda low: 2 * low), some.integers(-1, 9))
def test_the_algebra_of_intervals_is_pythons(x: list[int], y: list[int], low: int, more: int) -> None:
    high = -1 if more < 0 else low + 2 * more
    arrays = np.array(x, np.int64), np.array(y, np.int64)
    out, sizes = np.zeros((7, 100), np.int64), np.zeros(7, np.int64)
    load_source(ALGEBRA)(*arrays, low, high, out, sizes)
    room: list[list[int]] = [[0] * 100 for _ in range(7)]
    known = intervals.known_until(x, len(x), high, low > 2, room[5])
    wanted = [
        intervals.union(x, len(x), y, len(y), room[0]),
        intervals.intersection(x, len(x), y, len(y), room[1]),
        intervals.complement(x, len(x), room[2]),
        intervals.eventually(x, len(x), low, high, room[3]),
        intervals.until(x, len(x), y, len(y), low, high, [0] * 200, room[4]),
        known,
        int(intervals.contains(x, len(x), low)),
    ]
    assert sizes.tolist() == wanted
    for place in range(6):
        assert out[place, : wanted[place]].tolist() == room[place][: wanted[place]]


# Rounding.

SUMS = """
def run(a: float, b: float, c: float, d: float, out: float[:]):
  product = a * b
  out[0] = fused(a * b + c)
  out[1] = fused(c - a * b)
  out[2] = fused(-(a * b) - c)
  out[3] = fused(a * b + c * d)
  out[4] = fused(product + c)
  out[5] = a * b + c
  out[6] = c - a * b
  out[7] = fused(a * (a * b + c))
  return 0
"""


def rounded(value: Fraction) -> float:
    return value.numerator / value.denominator


@pytest.mark.skipif(not fuses(), reason="this processor rounds every product")
@settings(max_examples=300)
@given(*[some.floats(-1e6, 1e6).filter(lambda x: x == 0 or abs(x) > 1e-6)] * 4)
def test_the_first_product_of_a_fused_sum_is_not_rounded_and_no_other(a: float, b: float, c: float, d: float) -> None:
    """Which one is written down, so that it does not depend on what else a kernel computes."""
    out = np.zeros(8)
    exactly = Fraction(a) * Fraction(b)
    load_source(SUMS)(a, b, c, d, out)
    wanted = [rounded(each) for each in (exactly + Fraction(c), Fraction(c) - exactly, -exactly - Fraction(c))]
    as_written = [a * b + c, a * b + c, c - a * b, a * (a * b + c)]
    assert out.tolist() == [*wanted, rounded(exactly + Fraction(c * d)), *as_written]


# Memory, arguments, and what is refused.


def test_what_a_kernel_allocates_is_freed() -> None:
    text = (
        (
            "def run(n: int, big: bool):\n  x = np.zeros(n)\n  y = np.zeros((n, 2), int)\n"
            "  for i in range(3):\n    x = np.zeros(n)\n  return y.shape[1] + int(x[n - 1]) + (1 if big else 0)\n"
        )
        .replace(", big: bool", "")
        .replace(" + (1 if big else 0)", "")
    )
    resource = pytest.importorskip("resource")
    code = load_source(text)
    assert code(1_000_000) == 2
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(60):  # 2.9 GB, if it stayed
        code(1_000_000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000
    with pytest.raises(MemoryError):
        code(2**55)
    assert code(1_000_000) == 2


def test_arguments_of_another_kind_or_order_are_refused() -> None:
    code = load_source("def run(x: float[:, :]):\n  x[0, 1] = 7.0\n  return x.shape[0]\n")
    table = np.zeros((2, 3))
    assert code(table) == 2
    assert table.tolist() == [[0, 7, 0], [0, 0, 0]]
    for wrong in (np.zeros(3), np.zeros((2, 3), np.int64), np.zeros((3, 2)).T, np.zeros((2, 6))[:, ::2]):
        with pytest.raises(TypeError, match="not as the kernel has it"):
            code(wrong)
    with pytest.raises(ValueError, match="argument"):
        code(table, table)


@pytest.mark.parametrize(
    "body",
    [
        "import os",
        "x = 'text'",
        "x = [1, 2]",
        "print(n)",
        "x = n.real",
        "x = open(n)",
        "x = (lambda: n)()",
        "x = 1\n  x = 2.5",
        "x = 1.5 & n",
        "x = U(3) + n",
        "x = True + 1.0",
        "raise n",
        "del n",
        "x = np.zeros(n)\n  x = 1",
        "x = 1\n  x = np.zeros(n)",
        "x = np.zeros((n, n))\n  x[0] = 1.0",
        "x = np.zeros(n)[1:]",
        "for i in range(0, 5, n):\n    n += 1",
        "while n:\n    n -= 1\n  else:\n    n = 2\n  x = 1 < n < 3",
    ],
)
def test_what_is_no_part_of_the_language_is_refused(body: str) -> None:
    with pytest.raises((TypeError, KeyError)):
        translated(f"def run(n: int):\n  {body}\n  return 0\n", fuses=True)


def test_only_run_allocates() -> None:
    text = "def more(n):\n  x = np.zeros(n)\n  return x[0]\ndef run(n: int):\n  return int(more(n))\n"
    with pytest.raises(TypeError, match="not allocated by run"):
        translated(text, fuses=True)


def test_arguments_of_run_have_kinds() -> None:
    with pytest.raises(TypeError, match="of what kind"):
        translated("def run(n):\n  return n\n", fuses=True)
