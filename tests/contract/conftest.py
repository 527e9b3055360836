"""Every test here runs on every store."""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from tape.bus.broker import Broker
from tape.bus.journal import Journal
from tape.compose import ledgers_of, open_store, run_journal
from tape.core.ports import Store
from tape.sdk.nouns.node import AsyncNode
from tests.contract.backends import NAMES, Backend, backend as make_backend
from tests.contract.brokers import NAMES as BROKERS, Brokers
from tests.contract.serving import reached
from tests.servers.databases import Databases


@pytest.fixture(scope="session")
def postgres_template(postgres_databases: Databases) -> str:
    """A database with our schema, so that each test only clones it."""
    return postgres_databases.template(_prepare)


async def _prepare(url: str) -> None:
    async with open_store(url):
        return


@pytest.fixture(scope="session")
def lasting_postgres(postgres_databases: Databases, postgres_template: str) -> Iterator[Callable[[], str]]:
    with postgres_databases.lasting(postgres_template) as emptied:
        yield emptied


@pytest.fixture
def emptied_postgres_url(lasting_postgres: Callable[[], str]) -> str:
    """The same database for all tests that leave its schema alone, without what the others wrote."""
    return lasting_postgres()


@pytest.fixture(params=NAMES)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    if request.param == "postgres":
        return Backend("postgres", request.getfixturevalue("emptied_postgres_url"))
    if request.param == "redis":
        return Backend("redis", request.getfixturevalue("redis_url"), is_bounded=True)
    return make_backend(request.param, tmp_path)


@pytest.fixture(params=BROKERS)
async def brokers(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Brokers]:
    fixtures = {"postgres": "emptied_postgres_url", "redis": "redis_url"}
    urls = {"inprocess": "memory://", "sqlite": f"sqlite:///{tmp_path / 'tape.db'}"}
    url = urls.get(request.param) or request.getfixturevalue(fixtures[request.param])
    brokers = Brokers(request.param, url)
    async with brokers.stack:
        yield brokers


@pytest.fixture
def broker(brokers: Brokers) -> Broker:
    return brokers.make()


@pytest.fixture
async def store(backend: Backend) -> AsyncIterator[Store]:
    async with backend.open() as store:
        yield store


@pytest.fixture
async def journal(store: Store) -> AsyncIterator[Journal]:
    async with run_journal(store) as journal:
        yield journal


@pytest.fixture(params=["embedded", "grpc"])
async def node(request: pytest.FixtureRequest, store: Store, journal: Journal) -> AsyncIterator[AsyncNode]:
    """A client of ledgers, in this process and over a wire: the rules are the same."""
    if request.param == "embedded":
        yield AsyncNode(ledgers_of(store, journal))
        return
    async with reached(store, journal) as node:
        yield node
