"""Notifications on Postgres of entries that this node itself has appended."""

import logging
from contextlib import aclosing

import anyio
import pytest

from tape.compose import run_journal
from tape.store.postgres import connection
from tape.store.postgres.store import PostgresStore, open_store
from tests.contract.events import append, make_event
from tests.deadlines import DEADLINE_S
from tests.servers.databases import fetch

END_LISTENERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"
)


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


async def test_a_journal_whose_notifications_stop_arriving_logs_that_it_polls_and_when_it_recovers(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with (
        open_store(postgres_url) as store, run_journal(store) as journal, aclosing(journal.stream()) as stream,
    ):  # fmt: skip
        await append(store, make_event(n=1))
        await anext(stream)
        await until_listening(store)
        fetch(postgres_url, END_LISTENERS)

        with anyio.fail_after(DEADLINE_S):
            while "journal.recovered" not in caplog.messages:  # noqa: ASYNC110 - only the log tells
                await anyio.sleep(0.01)

    assert caplog.messages.count("journal.degraded") == 1


async def until_listening(store: PostgresStore) -> None:
    listener = store._database._own_wake  # noqa: SLF001 - the store does not show it
    with anyio.fail_after(DEADLINE_S):
        while not listener.is_listening:  # noqa: ASYNC110
            await anyio.sleep(0.001)
