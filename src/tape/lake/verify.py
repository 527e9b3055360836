"""Looks at everything the lake holds and names whatever is not as it should be."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tape.core.errors import Corrupt
from tape.core.ids import GlobalSeq
from tape.core.ports import Fault
from tape.lake.log import APP, DeltaLog, LakeFile, LakeSnapshot, check_ranges
from tape.lake.parquet_files import file_of
from tape.lake.row_groups import RowGroupCache, entries_of, parquet_errors
from tape.store.duckdb.parquet import Parquet


def versions(log: DeltaLog) -> Iterator[tuple[int, LakeSnapshot]]:
    """Every version the log still reaches back to, oldest first; one that is not exactly {1…w} raises Corrupt.

    The first is read by delta-rs. The others follow from what each commit says, however many there are.
    """
    commits = sorted(log.folder.glob("*.json"))
    seen = log.at(int(commits[0].stem))
    yield seen.version, seen
    for path in commits[1:]:
        seen = _followed(seen, path)
        yield seen.version, seen


def faults(log: DeltaLog, *, is_deep: bool = False) -> Iterator[Fault]:
    """Whatever is wrong: with a version, a file, the count of positions, and if it goes deep with any entry."""
    try:
        for _ in versions(log):
            pass
        seen = log.snapshot()
    except Corrupt as error:
        yield Fault(str(error), error.global_seq)
        return
    bad = [fault for file in seen.files for fault in _file_faults(log.table, file)]
    yield from bad
    if not bad:
        yield from _total_faults(log.table, seen)
        yield from _entry_faults(log.table, seen) if is_deep else ()


def _followed(seen: LakeSnapshot, path: Path) -> LakeSnapshot:
    """The version after a commit."""
    held = {file.path: file for file in seen.files}
    through = seen.through
    for action in _actions(path):
        match action:
            case {"remove": {"path": gone}}:
                if held.pop(gone, None) is None:
                    raise Corrupt(f"{path} removes {gone}, which is not there")
            case {"add": {"path": name, "size": size, "stats": text}}:
                known = json.loads(text)
                first, last = known["minValues"]["global_seq"], known["maxValues"]["global_seq"]
                held[name] = LakeFile(name, GlobalSeq(first), GlobalSeq(last), size)
            case {"txn": {"appId": app, "version": last}} if app == APP:
                through = GlobalSeq(last)
    files = tuple(sorted(held.values(), key=lambda file: file.first))
    version = int(path.stem)
    _check(version, files, seen.through, through)
    return LakeSnapshot(version=version, through=through, files=files)


def _check(version: int, files: Sequence[LakeFile], before: int, through: int) -> None:
    try:
        check_ranges(files, 0, through)
    except Corrupt as error:
        raise Corrupt(f"version {version}: {error}") from error
    if through < before:
        raise Corrupt(f"version {version} ends at {through}, and the one before it at {before}")


def _actions(path: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    except (ValueError, OSError) as error:
        raise Corrupt(f"{path} is damaged: {error}") from error


def _file_faults(table: Path, file: LakeFile) -> Iterator[Fault]:
    path = table / file.path
    try:
        with parquet_errors(path):
            found = file_of(table, path, pq.read_metadata(path))
    except FileNotFoundError:
        yield Fault(f"{path} is missing", file.first)
    except Corrupt as error:
        yield Fault(str(error), file.first)
    else:
        if found != file:
            yield Fault(f"{path} holds {found.first} to {found.last} in {found.size:,} bytes, not {file}", file.first)


def _total_faults(table: Path, seen: LakeSnapshot) -> Iterator[Fault]:
    """Count = distinct = max, asked of the rows themselves by somebody else than who wrote them."""
    with Parquet(table, [file.path for file in seen.files]) as parquet:
        totals = parquet.totals()
    if set(totals) != {seen.through}:
        count, distinct, last = totals
        yield Fault(f"there are {count:,} rows of {distinct:,} positions up to {last}, not {seen.through:,}")


def _entry_faults(table: Path, seen: LakeSnapshot) -> Iterator[Fault]:
    """Every entry whose bytes are not what was written."""
    shelf = RowGroupCache(table)
    for stretch in shelf.stretches(seen.files, 0):
        try:
            entries = entries_of(shelf.rows(stretch))
        except Corrupt as error:
            yield Fault(str(error), stretch.group.first)
            continue
        for entry in entries:
            if not entry.is_intact:
                yield Fault("its stored bytes are not what was written", entry.global_seq, entry.run_id, entry.seq)
