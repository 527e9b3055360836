"""Servers on each store, shared by the tests of a module."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from tests.server.server import TapeServer
from tests.servers.databases import Databases
from tests.servers.fixtures import empty

STORES = ("memory", "sqlite", "postgres", "redis")

Start = Callable[..., TapeServer]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts servers that end with the test."""
    with ExitStack() as stack:
        yield lambda store="memory://", *options, **more: stack.enter_context(
            TapeServer(tmp_path, store, *options, **more)
        )


@pytest.fixture(params=["sqlite", "postgres"])
def make_empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], str]]:
    """Makes empty stores that last as long as the test."""
    numbers = iter(range(100))
    if request.param == "sqlite":
        yield lambda: f"sqlite:///{tmp_path}/{next(numbers)}.db"
        return
    databases: Databases = request.getfixturevalue("postgres_databases")
    with ExitStack() as stack:
        yield lambda: stack.enter_context(databases.database())


@pytest.fixture(scope="module", params=STORES)
def store_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of each store, empty when a module begins."""
    match request.param:
        case "memory":
            yield "memory://"
        case "sqlite":
            yield f"sqlite:///{tmp_path_factory.mktemp('store')}/tape.db"
        case "postgres":
            with request.getfixturevalue("postgres_databases").database() as url:
                yield url
        case _:
            url = request.getfixturevalue("redis_location")
            empty(url)
            yield url


@pytest.fixture(scope="module")
def server(store_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TapeServer]:
    """A server on each store, shared by the tests of a module."""
    with TapeServer(tmp_path_factory.mktemp("serve"), store_url) as server:
        yield server


@pytest.fixture
def http(server: TapeServer) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


@pytest.fixture
def run_id() -> str:
    """A run id that no other test uses."""
    return f"run-{uuid4().hex}"


@pytest.fixture(scope="module")
def lasting_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TapeServer]:
    """One server shared by the tests of a module that do not restart it."""
    folder = tmp_path_factory.mktemp("serve")
    with TapeServer(folder, f"sqlite:///{folder}/tape.db") as server:
        yield server


@pytest.fixture
def lasting(lasting_server: TapeServer) -> Iterator[httpx.Client]:
    with lasting_server.client() as client:
        yield client
