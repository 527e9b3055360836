"""Journal pages: every entry once and in order, from history or from the tail."""

from collections.abc import AsyncIterator

import anyio
import pytest

from tape.bus.journal import Journal
from tape.bus.selection import JournalSelection, RunSelection, Selection
from tape.bus.stream import JournalPages, StreamReader
from tape.bus.tail import Tail
from tape.compose import open_store, run_journal
from tape.core.ids import Epoch, GlobalSeq, RunId
from tape.core.ports import Store
from tape.core.subject import Pattern
from tests.contract.events import fill, make_event, positions
from tests.deadlines import DEADLINE_S


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with open_store("memory://") as store:
        yield store


@pytest.fixture
async def journal(store: Store) -> AsyncIterator[Journal]:
    async with run_journal(store) as journal:
        yield journal


async def read(pages: JournalPages, after: int, count: int, pattern: Pattern | None = None) -> list[int]:
    """The positions that follow one, as they come."""
    found: list[int] = []
    cursor = GlobalSeq(after)
    with anyio.fail_after(DEADLINE_S):
        while len(found) < count:
            page = await pages.read(cursor, pattern=pattern)
            found += positions(page.entries)
            cursor = page.scanned_to
            if not page.entries:
                await pages.wait(cursor)
    return found


@pytest.mark.parametrize("by", ["run", "journal"])
async def test_p6_an_entry_that_history_and_the_tail_both_have_is_given_once(
    store: Store, journal: Journal, by: str
) -> None:
    tail = Tail(GlobalSeq(0), epoch=journal.epoch)  # of another node, which learns of the entries later
    selections: dict[str, Selection] = {
        "run": RunSelection(store.journal, RunId("r1")),
        "journal": JournalSelection(store.journal, None, 0),
    }
    reader = StreamReader(selections[by], tail)
    before = await journal.append([make_event(n=n) for n in range(3)], open=True)
    page = await reader.replay()

    tail.push(before)
    tail.push(await journal.append(make_event(n=4)))
    live = [entry for batch in iter(lambda: reader.take(10), None) for entry in batch]

    assert positions(page.entries) == [1, 2, 3] and positions(live) == [4]
    reader.close()


async def test_p6_no_entry_of_an_earlier_epoch_follows_the_history_of_a_later_one(
    store: Store, journal: Journal
) -> None:
    earlier = Epoch(journal.epoch - 1)
    tail = Tail(GlobalSeq(0), epoch=earlier)
    reader = StreamReader(JournalSelection(store.journal, None, 0), tail)
    tail.push([make_event(n=n).at(n, n, 0, 0, earlier) for n in range(1, 6)])
    await fill(journal, "r1", 3)

    page = await reader.replay()

    assert positions(page.entries) == [1, 2, 3] and reader.take(10) is None
    assert (tail.epoch, tail.head) == (journal.epoch, 3)
    reader.close()


async def test_history_and_new_entries_are_one_sequence(journal: Journal) -> None:
    await fill(journal, "before", 700)
    pages = journal.pages()

    first = await read(pages, 0, 700)
    await fill(journal, "after", 700)
    rest = await read(pages, 700, 700)
    pages.close()

    assert first + rest == list(range(1, 1401))


async def test_a_reader_far_behind_reads_history(journal: Journal) -> None:
    pages = journal.pages()
    await read(pages, 0, 0)
    await fill(journal, "run", 900)

    assert await read(pages, 0, 900) == await read(pages, 0, 900) == list(range(1, 901))
    pages.close()


async def test_a_waiting_reader_is_woken_by_its_pattern(journal: Journal) -> None:
    pages = journal.pages()
    found: list[int] = []

    async def follow() -> None:
        found.extend(await read(pages, 0, 1, Pattern("/b/**")))

    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as group:
            group.start_soon(follow)
            await anyio.wait_all_tasks_blocked()
            await journal.append([make_event(subject="/a/x"), make_event(subject="/b/x")], open=True)

    assert found == [2]
    pages.close()


async def test_entries_of_other_processes_are_read(store: Store, journal: Journal) -> None:
    pages = journal.pages()
    async with run_journal(store) as other:
        await other.append(make_event(), open=True)

        assert await read(pages, 0, 1) == [1]
    pages.close()
