"""The servers that sides talk to: each is started when it is first asked for, and is gone with the program."""

import atexit
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

from tape.compose import open_store
from tests.servers.nats import NatsServer
from tests.servers.postgres import PostgresServer
from tests.servers.process import PrivateServer
from tests.servers.valkey import ValkeyServer

Server = TypeVar("Server", bound=PrivateServer)

MEMORY = "128MB"  # what Postgres has unless a setting changes it


@cache
def postgres() -> PostgresServer:
    return _running(PostgresServer(settings={"shared_buffers": MEMORY, "max_wal_size": "1GB"}))


@cache
def valkey(appendfsync: str | None) -> ValkeyServer:
    return _running(ValkeyServer(appendfsync=appendfsync))


@cache
def jetstream() -> NatsServer:
    return _running(NatsServer())


@contextmanager
def journal_url() -> Iterator[str]:
    """A database with an empty journal, gone afterwards."""
    server = postgres()
    with server.database(server.template(_prepare)) as url:
        yield url


async def _prepare(url: str) -> None:
    async with open_store(url):
        return


def _running(server: Server) -> Server:
    server.__enter__()
    atexit.register(server.stop)
    return server
