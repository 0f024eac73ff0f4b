"""`merge`: the runs that were made apart, in parts of a study or in stores, joined in one place."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from shutil import rmtree
from types import MappingProxyType

from sateen.core.errors import InputError, SateenError
from sateen.core.progress import USUAL, Progress, watcher
from sateen.core.types import File
from sateen.pipeline.folder import ResultFolder
from sateen.sampling.merge import Joined, merge_stores
from sateen.sampling.parts import Part, common, part_runs
from sateen.study.parts import RECORD, PartsRecord, difference, read_record, write_record


@dataclass(frozen=True, slots=True, repr=False)
class Merged:
    """What the target of a merge contains: for each stage, or campaign, how many runs it `has`, how many there are in
    `total`, and how many were `added` by this merge.

    `missing` lists the parts of a study with missing runs, as (number, parts); runs that are in the sources but could
    not be compared are not counted. `study` is the name of the study, and `file` its file, if all parts belong to the
    same one; both are empty for stores.
    """

    into: str
    has: Mapping[str, int]
    total: Mapping[str, int]
    added: int
    missing: tuple[Part, ...] = ()
    study: str = ""
    file: str = ""

    @property
    def complete(self) -> bool:
        """Whether no run is missing."""
        return self.has == self.total

    def __repr__(self) -> str:
        runs = f"{sum(self.has.values()):,} of {sum(self.total.values()):,} runs"
        return f"<Merged into {self.into}: {runs}, {self.added:,} of them new>"


def merge(sources: Sequence[File], *, into: File, progress: Progress | None = USUAL) -> Merged:
    """Join the runs of several parts of a study, or of several stores of `observe`, into the folder or store `into`.

    Parts are made by `Study.run_part`, or by `observe` with `part` and `store`. Their order does not matter, and
    duplicate runs are counted once. If two sources contradict each other about the same runs, or belong to different
    studies, nothing is merged. Parts may be missing. Merge later ones into the same target; `Study.run` in that folder
    makes the runs that are still missing, and continues.

    >>> from sateen import Model, Space, observe, stl
    >>> model, formula = Model.parse("species A = 10\\nA -> 0 @ mass_action(k)"), stl("F[0, 2] A == 0")
    >>> points = Space(k=(0.1, 2)).grid(3)
    >>> for number in (1, 2):
    ...     obs = observe(model, formula, points, 100, seed=1, part=(number, 2), store=f"part-{number}.db")
    >>> merge(["part-1.db", "part-2.db"], into="all.db")
    <Merged into all.db: 300 of 300 runs, 300 of them new>
    """
    progress = watcher(progress)
    if isinstance(sources, str | os.PathLike) or not sources:
        raise InputError("{sources} are the folders, or the stores, to merge: give a list", argument="sources")
    there: dict[str, FilePath] = {}
    for source in sorted(os.fspath(each) for each in sources):
        path = FilePath(source)
        if not path.exists():
            raise InputError(f"there is no folder or store {source}")
        if os.path.realpath(path) == os.path.realpath(into):
            raise InputError(f"{source} is the target itself; leave it out: what it has stays there")
        if os.path.realpath(path) not in there:
            there[os.path.realpath(path)] = path
    folders = [path.is_dir() for path in there.values()]
    if any(folders) and not all(folders):
        stray = next(path for path, folder in zip(there.values(), folders, strict=True) if not folder)
        raise InputError(f"{stray} is a file, and others are folders; merge folders with folders, stores with stores")
    paths = list(there.values())
    return _merge_folders(paths, FilePath(into), progress) if all(folders) else _merge_files(paths, into, progress)


def _merge_files(files: Sequence[FilePath], into: File, progress: Progress) -> Merged:
    found = merge_stores({str(file): file for file in files}, into, progress)
    return _merged(into, {key[:12]: each for key, each in found.items()})


def _merge_folders(folders: Sequence[FilePath], into: FilePath, progress: Progress) -> Merged:
    """Join parts of a study; all are looked at before the target is touched."""
    records: dict[FilePath, PartsRecord] = {}
    for path in folders:
        folder = ResultFolder(path)
        folder.check_idle()
        if not os.path.lexists(path / RECORD):
            raise InputError(f"{path} has no part of a study: there is no {RECORD} in it")
        records[path] = read_record(folder)
    target = ResultFolder(into, "merge the same again")
    first, record = next(iter(records.items()))
    if os.path.lexists(into / RECORD):
        first, record = into, read_record(target)
    for path, other in records.items():
        if different := difference(other, record):
            raise InputError(
                f"{path} is of another study than {first}: {different}", remedy="leave it out, or merge it elsewhere"
            )
    parts = sorted({*record["parts"], *(part for other in records.values() for part in other["parts"])})
    stages = record["stages"]
    stores = {str(path): path / "stages" / record["store"] for path in records}
    names = {each["key"]: stage for stage, each in stages.items()}
    fresh = not os.path.lexists(into)
    with target.held():
        try:
            found = merge_stores(stores, target.stages / record["store"], progress, names)
        except SateenError:
            if fresh and not os.path.lexists(into / RECORD):
                rmtree(into, ignore_errors=True)  # all that is there was made by this merge, which is refused
            raise
        with target.writing(into / RECORD):
            write_record(target, {**record, "parts": parts})
    joined: dict[str, Joined] = {}
    for key, stage in names.items():
        total = stages[stage]["total"]
        joined[stage] = found.get(key, Joined(total, ((0, total),), 0, ((0, total),)))
    files = {each["file"] or "" for each in (record, *records.values())}
    return _merged(into, joined, _missing(joined, parts), record["study"], files.pop() if len(files) == 1 else "")


def _missing(joined: Mapping[str, Joined], parts: Sequence[Part]) -> tuple[Part, ...]:
    """The parts of which runs are missing, of the division that most parts are of."""
    divisions = Counter(many for _, many in parts)
    many = max(divisions, key=lambda each: (divisions[each], each))
    gaps = [(each.total, list(each.unseen)) for each in joined.values() if each.unseen]
    return tuple(
        (number, many)
        for number in range(1, many + 1)
        if any(common(part_runs(total, (number, many)), missing) for total, missing in gaps)
    )


def _merged(
    into: File, joined: Mapping[str, Joined], missing: tuple[Part, ...] = (), study: str = "", file: str = ""
) -> Merged:
    has = {name: each.total - sum(stop - first for first, stop in each.gaps) for name, each in joined.items()}
    total = {name: each.total for name, each in joined.items()}
    added = sum(each.added for each in joined.values())
    return Merged(os.fspath(into), MappingProxyType(has), MappingProxyType(total), added, missing, study, file)
