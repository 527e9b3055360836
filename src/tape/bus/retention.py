"""Deletes old idempotency keys and old tasks."""

import time
from contextlib import suppress
from datetime import timedelta
from itertools import count
from typing import Final, NoReturn

import anyio

from tape.core.ports import Store

KEY_RETENTION: Final = timedelta(days=60)
TASK_RETENTION: Final = timedelta(days=30)
EVERY: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1) // EVERY


async def run_retention(store: Store, every: timedelta = EVERY) -> NoReturn:
    """Deletes old keys every hour and old tasks once a day; a failure is retried in the next round."""
    for number in count():
        await anyio.sleep(every.total_seconds())
        now_ms = time.time_ns() // 1_000_000
        with suppress(Exception):
            await delete_old_keys(store, now_ms)
        if number % DAY == 0:  # it scans the whole table
            with suppress(Exception):
                await delete_old_tasks(store, now_ms)
    raise AssertionError("count() ended")


async def delete_old_keys(store: Store, now_ms: int) -> int:
    return await store.retention.forget_keys(now_ms - KEY_RETENTION // timedelta(milliseconds=1))


async def delete_old_tasks(store: Store, now_ms: int) -> int:
    """Deletes tasks that are done; dead ones stay until an operator has looked at them."""
    return await store.tasks.forget(now_ms - TASK_RETENTION // timedelta(milliseconds=1))
