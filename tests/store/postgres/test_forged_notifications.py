"""On Postgres any role that may connect may notify: a notification says when to read, never what is there."""

import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import NoReturn
from urllib.parse import urlsplit

import anyio
import asyncpg
import pytest

from tape.bus.journal import Journal
from tape.compose import run_journal
from tape.core import codec
from tape.core.background import background
from tape.core.event import Event
from tape.core.ids import Epoch, Seq
from tape.matcher.dispatcher import Dispatcher, WorkerConfig
from tape.store.postgres.store import open_store
from tape.work.envelope import Envelope
from tape.work.handler import handler
from tests.contract.reactions import reaction
from tests.deadlines import DEADLINE_S

JOURNAL = """
SELECT concat_ws('.', oid, (SELECT oid FROM pg_class WHERE relname = 'tape_journal'))
FROM pg_database WHERE datname = current_database()
"""
HEADS = ["", "x", "0", "-1", "1", "3", "99", "2 ", "2 [", "2 []", '2 {"a": 1}', "٢", "1e9", "nan", "NULL"]
HUGE = [str(sys.maxsize), "9" * 30, "9" * 7_999, "-" + "9" * 5_000, "2 " + "[" * 5_000]


async def test_p9_a_role_that_may_only_connect_forges_no_entry_and_hides_none(
    postgres_url: str, owner: asyncpg.Connection, stranger: str
) -> None:
    handled: list[object] = []
    async with working(postgres_url, handled) as node, open_store(postgres_url) as other, run_journal(other) as writer:
        await published(writer, 1, 2)
        assert await seen(node, 2) == [[1, 2], [1, 2]]
        await owner.execute(f"GRANT CONNECT ON DATABASE {urlsplit(stranger).path[1:]} TO {urlsplit(stranger).username}")
        await notify(stranger, writer.epoch)
        await published(writer, 3, 4, 5)
        await until_handled(handled, 5)
        assert await seen(node, 5) == [[1, 2, 3, 4, 5]] * 2
    async with working(postgres_url, handled) as node:
        await notify(stranger, node.epoch)
        await published(node, 6)
        await until_handled(handled, 6)
        assert await seen(node, 6) == [[1, 2, 3, 4, 5, 6]] * 2

    assert sorted(map(str, handled)) == ["1", "2", "3", "4", "5", "6"]


@pytest.fixture
async def owner(postgres_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A database to which no other role may connect yet."""
    connection = await asyncpg.connect(postgres_url)
    await connection.execute(f"REVOKE CONNECT ON DATABASE {urlsplit(postgres_url).path[1:]} FROM PUBLIC")
    yield connection
    await connection.close()


@pytest.fixture
async def stranger(postgres_url: str, owner: asyncpg.Connection) -> AsyncIterator[str]:
    """The URL of a role that has no privilege at all."""
    parts = urlsplit(postgres_url)
    role = f"stranger_{parts.path[1:]}"
    await owner.execute(f"CREATE ROLE {role} LOGIN")
    yield parts._replace(netloc=f"{role}@{parts.hostname}:{parts.port}").geturl()
    await owner.execute(f"DROP OWNED BY {role}")
    await owner.execute(f"DROP ROLE {role}")


@asynccontextmanager
async def working(url: str, handled: list[object]) -> AsyncIterator[Journal]:
    """A node that handles what matches `/a/**`."""

    async def handle(envelope: Envelope) -> None:
        handled.append(envelope.payload)

    async with open_store(url) as store, run_journal(store) as journal:
        dispatcher = Dispatcher(
            store, WorkerConfig(handlers={"rule": handler(handle)}, reactions=(reaction(),)), journal
        )
        await dispatcher.register()

        async def work() -> NoReturn:
            await dispatcher.run()
            raise AssertionError("nobody stops it")

        async with background(work):
            yield journal


async def seen(journal: Journal, count: int) -> list[list[object]]:
    """The payloads of the first so many entries, as each kind of stream gives them."""
    async with AsyncExitStack() as stack:
        ways = [journal.stream(subject="/a/**"), journal.stream(run_id="r1")]
        streams = [await stack.enter_async_context(aclosing(way)) for way in ways]
        with anyio.fail_after(DEADLINE_S):
            return [[(await anext(stream)).payload for _ in range(count)] for stream in streams]
    raise AssertionError("streams swallow nothing")


async def published(journal: Journal, *payloads: int) -> None:
    for payload in payloads:
        await journal.append(event(payload), open=True)


async def until_handled(handled: list[object], count: int) -> None:
    with anyio.fail_after(DEADLINE_S):
        while len(handled) < count:  # noqa: ASYNC110 - nothing else tells
            await anyio.sleep(0.005)


async def notify(url: str, epoch: Epoch) -> None:
    """Sends every false notification, with numbers that any role can look up."""
    connection = await asyncpg.connect(url)
    try:
        where = str(await connection.fetchval(JOURNAL))
        for text in [*forged(where, epoch), *HEADS, *HUGE, *forged(where, epoch)]:
            await connection.execute("SELECT pg_notify('tape', $1)", text)
    finally:
        await connection.close()


def forged(where: str, epoch: Epoch) -> Iterator[str]:
    """Well-formed entries that nobody appended, at every position around the head."""
    for place in range(1, 12):
        text = codec.encode_state(event(666).at(place, Seq(place), 1, 0, epoch))
        yield f"{place} {where} {text}"
        yield f"{place} {text}"


def event(payload: int) -> Event:
    return Event(run_id="r1", payload=payload, subject="/a/b")
