"""What tests of the lake share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tape.compose import open_store
from tape.lake.log import DeltaLog
from tests.servers.account import Account
from tests.servers.databases import Databases
from tests.servers.small_disk import mounted_disk


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store for a journal."""
    return f"sqlite:///{tmp_path}/journal.db"


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    """The log of a lake that is not there yet."""
    return DeltaLog(tmp_path / "lake" / "journal")


@pytest.fixture(scope="session")
def postgres_template(postgres_databases: Databases) -> str:
    """A database with our schema, so that each test only clones it."""
    return postgres_databases.template(_prepare)


async def _prepare(url: str) -> None:
    async with open_store(url):
        return


@pytest.fixture(params=["sqlite", "postgres"])
def durable_url(request: pytest.FixtureRequest, url: str) -> str:
    """A journal that a lake can be filled from, of each kind."""
    return url if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A disk of 4 MiB, where we may mount one."""
    with mounted_disk(4 << 20, Account()) as disk:
        if not disk.is_mounted:
            pytest.skip("only root can mount a small disk, and not everywhere")
        yield disk.folder
