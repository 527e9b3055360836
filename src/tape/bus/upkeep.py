"""What a node does for its journal now and then."""

import time
from contextlib import suppress
from datetime import timedelta
from typing import Final, NoReturn

import anyio

from tape.core.ports import Store

KEYS_ARE_KEPT: Final = timedelta(days=60)
EVERY: Final = timedelta(hours=1)


async def upkeep(store: Store) -> NoReturn:
    """Forgets the keys of requests that nobody repeats any more, every hour; what fails is tried in the next one."""
    while True:
        await anyio.sleep(EVERY.total_seconds())
        with suppress(Exception):
            await forget_old_keys(store, now_ms=time.time_ns() // 1_000_000)


async def forget_old_keys(store: Store, now_ms: int) -> int:
    return await store.retention.forget_keys(now_ms - KEYS_ARE_KEPT // timedelta(milliseconds=1))
