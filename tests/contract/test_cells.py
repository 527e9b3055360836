"""Cells: compare and set, together with entries."""

import anyio

from tape.core.errors import VersionConflict
from tape.core.ports import CellQuery, DueCursor, Store, WorkFilter
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
    await keep(store, *((f"k{n}", "set", 5 + n // 3) for n in reversed(range(7))))
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
    await offer(store, ("2", "a", "x", 60), ("9", "", "z", 50), ("3", "a", "z", 60), ("late", "a", "x", 90))
    await keep(store, ("nobody's", "set", 1))

    served = WorkFilter(("a", ""), ("x", "z"))
    first = await store.cells.due("timer", "set", 80, 2, served=served)
    rest = await store.cells.due("timer", "set", 80, 2, DueCursor(60, "2"), served=served)

    assert [(cell_id.key, cell.app, cell.kind) for cell_id, cell in first.items()] == [("9", "", "z"), ("2", "a", "x")]
    assert [cell_id.key for cell_id in rest] == ["3"]


async def test_a_worker_that_serves_nothing_is_offered_nothing(store: Store) -> None:
    await offer(store, ("1", "a", "x", 1))

    assert await store.cells.due("timer", "set", 9, 9, served=WorkFilter(("a",), ())) == {}


async def place(store: Store, *cells: tuple[str, str, str | None], state: str = "{}", kind: str | None = None) -> None:
    """Cells by key, status and place."""
    changes = tuple(
        CellChange(id=CellId("timer", key), seen=0, status=status, state_json=state, place=place, kind=kind)
        for key, status, place in cells
    )
    await store.journal.append([AppendRequest(cells=changes)])


SET_AND_FIRED = CellQuery("timer", ("set", "fired"), "r1")


async def test_cells_of_some_statuses_are_listed_by_their_place(store: Store) -> None:
    await place(store, ("a", "set", "r1/3"), ("b", "fired", "r1/1"), ("c", "set", "r1/2"), ("d", "lost", "r1/1"))
    await place(store, ("e", "set", "r1-2/1"), ("f", "set", "r10/1"), ("g", "set", "r2/1"), ("r1/h", "set", None))

    found = await store.cells.listed(SET_AND_FIRED, 10)

    assert [(cell_id.key, cell.place) for cell_id, cell in found.items()] == [
        ("b", "r1/1"), ("c", "r1/2"), ("a", "r1/3"),
    ]  # fmt: skip


async def test_a_list_of_cells_goes_on_after_a_place(store: Store) -> None:
    await place(store, *((f"k{n}", "set" if n % 2 else "fired", f"r1/{n}") for n in range(7)))
    seen: list[str] = []

    after = ""
    while page := await store.cells.listed(SET_AND_FIRED, 2, after):
        seen += [cell_id.key for cell_id in page]
        after = [*page.values()][-1].place or ""

    assert seen == [f"k{n}" for n in range(7)]


async def test_a_list_without_a_parent_is_of_the_whole_ledger(store: Store) -> None:
    await place(store, ("a", "set", "r2/1"), ("b", "set", "r1/1"), ("c", "fired", "r1/2"))

    found = await store.cells.listed(CellQuery("timer", ("set",)), 10)

    assert [cell_id.key for cell_id in found] == ["b", "a"]


async def test_cells_of_other_kinds_take_no_place_in_a_list(store: Store) -> None:
    await place(store, *((f"other-{n}", "set", f"r1/{n}") for n in range(5)), kind="y")
    await place(store, ("mine", "set", "r1/9"), kind="x")

    found = await store.cells.listed(CellQuery("timer", ("set",), "r1", "x"), 2)

    assert [cell_id.key for cell_id in found] == ["mine"]


async def test_a_list_of_cells_ends_with_the_one_that_exceeds_its_bytes(store: Store) -> None:
    large = f'"{"x" * 10_000}"'
    await place(store, *((f"k{n}", "set" if n % 2 else "fired", f"r1/{n}") for n in range(6)), state=large)

    four = await store.cells.listed(SET_AND_FIRED, 10, max_bytes=40_000)
    one = await store.cells.listed(SET_AND_FIRED, 10, max_bytes=100)

    assert [cell_id.key for cell_id in four] == ["k0", "k1", "k2", "k3"] and [cell_id.key for cell_id in one] == ["k0"]


async def test_a_cell_that_moves_is_listed_where_it_is_now(store: Store) -> None:
    await place(store, ("a", "set", "r1/1"), ("b", "set", "r1/2"))
    moved = CellChange(id=CellId("timer", "a"), seen=1, status="set", state_json="{}", place="r1/3")
    await store.journal.append([AppendRequest(cells=(moved,))])

    assert [cell_id.key for cell_id in await store.cells.listed(SET_AND_FIRED, 10)] == ["b", "a"]
