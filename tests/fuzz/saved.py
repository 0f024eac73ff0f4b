"""The formats that sateen saves: archives, the store of runs, result folders and cached kernels.

A case is JSON with edits, not the spoilt bytes: so it stays the same case when a format changes. Archives and rows are
packed again with right checksums after their content was edited, as an ill-meaning stranger would do.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np

import sateen as st
from fuzz.judging import SECRET, Broken, Format, promise
from fuzz.mutators import LARGE_JSON, json_text, spoilt_json
from fuzz.texts import check_observations
from known_functions import LINE, PLANE, observed
from small_studies import SMALL

RESULT: Final = "case-result"
ARCHIVE: Final = "case.safetensors"
STORE: Final = "case.db"
HOWS: Final = ("nan", "inf", "-1", "0", "huge", "gone", "empty", "flat", "row", "cut", "scalar", "twice", "renamed")
DTYPES: Final = ("float64", "float32", "float16", "int64", "int8", "uint8", "bool", "uint64")


def edits_of(data: bytes) -> list[list[Any]]:
    """The edits of a case; whole numbers of any length are read."""
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        return json.loads(data)
    finally:
        sys.set_int_max_str_digits(before)


def case_of(edits: list[list[Any]]) -> bytes:
    return json_text(edits).encode()


def raw_edit(rng: Random, size: int) -> list[Any]:
    """At a place, some bytes go and others come; `size` goes to the end."""
    at = rng.randrange(size + 1)
    return [at, rng.choice((0, 1, 1, 1, 2, 8, 100, size)), rng.randbytes(rng.choice((0, 1, 1, 1, 2, 8, 64))).hex()]


def raw_edited(data: bytes, at: int, gone: int, come: str) -> bytes:
    return data[:at] + bytes.fromhex(come) + data[at + gone :]


# Archives.


Archives = dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]  # words, content and arrays by name


def prepare_archives(folder: Path) -> Archives:
    """Observations, posteriors that are kept whole or fitted again, and a guarantee."""
    from own_learners import Pooled

    if (folder / "guarantee.saved").exists():  # the last that is made
        return _unpacked(folder)
    line, plane = observed(LINE, 8, 20, 1, undecided=0.1), observed(PLANE, 6, 20, 2)
    line.save(folder / "observations.saved")
    posterior = st.SVIGP(inputs="linear", inducing=4).fit(line, seed=1)
    posterior.save(folder / "svi-gp.saved")
    st.learn(plane, learner=st.EPGP(inputs="linear", inducing=4), seed=1).save(folder / "ep-gp.saved")
    st.learn(line, learner=Pooled(), seed=1).save(folder / "own.saved")
    st.calibrate(posterior, observed(LINE, 60, 20, 3), normaliser="constant").save(folder / "guarantee.saved")
    return _unpacked(folder)


def prepare_networks(folder: Path) -> Archives:
    """Posteriors that are networks."""
    line = observed(LINE, 8, 20, 1, undecided=0.1)
    if not (folder / "laplace-net.saved").exists():
        st.SVIBNN(width=3, steps=20, pretraining=20, draws=5).fit(line, seed=1).save(folder / "svi-bnn.saved")
        st.LaplaceNet(nets=1, width=3, steps=20, draws=5).fit(line, seed=1).save(folder / "laplace-net.saved")
    return _unpacked(folder)


def _unpacked(folder: Path) -> Archives:
    from sateen.files.container import read_container

    found = {}
    for file in sorted(folder.glob("*.saved")):
        kind, number, content, arrays = read_container(file)
        words = {"kind": kind, "format": str(number), "sateen": st.__version__}
        found[file.stem] = (words, content, arrays)
    return found


def packed(words: dict[str, Any], text: str, arrays: dict[str, Any]) -> bytes:
    """An archive with a right checksum, whatever is in it; `text` is its content as JSON."""
    from safetensors.numpy import save

    from sateen.core.fingerprints import checksum

    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    full = {**words, "content": text}
    stored = save(arrays, metadata={**full, "checksum": checksum(full, arrays)})
    start = 8 + int.from_bytes(stored[:8], "little")
    header = json.dumps(json.loads(stored[8:start]), sort_keys=True, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + stored[start:]


def mutate_archive(rng: Random, archives: dict[str, Any]) -> bytes:
    name = rng.choice(list(archives))
    words, content, arrays = archives[name]
    edits: list[list[Any]] = [["seed", name]]
    for _ in range(1 + min(3, int(rng.expovariate(1.0)))):
        act = rng.random()
        if act < 0.5:
            edits.append(["content", *_path_and_value(rng, content)])
        elif act < 0.8 and arrays:
            edits.append(["array", rng.choice(sorted(arrays)), rng.choice((*HOWS, *DTYPES)), rng.randrange(10**6)])
        elif act < 0.85:
            edits.append(["word", rng.choice(sorted(words)), spoilt_json(rng, words[rng.choice(sorted(words))])])
        else:
            edits.append(["raw", *raw_edit(rng, 2000)])
    return case_of(edits)


def _path_and_value(rng: Random, value: Any) -> list[Any]:
    """A path into JSON, and what comes there: a one-element list, or an empty one if it goes."""
    path: list[Any] = []
    while isinstance(value, dict | list) and value and rng.random() < 0.85:
        key = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
        path.append(key)
        value = value[key]
    return [path, [] if rng.random() < 0.15 else [spoilt_json(rng, value)]]


def with_edit(value: Any, path: list[Any], new: list[Any]) -> Any:
    """The JSON with another part at a path; what is not there any more stays away."""
    if not path:
        return new[0] if new else {}
    key, rest = path[0], path[1:]
    copy = value.copy() if isinstance(value, dict | list) else value
    try:
        if rest:
            copy[key] = with_edit(value[key], rest, new)
        elif new:
            copy[key] = new[0]
        else:
            del copy[key]
    except (KeyError, IndexError, TypeError):
        return value
    return copy


@np.errstate(all="ignore")
def with_array_edit(arrays: dict[str, Any], name: str, how: str, at: int) -> dict[str, Any]:
    if name not in arrays:
        return arrays
    array = arrays[name].copy()
    if how in DTYPES:
        return {**arrays, name: array.astype(how)}
    if how == "gone":
        return {each: value for each, value in arrays.items() if each != name}
    if how == "renamed":
        return {(each if each != name else f"{each}\x1b[31m"): value for each, value in arrays.items()}
    if how in ("nan", "inf", "-1", "0", "huge"):
        value = {"nan": np.nan, "inf": np.inf, "-1": -1, "0": 0, "huge": 2.0**62}[how]
        if array.size and not (array.dtype.kind in "iub" and how in ("nan", "inf")):
            fits = array.dtype.kind == "f" or (array.dtype == np.int64)
            array.flat[at % array.size] = value if fits else abs(int(value)) % 2
        return {**arrays, name: array}
    shaped = {
        "empty": array[:0] if array.ndim else array,
        "flat": array.reshape(-1),
        "row": array.reshape(1, -1),
        "cut": array[:-1] if array.ndim else array,
        "scalar": array.reshape(-1)[:1].reshape(()) if array.size else array,
        "twice": np.concatenate([array, array]) if array.ndim else array,
    }
    return {**arrays, name: shaped[how]}


def read_archive(data: bytes, archives: dict[str, Any], folder: Path) -> None:
    edits = edits_of(data)
    (_, name), edits = edits[0], edits[1:]
    words, content, arrays = archives[name]
    for what, *edit in edits:
        if what == "content":
            content = with_edit(content, *edit)
        elif what == "array":
            arrays = with_array_edit(arrays, *edit)
        elif what == "word":
            words = {**words, edit[0]: edit[1] if isinstance(edit[1], str) else json_text(edit[1])}
    file = folder / ARCHIVE
    try:
        large = [LARGE_JSON[edit[0]]() for what, *edit in edits if what == "large"]
        stored = packed(words, large[0] if large else json_text(content), arrays)
    except (UnicodeEncodeError, RecursionError):  # no archive can have it
        return
    for what, *edit in edits:
        if what == "raw":
            stored = raw_edited(stored, *edit)
    file.write_bytes(stored)
    found = st.load(file)
    if name != "own":  # a learner of a user's own may raise what it likes when it is used
        check_loaded(found)


def check_loaded(found: Any) -> None:
    """What an archive gave is of use: counts that can be, predictions that are probabilities."""
    if isinstance(found, st.Observations):
        check_observations(found)
        return
    repr(found)
    posterior = found.posterior if isinstance(found, st.Guarantee) else found
    space = posterior.space
    check_observations(posterior.training.observations)
    prediction = found.predict(space.uniform(3, seed=1))
    columns = np.array([prediction.lower, prediction.mean, prediction.upper])
    promise(np.isfinite(columns).all(), "a prediction is not finite")
    promise(((columns >= 0.0) & (columns <= 1.0)).all(), "a prediction is no probability")
    promise((np.diff(columns, axis=0) >= -1e-6).all() or found is not posterior, "a mean outside of its interval")


# The store.


def flip_coin(theta: dict[str, float], rng: np.random.Generator) -> bool:
    if rng.random() < 0.02:
        raise ValueError("no coin")
    return bool(rng.random() < theta["beta"])


def observe_coins(store: Path | None) -> st.Observations:
    points = LINE.uniform(3, seed=1)
    return st.observe(flip_coin, None, points, runs=20, seed=2, workers=1, chunk=15, store=store)


def prepare_store(folder: Path) -> tuple[bytes, st.Observations]:
    file = folder / "pristine.db"
    if not file.exists():
        observe_coins(folder / "making.db")
        connection = sqlite3.connect(folder / "making.db")
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.close()
        (folder / "making.db").rename(file)
    return file.read_bytes(), observe_coins(None)


SQL: Final = (
    "PRAGMA user_version = 99",
    "PRAGMA application_id = 1",
    "PRAGMA journal_mode = WAL",
    "DROP TABLE chunk",
    "DROP TABLE campaign",
    "DELETE FROM chunk",
    "DELETE FROM campaign",
    "DELETE FROM chunk WHERE first = 15",
    "UPDATE chunk SET first = 1 WHERE first = 0",
    "UPDATE chunk SET stop = 9223372036854775807",
    "UPDATE chunk SET stop = -1",
    "UPDATE chunk SET stop = 'x' WHERE first = 15",
    "UPDATE chunk SET stop = 15.5 WHERE first = 0",
    "UPDATE chunk SET content = 'text'",
    "UPDATE chunk SET content = 7",
    "UPDATE chunk SET content = x''",
    "UPDATE chunk SET content = zeroblob(2000000)",
    "UPDATE chunk SET campaign = 99",
    "UPDATE campaign SET id = 7",
    "UPDATE campaign SET key = 'other'",
    "UPDATE campaign SET asked = x'00ff'",
    "ALTER TABLE chunk RENAME TO other",
    "ALTER TABLE chunk ADD COLUMN more",
    "ALTER TABLE chunk DROP COLUMN content",
    "ALTER TABLE chunk RENAME TO c; CREATE VIEW chunk AS SELECT * FROM c",
    "CREATE TRIGGER t AFTER INSERT ON campaign BEGIN DELETE FROM chunk; END",
    "CREATE TRIGGER t AFTER INSERT ON chunk BEGIN DELETE FROM chunk WHERE first = NEW.first; END",
    'CREATE TABLE "x\x1b[31m" (a)',
)


def mutate_store(rng: Random, prepared: tuple[bytes, st.Observations]) -> bytes:
    edits: list[list[Any]] = []
    words = {"key": "x", "runs": [0, 15], "seconds": 0.1, "failures": [{"theta": {"beta": 0.1}, "seed": 1}]}
    for _ in range(1 + min(3, int(rng.expovariate(1.0)))):
        act = rng.random()
        if act < 0.3:
            edits.append(["raw", *raw_edit(rng, len(prepared[0]))])
        elif act < 0.5:
            edits.append(["sql", rng.choice(SQL)])
        elif act < 0.65:
            edits.append(["blob", rng.randrange(4), *raw_edit(rng, 200)])
        elif act < 0.9:
            edits.append(["words", rng.randrange(4), *_path_and_value(rng, words)])
        elif act < 0.95:
            edits.append(["count", rng.randrange(4), rng.randrange(8), rng.choice((-1, 0, 5, 10**6, 2**62, -(2**63)))])
        else:
            edits.append(
                ["text", rng.randrange(4), rng.choice(("", "{}", "[" * 5000, "null", "{" * 10**6, "9" * 5000))]
            )
    return case_of(edits)


def _row_edited(content: bytes, what: str, edit: list[Any]) -> bytes:
    """A row with other words or counts, packed as the store packs it."""
    text, _, table = zlib.decompress(content).partition(b"\n")
    if what == "large":
        text = LARGE_JSON[edit[0]]().encode()
    elif what == "words":
        text = json_text(with_edit(json.loads(text), *edit)).encode()
    elif what == "text":
        text = edit[0].encode()
    elif what == "swollen":  # a small row that takes so many bytes when it is expanded
        packer = zlib.compressobj(1)
        pieces = [packer.compress(bytes(2**20)) for _ in range(edit[0] // 2**20)]
        return b"".join([packer.compress(text + b"\n" + table), *pieces, packer.flush()])
    else:
        counts = np.frombuffer(table, "<i8").copy()
        counts[edit[0] % len(counts)] = edit[1]
        table = counts.tobytes()
    return zlib.compress(text + b"\n" + table, 1)


def read_store(data: bytes, prepared: tuple[bytes, st.Observations], folder: Path) -> None:
    file = folder / STORE
    for old in folder.glob(f"{STORE}*"):
        old.unlink()
    file.write_bytes(prepared[0])
    repacked = False
    edits = edits_of(data)
    connection = sqlite3.connect(file)
    for what, *edit in edits:
        try:
            if what == "sql":
                connection.executescript(edit[0])
            elif what != "raw":
                place, *edit = edit
                rows = connection.execute("SELECT campaign, first, content FROM chunk").fetchall()
                campaign, first, content = rows[place % len(rows)]
                repacked |= what != "blob"
                new = raw_edited(content, *edit) if what == "blob" else _row_edited(content, what, edit)
                where = "UPDATE chunk SET content = ? WHERE campaign = ? AND first = ?"
                connection.execute(where, (new, campaign, first))
        except (sqlite3.Error, zlib.error, ZeroDivisionError, TypeError, ValueError, OverflowError, RecursionError):
            continue  # an edit before it made this one impossible
    connection.commit()
    connection.close()
    for what, *edit in edits:
        if what == "raw":
            file.write_bytes(raw_edited(file.read_bytes(), *edit))
    found = observe_coins(file)
    check_observations(found)
    if not repacked:
        promise(found == prepared[1], "a damaged store gave other counts")


# Result folders.


def prepare_result(folder: Path) -> Path:
    pristine = folder / "pristine-result"
    if not pristine.exists():
        study = st.Study.parse(SMALL.replace("points = 24", "points = 12").replace("points = 10", "points = 4"))
        study.run(folder / "making-result", workers=1)
        (folder / "making-result").rename(pristine)
    (folder / "secret.txt").write_text(SECRET)
    (folder / "secret.json").write_text(json.dumps({SECRET: SECRET}))
    return pristine


def _files(pristine: Path) -> dict[str, Path]:
    """The files of a result by names that do not change: without fingerprints."""
    files = sorted(file.relative_to(pristine) for file in pristine.rglob("*") if file.is_file())
    return {re.sub(r"\.[0-9a-f]{16}", "", each.as_posix()): each for each in files}


TARGETS: Final = (
    "../secret.txt",
    "../secret.json",
    "/etc/passwd",
    "/dev/zero",
    "/dev/null",
    "/dev/tty",
    "nowhere",
    ".",
)
SPECIAL: Final = ("link", "folder", "pipe")


def mutate_result(rng: Random, pristine: Path) -> bytes:
    files = _files(pristine)
    edits: list[list[Any]] = []
    for _ in range(1 + min(3, int(rng.expovariate(1.0)))):
        name = rng.choice(("result.json", "result.json", "provenance.json", *files))
        act, suffix = rng.random(), Path(name).suffix
        if suffix == ".json" and act < 0.7:
            content = json.loads((pristine / files[name]).read_bytes())
            edits.append(["json", name, *_path_and_value(rng, content)])
        elif act < 0.85:
            edits.append(["raw", name, *raw_edit(rng, (pristine / files[name]).stat().st_size)])
        elif act < 0.9:
            edits.append(["gone", name])
        elif act < 0.97:
            edits.append(["link", name, rng.choice(TARGETS)])
        else:
            edits.append([rng.choice(("folder", "pipe")), name])
    if rng.random() < 0.5:
        edits.append(["rehash"])
    return case_of(edits)


def read_result(data: bytes, pristine: Path, folder: Path) -> None:
    where = folder / RESULT
    shutil.rmtree(where, ignore_errors=True)
    shutil.copytree(pristine, where)
    files = _files(pristine)
    edits = edits_of(data)
    for what, *edit in edits:
        if what == "rehash":
            _rehash(where)
            continue
        name, *edit = edit
        file = where / files[name]
        if what in ("json", "raw") and not (file.is_file() and not file.is_symlink()):
            continue
        if what == "large":
            file.write_text(LARGE_JSON[edit[0]]())
        elif what == "json":
            try:
                file.write_text(json_text(with_edit(edits_of(file.read_bytes()), *edit)))
            except (ValueError, UnicodeEncodeError, RecursionError):
                continue
        elif what == "raw":
            file.write_bytes(raw_edited(file.read_bytes(), *edit))
        elif file.exists() or file.is_symlink():
            if file.is_dir() and not file.is_symlink():
                continue
            file.unlink()
            if what == "link":
                file.symlink_to(edit[0])
            elif what == "folder":
                file.mkdir()
            elif what == "pipe":
                os.mkfifo(file)
    hashed = "rehash" not in [each[0] for each in edits] and _same(where, pristine, files["provenance.json"])
    changed = [name for name in _used(pristine) if not _same(where, pristine, Path(name))]
    result = st.Result.load(where)
    if hashed and changed:
        raise Broken(f"a result was read although {changed[0].partition('/')[0]} is not as it was written")
    repr(result)
    result._repr_html_()
    for each in result.properties.values():
        check_observations(each.train)
        str(each.verdict)
    promise(isinstance(result.name, str) and isinstance(result.seed, int), "a result with a wrong name or seed")
    promise(isinstance(result.model, str), "a result with a wrong model")
    promise(all(isinstance(each, float | int) for each in result.seconds.values()), "seconds that are no numbers")
    promise(all(isinstance(each, str) for each in result.stages.values()), "states that are no words")


def _used(pristine: Path) -> list[str]:
    """The files that a result is read from, beside its provenance."""
    content = json.loads((pristine / "result.json").read_bytes())
    stages = [file for each in content["properties"].values() for file in each["files"].values()]
    return ["result.json", *(f"stages/{file}" for file in stages)]


def _same(where: Path, pristine: Path, file: Path) -> bool:
    made = where / file
    return made.is_file() and not made.is_symlink() and made.read_bytes() == (pristine / file).read_bytes()


def _rehash(where: Path) -> None:
    """Hashes in provenance.json as they would be of the files as they are now."""
    import hashlib

    file = where / "provenance.json"
    if file.is_symlink() or not file.is_file():
        return
    try:
        content = json.loads(file.read_bytes())
        for name in content["hashes"]:
            target = where / name
            if target.is_file() and not target.is_symlink():
                content["hashes"][name] = hashlib.sha256(target.read_bytes()).hexdigest()
        file.write_text(json_text(content))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return


# Cached kernels.


KERNEL: Final = """
import sys, json
import sateen as st
model = st.Model.parse("species A = 10\\nA -> 0 @ mass_action(k)")
points = st.Space(k=(0.5, 4.0)).uniform(4, seed=1)
try:
    seen = st.observe(model, st.stl("F[0, 1] A == 0"), points, runs=50, seed=2, workers=1)
    print(json.dumps(seen.satisfied.tolist()))
except st.SateenError as error:
    print(json.dumps(str(error)))
"""


def counted(cache: Path) -> tuple[str, str, int]:
    """What a fresh process counts with this cache: its output, its errors, its exit code."""
    environment = {**os.environ, "SATEEN_CACHE_DIR": str(cache)}
    made = subprocess.run(
        [sys.executable, "-c", KERNEL], env=environment, capture_output=True, timeout=120, check=False
    )
    return made.stdout.decode(), made.stderr.decode(), made.returncode


def prepare_kernel(folder: Path) -> tuple[Path, str]:
    cache = folder / "pristine-cache"
    if not cache.exists():
        (folder / "making-cache").mkdir(exist_ok=True)
        (folder / "making-cache").rename(cache)
        counted(cache)
    return cache, counted(cache)[0]


def mutate_kernel(rng: Random, prepared: tuple[Path, str]) -> bytes:
    files = sorted(file for file in prepared[0].rglob("*") if file.is_file())
    edits: list[list[Any]] = []
    for _ in range(1 + rng.randrange(3)):
        place = rng.randrange(len(files))
        size = files[place].stat().st_size
        act = rng.randrange(5)
        code = b"\nimport os; os.write(2, b'code was run')\n".hex()
        edits.append(
            [place, *(raw_edit(rng, size), [0, size, ""], [size, 0, code], [0, 1, "20"], [size // 2, size, ""])[act]]
        )
    return case_of(edits)


def read_kernel(data: bytes, prepared: tuple[Path, str], folder: Path) -> None:
    cache = folder / "case-cache"
    shutil.rmtree(cache, ignore_errors=True)
    shutil.copytree(prepared[0], cache)
    files = sorted(file for file in cache.rglob("*") if file.is_file())
    for place, *edit in edits_of(data):
        file = files[place % len(files)]
        file.write_bytes(raw_edited(file.read_bytes(), *edit))
    output, errors, code = counted(cache)
    promise("code was run" not in errors, "code in the cache was run")
    promise(code == 0 and "Traceback" not in errors, f"a traceback: {errors.strip().splitlines()[-1:]}")
    promise(output == prepared[1], f"other counts: {output.strip()} for {prepared[1].strip()}")


def _untouched(prepared: Any) -> bytes:
    return b"[]"


def _seed_of_archives(archives: Archives) -> bytes:
    return case_of([["seed", next(iter(archives))]])


def _large(*edits: list[Any]) -> dict[str, Callable[[Any], bytes]]:
    """The edits, each followed by the way in which it makes something large."""
    return {
        f"{edits[-1][-1]} {how}": lambda _, how=how: case_of([*edits[:-1], [*edits[-1], how]])  # type: ignore[misc]
        for how in LARGE_JSON
    }


LARGE_ARCHIVES: Final = _large(["seed", "observations"], ["large"])
LARGE_ROWS: Final = _large(["large", 0])
LARGE_RESULTS: Final = {**_large(["large", "result.json"]), **_large(["large", "provenance.json"])}
SAVED: Final[dict[str, Format]] = {
    "archive": Format(prepare_archives, mutate_archive, read_archive, 140, _seed_of_archives, ARCHIVE, LARGE_ARCHIVES),
    "networks": Format(prepare_networks, mutate_archive, read_archive, 0, _seed_of_archives, ARCHIVE),
    "store": Format(prepare_store, mutate_store, read_store, 50, _untouched, STORE, LARGE_ROWS),
    "result": Format(prepare_result, mutate_result, read_result, 50, _untouched, RESULT, LARGE_RESULTS),
    "kernel": Format(prepare_kernel, mutate_kernel, read_kernel, 2, _untouched),
}
