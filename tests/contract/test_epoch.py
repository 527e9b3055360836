"""A new epoch: the journal continues, and no cursor of the lost one is accepted."""

from collections.abc import AsyncIterator
from contextlib import aclosing

import anyio
import pytest

from tape.bus.journal import Journal
from tape.compose import run_journal
from tape.core.errors import InvalidCursor
from tape.core.event import Entry
from tape.core.ids import GlobalSeq, RunId, Seq
from tape.core.matched import MatchedPage
from tape.core.ports import Store
from tape.core.term import is_resumable
from tests.contract.backends import Backend, needs_ledgers
from tests.contract.events import append, fill, make_event, positions, read_all
from tests.contract.reactions import catch_up, match, publish, reaction, sources
from tests.deadlines import DEADLINE_S


@pytest.fixture
async def other(backend: Backend, store: Store) -> AsyncIterator[Store]:
    """Another node at the same data; where that cannot be shared, the same one."""
    if not backend.is_durable:
        yield store
        return
    async with backend.open() as other:
        yield other


async def test_a_new_epoch_is_larger_than_the_one_before(store: Store) -> None:
    before = store.epoch

    first, second = await store.new_epoch(), await store.new_epoch()

    assert before < first < second == store.epoch


async def test_entries_of_a_new_epoch_continue_at_the_head(store: Store) -> None:
    await append(store, make_event(n=1))
    epoch = await store.new_epoch()

    later = await append(store, make_event(n=2))

    assert positions(later) == [2] and later[0].epoch == epoch


@needs_ledgers
async def test_a_journal_of_two_epochs_has_no_fault(store: Store) -> None:
    await append(store, make_event(n=1))
    await store.new_epoch()
    await append(store, make_event(n=2))

    async with aclosing(store.audit.pages()) as pages:
        assert [page.faults async for page in pages if page.faults] == []


async def test_a_new_epoch_is_found_when_the_store_is_opened(backend: Backend) -> None:
    async with backend.open() as store:
        epoch = await store.new_epoch()

    async with backend.open() as again:
        assert again.epoch == epoch or not backend.is_durable


async def test_an_epoch_that_another_node_begins_is_known_after_the_next_append(backend: Backend) -> None:
    async with backend.open() as store, backend.open() as another:
        other = another if backend.is_durable else store
        epoch = await other.new_epoch()

        (entry,) = await append(store, make_event(n=1))

        assert store.epoch == entry.epoch == epoch


async def test_an_epoch_that_another_node_begins_is_known_after_the_next_read(backend: Backend) -> None:
    async with backend.open() as store, backend.open() as another:
        other = another if backend.is_durable else store
        epoch = await other.new_epoch()

        await store.journal.bounds()

        assert store.epoch == epoch


async def test_a_store_reads_on_in_an_epoch_that_another_node_begins(store: Store, other: Store) -> None:
    entries = await append(store, make_event(n=1), make_event(n=2))
    epoch = await other.new_epoch()

    page, run = await store.journal.read(GlobalSeq(1)), await store.journal.read_run(RunId("r1"), Seq(1))

    assert (page.entries, page.epoch) == (entries[1:], epoch)
    assert (run.entries, run.epoch) == (entries[1:], epoch)


@pytest.mark.parametrize("selection", [{"run_id": "r1"}, {}, {"subject": "/tape/event/**"}])
async def test_a_live_stream_raises_when_an_epoch_begins_under_it(
    journal: Journal, other: Store, selection: dict[str, str]
) -> None:
    await fill(journal, "r1", 2)
    async with aclosing(journal.stream(**selection)) as live:  # type: ignore[arg-type]
        seen = [await anext(live), await anext(live)]
        before = journal.epoch

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(begin, other)
            with (
                pytest.raises(InvalidCursor, match=f"a cursor of {before} means nothing"),
                anyio.fail_after(DEADLINE_S),
            ):
                await anext(live)

    assert positions(seen) == [1, 2] and journal.epoch > before


async def begin(store: Store) -> None:
    await anyio.wait_all_tasks_blocked()
    await store.new_epoch()


async def test_a_node_continues_in_a_new_epoch_with_streams_and_appends(journal: Journal, other: Store) -> None:
    await fill(journal, "r1", 2)
    async with aclosing(journal.stream(run_id="r1")) as live:
        await anext(live)
        await other.new_epoch()
        await until_signal(live)

    (entry,) = await journal.append(make_event("r1", 3))
    async with aclosing(journal.stream(run_id="r1", from_seq=2)) as again:
        assert positions([await anext(again), await anext(again)]) == [2, 3]
        await journal.append(make_event("r1", 4))
        assert (await anext(again)).seq == 4
    assert entry.epoch == journal.epoch == other.epoch


async def until_signal(live: AsyncIterator[Entry]) -> None:
    with pytest.raises(InvalidCursor), anyio.fail_after(DEADLINE_S):
        while True:
            await anext(live)


async def test_a_cursor_from_before_a_new_epoch_is_refused_once_and_a_beginning_never(
    journal: Journal, other: Store
) -> None:
    await fill(journal, "r1", 3)
    stale = journal.stream(run_id="r1", from_seq=3, follow=False)
    fresh = journal.stream(run_id="r1", follow=False)
    await other.new_epoch()

    assert [entry.seq async for entry in fresh] == [1, 2, 3]
    with pytest.raises(InvalidCursor):
        await anext(stale)
    assert [entry.seq for entry in await read_all(journal, "r1", 3)] == [3]


async def test_a_run_that_is_closed_in_a_new_epoch_ends_its_streams(journal: Journal, other: Store) -> None:
    await fill(journal, "r1", 1)
    async with aclosing(journal.stream(run_id="r1")) as live:
        await anext(live)
        await other.new_epoch()
        await until_signal(live)

    async with aclosing(journal.stream(run_id="r1")) as again, run_journal(other) as elsewhere:
        await anext(again)
        await elsewhere.append(make_event("r1", 2))
        await elsewhere.close_run("r1")
        with anyio.fail_after(DEADLINE_S):
            assert [entry.seq async for entry in again] == [2]


@needs_ledgers
async def test_a_matcher_continues_in_an_epoch_that_another_node_begins(store: Store, other: Store) -> None:
    await store.reactions.register(reaction())
    await publish(store, 1)
    matcher = await match(store)

    await other.new_epoch()
    await publish(store, 1)
    await catch_up(matcher)

    assert await sources(store) == [2, 3]


@needs_ledgers
async def test_what_was_matched_before_a_new_epoch_is_not_recorded_in_it(store: Store, other: Store) -> None:
    await store.reactions.register(reaction())
    before, pack = store.epoch, await store.reactions.match_cursor(0)
    page = MatchedPage(version=pack.version, epoch=before, cursor=GlobalSeq(1), states={}, predicate_errors={})
    epoch = await other.new_epoch()

    assert await store.reactions.record(page) is None
    assert await store.reactions.record(page._replace(epoch=epoch)) is not None


async def test_a_journal_of_one_epoch_has_one_term_of_it(store: Store) -> None:
    await append(store, make_event(n=1))

    (term,) = await store.journal.terms()

    assert term == (store.epoch, 1)


async def test_a_new_epoch_continues_no_earlier_term(store: Store, other: Store) -> None:
    (old,) = await append(store, make_event(n=1))
    epoch = await other.new_epoch()

    await store.journal.bounds()
    terms = await store.journal.terms()

    assert is_resumable(terms, epoch, 1) and not is_resumable(terms, old.epoch, 0)
