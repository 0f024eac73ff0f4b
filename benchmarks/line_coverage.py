"""Which lines of the sources do the fast tests run? A table by room, kept in benchmarks/results/coverage.json.

    pip install coverage
    python benchmarks/line_coverage.py [--slow] [--jobs N] [TESTS ...]

Without TESTS, each folder of tests/ and each file beside them is one process, and the processes are added up. Lines
that run only in child processes, and lines of kernels, which are compiled, are not counted as run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import machine

ROOT = Path(__file__).resolve().parent.parent
IGNORED = r"if TYPE_CHECKING:|raise NotImplementedError|^\s*\.\.\.$"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slow", action="store_true", help="the slow tests too, as in a whole run")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    parser.add_argument("tests", nargs="*", help="files or folders of tests, by default all")
    options = parser.parse_args()
    tests = options.tests or all_tests()
    with tempfile.TemporaryDirectory() as folder:
        data = {**os.environ, "COVERAGE_FILE": str(Path(folder) / "coverage")}
        began = time.perf_counter()
        with ThreadPoolExecutor(options.jobs) as pool:
            outcomes = list(pool.map(lambda each: passed(each, options.slow, data), tests))
        failed = [each for each, well in zip(tests, outcomes, strict=True) if not well]
        subprocess.run([sys.executable, "-m", "coverage", "combine", "--quiet"], cwd=folder, env=data, check=True)
        content = report(folder, data)
    result = {
        "machine": machine.note("coverage", "pytest", "hypothesis", "llvmlite", "jax"),
        "tests": "all but the nightly ones" if options.slow else "the fast ones",
        "of": tests,
        "with failures": failed,
        "seconds": round(time.perf_counter() - began),
        **by_room(content),
    }
    print(json.dumps({key: result[key] for key in ("lines", "run", "percent", "rooms")}, indent=1))
    if not options.tests:
        print(machine.write("coverage", result))
    return 0


def all_tests() -> list[str]:
    """The folders of tests, and the files of tests that are in none."""
    within = {file.parent for file in (ROOT / "tests").glob("*/test_*.py")}
    return [str(path.relative_to(ROOT)) for path in sorted([*within, *(ROOT / "tests").glob("test_*.py")])]


def passed(tests: str, slow: bool, data: dict[str, str]) -> bool:
    """Whether these tests pass; what they run is added to the data."""
    wanted = "not nightly" if slow else "not slow and not nightly"
    command = [sys.executable, "-m", "coverage", "run", "--parallel-mode", "--source=sateen", "-m", "pytest"]
    given = [*command, "-q", "-p", "no:cacheprovider", "-m", wanted, tests]
    done = subprocess.run(given, cwd=ROOT, env=data, capture_output=True, text=True, check=False)
    print(tests, (done.stdout.strip() or done.stderr.strip()).splitlines()[-1], flush=True)
    return done.returncode in (0, 5)  # 5: none of them is fast


def report(folder: str, data: dict[str, str]) -> dict[str, Any]:
    """What coverage says of every file."""
    (Path(folder) / "settings").write_text(f"[report]\nexclude_also = {IGNORED}\n", encoding="utf-8")
    command = [sys.executable, "-m", "coverage", "json", "--quiet", "--ignore-errors", "--rcfile=settings", "-o", "-"]
    done = subprocess.run(command, cwd=folder, env=data, capture_output=True, text=True, check=True)
    content: dict[str, Any] = json.loads(done.stdout)
    return content


def by_room(content: dict[str, Any]) -> dict[str, Any]:
    """Lines, lines that are run, and their share: in all, and by room."""
    lines, run = defaultdict[str, int](int), defaultdict[str, int](int)
    for file, told in content["files"].items():
        within = Path(file).parts[Path(file).parts.index("sateen") + 1 :]
        room = within[0] if len(within) > 1 else "the root"
        lines[room] += told["summary"]["num_statements"]
        run[room] += told["summary"]["covered_lines"]
    rooms = {room: round(100 * run[room] / max(lines[room], 1), 1) for room in sorted(lines)}
    total, ran = sum(lines.values()), sum(run.values())
    return {"lines": total, "run": ran, "percent": round(100 * ran / total, 1), "rooms": rooms}


if __name__ == "__main__":
    sys.exit(main())
