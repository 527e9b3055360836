"""Which positions are cold, warm and hot, and how far the lake is behind the journal."""

from __future__ import annotations

from time import time

from anyio import to_thread

from tape.bus.tail import ENTRIES
from tape.core.ids import GlobalSeq
from tape.core.lake import LakeStatus
from tape.core.ports import Bounds, Reader
from tape.lake.log import DeltaLog


async def status_of(journal: Reader, log: DeltaLog) -> LakeStatus:
    """Compares the lake with its journal. Hot is the most that a reading process keeps in memory."""
    snapshot = await to_thread.run_sync(log.snapshot)
    warm = await journal.bounds()
    behind = (await journal.read(snapshot.through)).entries if snapshot.through < warm.head else ()
    return LakeStatus(
        cold=Bounds(GlobalSeq(1), snapshot.through),
        warm=warm,
        hot=Bounds(GlobalSeq(max(warm.floor, warm.head - ENTRIES + 1)), warm.head),
        lag=warm.head - snapshot.through,
        lag_ms=max(int(time() * 1000) - behind[0].ts_ms, 0) if behind else 0,
        files=len(snapshot.files),
        bytes=snapshot.size,
        version=snapshot.version,
        committed_at_ms=log.committed_at_ms(),
    )
