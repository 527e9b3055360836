"""Checks everything in the lake and reports each fault."""

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
    """Every version that the log still has, oldest first; raises Corrupt for one that is not exactly {1…w}.

    delta-rs reads the first version. The others are computed from the commits, in time linear in their number.
    """
    commits = sorted(log.folder.glob("*.json"))
    snapshot = log.at(int(commits[0].stem))
    yield snapshot.version, snapshot
    for path in commits[1:]:
        snapshot = _next_version(snapshot, path)
        yield snapshot.version, snapshot


def faults(log: DeltaLog, *, is_deep: bool = False) -> Iterator[Fault]:
    """Checks versions, files and the count of positions; a deep check also reads every entry."""
    try:
        for _ in versions(log):
            pass
        snapshot = log.snapshot()
    except Corrupt as error:
        yield Fault(str(error), error.global_seq)
        return
    bad = [fault for file in snapshot.files for fault in _file_faults(log.table, file)]
    yield from bad
    if not bad:
        yield from _total_faults(log.table, snapshot)
        yield from _entry_faults(log.table, snapshot) if is_deep else ()


def _next_version(snapshot: LakeSnapshot, path: Path) -> LakeSnapshot:
    held = {file.path: file for file in snapshot.files}
    through = snapshot.through
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
    _check(version, files, snapshot.through, through)
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


def _total_faults(table: Path, snapshot: LakeSnapshot) -> Iterator[Fault]:
    """Count = distinct = max, counted by DuckDB, which did not write the rows."""
    with Parquet(table, [file.path for file in snapshot.files]) as parquet:
        totals = parquet.totals()
    if set(totals) != {snapshot.through}:
        count, distinct, last = totals
        yield Fault(f"there are {count:,} rows of {distinct:,} positions up to {last}, not {snapshot.through:,}")


def _entry_faults(table: Path, snapshot: LakeSnapshot) -> Iterator[Fault]:
    """Every entry whose bytes are not what was written."""
    cache = RowGroupCache(table)
    for group in cache.row_groups(snapshot.files, 0):
        try:
            entries = entries_of(cache.rows(group))
        except Corrupt as error:
            yield Fault(str(error), group.first)
            continue
        for entry in entries:
            if not entry.is_intact:
                yield Fault("its stored bytes are not what was written", entry.global_seq, entry.run_id, entry.seq)
