"""Events of gRPC that come after the event loop of their call was closed."""

import asyncio
from typing import Any

import anyio
import grpc
import pytest

from tape.wire.late_events import accept_late_events
from tests.deadlines import DEADLINE_S


class Loop(asyncio.SelectorEventLoop):
    """Counts what is passed on to it from elsewhere."""

    passed_on = 0

    def call_soon_threadsafe(self, *args: Any, **options: Any) -> Any:  # type: ignore[override]
        self.passed_on += 1
        return super().call_soon_threadsafe(*args, **options)


async def watch() -> Any:
    """A channel with a watch whose event comes when the channel is closed."""
    accept_late_events()
    channel = grpc.aio.insecure_channel("127.0.0.1:9")
    with anyio.move_on_after(0):
        await channel.wait_for_state_change(grpc.ChannelConnectivity.IDLE)
    return channel


async def errors_after_closing(channel: Any, closed: Loop) -> list[Any]:
    """What fails in this loop when the event for another comes."""
    errors: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context["exception"]))
    before = closed.passed_on
    async with grpc.aio.insecure_channel("127.0.0.1:9"):  # from here on this loop takes events
        await channel.close()
        with anyio.fail_after(DEADLINE_S):
            while closed.passed_on == before:  # noqa: ASYNC110 - nothing tells us
                await anyio.sleep(0.001)
    return errors


def test_an_event_for_a_closed_loop_does_not_fail_in_the_next() -> None:
    with asyncio.Runner(loop_factory=Loop) as first:
        channel, loop = first.run(watch()), first.get_loop()
    assert isinstance(loop, Loop)

    assert asyncio.run(errors_after_closing(channel, loop)) == []


def test_a_closed_loop_still_refuses_what_is_not_an_event_of_grpc() -> None:
    async def accept_twice() -> asyncio.AbstractEventLoop:
        accept_late_events()
        accept_late_events()
        return asyncio.get_running_loop()

    closed = asyncio.run(accept_twice())

    with pytest.raises(RuntimeError, match="closed"):
        closed.call_soon_threadsafe(print)
