"""Lists of runs: filters, orders and pages are the same on every store."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from tape.core.errors import InvalidCursor, UsageError
from tape.core.fork import Fork
from tape.core.fork_request import fork_request
from tape.core.ids import RunId, Seq
from tape.core.lease import GONE
from tape.core.ports import Store
from tape.core.run import RunMeta, RunRecord
from tape.core.run_query import OPEN_RUNS, RunOrder, RunPosition, RunQuery, StatusFilter
from tests.contract.ageing import age
from tests.contract.backends import Backend
from tests.contract.events import append, make_event

A_SECOND = timedelta(seconds=1)
CHILD = RunId("fork.1")
QUERIES = {
    "everything": RunQuery(),
    "newest": RunQuery(order=RunOrder.NEWEST),
    "oldest": RunQuery(order=RunOrder.OLDEST),
    "by id": RunQuery(order=RunOrder.ID),
    "open": RunQuery(status=StatusFilter.OPEN),
    "open, newest": RunQuery(status=StatusFilter.OPEN, order=RunOrder.NEWEST),
    "running": RunQuery(status=StatusFilter.RUNNING),
    "stale": RunQuery(status=StatusFilter.STALE),
    "complete": RunQuery(status=StatusFilter.COMPLETE),
    "complete, oldest": RunQuery(status=StatusFilter.COMPLETE, order=RunOrder.OLDEST),
    "app": RunQuery(app="shop"),
    "app, oldest": RunQuery(app="shop", order=RunOrder.OLDEST),
    "open of an app": RunQuery(app="shop", status=StatusFilter.OPEN, order=RunOrder.NEWEST),
    "complete of an app": RunQuery(app="shop", status=StatusFilter.COMPLETE),
    "live of an app": RunQuery(app="shop", order=RunOrder.LIVE),
    "label": RunQuery(label="night", order=RunOrder.OLDEST),
    "label and app": RunQuery(label="night", app="shop"),
    "parent": RunQuery(parent="a.00"),
    "open of a parent": RunQuery(parent="a.00", status=StatusFilter.OPEN),
    "prefix": RunQuery(prefix="a."),
    "prefix, newest": RunQuery(prefix="a.", order=RunOrder.NEWEST),
    "prefix, live": RunQuery(prefix="a.", order=RunOrder.LIVE),
    "complete by prefix": RunQuery(prefix="a.", status=StatusFilter.COMPLETE),
    "system prefix": RunQuery(prefix="tape."),
    "nobody's app": RunQuery(app="nobody"),
}


async def filled(backend: Backend, store: Store) -> list[RunRecord]:
    """Runs of every kind, a second apart except for a few; returns them all."""
    for number in range(24):
        run_id = RunId(f"{'ab'[number % 2]}.{number % 5}{number}")
        meta = RunMeta(app=("shop", "bank", None)[number // 2 % 3], label=("night", None)[number % 2])
        await store.runs.open(run_id, meta, "p1" if number % 4 == 0 else None)
        if number % 3 == 1:
            await store.runs.close(run_id)
        if number % 4:
            await age(backend, store, GONE if number == 5 else A_SECOND)
    await append(store, make_event("a.00"), make_event("tape.value.00ff"))
    await store.journal.append([fork_request(CHILD, Fork(RunId("a.00"), Seq(1)), mutation=1)])
    await append(store, make_event("a.44"))  # was closed: an append opens it again
    return [record for record in [await store.runs.find(run_id) for run_id in IDS] if record is not None]


IDS = [RunId(f"{'ab'[number % 2]}.{number % 5}{number}") for number in range(24)] + [CHILD, RunId("tape.value.00ff")]


def expected(query: RunQuery, records: Sequence[RunRecord]) -> list[str]:
    """The runs that match, by the definition of the filters and the order."""
    places = [query.position(record) for record in records if query.matches(record)]
    listed: list[str] = []
    for number, section in enumerate(query.sections):
        inside = sorted(place[1:] for place in places if place.section == number)
        listed += [run_id for _, run_id in (reversed(inside) if section.is_descending else inside)]
    return listed


async def pages(store: Store, query: RunQuery, limit: int) -> list[list[str]]:
    """The ids on each page, read with the cursor of the page before."""
    found: list[list[str]] = []
    cursor = ""
    while not found or cursor:
        page = query.page(await store.runs.listed(query, limit + 1, query.decode(cursor)), limit)
        found.append([record.run_id for record in page.rows])
        cursor = page.next_cursor
    return found


async def test_every_list_has_the_runs_that_match_in_its_order(backend: Backend, store: Store) -> None:
    records = await filled(backend, store)

    found = {name: [run.run_id for run in await store.runs.listed(query)] for name, query in QUERIES.items()}

    assert found == {name: expected(query, records) for name, query in QUERIES.items()}
    assert {name for name, ids in found.items() if not ids} == {"system prefix", "nobody's app"}


@pytest.mark.parametrize("limit", [1, 3, 30])
async def test_pages_are_the_list_cut_into_pieces(backend: Backend, store: Store, limit: int) -> None:
    records = await filled(backend, store)

    found = {name: await pages(store, query, limit) for name, query in QUERIES.items()}

    lists = {name: expected(query, records) for name, query in QUERIES.items()}
    cut = {name: [ids[at : at + limit] for at in range(0, len(ids), limit)] or [[]] for name, ids in lists.items()}
    assert found == cut


async def test_a_listed_run_is_the_one_that_is_found(backend: Backend, store: Store) -> None:
    records = {record.run_id: record for record in await filled(backend, store)}

    listed = await store.runs.listed(RunQuery())

    assert {run.run_id: (run.meta, run.head, run.opened_at_ms, run.closed_at_ms) for run in listed} == {
        run.run_id: (run.meta, run.head, run.opened_at_ms, run.closed_at_ms)
        for run in records.values()
        if not run.run_id.startswith("tape.")
    }


@pytest.mark.parametrize("order", [RunOrder.NEWEST, RunOrder.OLDEST, RunOrder.ID, RunOrder.LIVE, None])
async def test_a_time_of_opening_or_closing_bounds_a_list(
    backend: Backend, store: Store, order: RunOrder | None
) -> None:
    records = await filled(backend, store)
    opened = sorted(record.opened_at_ms for record in records)
    closed = sorted(record.closed_at_ms for record in records if record.closed_at_ms is not None)
    queries = [
        RunQuery(order=order, opened_after=opened[6], opened_before=opened[-6]),
        RunQuery(order=order, closed_after=closed[2], closed_before=closed[-2]),
        RunQuery(order=order, opened_after=opened[2], closed_before=closed[-2], app="shop"),
        RunQuery(order=order, opened_after=opened[6], status=StatusFilter.OPEN),
    ]

    found = [[ids for page in await pages(store, query, 2) for ids in page] for query in queries]

    assert found == [expected(query, records) for query in queries]
    assert all(found)
    assert set(found[1]) == {r.run_id for r in records if closed[2] <= (r.closed_at_ms or 0) < closed[-2]}


async def test_a_page_goes_on_where_a_run_was_that_is_gone(backend: Backend, store: Store) -> None:
    records = await filled(backend, store)
    query = RunQuery(order=RunOrder.NEWEST)
    places = [query.position(record) for record in records if query.matches(record)]
    after = RunPosition(0, sorted(places)[9].at_ms, "a.zzz")

    found = [run.run_id for run in await store.runs.listed(query, 100, after)]

    assert found == [place.run_id for place in sorted(places, reverse=True) if query.follows(place, after)]


async def test_a_run_that_is_opened_again_is_the_newest(backend: Backend, store: Store) -> None:
    await filled(backend, store)
    await age(backend, store, A_SECOND)
    await store.runs.open(RunId("b.11"), RunMeta(app="shop"))

    newest, *_ = await store.runs.listed(RunQuery(order=RunOrder.NEWEST), 1)
    *_, last_open = await store.runs.listed(OPEN_RUNS)

    assert (newest.run_id, last_open.run_id) == ("b.11", "b.11")


async def test_a_cursor_belongs_to_the_list_it_came_with(backend: Backend, store: Store) -> None:
    await filled(backend, store)
    query = RunQuery(app="shop")
    cursor = query.page(await store.runs.listed(query, 3), 2).next_cursor

    assert query.decode(cursor) is not None
    for foreign in (RunQuery(app="bank"), RunQuery(app="shop", order=RunOrder.OLDEST), RunQuery()):
        with pytest.raises(InvalidCursor):
            foreign.decode(cursor)
    for damaged in (cursor[:-1], cursor[1:], f"{cursor}A", "[0,1,2]", "x" * 9_000, "é", cursor.swapcase()):
        with pytest.raises(InvalidCursor):
            query.decode(damaged)


@pytest.mark.parametrize(
    "filters",
    [
        {"app": "x" * 1_025},
        {"label": "a\nb"},
        {"prefix": "a/b"},
        {"parent": ""},
        {"prefix": ""},
        {"opened_after": -1},
        {"closed_before": 1 << 63},
        {"status": StatusFilter.OPEN, "closed_after": 1},
    ],
)
def test_a_filter_that_nothing_can_match_is_refused(filters: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        RunQuery(**filters)  # type: ignore[arg-type]
