"""Cells: compare and set, together with entries."""

import anyio

from tape.core.errors import VersionConflict
from tape.core.ports import DueCursor, Store, WorkFilter
from tape.core.sequence import AppendRequest, Cell, CellChange, CellId
from tests.conftest import Scale
from tests.contract.backends import needs_ledgers
from tests.contract.events import change, entries, make_event

pytestmark = needs_ledgers


async def test_a_cell_and_its_entry_are_one_request(store: Store) -> None:
    both = AppendRequest(events=(make_event(),), cells=(change("a", 0, '{"n":1}'),), opens=True)

    (outcome,) = await store.journal.append([both])

    assert len(entries(outcome)) == 1
    assert await store.cells.read([CellId("ledger", "a")]) == {
        CellId("ledger", "a"): Cell(version=1, status="open", state_json='{"n":1}')
    }


async def test_a_stale_version_is_a_conflict_and_writes_nothing(store: Store) -> None:
    await store.journal.append([AppendRequest(cells=(change("a", 0, "1"),))])

    stale = AppendRequest(events=(make_event(),), cells=(change("b", 0, "2"), change("a", 0, "2")), opens=True)
    (outcome,) = await store.journal.append([stale])

    assert isinstance(outcome, VersionConflict) and (outcome.key, outcome.seen, outcome.actual) == ("a", 0, 1)
    assert (await store.journal.bounds()).head == 0
    found = await store.cells.read([CellId("ledger", "a"), CellId("ledger", "b")])
    assert {cell_id.key: cell.state_json for cell_id, cell in found.items()} == {"a": "1"}


async def test_of_two_changes_in_one_group_the_second_sees_the_first(store: Store) -> None:
    group = [AppendRequest(cells=(change("a", 0, "1"),)), AppendRequest(cells=(change("a", 0, "2"),))]

    first, second = await store.journal.append([*group])
    (third,) = await store.journal.append([AppendRequest(cells=(change("a", 1, "3"),))])

    assert not isinstance(first, Exception) and isinstance(second, VersionConflict)
    assert not isinstance(third, Exception)


async def test_versions_form_a_chain_without_a_lost_update(store: Store, scale: Scale) -> None:
    counter = CellId("ledger", "counter")
    rounds = scale(10)

    async def count_up() -> None:
        for _ in range(rounds):
            outcome: object = VersionConflict(*counter, 0, 0)
            while isinstance(outcome, VersionConflict):
                cell = (await store.cells.read([counter])).get(counter, Cell(version=0, status="", state_json="0"))
                step = change("counter", cell.version, str(int(cell.state_json) + 1))
                (outcome,) = await store.journal.append([AppendRequest(cells=(step,))])

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(count_up)

    cell = (await store.cells.read([counter]))[counter]
    assert (cell.version, cell.state_json) == (5 * rounds, str(5 * rounds))


async def keep(store: Store, *cells: tuple[str, str, int | None], ledger: str = "timer") -> None:
    """Cells by key, status and time."""
    changes = tuple(
        CellChange(id=CellId(ledger, key), seen=0, status=status, state_json="{}", due_at_ms=due)
        for key, status, due in cells
    )
    await store.journal.append([AppendRequest(cells=changes)])


async def test_cells_that_are_due_are_listed_the_earliest_first(store: Store) -> None:
    await keep(store, ("a", "set", 30), ("b", "set", 10), ("c", "set", 31), ("d", "fired", 1), ("e", "set", None))
    await keep(store, ("f", "set", 1), ledger="other")

    due = await store.cells.due("timer", "set", 30, 10)

    assert [(cell_id.key, cell.due_at_ms) for cell_id, cell in due.items()] == [("b", 10), ("a", 30)]


async def test_a_list_of_due_cells_goes_on_where_its_page_ended(store: Store) -> None:
    await keep(store, *((f"k{n}", "set", 5 + n // 3) for n in range(7)))
    seen: list[str] = []

    after = DueCursor()
    while page := await store.cells.due("timer", "set", 100, 2, after):
        seen += [cell_id.key for cell_id in page]
        *_, (last, cell) = page.items()
        after = DueCursor(cell.due_at_ms or 0, last.key)

    assert seen == [f"k{n}" for n in range(7)]


async def test_cells_below_a_key_are_listed_by_key(store: Store) -> None:
    await keep(store, *((key, "set", None) for key in ("r1/b", "r1/a", "r1", "r1-2/a", "r10/a", "r2/a")))

    first = await store.cells.under("timer", "r1", 1)
    rest = await store.cells.under("timer", "r1", 10, "r1/a")

    assert [cell_id.key for cell_id in (*first, *rest)] == ["r1/a", "r1/b"]


async def test_a_look_has_the_time_of_the_store(store: Store) -> None:
    await keep(store, ("a", "set", 1))

    before = (await store.cells.snapshot([])).now_ms
    snapshot = await store.cells.snapshot([CellId("timer", "a"), CellId("timer", "absent")])

    assert [cell_id.key for cell_id in snapshot.cells] == ["a"]
    assert before <= snapshot.now_ms < before + 60_000


async def offer(store: Store, *cells: tuple[str, str, str, int]) -> None:
    """Work by key, app, kind and time."""
    changes = tuple(
        CellChange(id=CellId("timer", key), seen=0, status="set", state_json="{}", due_at_ms=due, app=app, kind=kind)
        for key, app, kind, due in cells
    )
    await store.journal.append([AppendRequest(cells=changes)])


async def test_work_that_a_worker_cannot_serve_takes_no_place_in_its_page(store: Store) -> None:
    others = [(f"other-{number}", app, kind, number) for number in range(5) for app, kind in [("b", "x"), ("a", "y")]]
    await offer(store, *((f"{key}-{app}", app, kind, due) for key, app, kind, due in others))
    await offer(store, ("2", "a", "x", 60), ("1", "", "z", 50), ("3", "a", "z", 60), ("late", "a", "x", 90))
    await keep(store, ("nobody's", "set", 1))

    served = WorkFilter(("a", ""), ("x", "z"))
    first = await store.cells.due("timer", "set", 80, 2, served=served)
    rest = await store.cells.due("timer", "set", 80, 2, DueCursor(60, "2"), served=served)

    assert [(cell_id.key, cell.app, cell.kind) for cell_id, cell in first.items()] == [("1", "", "z"), ("2", "a", "x")]
    assert [cell_id.key for cell_id in rest] == ["3"]


async def test_a_worker_that_serves_nothing_is_offered_nothing(store: Store) -> None:
    await offer(store, ("1", "a", "x", 1))

    assert await store.cells.due("timer", "set", 9, 9, served=WorkFilter(("a",), ())) == {}
