"""A line that breaks anywhere, any number of times, costs a reader nothing."""

from datetime import timedelta

import anyio
import httpx
from hypothesis import given, strategies as st

from tape.sdk.backoff import Backoff
from tape.sdk.sse import EventStream
from tape.sdk.subscription import Subscription
from tape.wire.frames import Delivered
from tests.deadlines import DEADLINE_S
from tests.unit.sdk.fake_server import frames, resuming, serving

LAST = 6
ENOUGH = 2 * len(frames(*range(1, LAST + 1)))
QUICK = Backoff(retry=timedelta(0))


@given(breaks=st.lists(st.integers(1, ENOUGH), max_size=8))
async def test_every_id_comes_once_and_in_order_over_any_breaks(breaks: list[int]) -> None:
    responses = [resuming(LAST, most=most) for most in (*breaks, ENOUGH)]
    async with serving(*responses) as server, httpx.AsyncClient(base_url=server.url, trust_env=False) as http:
        stream = EventStream(http, Subscription(run_id="r1"), backoff=QUICK)
        with anyio.fail_after(DEADLINE_S):
            events = [event async for event in stream]

    assert [event.id for event in events if isinstance(event, Delivered)] == list(range(1, LAST + 1))
