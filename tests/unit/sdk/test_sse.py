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
from tests.patience import PATIENCE_S
from tests.unit.sdk.stage import (
    EAGER,
    RUN_END,
    Act,
    Stage,
    answered,
    cut_off,
    ended,
    held,
    played,
    refused,
    stopped,
    streamed,
    told,
    unmeasured,
)

BYTEWISE = partial(map, lambda byte: bytes([byte]))
CAPABLE = answered(200, b'{"features":{"slow_client_warning":true}}', "application/json")


@asynccontextmanager
async def streaming(*acts: Act, **asked: object) -> AsyncIterator[tuple[Stage, EventStream]]:
    """A stream of the run r1, unless asked otherwise, from a server that plays these acts."""
    subscription = Subscription(**(asked or {"run_id": "r1"}))  # type: ignore[arg-type]
    async with played(*acts) as stage, httpx.AsyncClient(base_url=stage.url, trust_env=False) as http:
        quick = Backoff(retry=timedelta(milliseconds=1))
        async with EventStream(http, subscription, backoff=quick) as stream:
            with anyio.fail_after(PATIENCE_S):
                yield stage, stream


async def everything(stream: EventStream) -> list[Event]:
    return [event async for event in stream]


def ids(events: list[Event]) -> list[int]:
    return [event.id for event in events if isinstance(event, Delivered)]


async def test_a_stream_ends_with_its_run() -> None:
    done = ReplayComplete(replayed_count=2, last_event_id=2)
    async with streaming(ended(EAGER, told(1, 2), sse.synthetic(done), told(3))) as (stage, stream):
        events = await everything(stream)

    assert ids(events) == [1, 2, 3] and done in events
    assert [request.query for request in stage.asked] == [{"run_id": "r1"}]
    assert stage.asked[0].headers["accept"] == "text/event-stream" and stage.cursors == [None]


async def test_a_payload_arrives_as_it_was_said() -> None:
    async with streaming(ended(told(1))) as (_, stream):
        event, _ = await everything(stream)

    assert isinstance(event, Delivered)
    assert (event.payload, event.run_id, event.global_seq) == ({"n": 1, "text": "é\n\n"}, "r1", 101)


@pytest.mark.parametrize("broken", [cut_off, stopped, unmeasured], ids=["reset", "closed", "without a length"])
async def test_a_broken_connection_is_gone_on_with_after_the_last_id(broken: type) -> None:
    async with streaming(broken(EAGER, told(1, 2)), broken(told(3)), ended(told(4))) as (stage, stream):
        events = await everything(stream)

    assert ids(events) == [1, 2, 3, 4] and stage.cursors == [None, "2", "3"]


async def test_an_answer_that_somebody_finishes_is_not_the_end_of_the_run() -> None:
    acts = [streamed(EAGER, told(1, 2)), streamed(), streamed(told(3)), ended(told(4))]
    async with streaming(*acts) as (stage, stream):
        events = await everything(stream)

    assert ids(events) == [1, 2, 3, 4] and stage.cursors == [None, "2", "2", "3"]
    assert isinstance(events[-1], RunEnd) and isinstance(events[-2], Delivered)


async def test_a_run_has_ended_however_the_connection_ends_after_its_last_frame() -> None:
    async with streaming(cut_off(EAGER, told(1), RUN_END)) as (stage, stream):
        events = await everything(stream)

    assert ids(events) == [1] and isinstance(events[-1], RunEnd) and len(stage.asked) == 1


async def test_a_cursor_that_is_at_the_end_of_a_closed_run_ends_the_stream() -> None:
    at_end = answered(204, b"", "", **{"X-Tape-Epoch": "5"})
    async with streaming(cut_off(EAGER, told(1, 2)), at_end) as (stage, stream):
        events = await everything(stream)

    assert ids(events) == [1, 2] and stage.cursors == [None, "2"]


@pytest.mark.parametrize("kept", range(1, len(told(2)), 7))
async def test_half_a_frame_is_asked_for_again(kept: int) -> None:
    async with streaming(cut_off(EAGER, told(1), told(2)[:kept]), ended(told(2, 3))) as (stage, stream):
        events = await everything(stream)

    assert ids(events) == [1, 2, 3] and stage.cursors[1] == "1"


async def test_frames_may_come_byte_by_byte() -> None:
    async with streaming(ended(*BYTEWISE(EAGER + told(1, 2, 3)))) as (_, stream):
        assert ids(await everything(stream)) == [1, 2, 3]


async def test_a_server_that_repeats_itself_is_heard_once() -> None:
    async with streaming(cut_off(EAGER, told(1, 2)), ended(told(1, 2, 3))) as (_, stream):
        assert ids(await everything(stream)) == [1, 2, 3]


async def test_a_server_that_is_away_is_asked_again() -> None:
    acts = [refused, answered(503), answered(500, b"oops", "text/plain"), answered(408), ended(told(1))]
    async with streaming(*acts) as (stage, stream):
        events = await everything(stream)

    assert ids(events) == [1] and len(stage.asked) == 5


async def test_a_full_server_is_asked_again_when_it_said() -> None:
    full = answered(429, b'{"code":"subscriber_limit_exceeded","limit":64}', **{"Retry-After": "1"})
    async with streaming(full, ended(told(1))) as (_, stream):
        started = anyio.current_time()
        events = await everything(stream)

    assert ids(events) == [1] and anyio.current_time() - started >= 1


async def test_the_epoch_goes_back_with_the_cursor() -> None:
    async with streaming(cut_off(EAGER), cut_off(told(1)), ended(told(2))) as (stage, stream):
        await everything(stream)

    assert [request.cursor for request in stage.asked] == [(None, None), (None, None), ("1", "5")]


async def test_another_journal_is_read_from_its_own_ids() -> None:
    reset = StateResyncRequired(reason="epoch_reset", last_delivered_id=2, earliest_available_id=1)
    again = cut_off(sse.synthetic(reset), told(1), epoch=6)
    async with streaming(cut_off(EAGER, told(1, 2)), again, ended(told(2, 3), epoch=6)) as (stage, stream):
        events = await everything(stream)

    assert ids(events) == [1, 2, 1, 2, 3] and events[2] == reset
    assert [request.cursor for request in stage.asked][1:] == [("2", "5"), ("1", "6")]


async def test_another_journal_that_begins_under_a_stream_is_come_back_to_as_such() -> None:
    reset = StateResyncRequired(reason="epoch_reset", last_delivered_id=2, earliest_available_id=1, epoch=6)
    under_way = cut_off(EAGER, told(1, 2), sse.synthetic(reset), told(1))
    async with streaming(under_way, ended(told(2, 3), epoch=6)) as (stage, stream):
        events = await everything(stream)

    assert ids(events) == [1, 2, 1, 2, 3] and events[2] == reset
    assert [request.cursor for request in stage.asked] == [(None, None), ("1", "6")]


async def test_a_checkpoint_below_the_cursor_moves_nobody_back() -> None:
    acts = [cut_off(EAGER, told(1, 2, 3), sse.checkpoint(2)), cut_off(sse.checkpoint(7)), ended(told(8))]
    async with streaming(*acts) as (stage, stream):
        events = await everything(stream)

    assert ids(events) == [1, 2, 3, 8] and stage.cursors == [None, "3", "7"]


async def test_a_server_that_answers_only_to_fail_is_asked_less_and_less() -> None:
    failure = streamed(sse.synthetic(StreamError(error="the store did not answer")))
    async with streaming(sse_retry(20), failure, failure, failure, failure, ended(told(1))) as (_, stream):
        await anext(stream)
        started = anyio.current_time()
        events = await everything(stream)

    assert ids(events) == [1] and anyio.current_time() - started >= 0.02 * (1 + 2 + 4 + 8)


def sse_retry(milliseconds: int) -> Act:
    """A stream that sets the pace, and fails."""
    return streamed(sse.retry(milliseconds), sse.synthetic(StreamError(error="the store did not answer")))


async def test_a_reader_cut_off_before_it_was_told_of_another_journal_still_belongs_to_the_old_one() -> None:
    acts = [cut_off(EAGER, told(1, 2)), cut_off(epoch=6), ended(told(3), epoch=6)]
    async with streaming(*acts) as (stage, stream):
        await everything(stream)

    assert stage.asked[2].cursor == ("2", "5")


async def test_a_gap_is_told_and_the_stream_goes_on() -> None:
    gap = StateResyncRequired(reason="ring_evicted", last_delivered_id=1, earliest_available_id=7)
    async with streaming(cut_off(EAGER, told(1)), ended(sse.synthetic(gap), told(7, 8))) as (_, stream):
        events = await everything(stream)

    assert events[1] == gap and ids(events) == [1, 7, 8]


async def test_an_evicted_reader_comes_back_after_what_it_got() -> None:
    evicted = ClientEvicted(reason="queue_overflow", dropped_after=2)
    async with streaming(streamed(EAGER, told(1, 2), sse.synthetic(evicted)), ended(told(3))) as (stage, stream):
        events = await everything(stream)

    assert ids(events) == [1, 2, 3] and events[2] == evicted and stage.cursors[1] == "2"


async def test_an_evicted_reader_that_got_nothing_comes_back_where_the_server_says() -> None:
    evicted = ClientEvicted(reason="queue_overflow", dropped_after=40)
    async with streaming(streamed(EAGER, sse.synthetic(evicted)), ended(told(41))) as (stage, stream):
        await everything(stream)

    assert stage.cursors[1] == "40"


async def test_a_server_that_leaves_says_when_to_come_back() -> None:
    leaving = Goaway(reconnect_after_ms=300)
    async with streaming(streamed(EAGER, told(1), sse.synthetic(leaving)), ended(told(2))) as (_, stream):
        started = anyio.current_time()
        events = await everything(stream)

    assert ids(events) == [1, 2] and leaving in events and anyio.current_time() - started >= 0.3


async def test_a_failure_of_the_server_is_told_and_survived() -> None:
    failure = StreamError(error="the store did not answer")
    async with streaming(streamed(EAGER, told(1), sse.synthetic(failure)), ended(told(2))) as (_, stream):
        events = await everything(stream)

    assert ids(events) == [1, 2] and events[1] == failure


async def test_a_checkpoint_moves_the_cursor_and_tells_nothing() -> None:
    acts = [cut_off(EAGER, told(1, by="global_seq"), sse.checkpoint(900)), streamed(told(801, by="global_seq"))]
    async with streaming(*acts, subject="/a/**", from_global_seq=0) as (stage, stream):
        events = [await anext(stream), await anext(stream)]

    assert ids(events) == [101, 901] and stage.cursors == [None, "900"]


async def test_a_stream_across_runs_has_no_end_of_its_own() -> None:
    acts = [streamed(EAGER, told(1, by="global_seq")), streamed(told(2, by="global_seq"))]
    async with streaming(*acts, subject="/a/**", where='type == "x"', from_global_seq=100) as (stage, stream):
        events = [await anext(stream), await anext(stream)]

    assert ids(events) == [101, 102] and stage.cursors == [None, "101"]
    assert stage.asked[0].query == {"subject": "/a/**", "where": 'type == "x"', "from_global_seq": "100"}


async def test_what_is_not_a_frame_is_counted() -> None:
    async with streaming(ended(b"data: {}\n\n", told(1), b"data: hello\n\n")) as (_, stream):
        events = await everything(stream)

    assert ids(events) == [1] and stream.skipped == 2


async def test_a_refusal_is_the_error_it_was_on_the_server() -> None:
    problem = {"code": "run_not_found", "status": 404, "detail": "run 'r1' is not open"}
    async with streaming(answered(404, json.dumps(problem).encode())) as (stage, stream):
        with pytest.raises(RunNotFound) as caught:
            await everything(stream)

    assert caught.value.run_id == "r1" and len(stage.asked) == 1


async def test_a_refusal_in_the_middle_is_raised_after_what_had_come() -> None:
    async with streaming(cut_off(EAGER, told(1)), answered(400, b'{"code":"invalid_cursor"}')) as (_, stream):
        assert ids([await anext(stream)]) == [1]
        with pytest.raises(InvalidCursor):
            await anext(stream)


async def test_a_refusal_nobody_knows_still_has_its_family() -> None:
    async with streaming(answered(404, b"<html>")) as (_, stream):
        with pytest.raises(NotFound, match="404"):
            await everything(stream)


@pytest.mark.parametrize("act", [answered(200, b"<html>", "text/html"), answered(204)], ids=["a page", "nothing"])
async def test_what_is_no_stream_is_refused(act: Act) -> None:
    async with streaming(act) as (_, stream):
        with pytest.raises(UsageError, match="not a stream"):
            await everything(stream)


async def test_a_frame_that_never_ends_is_an_error() -> None:
    endless = [b"data: " + b"x" * (1 << 20)] * 17
    async with streaming(streamed(*endless)) as (_, stream):
        with pytest.raises(SseFramingError):
            await everything(stream)


async def test_a_cap_is_asked_for_only_of_a_server_that_can_warn() -> None:
    async with streaming(CAPABLE, cut_off(EAGER, told(1)), ended(told(2)), run_id="r1", max_queued=16) as (
        stage,
        stream,
    ):
        await everything(stream)

    assert [request.path for request in stage.asked] == ["/capabilities", "/events", "/events"]
    assert stage.asked[2].query == {"run_id": "r1", "maxQueued": "16"}


async def test_a_cap_of_a_server_that_cannot_warn_is_refused() -> None:
    unable = answered(200, b'{"features":{"session_events":true}}', "application/json")
    async with streaming(unable, run_id="r1", max_queued=16) as (stage, stream):
        with pytest.raises(UsageError, match="slow_client_warning"):
            await everything(stream)

    assert len(stage.asked) == 1


async def test_a_cancelled_read_loses_no_event() -> None:
    acts = [held(EAGER, told(1), until=asyncio.Event()), ended(told(2, 3))]
    async with streaming(*acts) as (stage, stream):
        first = await anext(stream)
        with anyio.move_on_after(0.05):
            await anext(stream)
        events = [first, *await everything(stream)]

    assert ids(events) == [1, 2, 3] and stage.cursors == [None, "1"]


async def test_a_server_that_falls_silent_is_left() -> None:
    acts = [held(EAGER, told(1), until=asyncio.Event()), ended(told(2))]
    silence = httpx.Timeout(5, read=0.1)
    async with played(*acts) as stage, httpx.AsyncClient(base_url=stage.url, timeout=silence, trust_env=False) as http:
        with anyio.fail_after(PATIENCE_S):
            events = await everything(EventStream(http, Subscription(run_id="r1")))

    assert ids(events) == [1, 2] and stage.cursors == [None, "1"]


async def test_a_client_has_as_many_streams_as_it_opens() -> None:
    many = [held(told(1), until=asyncio.Event()) for _ in range(120)]
    async with played(*many) as stage, AsyncClient(stage.url) as client:
        with anyio.fail_after(PATIENCE_S):
            streams = [client.events(run_id="r1") for _ in many]
            events = [await anext(stream) for stream in streams]

    assert ids(events) == [1] * 120


async def test_a_closed_stream_tells_nothing_more() -> None:
    async with streaming(held(EAGER, told(1, 2), until=asyncio.Event())) as (_, stream):
        await anext(stream)
        await stream.aclose()

        assert await everything(stream) == []


async def test_a_client_streams_what_it_is_asked_for() -> None:
    async with played(ended(told(4, 5))) as stage, AsyncClient(stage.url) as client:
        with anyio.fail_after(PATIENCE_S):
            async with client.events(run_id="r1", from_seq=4, slow="lag") as stream:
                events = await everything(stream)

    assert ids(events) == [4, 5] and stage.asked[0].query == {"run_id": "r1", "from_seq": "4", "slow": "lag"}


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
