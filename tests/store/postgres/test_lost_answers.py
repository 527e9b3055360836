"""P3 over lost connections: a request counts once, whether its answer was lost or it reaches the server late."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import asyncpg
import pytest

from tape.core.errors import Unavailable
from tape.core.event import Entry
from tape.core.ids import GlobalSeq
from tape.core.ports import Store
from tape.core.sequence import AppendRequest
from tape.store.postgres.store import TIMEOUTS, PostgresStore, open_store
from tape.store.timeouts import Timeouts
from tests.contract.events import append, change, entries, make_event, request
from tests.deadlines import DEADLINE_S
from tests.servers.proxy import Proxy

SOON = replace(TIMEOUTS, answer_s=2.0)
IS_THERE = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1"


class LateProxy(Proxy):
    """Keeps the next request back until it may pass, long after its sender has given up; the session stays open."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.is_late = False
        self.may_pass = anyio.Event()

    async def _ask(self, client: asyncio.StreamReader, to_server: asyncio.StreamWriter) -> None:
        while data := await client.read(65_536):
            if self.is_late:
                self.is_late = False
                await self.may_pass.wait()
            to_server.write(data)
            await to_server.drain()


@pytest.fixture(scope="session")
def postgres_template(journal_template: str) -> str:
    return journal_template


@asynccontextmanager
async def opened(url: str, proxy: Proxy, timeouts: Timeouts = TIMEOUTS) -> AsyncIterator[PostgresStore]:
    """A store that appends through a proxy and listens on a direct connection."""
    async with proxy.open(), open_store(proxy.url, listen_url=url, timeouts=timeouts) as store:
        yield store


async def payloads(store: Store) -> list[object]:
    return [entry.payload for entry in (await store.journal.read(GlobalSeq(0))).entries]


async def append_once(store: Store, asked: AppendRequest) -> Entry:
    (outcome,) = await store.journal.append([asked])
    (entry,) = entries(outcome)
    return entry


@pytest.mark.parametrize("cut", ["loses_an_answer", "loses_a_request"])
async def test_p3_a_repeated_request_whose_connection_was_lost_is_there_once(postgres_url: str, cut: str) -> None:
    proxy = Proxy(postgres_url)
    async with opened(postgres_url, proxy) as store:
        first = await append_once(store, request(make_event(n=1), key="k"))
        setattr(proxy, cut, True)

        again = await append_once(store, request(make_event(n=1), key="k"))

        assert again == first
        assert await payloads(store) == [{"n": 1}]


async def test_p3_a_request_that_reaches_the_server_after_recovery_is_not_written(postgres_url: str) -> None:
    proxy = LateProxy(postgres_url)
    async with opened(postgres_url, proxy, SOON) as store:
        await append(store, make_event("first", n=1))
        sender = store._database._appender.process  # noqa: SLF001 - the session whose request is late
        proxy.is_late = True

        (entry,) = await append(store, make_event("second", n=2))
        proxy.may_pass.set()
        await ended(postgres_url, sender)

        assert entry.global_seq == 2
        assert await payloads(store) == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize("cut", ["loses_an_answer", "loses_a_request"])
async def test_p2_recovery_finds_the_entries_of_the_request_itself(postgres_url: str, cut: str) -> None:
    """An id is the sender's choice, so that of somebody else may be the same."""
    proxy = Proxy(postgres_url)
    async with opened(postgres_url, proxy) as store, open_store(postgres_url) as other:
        await append(store, make_event("mine", n=1, event_id="a"))
        await append(other, make_event("theirs", n=2, event_id="b"))
        setattr(proxy, cut, True)

        (entry,) = await append(store, make_event("mine", n=3, event_id="b"))

        assert (entry.run_id, entry.payload) == ("mine", {"n": 3})
        assert await payloads(store) == [{"n": 1}, {"n": 2}, {"n": 3}]


async def test_p2_two_equal_requests_whose_answer_was_lost_are_two_entries(postgres_url: str) -> None:
    proxy, twice = Proxy(postgres_url), request(make_event(n=2))
    async with opened(postgres_url, proxy) as store:
        await append(store, make_event(n=1))
        proxy.loses_an_answer = True

        outcomes = await store.journal.append([twice, twice])

        assert [entry.global_seq for outcome in outcomes for entry in entries(outcome)] == [2, 3]
        assert await payloads(store) == [{"n": 1}, {"n": 2}, {"n": 2}]


async def test_p2_a_change_of_cells_alone_whose_answer_was_lost_is_unknown_and_no_conflict(postgres_url: str) -> None:
    proxy = Proxy(postgres_url)
    async with opened(postgres_url, proxy) as store:
        await append(store, make_event(n=1))
        proxy.loses_an_answer = True

        (outcome,) = await store.journal.append([AppendRequest(cells=(change("a", 0, "1"),))])

        assert isinstance(outcome, Unavailable) and outcome.outcome == "unknown"


async def ended(url: str, process: int) -> None:
    """Returns when a session of the server has ended, and so has written everything it will."""
    connection = await asyncpg.connect(url)
    try:
        with anyio.fail_after(DEADLINE_S):
            while await connection.fetchval(IS_THERE, process):  # noqa: ASYNC110 - the server does not notify
                await anyio.sleep(0.01)
    finally:
        await connection.close()
