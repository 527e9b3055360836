"""A database that keeps its connections open and does not answer: the listener times out and recovers."""

import asyncio
from datetime import timedelta

import anyio
import pytest

from tape.core.errors import Unavailable
from tape.core.task import ClaimRequest
from tape.outbox.database import open_outbox
from tape.store.outbox.deliveries import Deliveries
from tape.store.outbox.versions import HandlerVersions
from tests.deadlines import DEADLINE_S
from tests.outbox.business_database import BusinessDatabase, make_event
from tests.outbox.test_claims import MINE
from tests.servers.proxy import Proxy

CLAIM = ClaimRequest(owner="me", reaction_ids=("test.mine",), lease=timedelta(minutes=1))
ANSWER_S = 0.3


class Silent(Proxy):
    """A proxy that drops the server's answers while the connections stay open."""

    is_silent = False

    async def _answer(self, server: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        while answer := await server.read(65_536):
            if not self.is_silent:
                to_client.write(answer)


async def test_a_half_open_connection_is_dropped_and_the_request_repeated(postgres: BusinessDatabase) -> None:
    proxy = Silent(postgres.url)
    await postgres.publish(make_event(1))

    async with proxy.open(), open_outbox(proxy.url) as database:
        deliveries = Deliveries(database, [MINE], {}, answer_s=ANSWER_S)
        await HandlerVersions(database, [MINE]).register()
        proxy.is_silent = True
        with anyio.fail_after(DEADLINE_S), pytest.raises(Unavailable, match="answer"):
            await deliveries.claim(CLAIM)
        proxy.is_silent = False

        await postgres.run("UPDATE core.outbox_deliveries SET next_attempt_at = 'epoch'")
        with anyio.fail_after(DEADLINE_S):
            assert len((await deliveries.claim(CLAIM)).tasks) == 1
