"""Stores without ledgers refuse at once."""

import pytest

from tape.compose import aconnect
from tape.core.errors import UsageError
from tape.core.ports import Store
from tape.core.sequence import CellId
from tests.contract.backends import Backend, without_ledgers

pytestmark = without_ledgers


async def test_a_store_without_ledgers_is_refused_at_the_door(backend: Backend) -> None:
    with pytest.raises(UsageError, match="has no ledgers"):
        async with aconnect(backend.url):
            pytest.fail("it opened")


@pytest.mark.parametrize("how", ["look", "due", "under"])
async def test_no_list_of_cells_is_given_that_does_not_exist(store: Store, how: str) -> None:
    with pytest.raises(UsageError, match="has no ledgers"):
        await ask(store, how)


async def ask(store: Store, how: str) -> object:
    if how == "look":
        return await store.cells.snapshot([CellId("ledger", "a")])
    if how == "due":
        return await store.cells.due("ledger", "open", 1, 1)
    return await store.cells.under("ledger", "a", 1)
