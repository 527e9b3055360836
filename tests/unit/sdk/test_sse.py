"""The SDK's stream over connections that break: every id once, in order, or an error that says why not."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial

import anyio
import httpx
import pytest

from tape.core.errors import InvalidCursor, InvalidMaxQueued, NotFound, RunNotFound, SseFramingError, UsageError
from tape.sdk.backoff import Backoff
from tape.sdk.client import AsyncClient
from tape.sdk.sse import Event, EventStream
from tape.sdk.subscription import Subscription
from tape.wire import sse
from tape.wire.frames import ClientEvicted, Delivered, Goaway, ReplayComplete, RunEnd, StateResyncRequired, StreamError
from tests.deadlines import DEADLINE_S
from tests.unit.sdk.fake_server import (
    RUN_END,
    SHORT_RETRY,
    FakeServer,
    Response,
    answered,
    cut_off,
    ended,
    frames,
    held,
    refused,
    serving,
    stopped,
    streamed,
    unmeasured,
)

BYTEWISE = partial(map, lambda byte: bytes([byte]))
CAPABLE = answered(200, b'{"features":{"slow_client_warning":true}}', "application/json")


@asynccontextmanager
async def streaming(*responses: Response, **asked: object) -> AsyncIterator[tuple[FakeServer, EventStream]]:
    """A stream of the run r1, unless asked otherwise, from a server that plays these responses."""
    subscription = Subscription(**(asked or {"run_id": "r1"}))  # type: ignore[arg-type]
    async with serving(*responses) as server, httpx.AsyncClient(base_url=server.url, trust_env=False) as http:
        quick = Backoff(retry=timedelta(milliseconds=1))
        async with EventStream(http, subscription, backoff=quick) as stream:
            with anyio.fail_after(DEADLINE_S):
                yield server, stream


async def everything(stream: EventStream) -> list[Event]:
    return [event async for event in stream]


def ids(events: list[Event]) -> list[int]:
    return [event.id for event in events if isinstance(event, Delivered)]


async def test_a_stream_ends_with_its_run() -> None:
    done = ReplayComplete(replayed_count=2, last_event_id=2)
    async with streaming(ended(SHORT_RETRY, frames(1, 2), sse.synthetic(done), frames(3))) as (server, stream):
        events = await everything(stream)

    assert ids(events) == [1, 2, 3] and done in events
    assert [request.query for request in server.requests] == [{"run_id": "r1"}]
    assert server.requests[0].headers["accept"] == "text/event-stream" and server.cursors == [None]


async def test_a_payload_arrives_as_it_was_published() -> None:
    async with streaming(ended(frames(1))) as (_, stream):
        event, _ = await everything(stream)

    assert isinstance(event, Delivered)
    assert (event.payload, event.run_id, event.global_seq) == ({"n": 1, "text": "é\n\n"}, "r1", 101)


@pytest.mark.parametrize("broken", [cut_off, stopped, unmeasured], ids=["reset", "closed", "without a length"])
async def test_a_broken_connection_is_gone_on_with_after_the_last_id(broken: type) -> None:
    async with streaming(broken(SHORT_RETRY, frames(1, 2)), broken(frames(3)), ended(frames(4))) as (server, stream):
        events = await everything(stream)

    assert ids(events) == [1, 2, 3, 4] and server.cursors == [None, "2", "3"]


async def test_an_answer_that_somebody_finishes_is_not_the_end_of_the_run() -> None:
    responses = [streamed(SHORT_RETRY, frames(1, 2)), streamed(), streamed(frames(3)), ended(frames(4))]
    async with streaming(*responses) as (server, stream):
        events = await everything(stream)

    assert ids(events) == [1, 2, 3, 4] and server.cursors == [None, "2", "2", "3"]
    assert isinstance(events[-1], RunEnd) and isinstance(events[-2], Delivered)


async def test_a_run_has_ended_however_the_connection_ends_after_its_last_frame() -> None:
    async with streaming(cut_off(SHORT_RETRY, frames(1), RUN_END)) as (server, stream):
        events = await everything(stream)

    assert ids(events) == [1] and isinstance(events[-1], RunEnd) and len(server.requests) == 1


async def test_a_cursor_that_is_at_the_end_of_a_closed_run_ends_the_stream() -> None:
    at_end = answered(204, b"", "", **{"X-Tape-Epoch": "5"})
    async with streaming(cut_off(SHORT_RETRY, frames(1, 2)), at_end) as (server, stream):
        events = await everything(stream)

    assert ids(events) == [1, 2] and server.cursors == [None, "2"]


@pytest.mark.parametrize("kept", range(1, len(frames(2)), 7))
async def test_half_a_frame_is_asked_for_again(kept: int) -> None:
    async with streaming(cut_off(SHORT_RETRY, frames(1), frames(2)[:kept]), ended(frames(2, 3))) as (server, stream):
        events = await everything(stream)

    assert ids(events) == [1, 2, 3] and server.cursors[1] == "1"


async def test_frames_may_come_byte_by_byte() -> None:
    async with streaming(ended(*BYTEWISE(SHORT_RETRY + frames(1, 2, 3)))) as (_, stream):
        assert ids(await everything(stream)) == [1, 2, 3]


async def test_a_server_that_repeats_itself_is_delivered_once() -> None:
    async with streaming(cut_off(SHORT_RETRY, frames(1, 2)), ended(frames(1, 2, 3))) as (_, stream):
        assert ids(await everything(stream)) == [1, 2, 3]


async def test_a_server_that_is_away_is_asked_again() -> None:
    responses = [refused, answered(503), answered(500, b"oops", "text/plain"), answered(408), ended(frames(1))]
    async with streaming(*responses) as (server, stream):
        events = await everything(stream)

    assert ids(events) == [1] and len(server.requests) == 5


async def test_a_full_server_is_asked_again_after_its_retry_time() -> None:
    full = answered(429, b'{"code":"subscriber_limit_exceeded","limit":64}', **{"Retry-After": "1"})
    async with streaming(full, ended(frames(1))) as (_, stream):
        started = anyio.current_time()
        events = await everything(stream)

    assert ids(events) == [1] and anyio.current_time() - started >= 1


async def test_the_epoch_goes_back_with_the_cursor() -> None:
    async with streaming(cut_off(SHORT_RETRY), cut_off(frames(1)), ended(frames(2))) as (server, stream):
        await everything(stream)

    assert [request.cursor for request in server.requests] == [(None, None), (None, None), ("1", "5")]


async def test_another_journal_is_read_from_its_own_ids() -> None:
    reset = StateResyncRequired(reason="epoch_reset", last_delivered_id=2, earliest_available_id=1)
    again = cut_off(sse.synthetic(reset), frames(1), epoch=6)
    async with streaming(cut_off(SHORT_RETRY, frames(1, 2)), again, ended(frames(2, 3), epoch=6)) as (server, stream):
        events = await everything(stream)

    assert ids(events) == [1, 2, 1, 2, 3] and events[2] == reset
    assert [request.cursor for request in server.requests][1:] == [("2", "5"), ("1", "6")]


async def test_another_journal_that_begins_under_a_stream_is_come_back_to_as_such() -> None:
    reset = StateResyncRequired(reason="epoch_reset", last_delivered_id=2, earliest_available_id=1, epoch=6)
    under_way = cut_off(SHORT_RETRY, frames(1, 2), sse.synthetic(reset), frames(1))
    async with streaming(under_way, ended(frames(2, 3), epoch=6)) as (server, stream):
        events = await everything(stream)

    assert ids(events) == [1, 2, 1, 2, 3] and events[2] == reset
    assert [request.cursor for request in server.requests] == [(None, None), ("1", "6")]


async def test_a_checkpoint_below_the_cursor_moves_nobody_back() -> None:
    responses = [cut_off(SHORT_RETRY, frames(1, 2, 3), sse.checkpoint(2)), cut_off(sse.checkpoint(7)), ended(frames(8))]
    async with streaming(*responses) as (server, stream):
        events = await everything(stream)

    assert ids(events) == [1, 2, 3, 8] and server.cursors == [None, "3", "7"]


async def test_a_server_that_answers_only_to_fail_is_asked_less_and_less() -> None:
    failure = streamed(sse.synthetic(StreamError(error="the store did not answer")))
    async with streaming(sse_retry(20), failure, failure, failure, failure, ended(frames(1))) as (_, stream):
        await anext(stream)
        started = anyio.current_time()
        events = await everything(stream)

    assert ids(events) == [1] and anyio.current_time() - started >= 0.02 * (1 + 2 + 4 + 8)


def sse_retry(milliseconds: int) -> Response:
    """A stream that sets the pace, and fails."""
    return streamed(sse.retry(milliseconds), sse.synthetic(StreamError(error="the store did not answer")))


async def test_a_reader_cut_off_before_the_frame_of_another_journal_still_belongs_to_the_old_one() -> None:
    responses = [cut_off(SHORT_RETRY, frames(1, 2)), cut_off(epoch=6), ended(frames(3), epoch=6)]
    async with streaming(*responses) as (server, stream):
        await everything(stream)

    assert server.requests[2].cursor == ("2", "5")


async def test_a_gap_is_a_frame_and_the_stream_goes_on() -> None:
    gap = StateResyncRequired(reason="ring_evicted", last_delivered_id=1, earliest_available_id=7)
    async with streaming(cut_off(SHORT_RETRY, frames(1)), ended(sse.synthetic(gap), frames(7, 8))) as (_, stream):
        events = await everything(stream)

    assert events[1] == gap and ids(events) == [1, 7, 8]


async def test_an_evicted_reader_comes_back_after_what_it_got() -> None:
    evicted = ClientEvicted(reason="queue_overflow", dropped_after=2)
    async with streaming(streamed(SHORT_RETRY, frames(1, 2), sse.synthetic(evicted)), ended(frames(3))) as (
        server,
        stream,
    ):
        events = await everything(stream)

    assert ids(events) == [1, 2, 3] and events[2] == evicted and server.cursors[1] == "2"


async def test_an_evicted_reader_that_got_nothing_comes_back_where_the_server_says() -> None:
    evicted = ClientEvicted(reason="queue_overflow", dropped_after=40)
    async with streaming(streamed(SHORT_RETRY, sse.synthetic(evicted)), ended(frames(41))) as (server, stream):
        await everything(stream)

    assert server.cursors[1] == "40"


async def test_a_server_that_shuts_down_sends_when_to_reconnect() -> None:
    leaving = Goaway(reconnect_after_ms=300)
    async with streaming(streamed(SHORT_RETRY, frames(1), sse.synthetic(leaving)), ended(frames(2))) as (_, stream):
        started = anyio.current_time()
        events = await everything(stream)

    assert ids(events) == [1, 2] and leaving in events and anyio.current_time() - started >= 0.3


async def test_a_failure_of_the_server_is_a_frame_and_the_stream_goes_on() -> None:
    failure = StreamError(error="the store did not answer")
    async with streaming(streamed(SHORT_RETRY, frames(1), sse.synthetic(failure)), ended(frames(2))) as (_, stream):
        events = await everything(stream)

    assert ids(events) == [1, 2] and events[1] == failure


async def test_a_checkpoint_moves_the_cursor_and_is_no_event() -> None:
    responses = [
        cut_off(SHORT_RETRY, frames(1, by="global_seq"), sse.checkpoint(900)),
        streamed(frames(801, by="global_seq")),
    ]
    async with streaming(*responses, subject="/a/**", from_global_seq=0) as (server, stream):
        events = [await anext(stream), await anext(stream)]

    assert ids(events) == [101, 901] and server.cursors == [None, "900"]


async def test_a_stream_across_runs_has_no_end_of_its_own() -> None:
    responses = [streamed(SHORT_RETRY, frames(1, by="global_seq")), streamed(frames(2, by="global_seq"))]
    async with streaming(*responses, subject="/a/**", where='type == "x"', from_global_seq=100) as (server, stream):
        events = [await anext(stream), await anext(stream)]

    assert ids(events) == [101, 102] and server.cursors == [None, "101"]
    assert server.requests[0].query == {"subject": "/a/**", "where": 'type == "x"', "from_global_seq": "100"}


async def test_what_is_not_a_frame_is_counted() -> None:
    async with streaming(ended(b"data: {}\n\n", frames(1), b"data: hello\n\n")) as (_, stream):
        events = await everything(stream)

    assert ids(events) == [1] and stream.skipped == 2


async def test_a_refusal_is_the_error_it_was_on_the_server() -> None:
    problem = {"code": "run_not_found", "status": 404, "detail": "run 'r1' is not open"}
    async with streaming(answered(404, json.dumps(problem).encode())) as (server, stream):
        with pytest.raises(RunNotFound) as caught:
            await everything(stream)

    assert caught.value.run_id == "r1" and len(server.requests) == 1


async def test_a_refusal_in_the_middle_is_raised_after_what_had_come() -> None:
    async with streaming(cut_off(SHORT_RETRY, frames(1)), answered(400, b'{"code":"invalid_cursor"}')) as (_, stream):
        assert ids([await anext(stream)]) == [1]
        with pytest.raises(InvalidCursor):
            await anext(stream)


async def test_a_refusal_nobody_knows_still_has_its_family() -> None:
    async with streaming(answered(404, b"<html>")) as (_, stream):
        with pytest.raises(NotFound, match="404"):
            await everything(stream)


@pytest.mark.parametrize("respond", [answered(200, b"<html>", "text/html"), answered(204)], ids=["a page", "nothing"])
async def test_what_is_no_stream_is_refused(respond: Response) -> None:
    async with streaming(respond) as (_, stream):
        with pytest.raises(UsageError, match="not a stream"):
            await everything(stream)


async def test_a_frame_that_never_ends_is_an_error() -> None:
    endless = [b"data: " + b"x" * (1 << 20)] * 17
    async with streaming(streamed(*endless)) as (_, stream):
        with pytest.raises(SseFramingError):
            await everything(stream)


async def test_a_cap_is_asked_for_only_of_a_server_that_can_warn() -> None:
    async with streaming(CAPABLE, cut_off(SHORT_RETRY, frames(1)), ended(frames(2)), run_id="r1", max_queued=16) as (
        server,
        stream,
    ):
        await everything(stream)

    assert [request.path for request in server.requests] == ["/capabilities", "/events", "/events"]
    assert server.requests[2].query == {"run_id": "r1", "maxQueued": "16"}


async def test_a_cap_of_a_server_that_cannot_warn_is_refused() -> None:
    unable = answered(200, b'{"features":{"session_events":true}}', "application/json")
    async with streaming(unable, run_id="r1", max_queued=16) as (server, stream):
        with pytest.raises(UsageError, match="slow_client_warning"):
            await everything(stream)

    assert len(server.requests) == 1


async def test_a_cancelled_read_loses_no_event() -> None:
    responses = [held(SHORT_RETRY, frames(1), until=asyncio.Event()), ended(frames(2, 3))]
    async with streaming(*responses) as (server, stream):
        first = await anext(stream)
        with anyio.move_on_after(0.05):
            await anext(stream)
        events = [first, *await everything(stream)]

    assert ids(events) == [1, 2, 3] and server.cursors == [None, "1"]


async def test_a_server_that_falls_silent_is_left() -> None:
    responses = [held(SHORT_RETRY, frames(1), until=asyncio.Event()), ended(frames(2))]
    silence = httpx.Timeout(5, read=0.1)
    async with (
        serving(*responses) as server,
        httpx.AsyncClient(base_url=server.url, timeout=silence, trust_env=False) as http,
    ):
        with anyio.fail_after(DEADLINE_S):
            events = await everything(EventStream(http, Subscription(run_id="r1")))

    assert ids(events) == [1, 2] and server.cursors == [None, "1"]


async def test_a_client_has_as_many_streams_as_it_opens() -> None:
    many = [held(frames(1), until=asyncio.Event()) for _ in range(120)]
    async with serving(*many) as server, AsyncClient(server.url) as client:
        with anyio.fail_after(DEADLINE_S):
            streams = [client.events(run_id="r1") for _ in many]
            events = [await anext(stream) for stream in streams]

    assert ids(events) == [1] * 120


async def test_a_closed_stream_returns_nothing_more() -> None:
    async with streaming(held(SHORT_RETRY, frames(1, 2), until=asyncio.Event())) as (_, stream):
        await anext(stream)
        await stream.aclose()

        assert await everything(stream) == []


async def test_a_client_streams_what_it_is_asked_for() -> None:
    async with serving(ended(frames(4, 5))) as server, AsyncClient(server.url) as client:
        with anyio.fail_after(DEADLINE_S):
            async with client.events(run_id="r1", from_seq=4, slow="lag") as stream:
                events = await everything(stream)

    assert ids(events) == [4, 5] and server.requests[0].query == {"run_id": "r1", "from_seq": "4", "slow": "lag"}


@pytest.mark.parametrize("url", ["tape://localhost:7878", "localhost:7880", "sqlite:///x.db", ""])
def test_a_client_needs_an_http_url(url: str) -> None:
    with pytest.raises(UsageError, match="http"):
        AsyncClient(url)


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"run_id": "no run"}, UsageError),
        ({"run_id": "r1", "from_seq": -1}, InvalidCursor),
        ({"run_id": "r1", "from_global_seq": 1}, InvalidCursor),
        ({"from_seq": 1}, InvalidCursor),
        ({"subject": "no/slash"}, UsageError),
        ({"run_id": "r1", "max_queued": 15}, InvalidMaxQueued),
        ({"run_id": "r1", "slow": "maybe"}, UsageError),
    ],
)
def test_what_no_server_would_answer_is_not_asked(asked: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        Subscription(**asked)  # type: ignore[arg-type]
