"""What a listener does beside handling: keep its handlers registered, and apply the retention."""

from dataclasses import asdict
from datetime import timedelta
from typing import Final, NoReturn

import anyio

from tape.core.errors import TapeError, Unavailable
from tape.core.outbox import OutboxRetention
from tape.store.outbox.database import OutboxDatabase
from tape.store.outbox.table import OutboxTable
from tape.store.outbox.versions import HandlerVersions
from tape.telemetry import log

REFRESH_INTERVAL_S: Final = 60.0
RETIRE_AFTER: Final = timedelta(hours=1)
RETENTION_INTERVAL_S: Final = 3600.0


async def keep_registered(versions: HandlerVersions) -> NoReturn:
    """Records once a minute that the versions run; once an hour retires those that have not run for an hour."""
    started = anyio.current_time()
    while True:
        await anyio.sleep(REFRESH_INTERVAL_S)
        is_due = anyio.current_time() - started >= RETIRE_AFTER.total_seconds()
        try:
            retired = await versions.refresh(RETIRE_AFTER if is_due else None)
        except TapeError as error:
            log.warning("outbox.unavailable", reason=str(error))
            continue
        started = anyio.current_time() if is_due else started
        for handler_name in retired:
            log.info("outbox.version_retired", handler_name=handler_name)


async def apply_retention(database: OutboxDatabase, retention: OutboxRetention) -> NoReturn:
    """Marks and deletes old rows once an hour; any number of listeners may do so at once."""
    table = OutboxTable(database)
    while True:
        try:
            result = await table.retain(retention)
        except Unavailable as error:
            log.warning("outbox.unavailable", reason=str(error))
        else:
            log.info("outbox.retained", **asdict(result))
        await anyio.sleep(RETENTION_INTERVAL_S)
