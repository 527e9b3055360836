"""How a stream goes on after its server was gone."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import random
from typing import Any, Final

import anyio

from tape.core.errors import Unavailable
from tape.sdk.backoff import Backoff
from tape.sdk.remote.refusals import is_gone, raised_from

PATIENT: Final = Backoff(retry=timedelta(milliseconds=100), cap=timedelta(seconds=5))


async def come_back(error: Any, reopen: Callable[[], Awaitable[None]]) -> None:
    """Opens a stream anew, as often as it takes; what is refused for good is raised."""
    if not is_gone(error):
        raise raised_from(error) from None
    backoff = PATIENT
    while True:
        await anyio.sleep(backoff.delay(random()).total_seconds())
        try:
            return await reopen()
        except Unavailable:
            backoff = backoff.failed()
