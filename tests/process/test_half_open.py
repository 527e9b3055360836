"""Servers that keep connections open and do not answer: every call ends within its timeout and recovers."""

import asyncio
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, aclosing, contextmanager
from dataclasses import replace
from typing import NamedTuple

import anyio
import pytest

from tape.compose import run_journal
from tape.core.errors import Unavailable
from tape.core.ids import GlobalSeq
from tape.core.ports import Store
from tape.store.postgres.store import open_store as open_postgres
from tape.store.redis.location import Location
from tape.store.redis.store import RedisStore, open_store as open_redis
from tape.store.timeouts import Timeouts
from tests.contract.events import append, make_event
from tests.deadlines import DEADLINE_S
from tests.servers.postgres import PostgresServer
from tests.servers.process import PrivateServer
from tests.servers.proxy import Proxy
from tests.servers.redis_proxy import RedisProxy
from tests.servers.valkey import ValkeyServer

TIMEOUTS = Timeouts(connect_s=0.3, answer_s=0.3, recovery_s=0.6, keep_alive_s=0.2, echo_s=0.2, close_s=0.3)
PATIENT = replace(TIMEOUTS, connect_s=60, answer_s=60)


class Peer(NamedTuple):
    """A server, and a journal on it."""

    server: PrivateServer
    url: str

    def open(self) -> AbstractAsyncContextManager[Store]:
        return opened(self.url)


class Silent(Proxy):
    """A proxy that drops the server's answers while the connections stay open."""

    unheard: tuple[bytes, ...] = (b"",)
    is_silent = False

    async def _answer(self, server: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        while answer := await server.read(65_536):
            if not (self.is_silent and answer.startswith(self.unheard)):
                to_client.write(answer)


class SilentRedis(Silent, RedisProxy):
    """The same for those who listen: there is no other way to the server for them."""

    unheard = (b"*3\r\n$7\r\nmessage", b"*3\r\n$9\r\nsubscribe", b"*2\r\n$4\r\npong")


def opened(
    url: str, listen_url: str | None = None, timeouts: Timeouts = TIMEOUTS
) -> AbstractAsyncContextManager[Store]:
    if url.startswith("redis"):
        return open_redis(Location.parse(listen_url or url), timeouts=timeouts)
    return open_postgres(url, listen_url=listen_url, timeouts=timeouts)


@pytest.fixture(scope="module", params=["postgres", "redis"])
def peer(request: pytest.FixtureRequest) -> Iterator[Peer]:
    """A server for this test alone, which may be stopped."""
    with postgres_peer() if request.param == "postgres" else redis_peer() as peer:
        yield peer


@contextmanager
def postgres_peer() -> Iterator[Peer]:
    with PostgresServer() as server, server.database() as url:
        asyncio.run(create_schema(url))
        yield Peer(server, url)


async def create_schema(url: str) -> None:
    """Migrates with longer timeouts, because the timeouts of these tests are shorter than a migration."""
    async with opened(url, timeouts=PATIENT):
        pass


@contextmanager
def redis_peer() -> Iterator[Peer]:
    with ValkeyServer() as server:
        yield Peer(
            server, server.url.removesuffix("0") + "1"
        )  # not the default database, so each connection selects it


async def test_an_append_to_a_hung_server_is_in_doubt_within_its_timeout_and_appended_at_most_once(
    peer: Peer,
) -> None:
    async with peer.open() as store:
        first = (await append(store, make_event(n=1)))[0].global_seq
        with peer.server.frozen(), anyio.fail_after(DEADLINE_S), pytest.raises(Unavailable) as lost:
            await append(store, make_event(n=2))

        await until_back(store)
        await append(store, make_event(n=3))

        found = [entry.payload for entry in (await store.journal.read(GlobalSeq(first - 1))).entries]
    assert lost.value.outcome == "unknown"
    assert found in ([{"n": 1}, {"n": 3}], [{"n": 1}, {"n": 2}, {"n": 3}])


async def test_a_read_from_a_hung_server_ends_within_its_timeout_and_writes_nothing(
    peer: Peer,
) -> None:
    async with peer.open() as store:
        head = (await append(store, make_event(n=1)))[0].global_seq
        with peer.server.frozen(), anyio.fail_after(DEADLINE_S), pytest.raises(Unavailable) as lost:
            await store.journal.read(GlobalSeq(0))

        await until_back(store)

        assert lost.value.outcome == "nothing"
        assert (await store.journal.bounds()).head == head


async def test_a_store_on_a_hung_server_closes_within_its_timeout(
    peer: Peer,
) -> None:
    with ExitStack() as stack, anyio.fail_after(DEADLINE_S):
        async with opened(peer.url, timeouts=PATIENT) as store:
            await append(store, make_event(n=1))
            stack.enter_context(peer.server.frozen())
            with anyio.move_on_after(0.1):
                await append(store, make_event(n=2))


async def test_opening_a_store_on_a_hung_server_fails_within_its_timeout(peer: Peer) -> None:
    with peer.server.frozen(), anyio.fail_after(DEADLINE_S), pytest.raises(Unavailable):
        async with peer.open():
            pytest.fail("it was opened")


async def test_a_stream_resumes_after_its_server_hung(peer: Peer) -> None:
    async with peer.open() as store, run_journal(store) as journal:
        await journal.append(make_event(n=1), open=True)
        async with aclosing(journal.stream(from_global_seq=await journal.head() - 1)) as stream:
            await anext(stream)
            await until_listening(store, True)
            with peer.server.frozen():
                await until_listening(store, False)
            await until_back(store)
            await journal.append(make_event(n=2), open=True)

            with anyio.fail_after(DEADLINE_S):
                assert (await anext(stream)).payload == {"n": 2}


async def test_a_half_open_listener_is_detected_and_replaced_by_the_poll(peer: Peer) -> None:
    way = SilentRedis(peer.url) if peer.url.startswith("redis") else Silent(peer.url)
    async with (
        way.open(), opened(peer.url, way.url) as store, peer.open() as other, run_journal(store) as journal,
        aclosing(journal.stream(from_global_seq=await journal.head())) as stream,
    ):  # fmt: skip
        await append(other, make_event(n=1))
        await anext(stream)
        await until_listening(store, True)
        way.is_silent = True
        await until_listening(store, False)

        await append(other, make_event(n=2))

        with anyio.fail_after(DEADLINE_S):
            assert (await anext(stream)).payload == {"n": 2}


async def until_back(store: Store) -> None:
    with anyio.fail_after(DEADLINE_S):
        while True:
            try:
                await store.journal.bounds()
            except Unavailable:
                await anyio.sleep(0.01)
            else:
                return


async def until_listening(store: Store, is_listening: bool) -> None:
    is_redis = isinstance(store, RedisStore)
    wake = store.journal._listener if is_redis else store._database._own_wake  # type: ignore[attr-defined]  # noqa: SLF001
    with anyio.fail_after(DEADLINE_S):
        while wake.is_listening != is_listening:  # noqa: ASYNC110 - there is no event for it
            await anyio.sleep(0.001)
