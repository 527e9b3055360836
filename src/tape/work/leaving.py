"""Working until a signal says to leave."""

import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import NoReturn

import anyio

from tape.core.background import background


async def until_told(run: Callable[[], Awaitable[object]], stop: Callable[[], None]) -> None:
    """Runs until it ends, which the first signal asks of it with `stop`; the second one does not wait."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with background(partial(_leave, signals, stop)):
            await run()


async def _leave(signals: AsyncIterator[signal.Signals], stop: Callable[[], None]) -> NoReturn:
    await anext(signals)
    stop()
    number = await anext(signals)
    os._exit(128 + number)
