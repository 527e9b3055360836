"""Servers for tests: each is started for the first test that uses it and stopped after the last.

With `pytest -n` every worker has its own.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar
from urllib.parse import urlsplit

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
def servers_allowed(pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--quick"):
        pytest.skip("--quick starts no server")


@pytest.fixture(scope="session")
def postgres_server(servers_allowed: None) -> Iterator[PostgresServer]:
    """A PostgreSQL of our own; a test that kills it restarts it."""
    with running(PostgresServer) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_databases(request: pytest.FixtureRequest, servers_allowed: None) -> Iterator[Databases]:
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
def valkey_server(servers_allowed: None) -> Iterator[ValkeyServer]:
    """A Valkey of our own, which syncs what it acknowledges; a test that kills it restarts it."""
    with running(ValkeyServer) as server:
        yield server


@pytest.fixture(scope="session")
def redis_location(request: pytest.FixtureRequest, servers_allowed: None) -> Iterator[str]:
    """A database of the server in TAPE_TEST_REDIS_URL, empty before and after, else one of our own server."""
    server = os.environ.get("TAPE_TEST_REDIS_URL")
    if not server:
        yield request.getfixturevalue("valkey_server").url
        return
    url = database_of_worker(server, request.config)
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
def nats_server(servers_allowed: None) -> Iterator[NatsServer]:
    """A NATS of our own, with JetStream; a test that kills it restarts it."""
    with running(NatsServer) as server:
        yield server


@pytest.fixture(scope="session")
def browser(servers_allowed: None) -> Iterator[ChromiumServer]:
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


def database_of_worker(url: str, config: pytest.Config) -> str:
    """With `pytest -n`, worker n uses the n-th database after the one that is named."""
    location = urlsplit(url)
    worker: str = getattr(config, "workerinput", {}).get("workerid", "gw0")
    number = int(location.path.strip("/") or 0) + int(worker.removeprefix("gw"))
    return location._replace(path=f"/{number}").geturl()


def empty(url: str) -> None:
    with redis.Redis.from_url(url) as client:
        client.flushdb()
