"""Archiving: what the lake holds to the byte, the journal lets go.

Each step alone is safe to be killed in: comparing changes nothing, and the journal's floor rises in the transaction
that deletes, a few thousand positions at a time. A reader below the floor goes on in the lake.
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
    """How far journal and lake are known to be the same, of how much there is to compare."""

    through: GlobalSeq
    last: GlobalSeq


async def archive(store: Store, log: DeltaLog, before_ms: int, tell: Callable[[ComparedPositions], None]) -> Bounds:
    """Lets go of what is older than a time and in the lake; nothing is trimmed before all of it was compared."""
    if not log.exists:
        raise NotFound(f"there is no lake at {str(log.table.parent)!r}; tape lake sync makes one")
    await to_thread.run_sync(log.sync)  # it may have been committed by somebody who did not live to see to that
    cold = LakeReader(log)
    bounds = await store.journal.bounds()
    last = GlobalSeq(min(bounds.head, (await cold.bounds()).head))
    through = GlobalSeq(bounds.floor - 1)
    while through < last and (common := await _common(store.journal, cold, through, last, before_ms)) > through:
        through = common
        tell(ComparedPositions(through, last))
    return await store.retention.trim(through) if through >= bounds.floor else bounds


async def _common(warm: Reader, cold: Reader, after: GlobalSeq, last: GlobalSeq, before_ms: int) -> GlobalSeq:
    """The last position of a page up to which both have the same entries, all of them old enough."""
    ours, theirs = (await warm.read(after)).entries, (await cold.read(after)).entries
    through = after
    for mine, other in zip(ours, theirs, strict=False):
        if mine.ts_ms >= before_ms or mine.global_seq > last:
            break
        if mine != other:
            raise Conflict(f"entry {mine.global_seq} is not the same in the lake; nothing was archived")
        through = mine.global_seq
    return through
