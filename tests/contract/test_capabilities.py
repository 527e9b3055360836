"""A store refuses a capability that it lacks at once, and writes nothing."""

import pytest

from tape.core.errors import UsageError
from tape.core.ports import Store
from tape.core.sequence import AppendRequest, CellId
from tests.contract.backends import without_ledgers
from tests.contract.events import change, entries, make_event, positions, request

pytestmark = without_ledgers


async def test_a_request_with_cells_is_refused_and_the_others_are_appended(store: Store) -> None:
    with_cells = AppendRequest(events=(make_event(n=2),), cells=(change("a", 0),), opens=True)

    first, refused, last = await store.journal.append([request(make_event(n=1)), with_cells, request(make_event(n=3))])

    assert isinstance(refused, UsageError) and "has no ledgers" in str(refused)
    assert [positions(entries(first)), positions(entries(last))] == [[1], [2]]


@pytest.mark.parametrize("what", ["ledgers", "transactions", "audit", "reactions", "tasks"])
async def test_the_error_names_the_missing_capability(store: Store, what: str) -> None:
    with pytest.raises(UsageError, match=f"has no .*{what}"):
        await use(store, what)


async def use(store: Store, what: str) -> None:
    if what == "ledgers":
        await store.cells.read([CellId("ledger", "a")])
    elif what == "transactions":
        async with store.transaction():
            pytest.fail("a transaction began")
    elif what == "reactions":
        await store.reactions.listed()
    elif what == "tasks":
        await store.tasks.listed()
    else:
        store.audit.pages()
