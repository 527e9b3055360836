"""A process that stops itself in the middle of a transaction, and goes on with it when it is woken."""

import os
import signal
import sys
from contextlib import suppress

import anyio

from tape.compose import open_store
from tape.core.errors import Unavailable
from tape.core.event import Event
from tape.core.ports import Store
from tape.core.sequence import Request
from tests.process.lifetime import end_with_parent


async def run(url: str, how: str) -> None:
    async with open_store(url) as store:
        with suppress(Unavailable):
            await hold(store, how)


async def hold(store: Store, how: str) -> None:
    """With the journal's lock; or without it, and with something staged."""
    async with store.transaction() as tx:
        if how == "lock":
            await tx.lock()
        else:
            tx.append(Request(events=(Event(run_id="holder", payload=how),), opens=True))
        os.kill(os.getpid(), signal.SIGSTOP)


if __name__ == "__main__":
    end_with_parent()
    anyio.run(run, sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "lock")
