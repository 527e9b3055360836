"""What tests of stores share."""

import pytest

from tape.compose import open_store
from tests.servers.databases import Databases


@pytest.fixture(scope="session")
def journal_template(postgres_databases: Databases) -> str:
    """A database with our schema, for tests that are not about its creation."""
    return postgres_databases.template(_prepare)


async def _prepare(url: str) -> None:
    async with open_store(url):
        return
