"""A test that takes `business` runs on Postgres and on SQLite."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tape.outbox import migrate
from tests.outbox.business_database import BusinessDatabase
from tests.servers.databases import Databases, execute

BUSINESS = "CREATE TABLE orders (n INTEGER NOT NULL, note TEXT NOT NULL DEFAULT '')"


@pytest.fixture(scope="session")
def postgres_template(postgres_databases: Databases) -> str:
    """A database with an outbox and a business table, so that each test only clones it."""
    return postgres_databases.template(_prepare)


async def _prepare(url: str) -> None:
    await migrate(url)
    execute(url, BUSINESS)


@pytest.fixture(scope="session")
def lasting_postgres(postgres_databases: Databases, postgres_template: str) -> Iterator[Callable[[], str]]:
    with postgres_databases.lasting(postgres_template) as emptied:
        yield emptied


@pytest.fixture(params=["postgres", "sqlite"])
async def business(request: pytest.FixtureRequest, tmp_path: Path) -> BusinessDatabase:
    """On Postgres the same database for all tests that leave its schema alone, without what the others wrote."""
    if request.param == "postgres":
        return BusinessDatabase("postgres", request.getfixturevalue("lasting_postgres")())
    return await _file(tmp_path)


@pytest.fixture(params=["postgres", "sqlite"])
def own_business(request: pytest.FixtureRequest) -> BusinessDatabase:
    """A database for one test, which may change its schema."""
    database: BusinessDatabase = request.getfixturevalue(request.param)
    return database


@pytest.fixture
async def postgres(postgres_url: str) -> BusinessDatabase:
    return BusinessDatabase("postgres", postgres_url)


@pytest.fixture
async def sqlite(tmp_path: Path) -> BusinessDatabase:
    return await _file(tmp_path)


async def _file(folder: Path) -> BusinessDatabase:
    business = BusinessDatabase("sqlite", f"sqlite:///{folder / 'business.db'}")
    await migrate(business.url)
    await business.run(BUSINESS)
    return business
