"""Refuses a lake that the journal does not continue: another journal's lake, or one from before a restore."""

from __future__ import annotations

from typing import Final

import pyarrow.parquet as pq
from anyio import to_thread

from tape.core.errors import BrokerOverflowError, Conflict
from tape.core.event import Entry
from tape.core.ids import GlobalSeq
from tape.core.ports import Journal
from tape.lake.log import DeltaLog, LakeSnapshot
from tape.lake.parquet_files import row_groups
from tape.lake.row_groups import entries_of
from tape.lake.schema import COLUMNS

HOW_TO_REBUILD: Final = (
    "it is another journal's lake, or the journal lost entries in a restore or a promotion: move the lake away and run "
    "tape lake sync again (docs/runbooks/rebuild-the-lake.md)"
)


async def check_same_journal(journal: Journal, log: DeltaLog, snapshot: LakeSnapshot) -> None:
    """Raises Conflict for another journal's lake, and the gap where the journal begins above the lake's end."""
    bounds = await journal.bounds()
    check_head(snapshot, bounds.head)
    if snapshot.through + 1 < bounds.floor:
        raise BrokerOverflowError(None, snapshot.through + 1, bounds.floor)
    if bounds.floor <= snapshot.through:
        page = await journal.read(GlobalSeq(snapshot.through - 1))
        await to_thread.run_sync(check_last_entry, log, snapshot, page.entries[0])


def check_head(snapshot: LakeSnapshot, head: int) -> None:
    """Raises Conflict if the lake holds positions that the journal does not have."""
    if snapshot.through > head:
        raise Conflict(f"the lake ends at {snapshot.through} and the journal at {head}: {HOW_TO_REBUILD}")


def check_last_entry(log: DeltaLog, snapshot: LakeSnapshot, ours: Entry) -> None:
    """Raises Conflict if the lake's last entry is not the journal's entry at that position."""
    theirs = last_entry(log, snapshot)
    if theirs != ours:
        found = f"checksum {theirs.crc:08x}, epoch {theirs.epoch}; in the journal {ours.crc:08x}, {ours.epoch}"
        raise Conflict(f"entry {ours.global_seq} of the lake is not the journal's ({found}): {HOW_TO_REBUILD}")


def last_entry(log: DeltaLog, snapshot: LakeSnapshot) -> Entry:
    path = snapshot.files[-1].path
    with pq.ParquetFile(log.table / path) as file:
        rows = file.read_row_group(row_groups(path, file.metadata)[-1].number)
    return entries_of(rows.slice(len(rows) - 1).select(COLUMNS))[0]
