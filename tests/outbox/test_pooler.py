"""The outbox behind PgBouncer in transaction mode, if PgBouncer is installed."""

import logging
from collections.abc import Iterator

import anyio
import pytest

from tests.deadlines import DEADLINE_S
from tests.outbox.business_database import BusinessDatabase, RecordingHandler, make_event
from tests.servers import binaries
from tests.servers.pgbouncer import PgBouncerServer

PROGRAM = binaries.pgbouncer()

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no PgBouncer here; install one, or name it")


@pytest.fixture
def pooled(postgres_url: str) -> Iterator[BusinessDatabase]:
    assert PROGRAM is not None
    with PgBouncerServer(PROGRAM, postgres_url) as server:
        yield BusinessDatabase("postgres", server.url(postgres_url))


def logged(caplog: pytest.LogCaptureFixture) -> set[str]:
    return {record.getMessage() for record in caplog.records}


async def test_o07_a_listener_behind_a_pooler_logs_it_and_polls(
    pooled: BusinessDatabase, postgres: BusinessDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tape")
    seen = RecordingHandler()

    async with pooled.listening({"orders.seen": seen}) as listener:
        await postgres.publish(make_event(1))
        await seen.wait_for(1)
        await postgres.publish(make_event(2))
        await postgres.wait_until("delivered", 2, within_s=DEADLINE_S)
        is_listening = listener.is_listening

    assert seen.numbers == [1, 2] and not is_listening
    assert {"outbox.pooled", "outbox.degraded"} <= logged(caplog)


async def test_with_a_direct_listen_connection_notifications_arrive(
    pooled: BusinessDatabase, postgres: BusinessDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tape")
    seen = RecordingHandler()

    async with pooled.listening({"orders.seen": seen}, listen_url=postgres.url) as listener:
        with anyio.fail_after(DEADLINE_S):
            while not listener.is_listening:  # noqa: ASYNC110 - there is no event for it
                await anyio.sleep(0.01)
        await postgres.publish(make_event(1))
        await seen.wait_for(1)

    assert "outbox.degraded" not in logged(caplog)
