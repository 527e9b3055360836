"""What is said on Postgres' channel: an entry where nobody else can hear or say it, and the head everywhere."""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import NoReturn
from urllib.parse import urlsplit

import anyio
import asyncpg
import pytest

from tape.bus.journal import Journal
from tape.bus.stream import Stream
from tape.compose import run_journal
from tape.core.event import Entry, Event
from tape.core.ids import Epoch, GlobalSeq, Seq
from tape.store.postgres import word
from tape.store.postgres.store import PostgresStore, open_store
from tape.store.statements import statements
from tests.patience import PATIENCE_S

WHERE = """
SELECT concat_ws('.', oid, (SELECT oid FROM pg_class WHERE relname = 'tape_journal'))
FROM pg_database WHERE datname = current_database()
"""


@pytest.fixture
async def direct(postgres_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(postgres_url)
    yield connection
    await connection.close()


@pytest.fixture(autouse=True)
async def alone(postgres_url: str, direct: asyncpg.Connection) -> None:
    """Other roles of the server may not connect."""
    await direct.execute(f"REVOKE CONNECT ON DATABASE {urlsplit(postgres_url).path[1:]} FROM PUBLIC")


@pytest.fixture
async def stranger(postgres_url: str, direct: asyncpg.Connection) -> AsyncIterator[str]:
    """The URL of somebody who may connect, and nothing else."""
    parts = urlsplit(postgres_url)
    role = f"stranger_{parts.path[1:]}"
    await direct.execute(f"CREATE ROLE {role} LOGIN")
    await direct.execute(f"GRANT CONNECT ON DATABASE {parts.path[1:]} TO {role}")
    yield parts._replace(netloc=f"{role}@{parts.hostname}:{parts.port}").geturl()
    await direct.execute(f"DROP OWNED BY {role}")
    await direct.execute(f"DROP ROLE {role}")


async def test_what_somebody_else_appends_is_dealt_out_without_being_read(postgres_url: str) -> None:
    async with publishing(postgres_url) as publisher, following(postgres_url) as (store, stream):
        store.journal.read = unanswered  # type: ignore[method-assign, assignment]
        (said,) = await publisher.append(event(2))

        assert await following_entry(stream) == said


async def test_whoever_overhears_nothing_is_woken_at_once(postgres_url: str) -> None:
    async with publishing(postgres_url) as publisher, open_store(postgres_url) as store:
        listener = store._database._listener  # noqa: SLF001 - nobody else is told of it
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.wait_beyond, GlobalSeq(1))
            await until(lambda: listener.is_listening and where(store) is not None)
            await publisher.append(event(2))
            await until(lambda: listener._head == 2)  # noqa: SLF001
            assert listener._told_head is None  # noqa: SLF001
            tasks.cancel_scope.cancel()


async def test_the_head_alone_is_said_where_others_may_connect(
    postgres_url: str, direct: asyncpg.Connection, stranger: str
) -> None:
    words = await heard(direct)
    async with publishing(postgres_url, is_private=False) as publisher:
        await publisher.append(event(2))

    await until(lambda: len(words) == 2)
    assert words == ["1", "2"]


async def test_others_do_not_matter_where_they_may_not_connect(
    postgres_url: str, direct: asyncpg.Connection, stranger: str
) -> None:
    parts = urlsplit(stranger)
    await direct.execute(f"REVOKE CONNECT ON DATABASE {parts.path[1:]} FROM {parts.username}")
    words = await heard(direct)

    async with publishing(postgres_url) as publisher:
        (said,) = await publisher.append(event(2))

    await until(lambda: len(words) == 2)
    assert [word.head_of(text) for text in words] == [1, 2]
    assert word.entry_of(words[1], words[1].split(" ")[1]) == said


async def test_who_has_connected_before_he_might_not_any_more_still_matters(
    postgres_url: str, direct: asyncpg.Connection, stranger: str
) -> None:
    parts = urlsplit(stranger)
    connection = await asyncpg.connect(stranger)
    await direct.execute(f"REVOKE CONNECT ON DATABASE {parts.path[1:]} FROM {parts.username}")
    (sql,) = statements("postgres", "word.sql").values()
    async with publishing(postgres_url, is_private=False):
        before = await direct.fetchval(sql)
        await connection.close()
        await until_gone(direct, str(parts.username))
        after = await direct.fetchval(sql)

    assert before is None and after is not None


async def test_who_may_not_write_the_journal_believes_nobody(
    postgres_url: str, direct: asyncpg.Connection, stranger: str
) -> None:
    (sql,) = statements("postgres", "word.sql").values()
    async with open_store(postgres_url):
        await direct.execute(f"GRANT SELECT ON tape_journal TO {urlsplit(stranger).username}")
    connection = await asyncpg.connect(stranger)
    try:
        assert await connection.fetchval(sql) is None
    finally:
        await connection.close()


async def test_a_word_of_another_journal_is_only_a_hint(postgres_url: str, direct: asyncpg.Connection) -> None:
    async with publishing(postgres_url) as publisher, following(postgres_url) as (_, stream):
        await direct.execute("SELECT pg_notify('tape', $1)", word.word(forged(2, publisher.epoch), "1.2"))
        (said,) = await publisher.append(event(2))

        assert await following_entry(stream) == said


async def test_a_node_outlives_a_server_that_begins_to_forget(
    postgres_url: str, direct: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word, "ASKED_S", 2.0)
    name = urlsplit(postgres_url).path[1:]
    async with publishing(postgres_url) as publisher, following(postgres_url) as (store, stream):
        await store._database.close()  # noqa: SLF001 - a connection that is at hand does not look again
        await store._database._pool.expire_connections()  # noqa: SLF001
        await direct.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
        await until(lambda: where(store) is None)
        await direct.execute(f"ALTER DATABASE {name} RESET synchronous_commit")
        (said,) = await publisher.append(event(2))

        assert await following_entry(stream) == said


async def test_two_journals_of_a_store_overhear_each_for_itself(postgres_url: str) -> None:
    async with publishing(postgres_url) as publisher, following(postgres_url) as (store, stream):
        async with run_journal(store):
            await publisher.append(event(2))
        store.journal.read = unanswered  # type: ignore[method-assign, assignment]
        await publisher.append(event(3))

        assert [entry.seq for entry in (await following_entry(stream), await following_entry(stream))] == [2, 3]


async def test_the_head_alone_is_said_as_long_as_nothing_is_known(
    postgres_url: str, direct: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word.Privacy, "run", lambda _: anyio.sleep_forever())
    words = await heard(direct)
    async with publishing(postgres_url, is_private=False) as publisher:
        await publisher.append(event(2))

    await until(lambda: len(words) == 2)
    assert words == ["1", "2"]


async def test_whoever_may_connect_later_hears_no_more_than_the_head(
    postgres_url: str, direct: asyncpg.Connection, stranger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word, "ASKED_S", 2.0)
    name, role = urlsplit(stranger).path[1:], urlsplit(stranger).username
    await direct.execute(f"REVOKE CONNECT ON DATABASE {name} FROM {role}")
    words = await heard(direct)
    async with open_store(postgres_url) as store, run_journal(store) as publisher:
        await publisher.append(event(1), open=True)
        await until(lambda: where(store) is not None)
        await publisher.append(event(2))
        await direct.execute(f"GRANT CONNECT ON DATABASE {name} TO {role}")
        await until(lambda: where(store) is None)
        await publisher.append(event(3))

    await until(lambda: len(words) == 3)
    assert [word.head_of(text) for text in words] == [1, 2, 3]
    assert [" " in text for text in words] == [False, True, False]


async def test_what_a_stranger_says_is_only_a_hint(postgres_url: str, stranger: str) -> None:
    async with (
        publishing(postgres_url, is_private=False) as publisher,
        following(postgres_url, is_private=False) as (_, stream),
    ):
        connection = await asyncpg.connect(stranger)
        await say(connection, forged(2, publisher.epoch))
        await connection.close()
        (said,) = await publisher.append(event(2))

        assert await following_entry(stream) == said


@pytest.mark.parametrize("at", [1, 3, 99])
async def test_a_word_that_does_not_follow_is_looked_up(postgres_url: str, direct: asyncpg.Connection, at: int) -> None:
    async with publishing(postgres_url) as publisher, following(postgres_url) as (_, stream):
        await say(direct, forged(at, publisher.epoch))
        (said,) = await publisher.append(event(2))

        assert await following_entry(stream) == said


async def test_a_word_of_another_epoch_is_looked_up(postgres_url: str, direct: asyncpg.Connection) -> None:
    async with publishing(postgres_url) as publisher, following(postgres_url) as (_, stream):
        await say(direct, forged(2, Epoch(publisher.epoch - 1)))
        (said,) = await publisher.append(event(2))

        assert await following_entry(stream) == said


@pytest.mark.parametrize(
    "text", ["", "x", "2 ", "2 [", "2 []", '2 {"a": 1}', "٢", "-1", "9" * 5_000, "2 " + "[" * 5_000]
)
async def test_nonsense_is_only_a_hint(postgres_url: str, direct: asyncpg.Connection, text: str) -> None:
    async with publishing(postgres_url) as publisher, following(postgres_url) as (_, stream):
        await direct.execute("SELECT pg_notify('tape', $1)", text)
        (said,) = await publisher.append(event(2))

        assert await following_entry(stream) == said


@pytest.mark.parametrize("size", [7_000, 7_900, 8_000, 100_000])
@pytest.mark.parametrize("letter", ["a", '"', "é", "\x7f", "😀"])
async def test_what_is_too_long_for_a_word_arrives_all_the_same(postgres_url: str, size: int, letter: str) -> None:
    async with publishing(postgres_url) as publisher, following(postgres_url) as (_, stream):
        (said,) = await publisher.append(Event(run_id="r1", payload=letter * size))

        assert await following_entry(stream) == said


async def test_bytes_are_not_said_and_arrive(postgres_url: str) -> None:
    async with publishing(postgres_url) as publisher, following(postgres_url) as (_, stream):
        binary = {"content_type": "application/octet-stream", "run_id": "blobs"}
        said = [*await publisher.append(Event(payload=b"\0\xff", **binary), open=True)]  # type: ignore[arg-type]
        said += await publisher.append(Event(payload=b"\1", **binary))  # type: ignore[arg-type]

        assert [await following_entry(stream) for _ in said] == said


@asynccontextmanager
async def publishing(url: str, *, is_private: bool = True) -> AsyncIterator[Journal]:
    """A node with a run of one entry, so that the next is appended alone."""
    async with open_store(url) as store, run_journal(store) as journal:
        await journal.append(event(1), open=True)
        await until(lambda: where(store) is not None or not is_private)
        yield journal


@asynccontextmanager
async def following(url: str, *, is_private: bool = True) -> AsyncIterator[tuple[PostgresStore, Stream]]:
    """Another node that has read what there is, and listens."""
    async with open_store(url) as store, run_journal(store) as journal, aclosing(journal.stream()) as stream:
        await following_entry(stream)
        await until(lambda: store._database._listener.is_listening)  # noqa: SLF001 - nobody else is told of it
        await until(lambda: where(store) is not None or not is_private)
        yield store, stream


def where(store: PostgresStore) -> str | None:
    return store._database._listener._privacy.where  # noqa: SLF001 - nobody else is told of it


async def following_entry(stream: Stream) -> Entry:
    with anyio.fail_after(PATIENCE_S):
        return await anext(stream)
    raise AssertionError("it was waited for")


async def until(is_so: Callable[[], bool]) -> None:
    with anyio.fail_after(PATIENCE_S):
        while not is_so():  # noqa: ASYNC110 - nothing else tells
            await anyio.sleep(0.005)


async def heard(connection: asyncpg.Connection) -> list[str]:
    """What is said on the channel from now on."""
    words: list[str] = []
    await connection.add_listener("tape", lambda *said: words.append(str(said[-1])))
    return words


async def say(connection: asyncpg.Connection, entry: Entry) -> None:
    """A word as the journal's own would be."""
    await connection.execute("SELECT pg_notify('tape', $1)", word.word(entry, str(await connection.fetchval(WHERE))))


async def until_gone(connection: asyncpg.Connection, role: str) -> None:
    with anyio.fail_after(PATIENCE_S):
        while await connection.fetchval("SELECT count(*) FROM pg_stat_activity WHERE usename = $1", role):  # noqa: ASYNC110
            await anyio.sleep(0.005)


async def unanswered(after: GlobalSeq) -> NoReturn:
    await anyio.sleep_forever()
    raise AssertionError(after)


def event(number: int) -> Event:
    return Event(run_id="r1", payload={"n": number})


def forged(place: int, epoch: Epoch) -> Entry:
    """An entry that nobody appended."""
    return event(666).at(place, Seq(place), 1, 0, epoch)
