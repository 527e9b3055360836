"""The brokers under contract, and helpers that publish and read."""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field

import anyio
import pytest

from tape.broker import EventEnvelope, InProcessEventBroker, JournalBroker, RedisStreamsBroker, RunId, Seq
from tape.bus.broker import Broker
from tape.core.event import Event
from tape.core.lease import Lease
from tests.contract.events import make_event
from tests.deadlines import DEADLINE_S

R1, R2 = RunId("r1"), RunId("r2")
NAMES = ("inprocess", "redis", "sqlite", "postgres")

# Marks that run a test on some brokers only.
bounded = pytest.mark.parametrize("brokers", ["inprocess", "redis"], indirect=True)
durable = pytest.mark.parametrize("brokers", ["sqlite", "postgres"], indirect=True)
shared = pytest.mark.parametrize("brokers", ["redis", "sqlite", "postgres"], indirect=True)


@dataclass(frozen=True, slots=True)
class Brokers:
    """Creates brokers over the same data, and closes them after the test."""

    name: str
    url: str
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    @property
    def is_shared(self) -> bool:
        return self.name != "inprocess"

    def make(self, *, max_events: int = 10_000, lease: Lease | None = None) -> Broker:
        broker = self._made(max_events, lease)
        self.stack.push_async_callback(broker.aclose)
        return broker

    def _made(self, max_events: int, lease: Lease | None) -> Broker:
        match self.name:
            case "inprocess":
                return InProcessEventBroker(max_events=max_events, lease=lease)
            case "redis":
                return RedisStreamsBroker(self.url, max_events=max_events, lease=lease)
            case _:
                return JournalBroker(self.url, max_events=max_events, lease=lease)


async def publish(broker: Broker, count: int, run_id: RunId = R1) -> list[Event]:
    """Publishes numbered events one after the other."""
    events = [make_event(run_id, n) for n in range(1, count + 1)]
    for event in events:
        await broker.publish(run_id, event)
    return events


async def filled(broker: Broker, count: int, run_id: RunId = R1) -> list[Event]:
    """Publishes numbered events to a run and closes it."""
    broker.open_run(run_id)
    events = await publish(broker, count, run_id)
    broker.close_run(run_id)
    return events


async def drained(broker: Broker, run_id: RunId = R1, from_seq: int = 0) -> list[EventEnvelope]:
    """All envelopes until the stream ends."""
    with anyio.fail_after(DEADLINE_S):
        return [envelope async for envelope in broker.stream(run_id, Seq(from_seq))]


async def taken(broker: Broker, count: int, run_id: RunId = R1) -> list[EventEnvelope]:
    """The first envelopes of a stream, which is then closed."""
    found: list[EventEnvelope] = []
    with anyio.fail_after(DEADLINE_S):
        async with aclosing(broker.stream(run_id)) as stream:
            while len(found) < count:
                found.append(await anext(stream))
    return found


async def until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(DEADLINE_S):
        while True:
            if condition():
                return
            await anyio.sleep(0.01)


def places(envelopes: Sequence[EventEnvelope]) -> list[int]:
    return [envelope.seq for envelope in envelopes]


def counted(*, published: int = 0, streamed: int = 0, dropped: int = 0, runs_open: int = 0) -> dict[str, int]:
    """The metrics of a broker as a dictionary."""
    counts = {"events_published": published, "events_streamed": streamed}
    return {**counts, "streams_dropped": dropped, "runs_open": runs_open}


class Listener:
    """A reader in a task of its own: its envelopes so far, and whether its stream has ended."""

    def __init__(self, broker: Broker, run_id: RunId = R1) -> None:
        self._broker = broker
        self._run_id = run_id
        self.got: list[EventEnvelope] = []
        self.error: Exception | None = None
        self.is_over = anyio.Event()
        self.scope = anyio.CancelScope()

    async def listen(self) -> None:
        with self.scope:
            try:
                async with aclosing(self._broker.stream(self._run_id)) as stream:
                    async for envelope in stream:
                        self.got.append(envelope)
            except Exception as error:
                self.error = error
        self.is_over.set()

    async def has(self, count: int) -> None:
        """Waits for so many envelopes."""
        await until(lambda: len(self.got) >= count)

    async def over(self) -> None:
        with anyio.fail_after(DEADLINE_S):
            await self.is_over.wait()
