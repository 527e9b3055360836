"""A journal in memory, and one of its runs as the source of a stream."""

from collections.abc import AsyncIterator

import pytest

from tape.bus.journal import Journal
from tape.compose import open_store, run_journal
from tape.core.ids import RunId
from tape.core.ports import Store
from tape.server.sse.sources import RunSource


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with open_store("memory://") as store:
        yield store


@pytest.fixture
async def journal(store: Store) -> AsyncIterator[Journal]:
    async with run_journal(store) as journal:
        yield journal


@pytest.fixture
def run(journal: Journal, store: Store) -> RunSource:
    return RunSource(journal, store.runs, RunId("r1"))
