"""Runs a server: binds the sockets, serves, drains on a signal, and exits."""

import asyncio
import os
import resource
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final, NoReturn, Protocol

import anyio

from tape.core.background import background
from tape.server.app import App
from tape.server.http.address import Address
from tape.server.http.guard import Guard
from tape.server.http.router import Router
from tape.server.http.server import HttpServer, bind
from tape.server.maintenance import RunMaintenance
from tape.server.node import Node
from tape.server.routes.table import ROUTES
from tape.telemetry import log
from tape.work.stop_signals import StopSignals

GOAWAY_EVERY_S: Final = 0.05


class SecondListener(Protocol):
    """Another listener of the same server; it is open before `on_ready` is called and left when the server drains."""

    async def open(self) -> object: ...
    async def leave(self) -> None: ...


async def serve(
    node: Node,
    address: Address,
    origins: Iterable[str],
    on_ready: Callable[[Address], None],
    second: SecondListener | None = None,
) -> None:
    """Serves until the first signal, then completes the requests in flight."""
    _raise_file_limit()
    maintenance = RunMaintenance(node)
    with bind(address) as bound:
        here = Address(address.host, bound.getsockname()[1])
        guard = Guard(origins=frozenset(origins))
        listener = HttpServer(App(node, guard, Router(ROUTES)), partial(on_ready, here))
        with _drained_by_signals(node, listener):
            goaways = partial(_send_goaways, node)
            async with _opened(second), background(maintenance.run, goaways, *_closing(node, second)):
                await listener.serve([bound])
                await node.forks.stop()
                await maintenance.finish()


@asynccontextmanager
async def _opened(second: SecondListener | None) -> AsyncIterator[None]:
    if second is None:
        yield
        return
    await second.open()
    try:
        yield
    finally:
        await second.leave()


def _closing(node: Node, second: SecondListener | None) -> list[Callable[[], Coroutine[Any, Any, NoReturn]]]:
    return [] if second is None else [partial(_leave_when_draining, node, second)]


async def _leave_when_draining(node: Node, second: SecondListener) -> NoReturn:
    await node.draining.wait()
    await second.leave()
    await anyio.sleep_forever()
    raise AssertionError("sleep_forever returned")


def _drained_by_signals(node: Node, listener: HttpServer) -> StopSignals:
    """The first signal drains, the second exits at once; acknowledged events are durable either way."""
    loop = asyncio.get_running_loop()

    def drain() -> None:
        log.info("server.draining", subscribers=len(node.subscribers))
        node.draining.set()
        listener.stop()

    return StopSignals(lambda number: loop.call_soon_threadsafe(drain), lambda number: os._exit(128 + number))


async def _send_goaways(node: Node) -> NoReturn:
    """Ends the streams of a draining server, again and again, because a stream may open while it drains."""
    await node.draining.wait()
    while True:
        node.subscribers.send_goaways()
        await anyio.sleep(GOAWAY_EVERY_S)


def _raise_file_limit() -> None:
    """Every connection is a file, and the usual soft limit is for desktops."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(OSError, ValueError):  # some systems report a limit that they do not grant
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
