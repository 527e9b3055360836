"""Where producers that know no event loop say their events."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing, suppress
from threading import Lock
from typing import Final, Protocol

import anyio
from anyio import to_thread
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from tape.bus.broker import Broker
from tape.bus.operations import Receipt
from tape.core.envelope import EventEnvelope
from tape.core.event import Event
from tape.core.ids import RunId, Seq
from tape.core.run import RunMeta

BATCH: Final = 1_000


class EnvelopeSink(Protocol):
    """Where copies of runs are kept; `write` keeps all of what it is given or nothing."""

    def write(self, envelopes: Sequence[EventEnvelope]) -> object: ...


class BrokerEventSink:
    """The events of one run, emitted in any thread; who is given a loop need not have used the broker there."""

    def __init__(self, broker: Broker, run_id: RunId, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._broker = broker
        self._run_id = run_id
        self._loop = loop

    def emit(self, event: Event) -> Receipt[Seq]:
        """Returns at once; the receipt has the event's place as soon as it is stored, or what went wrong."""
        receipt = self._broker.emit(self._run_id, event)
        if self._loop is not None:
            self._broker.start_in(self._loop)
        return receipt


class MultiRunBrokerSink:
    """The events of many runs: each is opened with its first event and closed with all the others.

    With a `db_sink` each run is written there while it goes on, by the broker's own task.
    """

    def __init__(
        self,
        broker: Broker,
        db_sink: EnvelopeSink | None = None,
        *,
        label: str | None = None,
        started_at: str | None = None,
    ) -> None:
        self._broker = broker
        self._db_sink = db_sink
        self._meta = RunMeta(label=label, started_at=started_at)
        self._lock = Lock()
        self._runs: dict[RunId, Receipt[None] | None] = {}

    def emit(self, event: Event) -> Receipt[Seq]:
        """Returns at once; the receipt has the event's place as soon as it is stored, or what went wrong."""
        with self._lock:
            if event.run_id not in self._runs:
                self._begin(event.run_id)
            return self._broker.emit(event.run_id, event)

    async def close_all(self) -> None:
        """Stores what was emitted, closes the runs, waits until they are written, and reaps those that are.

        It raises the first failure there was, of an event or of a copy, after everything else has been done.
        """
        with self._lock:
            runs, self._runs = self._runs, {}
        for run_id in runs:
            self._broker.close_run(run_id)
        failures = [await self._end(run_id, copy) for run_id, copy in runs.items()]
        await self._broker.flush()
        for failure in filter(None, failures):
            raise failure

    def _begin(self, run_id: RunId) -> None:
        if not self._broker.is_open(run_id):
            self._broker.open_run(run_id, self._meta)
        copy = None
        if (db_sink := self._db_sink) is not None:
            copy = self._broker.spawn(lambda: _Copy(self._broker, run_id, db_sink).write())
        self._runs[run_id] = copy

    async def _end(self, run_id: RunId, copy: Receipt[None] | None) -> Exception | None:
        """Lets go of a run once its copy is whole; one whose copy failed is kept."""
        try:
            if copy is not None:
                await copy
        except Exception as error:  # noqa: BLE001 - it is raised when the other runs have been ended
            return error
        self._broker.reap(run_id)
        return None


class _Copy:
    """One run on its way to where it is kept: what arrives during a write leaves with the next one."""

    def __init__(self, broker: Broker, run_id: RunId, db_sink: EnvelopeSink) -> None:
        self._broker = broker
        self._run_id = run_id
        self._db_sink = db_sink

    async def write(self) -> None:
        into, out_of = anyio.create_memory_object_stream[EventEnvelope](BATCH)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read, into)
                await self._write(out_of)
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from failed

    async def _read(self, into: MemoryObjectSendStream[EventEnvelope]) -> None:
        async with into, aclosing(self._broker.stream(self._run_id)) as envelopes:
            async for envelope in envelopes:
                await into.send(envelope)

    async def _write(self, out_of: MemoryObjectReceiveStream[EventEnvelope]) -> None:
        async with out_of:
            async for first in out_of:
                await to_thread.run_sync(self._db_sink.write, [first, *_waiting(out_of)])


def _waiting(out_of: MemoryObjectReceiveStream[EventEnvelope]) -> list[EventEnvelope]:
    """What is there already."""
    found: list[EventEnvelope] = []
    with suppress(anyio.WouldBlock, anyio.EndOfStream):
        while len(found) < BATCH:
            found.append(out_of.receive_nowait())
    return found
