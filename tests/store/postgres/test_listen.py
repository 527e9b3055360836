"""Notifications on Postgres of entries that this node itself has appended."""

from contextlib import aclosing

import anyio
import pytest

from tape.compose import run_journal
from tape.store.postgres import connection
from tape.store.postgres.store import PostgresStore, open_store
from tests.contract.events import append, make_event
from tests.deadlines import DEADLINE_S


async def test_what_is_appended_past_the_appender_of_this_node_reaches_its_streams_before_the_poll(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "POLL_S", 10 * DEADLINE_S)
    async with (
        open_store(postgres_url) as store, run_journal(store) as journal, aclosing(journal.stream()) as stream,
    ):  # fmt: skip
        await append(store, make_event(n=1))
        await anext(stream)
        await until_listening(store)
        await journal.append(make_event(n=2))  # the notification of this one is under way when the next is appended
        await append(store, make_event(n=3))

        with anyio.fail_after(DEADLINE_S):
            assert [(await anext(stream)).payload for _ in range(2)] == [{"n": 2}, {"n": 3}]


async def until_listening(store: PostgresStore) -> None:
    listener = store._database._own_wake  # noqa: SLF001 - the store does not show it
    with anyio.fail_after(DEADLINE_S):
        while not listener.is_listening:  # noqa: ASYNC110
            await anyio.sleep(0.001)
