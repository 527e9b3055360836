"""Archiving: deletes from the journal what the lake holds byte for byte.

It is safe to kill at any point: comparing changes nothing, and the journal's floor rises in the transaction that
deletes, a few thousand positions at a time. A reader below the floor continues in the lake.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from anyio import to_thread

from tape.core.errors import Conflict, NotFound
from tape.core.ids import GlobalSeq
from tape.core.ports import Bounds, Reader, Store
from tape.lake.log import DeltaLog
from tape.lake.reader import LakeReader


class ComparedPositions(NamedTuple):
    """Journal and lake are equal up to `through`; `last` is the last position to compare."""

    through: GlobalSeq
    last: GlobalSeq


async def archive(
    store: Store, log: DeltaLog, before_ms: int, on_compared: Callable[[ComparedPositions], None]
) -> Bounds:
    """Trims the journal up to a time, as far as the lake reaches; compares everything before it trims."""
    if not log.exists:
        raise NotFound(f"there is no lake at {str(log.table.parent)!r}; tape lake sync makes one")
    await to_thread.run_sync(log.sync)  # the process that committed may have been killed before it synced
    cold = LakeReader(log)
    bounds = await store.journal.bounds()
    last = GlobalSeq(min(bounds.head, (await cold.bounds()).head))
    through = GlobalSeq(bounds.floor - 1)
    while through < last and (common := await _common(store.journal, cold, through, last, before_ms)) > through:
        through = common
        on_compared(ComparedPositions(through, last))
    return await store.retention.trim(through) if through >= bounds.floor else bounds


async def _common(warm: Reader, cold: Reader, after: GlobalSeq, last: GlobalSeq, before_ms: int) -> GlobalSeq:
    """The last position of a page up to which both have the same entries, all older than the time."""
    ours, theirs = (await warm.read(after)).entries, (await cold.read(after)).entries
    through = after
    for mine, other in zip(ours, theirs, strict=False):
        if mine.ts_ms >= before_ms or mine.global_seq > last:
            break
        if mine != other:
            raise Conflict(f"entry {mine.global_seq} is not the same in the lake; nothing was archived")
        through = mine.global_seq
    return through
