"""Begins a new epoch: cursors from before it belong to another journal."""

import time
from typing import NamedTuple

from tape.core.ids import Epoch
from tape.store.connection import Connection
from tape.store.statements import statements


class _Sql(NamedTuple):
    begin: str


async def begin_epoch(connection: Connection, dialect: str) -> Epoch:
    """Gives the journal an epoch larger than all before, so that no older cursor passes for one of its own."""
    sql = _Sql(**statements(dialect, "epoch.sql"))
    async with connection.transaction() as tx:
        await tx.lock()
        ((epoch,),) = await tx.fetch(sql.begin, {"now_ms": time.time_ns() // 1_000_000})
    return Epoch(epoch)
