"""Servers for the tests that ask for them: started with the first, gone after the last."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar

import pytest
import redis

from tests.servers.chromium import ChromiumServer
from tests.servers.databases import Databases
from tests.servers.errors import ServerMissing
from tests.servers.nats import NatsServer
from tests.servers.postgres import PostgresServer
from tests.servers.valkey import ValkeyServer

Server = TypeVar("Server", ChromiumServer, NatsServer, PostgresServer, ValkeyServer)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL of our own; a test that kills it restarts it."""
    with running(PostgresServer) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_databases(request: pytest.FixtureRequest) -> Iterator[Databases]:
    """Those of the server in TAPE_TEST_POSTGRES_URL, else of our own."""
    url = os.environ.get("TAPE_TEST_POSTGRES_URL")
    if not url:
        yield request.getfixturevalue("postgres_server")
        return
    databases = Databases(url)
    with missing_fails():
        databases.check()
    yield databases
    databases.drop_templates()


@pytest.fixture(scope="session")
def postgres_template() -> str | None:
    """What each test's database is a clone of; a folder of tests may override it with `Databases.template`."""
    return None


@pytest.fixture
def postgres_url(postgres_databases: Databases, postgres_template: str | None) -> Iterator[str]:
    """A database for one test."""
    with postgres_databases.database(postgres_template) as url:
        yield url


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[ValkeyServer]:
    """A Valkey of our own, which syncs what it acknowledges; a test that kills it restarts it."""
    with running(ValkeyServer) as server:
        yield server


@pytest.fixture(scope="session")
def redis_location(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL in TAPE_TEST_REDIS_URL, whose database must be empty and is left so, else that of our own."""
    url = os.environ.get("TAPE_TEST_REDIS_URL")
    if not url:
        yield request.getfixturevalue("valkey_server").url
        return
    with missing_fails():
        require_unused(url)
    yield url
    empty(url)


@pytest.fixture
def redis_url(redis_location: str) -> str:
    """An empty database for one test."""
    empty(redis_location)
    return redis_location


@pytest.fixture(scope="session")
def nats_server() -> Iterator[NatsServer]:
    """A NATS of our own, with JetStream; a test that kills it restarts it."""
    with running(NatsServer) as server:
        yield server


@pytest.fixture(scope="session")
def browser() -> Iterator[ChromiumServer]:
    """A Chromium of our own; a test that kills it restarts it."""
    with running(ChromiumServer) as server:
        yield server


@contextmanager
def running(server: Callable[[], Server]) -> Iterator[Server]:
    with ExitStack() as stack:
        with missing_fails():
            running = stack.enter_context(server())
        yield running


@contextmanager
def missing_fails() -> Iterator[None]:
    """Says in one sentence why there is no server; a suite that skips proves nothing."""
    try:
        yield
    except ServerMissing as missing:
        raise pytest.fail.Exception(str(missing), pytrace=False) from None


def require_unused(url: str) -> None:
    try:
        with redis.Redis.from_url(url) as client:
            used = client.dbsize()
    except redis.RedisError as error:
        raise ServerMissing(f"the server in TAPE_TEST_REDIS_URL does not answer: {error}") from error
    if used:
        raise ServerMissing("TAPE_TEST_REDIS_URL names a database with something in it; name an unused one")


def empty(url: str) -> None:
    with redis.Redis.from_url(url) as client:
        client.flushdb()
