"""The servers that sides talk to: each is started when it is first asked for, and is gone with the program."""

import atexit
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TypeVar

from tape.compose import open_store
from tests.servers.account import Account
from tests.servers.postgres import PostgresServer
from tests.servers.process import Command, PrivateServer
from tests.servers.valkey import ValkeyServer

Server = TypeVar("Server", bound=PrivateServer)

MEMORY = "128MB"  # what Postgres has unless it is told otherwise


class JetStreamServer(PrivateServer):
    """A NATS of our own that keeps streams in files, and syncs them when it does by default: every two minutes."""

    def __init__(self) -> None:
        super().__init__("nats", Account())
        self.url = f"nats://127.0.0.1:{self.port}"

    def _create(self) -> None:
        return

    def _command(self) -> Command:
        program = shutil.which("nats-server", path=str(Path(sys.executable).parent)) or "nats-server"
        return [program, "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", str(self.folder)]

    def _is_ready(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


@cache
def postgres() -> PostgresServer:
    return _running(PostgresServer(settings={"shared_buffers": MEMORY, "max_wal_size": "1GB"}))


@cache
def valkey(appendfsync: str | None) -> ValkeyServer:
    return _running(ValkeyServer(appendfsync=appendfsync))


@cache
def jetstream() -> JetStreamServer:
    return _running(JetStreamServer())


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
