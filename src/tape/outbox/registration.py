"""Keeping the versions of a listener's handlers registered for as long as it runs."""

from datetime import timedelta
from typing import Final, NoReturn

import anyio

from tape.core.errors import TapeError
from tape.store.outbox.versions import HandlerVersions
from tape.telemetry import log

SEEN_EVERY_S: Final = 60.0
RETIRE_AFTER: Final = timedelta(hours=1)


async def stay_registered(versions: HandlerVersions) -> NoReturn:
    """Notes once a minute that the versions run, and once an hour gives up those that have not for an hour."""
    begun = anyio.current_time()
    while True:
        await anyio.sleep(SEEN_EVERY_S)
        is_due = anyio.current_time() - begun >= RETIRE_AFTER.total_seconds()
        try:
            retired = await versions.refresh(RETIRE_AFTER if is_due else None)
        except TapeError as error:
            log.warning("outbox.unavailable", reason=str(error))
            continue
        begun = anyio.current_time() if is_due else begun
        for handler_name in retired:
            log.info("outbox.version_retired", handler_name=handler_name)
