"""A server from its first socket to its last byte: ready, serving, draining, gone."""

import os
import resource
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final, NoReturn, Protocol

import anyio

from tape.core.background import background
from tape.server.app import App
from tape.server.http.address import Address
from tape.server.http.guard import Guard
from tape.server.http.listener import Listener, bind
from tape.server.http.router import Router
from tape.server.node import Node
from tape.server.routes.table import ROUTES
from tape.server.upkeep import Upkeep
from tape.telemetry import log

AGAIN_S: Final = 0.05


class SideDoor(Protocol):
    """Another way into the same server, which is open before anybody is told, and left when the server is."""

    async def open(self) -> object: ...
    async def leave(self) -> None: ...


async def serve(
    node: Node, address: Address, origins: Iterable[str], tell: Callable[[Address], None], side: SideDoor | None = None
) -> None:
    """Serves until a signal says to leave, then lets everything under way end."""
    _raise_file_limit()
    upkeep = Upkeep(node)
    with bind(address) as bound:
        here = Address(address.host, bound.getsockname()[1])
        guard = Guard(origins=frozenset(origins))
        listener = Listener(App(node, guard, Router(ROUTES)), partial(tell, here))
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            leave = partial(_leave_when_told, signals, node, listener)
            async with _beside(side), background(upkeep.run, leave, partial(_send_away, node), *_shutting(node, side)):
                await listener.serve([bound])
                await node.forks.leave()
                await upkeep.finish()


@asynccontextmanager
async def _beside(side: SideDoor | None) -> AsyncIterator[None]:
    if side is None:
        yield
        return
    await side.open()
    try:
        yield
    finally:
        await side.leave()


def _shutting(node: Node, side: SideDoor | None) -> list[Callable[[], Coroutine[Any, Any, NoReturn]]]:
    return [] if side is None else [partial(_shut, node, side)]


async def _shut(node: Node, side: SideDoor) -> NoReturn:
    """Leaves by the side door as soon as the server drains."""
    await node.draining.wait()
    await side.leave()
    await anyio.sleep_forever()
    raise AssertionError("nothing wakes it")


async def _leave_when_told(signals: AsyncIterator[signal.Signals], node: Node, listener: Listener) -> NoReturn:
    """The first signal drains, the second ends at once; what was acknowledged is safe either way."""
    while True:
        number = await anext(signals)
        if node.is_draining:
            os._exit(128 + number)
        log.info("server.draining", subscribers=len(node.subscribers))
        node.draining.set()
        listener.leave()


async def _send_away(node: Node) -> NoReturn:
    """Ends the streams of a server that is leaving, also those that only just began."""
    await node.draining.wait()
    while True:
        node.subscribers.send_away()
        await anyio.sleep(AGAIN_S)


def _raise_file_limit() -> None:
    """A connection is a file, and the usual limit is for desktops."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(OSError, ValueError):  # some systems name a limit that they do not grant
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
