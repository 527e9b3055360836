"""How a stream goes on after it was interrupted."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import random
from typing import Any, Final

import anyio

from tape.core.errors import Unavailable
from tape.sdk.backoff import Backoff
from tape.sdk.remote.refusals import is_gone, raised_from

PATIENT: Final = Backoff(retry=timedelta(milliseconds=100), cap=timedelta(seconds=5))


class ComingBack:
    """Opens a stream again, as often as it takes, and later each time until something has come."""

    def __init__(self, reopen: Callable[[], Awaitable[None]]) -> None:
        self._reopen = reopen
        self._backoff = PATIENT

    def succeeded(self) -> None:
        """Something has come."""
        self._backoff = self._backoff.succeeded()

    async def after(self, error: Any = None) -> None:
        """Goes on after an error, or after a clean end that no server has announced; a refusal for good is raised."""
        if error is not None and not is_gone(error):
            raise raised_from(error) from None
        while not await self._is_open():
            pass

    async def _is_open(self) -> bool:
        await anyio.sleep(self._backoff.delay(random()).total_seconds())
        self._backoff = self._backoff.failed()
        try:
            await self._reopen()
        except Unavailable:
            return False
        return True
