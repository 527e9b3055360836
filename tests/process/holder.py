"""A process that stops itself while it holds the journal's write lock, and lets go of it when it is woken."""

import os
import signal
import sys

import anyio

from tape.compose import open_store
from tests.process.lifetime import end_with_parent


async def run(url: str) -> None:
    async with open_store(url) as store, store.transaction():
        os.kill(os.getpid(), signal.SIGSTOP)


if __name__ == "__main__":
    end_with_parent()
    anyio.run(run, sys.argv[1])
