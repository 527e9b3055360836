"""A process that stops itself with SIGSTOP inside a transaction, and continues on SIGCONT."""

import os
import signal
import sys
from contextlib import suppress

import anyio

from tape.compose import open_store
from tape.core.errors import Unavailable
from tape.core.event import Event
from tape.core.ports import Store
from tape.core.sequence import AppendRequest
from tests.process.lifetime import end_with_parent


async def run(url: str, how: str) -> None:
    async with open_store(url) as store:
        with suppress(Unavailable):
            await hold(store, how)


async def hold(store: Store, how: str) -> None:
    """Holds the journal's lock, or has a staged append without it."""
    async with store.transaction() as tx:
        if how == "lock":
            await tx.lock()
        else:
            tx.append(AppendRequest(events=(Event(run_id="lock_holder", payload=how),), opens=True))
        os.kill(os.getpid(), signal.SIGSTOP)


if __name__ == "__main__":
    end_with_parent()
    anyio.run(run, sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "lock")
