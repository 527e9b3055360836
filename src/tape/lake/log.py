"""The lake's Delta log, through delta-rs: the only record of what the lake holds.

Every commit carries the transaction ("tape", w): w is the last position that the lake holds after the commit. Delta
then refuses the second of two commits on one version, appends and compactions alike. Without it Delta would accept two
compactions of the same files, and the lake would hold their entries twice.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import time
from typing import Any, Final, NamedTuple

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction

from tape.core.errors import Conflict, Corrupt, TapeError, Unavailable
from tape.core.folder import check_delta_folder
from tape.core.ids import GlobalSeq
from tape.lake.schema import arrow_schema

APP: Final = "tape"
DATA: Final = "data"
LOG: Final = "_delta_log"
CONFIGURATION: Final[dict[str, str | None]] = {"delta.logRetentionDuration": "interval 30 days"}


class LakeFile(NamedTuple):
    """A Parquet file of the lake, by its path in the table; it holds every entry from `first` to `last`."""

    path: str
    first: GlobalSeq
    last: GlobalSeq
    size: int

    @property
    def rows(self) -> int:
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeSnapshot:
    """One version of the lake: exactly the positions 1 to `through`, in files ordered by position."""

    version: int = -1
    through: GlobalSeq = GlobalSeq(0)
    files: tuple[LakeFile, ...] = ()
    table: DeltaTable | None = field(default=None, repr=False, compare=False)

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


class DeltaLog:
    """The log of the Delta table at a path. Every call blocks."""

    def __init__(self, table: Path) -> None:
        self.table = check_delta_folder(table)
        self.folder = table / LOG

    @property
    def exists(self) -> bool:
        return self.folder.is_dir() and any(self.folder.glob("*.json"))

    def snapshot(self) -> LakeSnapshot:
        """Reads the newest version; it is empty if there is no table yet."""
        if not self.exists:
            return LakeSnapshot()
        self._check_last()
        with delta_errors(self.folder):
            return _snapshot(DeltaTable(self.table))

    def at(self, version: int) -> LakeSnapshot:
        """Reads an older version, as long as the log still has it."""
        with delta_errors(self.folder):
            return _snapshot(DeltaTable(self.table, version=version))

    def append(self, snapshot: LakeSnapshot, files: Sequence[LakeFile]) -> LakeSnapshot:
        """Adds files that follow the snapshot; raises Conflict if another writer has committed since."""
        table = self._create() if snapshot.table is None else snapshot.table
        return self._commit(table, [_add(file, is_new=True) for file in files], files[-1].last)

    def replace(self, snapshot: LakeSnapshot, old: Sequence[LakeFile], new: Sequence[LakeFile]) -> LakeSnapshot:
        """Replaces files by others with the same entries; raises Conflict if another writer has committed since."""
        if snapshot.table is None or not set(old) <= set(snapshot.files):
            raise Conflict("the files to replace are not in the snapshot that was read")
        actions = [*map(_remove, old), *(_add(file, is_new=False) for file in new)]
        return self._commit(snapshot.table, actions, snapshot.through)

    def committed_at_ms(self) -> int | None:
        names = sorted(self.folder.glob("*.json")) if self.exists else []
        return names[-1].stat().st_mtime_ns // 1_000_000 if names else None

    def sync(self) -> None:
        """Syncs every commit to disk."""
        for path in (*self.folder.glob("*"), self.folder, self.table):
            sync_to_disk(path)

    def _create(self) -> DeltaTable:
        self.table.mkdir(parents=True, exist_ok=True)
        if self.exists:
            raise Conflict("another writer has made the lake meanwhile")
        with delta_errors(self.folder):
            return DeltaTable.create(self.table, arrow_schema(), name="journal", configuration=CONFIGURATION)

    def _commit(self, table: DeltaTable, actions: list[Any], through: GlobalSeq) -> LakeSnapshot:
        properties = CommitProperties(app_transactions=[Transaction(APP, through)])
        with delta_errors(self.folder):
            table.create_write_transaction(actions, "append", table.schema(), commit_properties=properties)
        sync_to_disk(self.folder / f"{table.version():020}.json")
        sync_to_disk(self.folder)
        return self.snapshot()

    def _check_last(self) -> None:
        """Refuses an empty commit, which a power cut leaves behind and delta-rs reads as a commit without actions."""
        last = max(self.folder.glob("*.json"))
        if last.stat().st_size == 0:
            raise Corrupt(f"the lake's log is damaged: {last} is empty")


@contextmanager
def delta_errors(folder: Path) -> Iterator[None]:
    """Translates what delta-rs raises into Tape's errors."""
    try:
        yield
    except CommitFailedError as error:
        raise Conflict(f"another writer has committed to the lake meanwhile: {_first_line(error)}") from error
    except (DeltaError, OSError, ValueError) as error:
        raise _translate(folder, error) from error


def sync_to_disk(path: Path) -> None:
    """Syncs a file, or a folder's list of files, to disk; another process may have written it."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def check_ranges(files: Sequence[LakeFile], after: int, through: int) -> None:
    """Raises Corrupt unless the files hold every position above `after` up to `through` once."""
    ends = [after, *(file.last for file in files)]
    begins = [*(file.first - 1 for file in files), through]
    for end, begin in zip(ends, begins, strict=True):
        if end != begin:
            what = f"{end + 1} to {begin} are missing" if end < begin else f"{begin + 1} to {end} are there twice"
            raise Corrupt(f"the lake is not {after + 1} to {through}: {what}")


def _snapshot(table: DeltaTable) -> LakeSnapshot:
    through = GlobalSeq(table.transaction_version(APP) or 0)
    actions = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    files = tuple(sorted(map(_file, actions), key=lambda file: file.first))
    check_ranges(files, 0, through)
    return LakeSnapshot(version=table.version(), through=through, files=files, table=table)


def _file(action: dict[str, Any]) -> LakeFile:
    file = LakeFile(action["path"], action["min.global_seq"], action["max.global_seq"], action["size_bytes"])
    if file.first is None or file.last is None or action["num_records"] != file.rows:
        raise Corrupt(f"the lake's log does not record which positions {file.path} holds")
    return file


def add_action(path: str, size: int, statistics: dict[str, Any], *, is_new: bool) -> AddAction:
    return AddAction(
        path=path,
        size=size,
        partition_values={},
        modification_time=_now_ms(),
        data_change=is_new,
        stats=json.dumps(statistics),
    )


def _add(file: LakeFile, *, is_new: bool) -> AddAction:
    statistics = {
        "numRecords": file.rows,
        "minValues": {"global_seq": file.first},
        "maxValues": {"global_seq": file.last},
        "nullCount": {"global_seq": 0},
    }
    return add_action(file.path, file.size, statistics, is_new=is_new)


def _remove(file: LakeFile) -> RemoveAction:
    return RemoveAction(
        path=file.path, data_change=False, deletion_timestamp=_now_ms(), size=file.size, partition_values={}
    )


def _translate(folder: Path, error: Exception) -> TapeError:
    reason = _first_line(error)
    if "already exists" in reason:
        return Conflict(f"another writer has made the lake meanwhile: {reason}")
    if (isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)) or any(
        sign in str(error) for sign in ("No space left on device", "StorageFull", "File too large", "QuotaExceeded")
    ):
        return Unavailable(f"there is no room for the lake's log in {folder}: {reason}")
    return Corrupt(f"the lake's log in {folder} is damaged: {reason}")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _now_ms() -> int:
    return int(time() * 1000)
