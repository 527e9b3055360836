"""Data sets in Redis come and go: a reader of a lost one gets an error and never continues in the next."""

from collections.abc import AsyncIterator, Iterator

import anyio
import pytest
import redis

from tape.compose import open_store, run_journal
from tape.core.errors import InvalidCursor
from tape.core.ids import GlobalSeq, RunId, Seq
from tape.core.ports import Store
from tape.store.redis import journal as redis_journal
from tests.conftest import Scale
from tests.contract.events import append, drain, fill, make_event, take
from tests.deadlines import DEADLINE_S
from tests.servers.valkey import ValkeyServer
from tests.store.redis.redis_client import execute, restart


@pytest.fixture
def client(redis_url: str) -> Iterator["redis.Redis"]:
    with redis.Redis.from_url(redis_url) as client:
        yield client


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[Store]:
    async with open_store(redis_url) as store:
        yield store


async def test_after_a_flush_the_next_append_begins_a_larger_epoch(store: Store, client: "redis.Redis") -> None:
    before = store.epoch
    await append(store, make_event(n=1), make_event(n=2))
    client.flushall()

    (entry,) = await append(store, make_event(n=3))

    assert (entry.global_seq, entry.seq) == (1, 1)
    assert before < entry.epoch == store.epoch


async def test_after_a_flush_the_next_opening_begins_a_larger_epoch(redis_url: str, client: "redis.Redis") -> None:
    async with open_store(redis_url) as store:
        before = store.epoch
    client.flushall()

    async with open_store(redis_url) as store, open_store(redis_url) as other:
        assert before < store.epoch == other.epoch


async def test_the_first_look_after_a_flush_begins_a_larger_epoch(store: Store, client: "redis.Redis") -> None:
    before = store.epoch
    await append(store, make_event(n=1), make_event(n=2))
    client.flushall()

    bounds = await store.journal.bounds()
    page, run = await store.journal.read(GlobalSeq(0)), await store.journal.read_run(RunId("r1"), Seq(0))

    assert bounds == page.bounds == (1, 0) and run.run is None
    assert page.epoch == run.epoch == store.epoch > before


async def test_no_cursor_of_a_lost_data_set_is_read_on(store: Store, client: "redis.Redis") -> None:
    async with run_journal(store) as journal:
        await fill(journal, "r1", 2)
        stale = [journal.stream(from_global_seq=2), journal.stream(run_id="r1", from_seq=3)]
        client.flushall()
        await append(store, *(make_event(n=n) for n in range(5)))  # the numbers of old cursors are taken again

        for stream in stale:
            with pytest.raises(InvalidCursor, match="means nothing"):
                await anext(stream)


async def test_live_readers_learn_that_their_data_set_is_lost_and_new_ones_read_the_next(
    redis_url: str, store: Store, client: "redis.Redis"
) -> None:
    async with run_journal(store) as journal:
        await fill(journal, "r1", 2)
        stream = journal.stream(run_id="r1")
        await anext(stream)
        await anext(stream)
        client.flushall()
        async with open_store(redis_url) as other:
            entries = await append(other, *(make_event(n=n) for n in range(5)))

        with pytest.raises(InvalidCursor, match="means nothing"), anyio.fail_after(DEADLINE_S):
            await anext(stream)
        assert await take(journal.stream(run_id="r1"), 5) == entries


async def test_a_data_set_that_went_back_is_another_one(store: Store, client: "redis.Redis") -> None:
    (first,) = await append(store, make_event(n=1))
    older = dump(client)
    await append(store, make_event(n=2))
    before = store.epoch
    restore(client, older)

    page = await store.journal.read(GlobalSeq(0))

    assert page.entries == [first] and page.epoch == store.epoch > before
    (entry,) = await append(store, make_event(n=3))
    assert entry.global_seq == 2 and entry.epoch == store.epoch


async def test_a_data_set_of_an_older_epoch_is_another_one(store: Store, client: "redis.Redis") -> None:
    await append(store, make_event(n=1))
    older = dump(client)
    before = await store.new_epoch()
    restore(client, older)

    (entry,) = await append(store, make_event(n=2))

    assert entry.epoch == store.epoch > before


def dump(client: "redis.Redis") -> dict[bytes, bytes]:
    """Everything there is."""
    return {key: execute(client, "DUMP", key) for key in execute(client, "KEYS", "*")}


def restore(client: "redis.Redis", older: dict[bytes, bytes]) -> None:
    """Replaces the data by that of an earlier dump."""
    client.flushall()
    for key, content in older.items():
        execute(client, "RESTORE", key, 0, content)


async def test_a_hint_that_everybody_is_to_look_is_not_taken_back_by_the_next(
    store: Store, client: "redis.Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a flush the new head is far below the position beyond which a reader waits."""
    monkeypatch.setattr(redis_journal, "POLL_S", 10 * DEADLINE_S)
    await store.journal.wait(GlobalSeq(0))
    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(store.journal.wait, GlobalSeq(10))
            await anyio.wait_all_tasks_blocked()
            pipeline = client.pipeline()
            for word in ("", "3"):
                pipeline.publish("{tape}:grown", word)
            pipeline.execute()


async def test_an_empty_restart_begins_a_larger_epoch() -> None:
    with ValkeyServer(appendfsync=None) as server:
        async with open_store(server.url) as store:
            before = (await append(store, make_event(n=1), make_event(n=2)))[0].epoch
            restart(server)

            (entry,) = await append(store, make_event(n=3))

        assert entry.global_seq == 1 and entry.epoch == store.epoch > before


async def test_a_restart_that_may_have_lost_something_begins_a_larger_epoch() -> None:
    with ValkeyServer(appendfsync="everysec") as server:
        async with open_store(server.url) as store:
            before = store.epoch
            await append(store, make_event(n=1))
            server.restart()

            (entry,) = await append(store, make_event(n=2))

    assert entry.global_seq == 2 and entry.epoch > before


async def test_a_restart_that_loses_nothing_goes_on(valkey_server: ValkeyServer, scale: Scale) -> None:
    async with open_store(f"{valkey_server.url}?prefix=restarts") as store, run_journal(store) as journal:
        before, acknowledged = store.epoch, []
        for n in range(scale(3)):
            acknowledged += await journal.append([make_event("r1", n), make_event("r2", n)], open=True)
            restart(valkey_server)

        assert await drain(journal.stream(follow=False)) == acknowledged
        assert store.epoch == before
