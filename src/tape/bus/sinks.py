"""Sinks: where producers without an event loop emit their events."""

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
    """Stores copies of runs; `write` stores all of its envelopes or none."""

    def write(self, envelopes: Sequence[EventEnvelope]) -> object: ...


class BrokerEventSink:
    """Emits the events of one run from any thread; given a loop, it starts the broker's task there."""

    def __init__(self, broker: Broker, run_id: RunId, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._broker = broker
        self._run_id = run_id
        self._loop = loop

    def emit(self, event: Event) -> Receipt[Seq]:
        """Returns at once; the receipt gets the event's seq when it is stored, or the error."""
        receipt = self._broker.emit(self._run_id, event)
        if self._loop is not None:
            self._broker.start_in(self._loop)
        return receipt


class MultiRunBrokerSink:
    """Emits the events of many runs: opens each with its first event, and closes all of them together.

    With a `db_sink` the broker's task also writes each run there while it is open.
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
        """Returns at once; the receipt gets the event's seq when it is stored, or the error."""
        with self._lock:
            if event.run_id not in self._runs:
                self._begin(event.run_id)
            return self._broker.emit(event.run_id, event)

    async def close_all(self) -> None:
        """Stores what was emitted, closes the runs, waits until they are copied, and reaps the copied ones.

        It raises the first failure of an event or of a copy, after everything else is done.
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
        """Reaps a run whose copy is complete; a run whose copy failed is kept."""
        try:
            if copy is not None:
                await copy
        except Exception as error:  # noqa: BLE001 - `close_all` raises it after the other runs
            return error
        self._broker.reap(run_id)
        return None


class _Copy:
    """Copies one run: envelopes that arrive during a write go into the next one."""

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
                await to_thread.run_sync(self._db_sink.write, [first, *_received(out_of)])


def _received(out_of: MemoryObjectReceiveStream[EventEnvelope]) -> list[EventEnvelope]:
    """The envelopes that can be received without waiting."""
    found: list[EventEnvelope] = []
    with suppress(anyio.WouldBlock, anyio.EndOfStream):
        while len(found) < BATCH:
            found.append(out_of.receive_nowait())
    return found
