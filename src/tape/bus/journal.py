"""The journal as programs use it: append, stream, and its runs."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Unpack

from tape import telemetry
from tape.bus.append import Appender
from tape.bus.every_run import every_run
from tape.bus.history import History
from tape.bus.stream import JournalPages, Stream, StreamReader, stream
from tape.bus.stream_options import StreamOptions, select
from tape.bus.tail import Tail
from tape.core.causation import current_cause
from tape.core.codec import JsonValue
from tape.core.diff import Diff, last_shared_seq, side_by_side
from tape.core.ending import Ending, ending
from tape.core.errors import RunClosed, RunNotFound, UsageError
from tape.core.event import Entry, Event, check_producer, check_run_id
from tape.core.fork import Fork
from tape.core.fork_request import fork_request, new_run_id
from tape.core.ids import SYSTEM_PREFIX, Epoch, GlobalSeq, RunId, Seq
from tape.core.ports import Reader, Store, TermReader
from tape.core.run import LiveRun, RunMeta, RunRecord
from tape.core.run_query import OPEN_RUNS
from tape.core.sequence import AppendRequest


class Journal:
    """One durable log, its runs, and any number of readers."""

    def __init__(self, store: Store, tail: Tail, appender: Appender, cold: Reader | None = None) -> None:
        self._store = store
        self._history: TermReader = store.journal if cold is None else History(store.journal, cold)
        self._tail = tail
        self._appender = appender

    @property
    def epoch(self) -> Epoch:
        """Which journal this is: the time it was made, in milliseconds."""
        return self._store.epoch

    async def append(
        self,
        events: Event | Iterable[Event],
        *,
        key: str | None = None,
        expected_seq: int | None = None,
        open: bool = False,
    ) -> list[Entry]:
        """Appends one event or many, all or none; when it returns they are on disk.

        The same key and body again give the first positions. `expected_seq` is the run's last seq before. With `open`
        a run that is not open is opened.
        """
        return list(await self.send(events, key=key, expected_seq=expected_seq, open=open))

    def send(
        self,
        events: Event | Iterable[Event],
        *,
        key: str | None = None,
        expected_seq: int | None = None,
        open: bool = False,
    ) -> "asyncio.Future[Sequence[Entry]]":
        """Appends likewise: takes a place in the queue at once and returns a future of the entries."""
        given = (events,) if isinstance(events, Event) else _as_tuple(events)
        request = AppendRequest(
            events=tuple(map(prepare_event, given)),
            key=key,
            expected_seq=None if expected_seq is None else Seq(expected_seq),
            opens=open,
        )
        return self._appender.append(request)

    def submit(self, request: AppendRequest) -> "asyncio.Future[Sequence[Entry]]":
        """Sends a request that Tape itself has made, such as a ledger's; its entries may be of any kind."""
        return self._appender.append(request)

    async def drain(self) -> None:
        """Returns when every append so far has completed."""
        await self._appender.drain()

    def stream(
        self,
        *,
        run_id: str | None = None,
        from_seq: int = 1,
        subject: str | None = None,
        where: str | None = None,
        from_global_seq: int = 0,
        follow: bool = True,
        epoch: int | None = None,
    ) -> Stream:
        """Entries in order, each once: first those there are, then new ones.

        `from_seq` is inclusive, `from_global_seq` exclusive. A run's stream ends when the run is closed; without
        `follow` a stream ends at the head it found when it began to read. `epoch` is the epoch of the cursor; without
        it the cursor is one of the present epoch. A cursor from which the journal cannot continue raises
        `InvalidCursor`, also when a new epoch begins under a stream; a new stream starts over.
        """
        selection = select(
            self._history,
            self.epoch,
            run_id=run_id,
            from_seq=from_seq,
            subject=subject,
            where=where,
            from_global_seq=from_global_seq,
            follow=follow,
            epoch=epoch,
        )
        return stream(selection, self._tail)

    def reader(self, **options: Unpack[StreamOptions]) -> StreamReader:
        """The same stream in batches, for a transport that reads at the pace of its socket; it must be closed."""
        return StreamReader(select(self._history, self.epoch, **options), self._tail)

    def pages(self) -> JournalPages:
        """The whole journal in pages, for the matcher; it must be closed."""
        return JournalPages(self._history, self._tail)

    async def head(self) -> GlobalSeq:
        """The last position."""
        return (await self._store.journal.bounds()).head

    async def floor(self) -> GlobalSeq:
        """The first retained position."""
        return (await self._store.journal.bounds()).floor

    async def open_run(self, run_id: str, meta: RunMeta | None = None, *, producer: str | None = None) -> None:
        """Opens a run; one that was closed continues at its last seq plus one.

        A producer gets a lease on the run; the run is closed when the producer does not renew it for too long.
        """
        run = check_user_run(run_id)
        self._tail.update_heads({run: await self._store.runs.open(run, meta or RunMeta(), producer)})

    async def close_run(self, run_id: str) -> Seq:
        """Closes a run after all earlier appends; its streams drain and end."""
        run = check_user_run(run_id)
        await self._appender.drain()
        head = await self._store.runs.close(run)
        self._tail.update_heads({run: head})
        return head.last_seq

    async def end_run(self, run_id: str, how: Ending, reason: str) -> Seq:
        """Appends the reason and closes the run; a closed run stays as it is."""
        run = check_user_run(run_id)
        with suppress(RunClosed, UsageError):  # a run of another content_type cannot hold the reason
            await self._appender.append(AppendRequest(events=(ending(run, how, reason),)))
        return await self.close_run(run)

    async def reap(self, run_id: str) -> None:
        """Reaps a closed run: a bounded store deletes its entries, a durable one keeps them."""
        await self._store.runs.reap(check_user_run(run_id))

    async def fork(
        self,
        parent_run_id: str,
        at_seq: int,
        *,
        run_id: str | None = None,
        mutation: JsonValue = None,
        reason: str | None = None,
        key: str | None = None,
    ) -> list[Entry]:
        """Opens a run that inherits the parent's entries 1 to `at_seq`; the parent does not change.

        Its first own entry names the parent, and the mutation follows if there is one.
        """
        fork = Fork(check_user_run(parent_run_id), Seq(at_seq))
        child = new_run_id(fork, key) if run_id is None else check_user_run(run_id)
        request = fork_request(child, fork, mutation, reason, key, telemetry.current_trace())
        return list(await self._appender.append(request))

    async def diff(self, one: str, other: str) -> Diff:
        """Where two runs diverge, and the entries of each from there on."""
        runs = check_run_id(one), check_run_id(other)
        heads = await self._store.runs.heads(runs)
        for run_id in runs:
            if run_id not in heads:
                raise RunNotFound(run_id)
        shared = last_shared_seq(heads, *runs)
        mine, theirs = [await self._rest(run_id, shared) for run_id in runs]
        return Diff(one=runs[0], other=runs[1], shared=shared, rows=side_by_side(mine, theirs))

    async def _rest(self, run_id: RunId, after: Seq) -> list[Entry]:
        stream = self.stream(run_id=run_id, from_seq=after + 1, follow=False)
        return [entry async for entry in stream]

    async def lease(self, run_ids: Sequence[RunId], producer: str) -> list[RunId]:
        """Renews a producer's leases, and leases it those of the open runs that nobody holds; returns what it holds."""
        return list(await self._store.runs.renew(producer, run_ids, adopts=True))

    async def close_silent(self, silence: timedelta) -> list[RunId]:
        """Closes the runs whose producer has not renewed its lease for so long."""
        heads = await self._store.runs.close_silent(silence)
        self._tail.update_heads(heads)
        return list(heads)

    async def live_runs(self) -> list[LiveRun]:
        """Every open run."""
        return [_live(run) for run in await every_run(self._store.runs, OPEN_RUNS)]


def _live(run: RunRecord) -> LiveRun:
    meta = run.meta
    return LiveRun(run_id=run.run_id, label=meta.label, started_at=meta.started_at, n_events=run.head.last_seq)


def _as_tuple(events: Iterable[Event]) -> tuple[Event, ...]:
    if not isinstance(events, Iterable):
        raise UsageError(f"append takes events, not {type(events).__name__}")
    return tuple(events)


def prepare_event(event: Event) -> Event:
    """Validates a user's event; fills in the current trace and cause where the event has none."""
    if not isinstance(event, Event):
        raise UsageError(f"append takes events, not {type(event).__name__}")
    check_producer(event)
    cause = current_cause() if event.cause is None else None
    trace = telemetry.current_trace() if event.trace is None else None
    traced = event if trace is None else event.with_trace(trace)
    return traced if cause is None else replace(traced, cause=cause)


def check_user_run(run_id: str) -> RunId:
    run = check_run_id(run_id)
    if run.startswith(SYSTEM_PREFIX):
        raise UsageError(f"run ids beginning {SYSTEM_PREFIX!r} belong to Tape, {run!r} too")
    return run
