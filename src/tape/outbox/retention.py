"""Forgetting what an outbox need not keep, for as long as a listener runs."""

from typing import Final, NoReturn

import anyio

from tape.core.errors import Unavailable
from tape.core.outbox import OutboxRetention
from tape.store.outbox.outbox import OutboxDatabase
from tape.store.outbox.table import OutboxTable
from tape.telemetry import log

EVERY_S: Final = 3600.0


async def retain(database: OutboxDatabase, retention: OutboxRetention) -> NoReturn:
    """Marks and deletes once an hour; any number of listeners may do so at once."""
    table = OutboxTable(database)
    while True:
        try:
            kept = await table.retain(retention)
        except Unavailable as error:
            log.warning("outbox.unavailable", reason=str(error))
        else:
            log.info("outbox.retained", **kept._asdict())
        await anyio.sleep(EVERY_S)
