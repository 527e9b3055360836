"""Compaction and vacuum: fewer files for the same entries, and none that nobody needs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from time import time
from typing import Final, NamedTuple
from uuid import uuid4

from tape.lake.errors import write_error
from tape.lake.log import DATA, DeltaLog, LakeFile, sync_to_disk
from tape.lake.parquet_files import merge

TARGET: Final = 128 << 20  # bytes: what a file grows to, and from when on it is left alone
GRACE: Final = timedelta(hours=1)  # longer than a step takes to write its files, or a reader to open them


class Compacted(NamedTuple):
    """How many files became how many, in which version."""

    before: int
    after: int
    version: int


class Vacuumed(NamedTuple):
    """What was deleted."""

    files: int
    size: int


def neighbours(files: Sequence[LakeFile], target: int = TARGET) -> list[tuple[LakeFile, ...]]:
    """Which files to merge, each row of them into one: small ones that lie side by side, up to a size.

    One that is half as large already is left alone, so that no entry is copied again and again.
    """
    rows: list[list[LakeFile]] = [[]]
    for file in files:
        if sum(other.size for other in rows[-1]) + file.size > target or file.size * 2 > target:
            rows.append([])
        rows[-1].append(file)
        if file.size * 2 > target:
            rows.append([])
    return [tuple(row) for row in rows if len(row) > 1]


def compact(log: DeltaLog, target: int = TARGET) -> Compacted:
    """Merges neighbours in one commit. Every version still holds exactly what it held."""
    seen = log.snapshot()
    rows = neighbours(seen.files, target)
    if not rows:
        return Compacted(len(seen.files), len(seen.files), seen.version)
    new = _merged(log, rows)
    for path in (log.table / file.path for row in rows for file in row):
        path.touch()  # so that vacuum leaves it to those who still read it
    done = log.replace(seen, [file for row in rows for file in row], new)
    return Compacted(len(seen.files), len(done.files), done.version)


def vacuum(log: DeltaLog, grace: timedelta = GRACE) -> Vacuumed:
    """Deletes files that the newest version does not name and nobody has touched for a while.

    What a step is writing now is younger than that, and so is what a compaction has just replaced.
    """
    if not log.exists:
        return Vacuumed(0, 0)
    before = time() - grace.total_seconds()
    named = {log.table / file.path for file in log.snapshot().files}
    stale = [path for path in _old(log.table / DATA, before) if path not in named]
    files = [path for path in stale if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    for path in files:
        path.unlink()
    for folder in sorted(set(stale) - set(files), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()
    return Vacuumed(len(files), size)


def _merged(log: DeltaLog, rows: Sequence[Sequence[LakeFile]]) -> list[LakeFile]:
    """A file on disk for each row of files, or none at all."""
    paths = [_new_path(log, row) for row in rows]
    try:
        new = [merge(log.table, row, path) for row, path in zip(rows, paths, strict=True)]
        for path in (*paths, log.table / DATA):
            sync_to_disk(path)
    except Exception as error:
        for path in paths:
            path.unlink(missing_ok=True)
        raise write_error(error, "the compaction") from error
    return new


def _new_path(log: DeltaLog, row: Sequence[LakeFile]) -> Path:
    return log.table / DATA / f"{row[0].first:020}-{row[-1].last:020}-{uuid4().hex[:12]}.parquet"


def _old(data: Path, before: float) -> list[Path]:
    return [path for path in data.rglob("*") if path.stat().st_mtime < before]
