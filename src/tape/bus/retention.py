"""What a node does for its journal now and then."""

import time
from contextlib import suppress
from datetime import timedelta
from itertools import count
from typing import Final, NoReturn

import anyio

from tape.core.ports import Store

KEYS_ARE_KEPT: Final = timedelta(days=60)
TASKS_ARE_KEPT: Final = timedelta(days=30)
EVERY: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1) // EVERY


async def run_retention(store: Store, every: timedelta = EVERY) -> NoReturn:
    """Forgets the keys of requests that nobody repeats any more, and once a day the tasks that were done long ago.

    What fails is tried in the next round.
    """
    for number in count():
        await anyio.sleep(every.total_seconds())
        now_ms = time.time_ns() // 1_000_000
        with suppress(Exception):
            await forget_old_keys(store, now_ms)
        if number % DAY == 0:  # it reads the whole table
            with suppress(Exception):
                await forget_old_tasks(store, now_ms)
    raise AssertionError("there is always another round")


async def forget_old_keys(store: Store, now_ms: int) -> int:
    return await store.retention.forget_keys(now_ms - KEYS_ARE_KEPT // timedelta(milliseconds=1))


async def forget_old_tasks(store: Store, now_ms: int) -> int:
    """Those that are done; the dead stay until somebody has looked at them."""
    return await store.tasks.forget(now_ms - TASKS_ARE_KEPT // timedelta(milliseconds=1))
