"""Stores merged into one: the rows of each campaign, each of its runs once.

All rows are checked before they are entered, and all are entered in one transaction. So a merge that is refused, killed
or out of space leaves the target as it was, and merging the same again changes nothing.

Stores that worked on the same runs, because an array job was queued again, have cut them into other rows. Let C(r) be
the unknown count of all runs before the run r. A row [first, stop) says what C(stop) - C(first) is. So the rows link
places by known differences: any two places that are linked give the tally of the runs between them, and a ring of links
that does not close is a contradiction. A row counts each point by itself, so it can also be cut between two points.
"""

from __future__ import annotations

import os
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Final, NamedTuple, TypedDict

import numpy as np
from msgspec import Meta

from sateen.core.errors import StoreError
from sateen.core.progress import Progress, working
from sateen.core.types import File, IntArray
from sateen.files.plain import FAULTS, converted, fault_text, parse_json
from sateen.sampling.database import Database
from sateen.sampling.ledger import MOST_FAILURES, Chunk, Ledger, Tally
from sateen.sampling.parts import Interval, gaps_between, length
from sateen.sampling.source import BlackBox, Simulated
from sateen.sampling.store import packed, unpacked

_TARGET: Final = -1  # in the place of the number of a source
_MOST_POINTS: Final = 10**8
_SHOWN: Final = 3  # rows, or stores, that an error names
_Count = Annotated[int, Meta(ge=0, le=2**62)]


@dataclass(frozen=True, slots=True)
class Joined:
    """A campaign in the target after a merge: how many runs it has, which are missing, and how many were new.

    `unseen` are those that are missing in every source too; others could not be compared.
    """

    total: int
    gaps: tuple[Interval, ...]
    added: int
    unseen: tuple[Interval, ...]


class Coverage(NamedTuple):
    """Which runs of a campaign a store has, and how many seconds one worker takes for them."""

    intervals: list[Interval]
    seconds: float


class _Asked(TypedDict):
    """What a campaign says of itself, as far as a merge reads it."""

    formulas: list[object]
    runs: list[tuple[_Count, _Count]]


class _Raw(NamedTuple):
    """A row as it is stored, and the number of its source."""

    first: int
    stop: int
    source: int
    content: bytes


def campaigns_in(file: File) -> dict[str, dict[str, object]]:
    """What each campaign in a store says of itself, by its key; none, where there is no store."""
    if not _has_content(file):
        return {}
    with Database(file, read_only=True) as database:
        return {key: dict(parse_json(asked)) for key, (asked, _) in _campaigns(database, None).items()}


def coverage(file: File, key: str) -> Coverage:
    """What a store has of a campaign; nothing, where there is no store."""
    if not _has_content(file):
        return Coverage([], 0.0)
    with Database(file, read_only=True) as database:
        campaign = _campaigns(database, [key]).get(key)
        if campaign is None:
            return Coverage([], 0.0)
        ledger = _ledger(database, campaign[0])
        rows = list(_rows(database, key, 0))
        return Coverage([row[:2] for row in rows], sum(_read(database, key, ledger, row).seconds for row in rows))


def merge_stores(
    sources: Mapping[str, File], into: File, progress: Progress, names: Mapping[str, str] | None = None
) -> dict[str, Joined]:
    """Enter the rows of the sources, by their names, into the store `into`; and say what it has, by campaign.

    Only the campaigns with `names` are merged, by their keys; without any, all that the sources have.
    """
    there = {name: file for name, file in sources.items() if _has_content(file)}
    wanted = None if names is None else list(names)
    known: dict[str, tuple[str, str]] = {}
    for file in there.values():
        with Database(file, read_only=True) as database:
            known = _campaigns(database, wanted) | known
    merged: dict[str, Joined] = {}
    with Database(into) as target:
        known = _campaigns(target, wanted) | known
        with working(progress, "merge", len(known) * len(there), "stores"), target.speaking(), target.writing():
            for key, (asked, created) in known.items():
                what = names[key] if names is not None else f"the campaign {key[:12]}"
                merged[key] = _Merge(key, asked, created, what, there, target, progress).run()
    return merged


@dataclass(frozen=True, slots=True)
class _Merge:
    """One campaign to be merged, within a transaction of the target."""

    key: str
    asked: str
    created: str
    what: str
    sources: Mapping[str, File]
    target: Database
    progress: Progress

    def run(self) -> Joined:
        ledger = _ledger(self.target, self.asked)
        self.target.connection.execute(
            "INSERT OR IGNORE INTO campaign (key, asked, created) VALUES (?, ?, ?)",
            (self.key, self.asked, self.created),
        )
        before = list(_rows(self.target, self.key, _TARGET))
        rows = sorted([*before, *self._incoming(ledger)], key=lambda row: row[:3])
        chosen = [row[:2] for row in before]
        for group in clusters([row[:2] for row in rows]):
            for row in self._new(ledger, rows[group]):
                self._insert(row)
                chosen.append(row[:2])
        added = length(chosen) - length(row[:2] for row in before)
        gaps, unseen = (gaps_between(ledger.total, some) for some in (chosen, [row[:2] for row in rows]))
        return Joined(ledger.total, tuple(gaps), added, tuple(unseen))

    def _incoming(self, ledger: Ledger) -> Iterator[_Raw]:
        """The rows of the sources, each checked where it stands."""
        for number, file in enumerate(self.sources.values()):
            with Database(file, read_only=True) as database:
                for row in _rows(database, self.key, number):
                    _read(database, self.key, ledger, row)
                    yield row
            self.progress.advance(1)

    def _new(self, ledger: Ledger, rows: Sequence[_Raw]) -> Iterator[_Raw]:
        """What rows that overlap add to the target."""
        if len(rows) == 1:
            yield from (row for row in rows if row.source != _TARGET)
            return
        names = list(self.sources)
        found = [
            Row(
                self.target.file if row.source == _TARGET else names[row.source],
                _read(self.target, self.key, ledger, row),
                row.source == _TARGET,
            )
            for row in rows
        ]
        for chunk in joined(ledger, found, self.what):
            # One that a source has as it is keeps the times it had there.
            same = (row for row in rows if row[:2] == (chunk.first, chunk.stop))
            yield next(same, _Raw(chunk.first, chunk.stop, _TARGET, packed(self.key, chunk)))

    def _insert(self, row: _Raw) -> None:
        statement = "INSERT INTO chunk SELECT id, ?, ?, ? FROM campaign WHERE key = ?"
        self.target.connection.execute(statement, (row.first, row.stop, row.content, self.key))


def _has_content(file: File) -> bool:
    """Whether there is anything in a store: the process that began it may have been killed at once."""
    try:
        return os.path.getsize(file) > 0
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StoreError(f"the store {os.fspath(file)} cannot be read: {error.strerror or error}") from None


def _campaigns(database: Database, wanted: Sequence[str] | None) -> dict[str, tuple[str, str]]:
    """What the campaigns of a store were asked, and when they were begun, by their keys."""
    if database.empty:
        return {}
    with (
        database.speaking(),
        closing(database.connection.execute("SELECT key, asked, created FROM campaign ORDER BY id")) as rows,
    ):
        found = {key: (asked, created) for key, asked, created in rows if wanted is None or key in wanted}
    if not all(isinstance(word, str) for key, words in found.items() for word in (key, *words)):
        raise database.damaged("a campaign is not described by text")
    return found


def _rows(database: Database, key: str, source: int) -> Iterator[_Raw]:
    """The rows of a campaign as they are stored, in order."""
    question = (
        "SELECT first, stop, content FROM chunk JOIN campaign ON campaign = id WHERE key = ? ORDER BY chunk.first"
    )
    if database.empty:
        return
    with database.speaking(), closing(database.connection.execute(question, (key,))) as rows:
        for first, stop, content in rows:
            if not (isinstance(first, int) and isinstance(stop, int) and isinstance(content, bytes)):
                raise database.damaged("a row is not of two whole numbers and bytes")
            yield _Raw(first, stop, source, content)


def _read(database: Database, key: str, ledger: Ledger, row: _Raw) -> Chunk:
    """The chunk in a row, if it is one that the campaign can have."""
    try:
        return unpacked(key, ledger, row.first, row.stop, row.content)
    except (*FAULTS, zlib.error) as error:
        why = f"the row of the runs {row.first:,} to {row.stop:,}: {fault_text(error)}"
        raise database.damaged(why) from error


def _ledger(database: Database, asked: str) -> Ledger:
    """An empty ledger for a campaign, by what it says of itself."""
    try:
        content = parse_json(asked)
        if not isinstance(content, dict) or "runs" not in content:
            raise ValueError("a campaign does not say how many runs each point has: an earlier sateen began it")
        shape = converted({name: content.get(name) for name in _Asked.__annotations__}, _Asked)
        points, runs = np.array(shape["runs"], np.int64).reshape(-1, 2).T
        sizes = points.astype(np.float64)  # whose sums do not leave 64 bits
        if sizes.sum() > _MOST_POINTS or sizes @ runs >= 2.0**62:
            raise ValueError("a campaign has more runs than any machine makes")
        reasons = Simulated.reasons if "model" in content else BlackBox.reasons
        return Ledger(np.repeat(runs, points), max(len(shape["formulas"]), 1), reasons)
    except FAULTS as error:
        raise database.damaged(fault_text(error)) from error


@dataclass(frozen=True, slots=True)
class Row:
    """A chunk and the store that has it; those of the target are `kept` as they are."""

    owner: str
    chunk: Chunk
    kept: bool


class _Piece(NamedTuple):
    """What a row says of an interval: counts are (formulas, satisfied and reasons, points)."""

    first: int
    stop: int
    counts: IntArray
    row: Row


def clusters(rows: Sequence[Interval]) -> Iterator[slice]:
    """The rows, sorted by where they begin, in the smallest groups that do not overlap each other."""
    start, reach = 0, -1
    for place, (first, stop) in enumerate(rows):
        if first >= reach and place > start:
            yield slice(start, place)
            start = place
        reach = max(reach, stop)
    if rows:
        yield slice(start, len(rows))


def joined(ledger: Ledger, rows: Sequence[Row], what: str) -> list[Chunk]:
    """The chunks that rows which overlap add to those that are kept; an error, if rows contradict each other."""
    whole = [_Piece(row.chunk.first, row.chunk.stop, _counts(row.chunk), row) for row in rows]
    if len({piece[:2] for piece in whole}) == 1:
        if any(not np.array_equal(piece.counts, whole[0].counts) for piece in whole):
            raise _contradiction(whole, what)
        return [] if any(row.kept for row in rows) else [rows[0].chunk]
    stretches = _stretches(ledger, whole)
    runs = sum(row.chunk.stop - row.chunk.first for row in rows)
    pace = sum(row.chunk.seconds for row in rows) / runs
    found = [each for pieces in stretches for each in _solved(ledger, pieces, what)]
    return [_chunk(ledger, rows, first, stop, counts, pace * (stop - first)) for first, stop, counts in found]


def _counts(chunk: Chunk) -> IntArray:
    return np.concatenate([chunk.tally.satisfied[:, None], chunk.tally.undecided], axis=1)


def _stretches(ledger: Ledger, rows: Sequence[_Piece]) -> list[list[_Piece]]:
    """The rows in pieces, by stretches: in each, pieces cover all of it, or are within one point."""
    cuts = sorted({cut for row in rows for edge in row[:2] for cut in ledger.around(edge)})
    stretches: dict[int, list[_Piece]] = {}
    for row in rows:
        points, _ = ledger.items(row.first, row.stop)
        inside = cuts[bisect_right(cuts, row.first) : bisect_left(cuts, row.stop)]
        for first, stop in zip([row.first, *inside], [*inside, row.stop], strict=True):
            some, _ = ledger.items(first, stop)
            counts = row.counts[:, :, some.start - points.start : some.stop - points.start]
            stretches.setdefault(bisect_right(cuts, first), []).append(_Piece(first, stop, counts, row.row))
    return [stretches[place] for place in sorted(stretches)]


def _solved(ledger: Ledger, pieces: list[_Piece], what: str) -> Iterator[tuple[int, int, IntArray]]:
    """Disjoint intervals within a stretch, with their counts, of the runs that are not kept already."""
    taken = [(piece.first, piece.stop) for piece in pieces if piece.row.kept]
    groups = sorted(_linked(pieces, what), key=lambda group: (min(group) - max(group), min(group)))
    for group in groups:
        places = sorted(group)
        for first, stop in pairwise(places):
            counts = group[stop] - group[first]
            if (counts < 0).any() or (counts.sum(axis=1) > ledger.items(first, stop)[1][:, 2]).any():
                raise _contradiction([each for each in pieces if each.first < stop and first < each.stop], what)
            if not any(low < stop and first < high for low, high in taken):
                taken.append((first, stop))
                yield first, stop, counts


def _linked(pieces: list[_Piece], what: str) -> Iterator[dict[int, IntArray]]:
    """The groups of places that are linked; in each, the counts of all runs before a place, but for a constant."""
    links: dict[int, list[int]] = {}
    for number, piece in enumerate(pieces):
        for place in piece[:2]:
            links.setdefault(place, []).append(number)
    while links:
        start = next(iter(links))
        group = {start: np.zeros_like(pieces[0].counts)}
        reached: dict[int, tuple[int, int]] = {}  # from which place, and by which piece
        waiting = [start]
        while waiting:
            place = waiting.pop()
            for number in links.pop(place, []):
                first, stop, counts, _ = pieces[number]
                other, reckoned = (stop, group[place] + counts) if place == first else (first, group[place] - counts)
                if other not in group:
                    group[other], reached[other] = reckoned, (place, number)
                    waiting.append(other)
                elif not np.array_equal(group[other], reckoned):
                    ring = {number, *(set(_way(reached, place)) ^ set(_way(reached, other)))}
                    raise _contradiction([pieces[each] for each in sorted(ring)], what)
        yield group


def _way(reached: dict[int, tuple[int, int]], place: int) -> Iterator[int]:
    """The pieces by which a place was reached."""
    while place in reached:
        place, number = reached[place]
        yield number


def _contradiction(pieces: list[_Piece], what: str) -> StoreError:
    first, stop = min(piece.first for piece in pieces), max(piece.stop for piece in pieces)
    rows: dict[str, list[str]] = {}
    for piece in sorted(pieces, key=lambda piece: (piece.row.kept, piece.first)):
        rows.setdefault(piece.row.owner, []).append(f"{piece.row.chunk.first:,} to {piece.row.chunk.stop:,}")
    told = [f"{owner} (the row {' and '.join(_some(cut))})" for owner, cut in rows.items()]
    kept = next((piece.row.owner for piece in pieces if piece.row.kept), None)
    or_else = "" if kept is None else f"; if it is {kept}, which was there before, merge into another place"
    return StoreError(
        f"the runs {first:,} to {stop:,} of {what} have different results in {' and '.join(_some(told))}\n"
        f"  one of them is wrong, and nothing was merged: leave it out, and its runs are made again{or_else}"
    )


def _some(texts: list[str]) -> list[str]:
    more = len(texts) - _SHOWN
    return texts if more <= 0 else [*texts[:_SHOWN], f"{more:,} more"]


def _chunk(ledger: Ledger, rows: Sequence[Row], first: int, stop: int, counts: IntArray, seconds: float) -> Chunk:
    """A chunk with the failures that its rows have of it."""
    _, items = ledger.items(first, stop)
    reach = {point: (begin, begin + number) for point, begin, number in items.tolist()}
    failures = {
        (each.point, each.run): each
        for row in rows
        for each in row.chunk.tally.failures
        if each.point in reach and reach[each.point][0] <= each.run < reach[each.point][1]
    }
    kept = tuple(failures[place] for place in sorted(failures)[:MOST_FAILURES])
    return Chunk(first, stop, Tally(counts[:, 0], counts[:, 1:], kept), seconds)
