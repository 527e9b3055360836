"""The journal as its users hold it: append, stream, and the runs in it."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from tape import telemetry
from tape.bus.append import Appender
from tape.bus.history import History
from tape.bus.selection import EntryFilter, JournalSelection, RunSelection, Selection
from tape.bus.source import Source
from tape.bus.stream import Stream, StreamReader, stream
from tape.bus.tail import Tail
from tape.core.causation import current_cause
from tape.core.codec import JsonValue
from tape.core.diff import Diff, last_shared_seq, side_by_side
from tape.core.ending import Ending, ending
from tape.core.errors import InvalidCursor, RunClosed, RunNotFound, UsageError
from tape.core.event import Entry, Event, check_producer, check_run_id
from tape.core.fork import Fork
from tape.core.fork_request import fork_request, new_run_id
from tape.core.ids import SYSTEM_PREFIX, Epoch, GlobalSeq, RunId, Seq
from tape.core.ports import NO_EPOCH, Reader, Store, TermReader
from tape.core.run import LiveRun, RunMeta, RunRecord
from tape.core.sequence import Request
from tape.core.subject import Pattern


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
        """Appends likewise: the place in the queue is taken at once, and the entries are what the future has."""
        said = (events,) if isinstance(events, Event) else _listed(events)
        request = Request(
            events=tuple(map(prepare_event, said)),
            key=key,
            expected_seq=None if expected_seq is None else Seq(expected_seq),
            opens=open,
        )
        return self._appender.append(request)

    def ask(self, request: Request) -> "asyncio.Future[Sequence[Entry]]":
        """Sends a request that Tape itself has made, such as a ledger's; its entries may be of any kind."""
        return self._appender.append(request)

    async def drain(self) -> None:
        """Until everything that was to be appended so far is answered."""
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
        """Entries in order, once each: first what there is, then what comes.

        `from_seq` is inclusive, `from_global_seq` exclusive. A run's stream ends when the run is closed; without
        `follow` a stream ends at what there was when it began to read. `epoch` is that of the place, from when it was
        read; without it the place is one of the journal as it is now. A place that the journal does not go on from
        raises `InvalidCursor`, also when a new epoch begins under a stream: it means nothing any more, and a new stream
        starts over.
        """
        known = self._epoch_of(epoch, from_seq, from_global_seq)
        selection = _selection(run_id, from_seq, subject, where, from_global_seq, follow, known)
        return stream(selection, self._history, self._tail)

    def reader(
        self,
        *,
        run_id: str | None = None,
        from_seq: int = 1,
        subject: str | None = None,
        where: str | None = None,
        from_global_seq: int = 0,
        follow: bool = True,
        epoch: int | None = None,
    ) -> StreamReader:
        """The same entries for who takes them by the batch and at the pace of a socket; it must be closed."""
        known = self._epoch_of(epoch, from_seq, from_global_seq)
        selection = _selection(run_id, from_seq, subject, where, from_global_seq, follow, known)
        return StreamReader(selection, self._history, self._tail)

    def _epoch_of(self, epoch: int | None, from_seq: int, from_global_seq: int) -> Epoch:
        """The epoch of a place; a beginning that is of none is one in every epoch."""
        if epoch is not None:
            return Epoch(epoch)
        return self.epoch if from_seq > 1 or from_global_seq else NO_EPOCH

    def source(self) -> Source:
        """The whole journal in pages, for who makes something of every entry; it must be closed."""
        return Source(self._history, self._tail)

    async def head(self) -> GlobalSeq:
        """The last position there is."""
        return (await self._store.journal.bounds()).head

    async def floor(self) -> GlobalSeq:
        """The first position that is still there."""
        return (await self._store.journal.bounds()).floor

    async def open_run(self, run_id: str, meta: RunMeta | None = None, *, producer: str | None = None) -> None:
        """Opens a run; one that was closed goes on at its last seq plus one.

        With a producer it is leased to that one, and closed when it has been silent for too long.
        """
        run = check_user_run(run_id)
        self._tail.update_heads({run: await self._store.runs.open(run, meta or RunMeta(), producer)})

    async def close_run(self, run_id: str) -> Seq:
        """Ends a run after everything appended before; its streams drain and end there."""
        run = check_user_run(run_id)
        await self._appender.drain()
        head = await self._store.runs.close(run)
        self._tail.update_heads({run: head})
        return head.last_seq

    async def end_run(self, run_id: str, how: Ending, reason: str) -> Seq:
        """Closes a run after an entry that says why; one that has ended stays as it is."""
        run = check_user_run(run_id)
        with suppress(RunClosed, UsageError):  # a run of another content_type has no place for it
            await self._appender.append(Request(events=(ending(run, how, reason),)))
        return await self.close_run(run)

    async def reap(self, run_id: str) -> None:
        """Lets go of a closed run: a bounded store drops its entries, a durable one keeps them."""
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
        """Begins a run that is the parent's entries 1 to `at_seq`, then its own; the parent stays as it is.

        Its first own entry says where it comes from, and the mutation follows if there is one.
        """
        fork = Fork(check_user_run(parent_run_id), Seq(at_seq))
        child = new_run_id(fork, key) if run_id is None else check_user_run(run_id)
        request = fork_request(child, fork, mutation, reason, key, telemetry.current_trace())
        return list(await self._appender.append(request))

    async def diff(self, one: str, other: str) -> Diff:
        """Where two runs part, and what each of them says from there on, as it is now."""
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
        """Says that a producer lives: the open runs among these that are its own or nobody's are leased to it anew."""
        return list(await self._store.runs.renew(producer, run_ids, adopts=True))

    async def close_silent(self, silence: timedelta) -> list[RunId]:
        """Ends the runs whose producer has not renewed its lease for so long."""
        heads = await self._store.runs.close_silent(silence)
        self._tail.update_heads(heads)
        return list(heads)

    async def live_runs(self) -> list[LiveRun]:
        """Every open run."""
        return [_live(run) for run in await self._store.runs.listed(is_open=True)]


def _selection(
    run_id: str | None,
    from_seq: int,
    subject: str | None,
    where: str | None,
    from_global_seq: int,
    follow: bool,
    epoch: Epoch,
) -> Selection:
    pattern = None if subject is None else Pattern.parse(subject)
    if run_id is None:
        if from_seq != 1:
            raise UsageError("from_seq is a place in a run; give run_id, or from_global_seq")
        after = _cursor("from_global_seq", from_global_seq)
        return JournalSelection(pattern, after, follow, accepts(None, where), epoch)
    if from_global_seq != 0:
        raise UsageError("from_global_seq is a place in the journal; a run is read from from_seq")
    first = _cursor("from_seq", from_seq)
    return RunSelection(check_run_id(run_id), first, follow, accepts(pattern, where), epoch)


def _live(run: RunRecord) -> LiveRun:
    meta = run.meta
    return LiveRun(run_id=run.run_id, label=meta.label, started_at=meta.started_at, n_events=run.head.last_seq)


def _listed(events: Iterable[Event]) -> tuple[Event, ...]:
    if not isinstance(events, Iterable):
        raise UsageError(f"append takes events, not {type(events).__name__}")
    return tuple(events)


def prepare_event(event: Event) -> Event:
    """An event as a producer may say it, in the span it is said in, and by whoever answers an entry as caused by it."""
    if not isinstance(event, Event):
        raise UsageError(f"append takes events, not {type(event).__name__}")
    check_producer(event)
    cause = current_cause() if event.cause is None else None
    trace = telemetry.current_trace() if event.trace is None else None
    said = event if trace is None else event.with_trace(trace)
    return said if cause is None else replace(said, cause=cause)


def check_user_run(run_id: str) -> RunId:
    run = check_run_id(run_id)
    if run.startswith(SYSTEM_PREFIX):
        raise UsageError(f"run ids beginning {SYSTEM_PREFIX!r} belong to Tape, {run!r} too")
    return run


def _cursor(name: str, value: int) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise InvalidCursor(f"{name} must be 0 or more, not {value!r}")
    return value


def entry_filter(subject: str | None, where: str | None) -> EntryFilter | None:
    """What a pattern and a predicate let through; None when that is everything."""
    return accepts(None if subject is None else Pattern.parse(subject), where)


def accepts(pattern: Pattern | None, where: str | None) -> EntryFilter | None:
    """What entries must still pass; nothing when the selection says it all."""
    if where is not None and not isinstance(where, str):
        raise UsageError(f"where is a CEL expression, not {type(where).__name__}")
    if where is not None and where.strip():
        from tape.core.predicate.predicate import Predicate, bind

        predicate = Predicate(where)
        if pattern is None:
            return lambda entry: bool(predicate.evaluate(bind(entry)))
        return lambda entry: pattern.matches(entry.subject) and bool(predicate.evaluate(bind(entry)))
    return None if pattern is None else lambda entry: pattern.matches(entry.subject)
