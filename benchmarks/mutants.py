"""Would the tests notice? One error at a time is planted in a copy of the sources, and the tests must fail.

    python benchmarks/mutants.py [--only WORD] [--jobs N] [--source DIR]

Each error replaces a text that occurs exactly once; where it does not, the script stops, since a check that plants
nothing shows nothing. It stops as well when the tests fail without any error planted, or when an error is so crude that
the tests cannot even be loaded. The table goes to benchmarks/results/mutants.json.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import machine

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 300.0  # seconds that the tests of one error may take; an endless loop is noticed too

MONITOR = ("tests/logic/test_monitor.py",)
SETS = ("tests/logic/test_monitor.py", "tests/logic/test_intervals.py")
PARSER = ("tests/logic/test_parser.py",)
FORMULA = ("tests/logic/test_formula.py",)
EXPRESSION = ("tests/language/test_expression.py",)
ERRORS = ("tests/core/test_errors.py",)
MODEL = ("tests/model/test_checks.py", "tests/model/test_model.py", "tests/model/test_reactions.py")
ENGINE = ("tests/engine/test_simulate.py",)
NESTED = ("tests/engine/test_nested.py",)
CHANCE = ("tests/statistical/test_simulate_distribution.py",)


@dataclass(frozen=True)
class Mutant:
    """An error in words, the file it is in, the text that is replaced and by what, and the tests that must fail."""

    error: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


MUTANTS = (
    # Sets of times.
    Mutant(
        "eventually: right ends closed instead of open",
        "logic/intervals.py",
        "size = _append(out, size, start, 0 if endless else x[i + 1] - low, endless)",
        "size = _append(out, size, start, 0 if endless else (x[i + 1] | 1) - low, endless)",
        SETS,
    ),
    Mutant(
        "eventually: the upper bound is left out of the window",
        "logic/intervals.py",
        "start = 0 if high == UNBOUNDED or x[i] < high else x[i] - high",
        "start = 0 if high == UNBOUNDED or x[i] < high else x[i] - high + 1",
        SETS,
    ),
    Mutant(
        "until: the left side is needed at the witness too, on [t, t']",
        "logic/intervals.py",
        "if not endless and y[k] >= end | 1:",
        "if not endless and y[k] >= end:",
        SETS,
    ),
    Mutant(
        "until: the witness may stand in the gap after the left side has failed",
        "logic/intervals.py",
        "else end | 1) - low",
        "else (end | 1) + 1) - low",
        SETS,
    ),
    Mutant(
        "until: the upper bound is one tick short",
        "logic/intervals.py",
        "else first - high",
        "else first - high + 2",
        SETS,
    ),
    Mutant(
        "until: t is no witness of its own with a lower bound of 0",
        "logic/intervals.py",
        "return union(spare, size, y, m, out)",
        "return union(spare, size, spare, size, out)",
        SETS,
    ),
    Mutant(
        "until: only the first stretch of the right side is looked at",
        "logic/intervals.py",
        "for k in range(j, m, 2):",
        "for k in range(j, min(m, j + 2), 2):",
        SETS,
    ),
    Mutant(
        "complement: wrong where a set begins at 0",
        "logic/intervals.py",
        "skipped = 1 if n > 0 and x[0] == 0 else 0",
        "skipped = 0",
        SETS,
    ),
    Mutant(
        "of jumps at one time the first wins",
        "logic/intervals.py",
        "if i + 1 < count and positions[i + 1] == positions[i]:\n            continue  # a value",
        "if i > 0 and positions[i - 1] == positions[i]:\n            continue  # a value",
        SETS,
    ),
    Mutant(
        "the end of a path is not known",
        "logic/intervals.py",
        "out[size] = last + 1",
        "out[size] = last",
        SETS,
    ),
    Mutant(
        "stretches that touch are not joined",
        "logic/intervals.py",
        "if size > 0 and start <= out[size - 1]:",
        "if size > 0 and start < out[size - 1]:",
        ("tests/logic/test_intervals.py",),
    ),
    Mutant(
        "and is or",
        "logic/intervals.py",
        "return _merged(x, n, y, m, 2, out)",
        "return _merged(x, n, y, m, 1, out)",
        SETS,
    ),
    # The verdict.
    Mutant(
        "a delay looks forward",
        "logic/monitor.py",
        "shifts[shift] = [position + shift for position in self.jumps]",
        "shifts[shift] = [position - shift for position in self.jumps]",
        MONITOR,
    ),
    Mutant(
        "a delayed value changes just after its instant",
        "logic/monitor.py",
        "while index + 1 < len(shifted) and shifted[index + 1] <= position:",
        "while index + 1 < len(shifted) and shifted[index + 1] < position:",
        MONITOR,
    ),
    Mutant(
        "of jumps at time 0 a delay sees the first",
        "logic/monitor.py",
        "index, indices = bisect(shifted, shifted[0]) - 1, []",
        "index, indices = 0, []",
        MONITOR,
    ),
    Mutant(
        "G is the dual of F on one side only",
        "logic/formula.py",
        "return Not(Eventually(self.window, Not(self.operand)))",
        "return Not(Eventually(self.window, self.operand))",
        MONITOR,
    ),
    Mutant(
        "an empty G is false",
        "logic/formula.py",
        "return Not(Eventually(self.window, Not(self.operand)))",
        "return And((Not(Eventually(self.window, Not(self.operand))), Eventually(self.window, Truth(True))))",
        MONITOR,
    ),
    Mutant(
        "unknown is false",
        "logic/monitor.py",
        "return Verdict.TRUE if certain else Verdict.UNKNOWN if possible else Verdict.FALSE",
        "return Verdict.TRUE if certain else Verdict.FALSE",
        MONITOR,
    ),
    Mutant(
        "the last state is known for ever",
        "logic/monitor.py",
        "return _known_until(holds, last, False), _known_until(holds, last, True)",
        "return holds, holds",
        MONITOR,
    ),
    Mutant(
        "negation does not exchange certain and possible",
        "logic/monitor.py",
        "return _pair(_complement, (possible,), (certain,))",
        "return _pair(_complement, (certain,), (possible,))",
        MONITOR,
    ),
    Mutant(
        "the finite reading is ignored",
        "logic/monitor.py",
        "return x if self.last is None else _known_until(x, self.last, False)",
        "return x",
        MONITOR,
    ),
    Mutant(
        "numbers are taken as binary fractions",
        "logic/monitor.py",
        "Decimal(repr(number))",
        "Decimal(number)",
        MONITOR,
    ),
    Mutant(
        "instants are rounded to millionths",
        "logic/monitor.py",
        "self.digits = max(map(digits_after_point, decimals.values()), default=0)",
        "self.digits = min(max(map(digits_after_point, decimals.values()), default=0), 6)",
        MONITOR,
    ),
    Mutant(
        "equivalence is conjunction",
        "logic/formula.py",
        "return Or((And((self.left, self.right)), And((Not(self.left), Not(self.right)))))",
        "return And((self.left, self.right))",
        MONITOR,
    ),
    # Text.
    Mutant(
        "until is left-associative",
        "logic/parser.py",
        "?until: prefix | prefix _U window? until -> until",
        "?until: prefix | until _U window? prefix -> until",
        PARSER,
    ),
    Mutant(
        "implication is left-associative",
        "logic/parser.py",
        "?implication: either | either _IMPLIES implication -> implies",
        "?implication: either | implication _IMPLIES either -> implies",
        PARSER,
    ),
    Mutant(
        "a chain of comparisons compares all with the first",
        "language/grammar.py",
        "zip(symbols, pairwise(sides), strict=True)",
        "zip(symbols, ((sides[0], side) for side in sides[1:]), strict=True)",
        PARSER,
    ),
    Mutant(
        "F[<=5] is F[5, inf)",
        "logic/parser.py",
        'low, high = ((zero,), bound) if symbol == "<=" else (bound, (infinity,))',
        'low, high = ((zero,), bound) if symbol == ">=" else (bound, (infinity,))',
        PARSER,
    ),
    Mutant(
        "a subtracted term is added",
        "language/grammar.py",
        'self.term("-", term) if sign == "-" else term',
        'self.term("-", term) if sign == "+" else term',
        EXPRESSION,
    ),
    Mutant(
        "brackets on the left of an implication are not printed",
        "logic/formula.py",
        "{self._inside(self.left, _IMPLIES + 1)}",
        "{self._inside(self.left, _IMPLIES)}",
        PARSER,
    ),
    Mutant(
        "brackets around a divisor are not printed",
        "language/expression.py",
        "least = [self.binding + 1] * len(self.operands)",
        "least = [self.binding] * len(self.operands)",
        EXPRESSION,
    ),
    Mutant(
        "the horizon is that of the shortest branch",
        "logic/formula.py",
        "below = max((_reach(child)",
        "below = min((_reach(child)",
        FORMULA,
    ),
    Mutant(
        "the caret stands one character too far to the left",
        "core/errors.py",
        "shown[: column - cut]",
        "shown[: max(column - cut - 1, 0)]",
        ERRORS,
    ),
    # Arithmetic and models.
    Mutant(
        "floor cuts towards 0",
        "language/expression.py",
        "getattr(np, function) for function in FUNCTIONS[2:]",
        'getattr(np, function.replace("floor", "trunc")) for function in FUNCTIONS[2:]',
        EXPRESSION,
    ),
    Mutant(
        "if takes the other branch",
        "language/expression.py",
        "return (then if holds else otherwise).value(values)",
        "return (otherwise if holds else then).value(values)",
        EXPRESSION,
    ),
    Mutant(
        "emitted or is and",
        "language/expression.py",
        '_SOURCE_MARKS: Final = {"or": "|",',
        '_SOURCE_MARKS: Final = {"or": "&",',
        EXPRESSION,
    ),
    Mutant(
        "mass action counts ordered pairs",
        "model/reactions_text.py",
        "ways *= taken + 1",
        "ways *= 1",
        MODEL,
    ),
    Mutant(
        "what is consumed and produced is only produced",
        "model/model.py",
        "net[name] = net.get(name, 0) + sign * count",
        "net[name] = sign * count",
        MODEL,
    ),
    Mutant(
        "a sum vanishes with any of its terms",
        "model/checks.py",
        "return all(zero)",
        "return any(zero)",
        MODEL,
    ),
    Mutant(
        "a negative rate passes",
        "model/checks.py",
        "return -signs[0]",
        "return signs[0]",
        MODEL,
    ),
    # Simulation.
    Mutant(
        "the transition is chosen by the wrong stretch of the rates",
        "engine/simulate.py",
        "point -= rate",
        "point -= 0.5 * rate",
        ENGINE,
    ),
    Mutant(
        "the waiting time has the rate of the first transition",
        "engine/simulate.py",
        "jump = max(time + rng.exponential() / total, just_after(time))",
        "jump = max(time + rng.exponential() / (rates[0] or total), just_after(time))",
        CHANCE,
    ),
    Mutant(
        "guards are not asked",
        "engine/simulate.py",
        "if transition.guard is not None and not transition.guard.value(environment):",
        "if transition.guard is not None and False:",
        ENGINE,
    ),
    Mutant(
        "updates read the state after",
        "engine/simulate.py",
        "after[name] = float(expression.value({**values, **state}))",
        "after[name] = float(expression.value({**values, **after}))",
        ENGINE,
    ),
    Mutant(
        "a capped path claims to be whole",
        "engine/simulate.py",
        "end = times[-1] if capped else until",
        "end = until",
        ENGINE,
    ),
    Mutant(
        "negative rates are let through",
        "engine/simulate.py",
        "if not 0.0 <= rate < math.inf:",
        "if not rate < math.inf:",
        ENGINE,
    ),
    # What lanes remember of the past.
    Mutant(
        "what lasts from time 0 on may end before its window does",
        "engine/emit_stretch.py",
        "if a > 0 or c > 0 else reached",
        "if a > 0 else reached",
        NESTED,
    ),
    Mutant(
        "a ring does not grow, and rows are overwritten that are still read",
        "engine/emit_delay.py",
        "while 2 * (it - oldest) >= rows:",
        "while it - oldest >= 2 * rows:",
        NESTED,
    ),
)


@dataclass(frozen=True)
class Outcome:
    """What the tests said of an error."""

    killed: bool
    by: str
    seconds: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="WORD", help="only errors whose description or file holds WORD")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), metavar="N")
    parser.add_argument("--source", type=Path, default=ROOT / "src", metavar="DIR", help="the sources, by default src")
    options = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if options.only in mutant.error or options.only in mutant.file]
    for mutant in chosen:
        planted(mutant, options.source)  # all must be found before the first is tried
    baseline = sorted({test for mutant in chosen for test in mutant.tests})
    print(f"without any error: {' '.join(baseline)}", flush=True)
    code, failed, seconds = run_tests(options.source, baseline, 10 * LONGEST)
    if code:
        print(f"the tests fail without any error planted: {failed}", file=sys.stderr)
        return 2
    print(f"all pass in {seconds:.0f} s; now {len(chosen)} errors, one at a time", flush=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = []
        for mutant, outcome in zip(chosen, pool.map(lambda each: tried(each, options.source), chosen), strict=True):
            outcomes.append(outcome)
            verdict = "killed" if outcome.killed else "SURVIVED"
            print(f"{verdict:8}  {mutant.file:20}  {mutant.error:72}  {outcome.by}", flush=True)
    survivors = sum(not outcome.killed for outcome in outcomes)
    print(f"{len(outcomes) - survivors} of {len(outcomes)} killed")
    if not options.only:
        rows = [
            {"error": mutant.error, "file": mutant.file, "old": mutant.old, "new": mutant.new}
            | {"killed": outcome.killed, "by": outcome.by, "seconds": round(outcome.seconds, 1)}
            for mutant, outcome in zip(chosen, outcomes, strict=True)
        ]
        source = options.source.resolve()
        result = {
            "machine": machine.note("pytest", "hypothesis"),
            "source": str(source.relative_to(ROOT) if source.is_relative_to(ROOT) else source),
            "planted": len(rows),
            "killed": len(rows) - survivors,
        }
        machine.write("mutants", {**result, "mutants": rows})
    return 1 if survivors else 0


def planted(mutant: Mutant, source: Path) -> str:
    """The text of the file with the error in it."""
    text = (source / "sateen" / mutant.file).read_text(encoding="utf-8")
    if (found := text.count(mutant.old)) != 1:
        raise SystemExit(f"{mutant.error}: {mutant.old!r} occurs {found} times in {mutant.file}, not once")
    return text.replace(mutant.old, mutant.new)


def tried(mutant: Mutant, source: Path) -> Outcome:
    """The tests of an error, run on a copy of the sources that has it."""
    with tempfile.TemporaryDirectory(prefix="sateen-mutant-") as folder:
        copy = Path(folder) / "src"
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
        (copy / "sateen" / mutant.file).write_text(planted(mutant, source), encoding="utf-8")
        code, failed, seconds = run_tests(copy, mutant.tests, LONGEST)
    if code not in (0, 1):
        raise SystemExit(f"{mutant.error}: the tests could not be run (pytest says {code}); plant a finer error")
    return Outcome(code == 1, failed, seconds)


def run_tests(source: Path, files: Sequence[str], longest: float) -> tuple[int, str, float]:
    """pytest's exit code with `source` on the path, the first test that failed, and the seconds it took."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "--tb=no",
        "-p",
        "no:cacheprovider",
        "-m",
        "not slow",
        *files,
    ]
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    begin = time.perf_counter()
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=longest, check=False
        )
    except subprocess.TimeoutExpired:
        return 1, f"no test: they had not ended after {longest:g} s", time.perf_counter() - begin
    seconds = time.perf_counter() - begin
    failed = re.search(r"^(?:FAILED|ERROR) \S*?([^/\s]+\.py(?:::\w+)?)", done.stdout, re.MULTILINE)
    return done.returncode, failed[1] if failed else "", seconds


if __name__ == "__main__":
    sys.exit(main())
