"""The fast engine against replay and monitor, exact and the reference simulator, on random models and formulas.

    python benchmarks/differential.py 0 200            families 0 to 199, and writes results/differential.json
    python benchmarks/differential.py 0 200 --workers 2

A case is a model, a formula and a point. A family that was checked is kept in a file of the working directory
(`--kept`), under the version of the engine, and not checked again: the run may be interrupted, and done in pieces.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import sys
import time
from collections import Counter
from pathlib import Path

import machine

ROOT = Path(__file__).resolve().parents[1]
FAMILIES_A_PROCESS = 4  # compiled kernels stay in memory


def checked(number: int) -> dict[str, object]:
    """What comes of one family."""
    sys.path.insert(0, str(ROOT / "tests"))
    from differential import check
    from random_families import family

    begin = time.process_time()
    drawn = family(number)
    tally = check(drawn)
    return {
        "family": number,
        "mood": drawn.mood,
        "numbers": dict(tally.numbers),
        "differences": [str(difference) for difference in tally.differences],
        "seconds": round(time.process_time() - begin, 1),
    }


def version() -> str:
    """A hash of all that is compared and compares."""
    files = [*ROOT.glob("src/sateen/engine/*.py"), *ROOT.glob("src/sateen/logic/*.py")]
    files += [*ROOT.glob("src/sateen/language/*.py"), *ROOT.glob("src/sateen/model/model.py")]
    files += [ROOT / "tests" / name for name in ("differential.py", "random_families.py", "path_audit.py")]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in sorted(files))).hexdigest()[:16]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=int)
    parser.add_argument("stop", type=int)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--kept", type=Path, default=Path("differential.jsonl"))
    parser.add_argument("--without", type=int, nargs="*", default=[], help="families that take too long, noted so")
    options = parser.parse_args()
    wanted = [number for number in range(options.first, options.stop) if number not in options.without]
    now = version()
    lines = options.kept.read_text(encoding="utf-8").splitlines() if options.kept.exists() else []
    kept = {each["family"]: each for each in map(json.loads, lines) if each["version"] == now}
    missing = [number for number in wanted if number not in kept]
    context = multiprocessing.get_context("spawn")
    with context.Pool(options.workers, maxtasksperchild=FAMILIES_A_PROCESS) as pool:
        for result in pool.imap_unordered(checked, missing):
            kept[result["family"]] = result
            with options.kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"version": now, **result}) + "\n")
            print(
                result["family"],
                result["mood"],
                f"{result['seconds']} s",
                *result["differences"][:3],
                sep="\n  ",
                flush=True,
            )
    every = [kept[number] for number in wanted]
    numbers = sum((Counter(each["numbers"]) for each in every), Counter())
    differences = [text for each in every for text in each["differences"]]
    result = {
        "machine": machine.note("llvmlite", "numpy", "scipy"),
        "families": [options.first, options.stop],
        "without": options.without,
        "moods": dict(Counter(each["mood"] for each in every)),
        "numbers": dict(numbers),
        "differences": len(differences),
        "first_differences": differences[:20],
        "cpu_minutes": round(sum(each["seconds"] for each in every) / 60, 1),
    }
    for name, count in numbers.items():
        print(f"{name:36} {count:>12,}")
    print(f"{'differences':36} {len(differences):>12,}")
    print(machine.write("differential", result))


if __name__ == "__main__":
    main()
