"""Compaction merges small files; vacuum deletes files that no version names."""

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

TARGET: Final = 128 << 20  # bytes: files are merged up to this size
GRACE: Final = timedelta(hours=1)  # longer than a step needs to write its files, or a reader to open them


class Compacted(NamedTuple):
    """The number of files before and after, and the version after."""

    before: int
    after: int
    version: int


class Vacuumed(NamedTuple):
    """How many files were deleted, and their bytes."""

    files: int
    size: int


def adjacent_files(files: Sequence[LakeFile], target: int = TARGET) -> list[tuple[LakeFile, ...]]:
    """Groups small files with adjacent positions, up to a total size; each group is to become one file.

    A file of at least half the target is left alone, so that no entry is copied repeatedly.
    """
    groups: list[list[LakeFile]] = [[]]
    for file in files:
        if sum(other.size for other in groups[-1]) + file.size > target or file.size * 2 > target:
            groups.append([])
        groups[-1].append(file)
        if file.size * 2 > target:
            groups.append([])
    return [tuple(group) for group in groups if len(group) > 1]


def compact(log: DeltaLog, target: int = TARGET) -> Compacted:
    """Merges adjacent small files in one commit. Every version holds the same entries as before."""
    snapshot = log.snapshot()
    groups = adjacent_files(snapshot.files, target)
    if not groups:
        return Compacted(len(snapshot.files), len(snapshot.files), snapshot.version)
    new = _merged(log, groups)
    for path in (log.table / file.path for group in groups for file in group):
        path.touch()  # so that vacuum keeps it for readers of the old version
    done = log.replace(snapshot, [file for group in groups for file in group], new)
    return Compacted(len(snapshot.files), len(done.files), done.version)


def vacuum(log: DeltaLog, grace: timedelta = GRACE) -> Vacuumed:
    """Deletes files that are not in the newest version and are older than the grace period.

    Files of a step in progress, and files that a compaction has just replaced, are younger than that.
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


def _merged(log: DeltaLog, groups: Sequence[Sequence[LakeFile]]) -> list[LakeFile]:
    """Merges each group into a file on disk; on failure deletes all of them."""
    paths = [_new_path(log, group) for group in groups]
    try:
        new = [merge(log.table, group, path) for group, path in zip(groups, paths, strict=True)]
        for path in (*paths, log.table / DATA):
            sync_to_disk(path)
    except Exception as error:
        for path in paths:
            path.unlink(missing_ok=True)
        raise write_error(error, "the compaction") from error
    return new


def _new_path(log: DeltaLog, group: Sequence[LakeFile]) -> Path:
    return log.table / DATA / f"{group[0].first:020}-{group[-1].last:020}-{uuid4().hex[:12]}.parquet"


def _old(data: Path, before: float) -> list[Path]:
    return [path for path in data.rglob("*") if path.stat().st_mtime < before]
