"""Handlers that hang in different ways."""

import os
import threading
import time
from pathlib import Path

import anyio

from tape.reactions import Dead, Envelope

FOREVER = threading.Event()


def in_thread(envelope: Envelope) -> None:
    _began(envelope)
    FOREVER.wait()


async def in_loop(envelope: Envelope) -> None:
    """Blocks the event loop itself."""
    _began(envelope)
    time.sleep(3_600)


async def without_end(envelope: Envelope) -> None:
    """Ignores every cancellation; AnyIO would send one after the other to a handler without a shield."""
    _began(envelope)
    while True:
        try:
            with anyio.CancelScope(shield=True):
                await anyio.sleep_forever()
        except BaseException:
            continue


def in_process(envelope: Envelope) -> None:
    """Sleeps forever if the payload has `hangs`."""
    _began(envelope)
    while _given(envelope, "hangs"):
        time.sleep(3_600)
    if _given(envelope, "fails"):
        raise Dead("it cannot be")


def _began(envelope: Envelope) -> None:
    Path(str(_given(envelope, "pid"))).write_text(str(os.getpid()))


def _given(envelope: Envelope, name: str) -> object:
    return envelope.payload.get(name) if isinstance(envelope.payload, dict) else None
