"""The journal as its users hold it: append, stream, and the runs in it."""

from collections.abc import Iterable

from tape import telemetry
from tape.bus.append import Appender
from tape.bus.stream import Admits, JournalSelection, RunSelection, Selection, Stream, stream
from tape.bus.tail import Tail
from tape.core.errors import InvalidCursor, UsageError
from tape.core.event import Entry, Event, check_producer, check_run_id
from tape.core.ids import SYSTEM_PREFIX, Epoch, GlobalSeq, RunId, Seq
from tape.core.ports import Store
from tape.core.run import LiveRun, RunMeta
from tape.core.sequence import Request
from tape.core.subject import Pattern


class Journal:
    """One durable log, its runs, and any number of readers."""

    def __init__(self, store: Store, tail: Tail, appender: Appender) -> None:
        self._store = store
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
        said = (events,) if isinstance(events, Event) else _listed(events)
        request = Request(
            events=tuple(map(_producers, said)),
            key=key,
            expected_seq=None if expected_seq is None else Seq(expected_seq),
            opens=open,
        )
        return list(await self._appender.append(request))

    def stream(
        self,
        *,
        run_id: str | None = None,
        from_seq: int = 1,
        subject: str | None = None,
        where: str | None = None,
        from_global_seq: int = 0,
        follow: bool = True,
    ) -> Stream:
        """Entries in order, once each: first what there is, then what comes.

        `from_seq` is inclusive, `from_global_seq` exclusive. A run's stream ends when the run is closed; without
        `follow` a stream ends at what there was when it began to read.
        """
        pattern = None if subject is None else Pattern.parse(subject)
        if run_id is None:
            if from_seq != 1:
                raise UsageError("from_seq is a place in a run; give run_id, or from_global_seq")
            after = _cursor("from_global_seq", from_global_seq)
            return self._stream(JournalSelection(pattern, after, follow, _admits(None, where)))
        if from_global_seq != 0:
            raise UsageError("from_global_seq is a place in the journal; a run is read from from_seq")
        first = _cursor("from_seq", from_seq)
        return self._stream(RunSelection(check_run_id(run_id), first, follow, _admits(pattern, where)))

    async def head(self) -> GlobalSeq:
        """The last position there is."""
        return (await self._store.journal.bounds()).head

    async def floor(self) -> GlobalSeq:
        """The first position that is still there."""
        return (await self._store.journal.bounds()).floor

    async def open_run(self, run_id: str, meta: RunMeta | None = None) -> None:
        """Opens a run; one that was closed goes on at its last seq plus one."""
        run = _users_run(run_id)
        self._tail.note({run: await self._store.runs.open(run, meta or RunMeta())})

    async def close_run(self, run_id: str) -> Seq:
        """Ends a run after everything appended before; its streams drain and end there."""
        run = _users_run(run_id)
        await self._appender.drain()
        head = await self._store.runs.close(run)
        self._tail.note({run: head})
        return head.last_seq

    async def reap(self, run_id: str) -> None:
        """Lets go of a closed run: a bounded store drops its entries, a durable one keeps them."""
        await self._store.runs.reap(_users_run(run_id))

    async def live_runs(self) -> list[LiveRun]:
        """Every open run."""
        return list(await self._store.runs.live())

    def _stream(self, selection: Selection) -> Stream:
        return stream(selection, self._store.journal, self._tail)


def _listed(events: Iterable[Event]) -> tuple[Event, ...]:
    if not isinstance(events, Iterable):
        raise UsageError(f"append takes events, not {type(events).__name__}")
    return tuple(events)


def _producers(event: Event) -> Event:
    """An event as a producer may say it, in the span it is said in."""
    if not isinstance(event, Event):
        raise UsageError(f"append takes events, not {type(event).__name__}")
    check_producer(event)
    trace = telemetry.current_trace() if event.trace is None else None
    return event if trace is None else event.said_in(trace)


def _users_run(run_id: str) -> RunId:
    run = check_run_id(run_id)
    if run.startswith(SYSTEM_PREFIX):
        raise UsageError(f"run ids beginning {SYSTEM_PREFIX!r} belong to Tape, {run!r} too")
    return run


def _cursor(name: str, value: int) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise InvalidCursor(f"{name} must be 0 or more, not {value!r}")
    return value


def _admits(pattern: Pattern | None, where: str | None) -> Admits | None:
    """What entries must still pass; nothing when the selection says it all."""
    if where is not None and not isinstance(where, str):
        raise UsageError(f"where is a CEL expression, not {type(where).__name__}")
    if where is not None and where.strip():
        from tape.core.predicate import Predicate, bind

        predicate = Predicate(where)
        if pattern is None:
            return lambda entry: bool(predicate.evaluate(bind(entry)))
        return lambda entry: pattern.matches(entry.subject) and bool(predicate.evaluate(bind(entry)))
    return None if pattern is None else lambda entry: pattern.matches(entry.subject)
