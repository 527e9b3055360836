"""Every test here runs on every store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tape.bus.journal import Journal
from tape.compose import run_journal
from tape.core.ports import Store
from tests.contract.backends import NAMES, Backend, backend as make_backend


@pytest.fixture(params=NAMES)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    return make_backend(request.param, tmp_path)


@pytest.fixture
async def store(backend: Backend) -> AsyncIterator[Store]:
    async with backend.open() as store:
        yield store


@pytest.fixture
async def journal(store: Store) -> AsyncIterator[Journal]:
    async with run_journal(store) as journal:
        yield journal
