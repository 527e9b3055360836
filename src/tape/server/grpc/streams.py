"""Procedures that answer with a stream: they are pushed, and end when their reader leaves."""

from collections.abc import Callable, Sequence
from contextlib import aclosing, closing
from functools import partial

import anyio

from tape.bus.journal import Journal
from tape.bus.stream import StreamReader
from tape.core.event import Entry, check_run_id
from tape.core.ids import RunId
from tape.core.server_unavailable import ServerUnavailable
from tape.core.value import ValueChange
from tape.operations.ledgers import Watching
from tape.server.grpc.batches import BLOCK
from tape.server.grpc.hall import Hall, bounded
from tape.server.grpc.replay import Blocks, Deliver
from tape.server.grpc.tail import LEAVING, Finish, Line, Replayed, RpcStream, opening, push
from tape.server.sse.subscribers import Subscriber
from tape.wire import tape_pb2 as pb
from tape.wire.messages.entries import encoded, journal_entry
from tape.wire.messages.known import CHANGE

MOST_IN_BATCH = 1_000
HEAD = "head"
VERSION = "tape-version"


async def subscribe_run(hall: Hall, request: pb.SubscribeRunRequest, line: Line) -> None:
    run_id = check_run_id(request.run_id)

    async def deliver(entries: Sequence[Entry]) -> None:
        for entry in entries:
            await line.write(journal_entry(entry).SerializeToString())

    after, epoch = max(request.from_seq, 1) - 1, hall.journal.epoch
    opened = _run(hall.journal, run_id, held=request.epoch)
    options = RpcStream(run_id=run_id, open_after=opened, after=after, epoch=epoch)
    await push(hall.subscribers, hall.meters, options, line, deliver)


async def subscribe_events(hall: Hall, request: pb.SubscribeEventsRequest, line: Line) -> None:
    after, since, kind = request.from_global_seq, request.from_ts_ms, request.kind

    def is_wanted(entry: Entry) -> bool:
        return entry.global_seq > after and entry.ts_ms >= since and kind in ("", entry.kind)

    if request.run_id:
        run_id = check_run_id(request.run_id)
        opened = _run(hall.journal, run_id, request.subject_pattern)
        options = RpcStream(run_id=run_id, open_after=opened, after=0, epoch=hall.journal.epoch)
    else:
        start = max(after, await _before(hall.journal, since)) if since > 0 else after
        opened = _across(hall.journal, request.subject_pattern, held=request.epoch)
        options = RpcStream(run_id=None, open_after=opened, after=start, epoch=hall.journal.epoch)
    await push(hall.subscribers, hall.meters, options, line, _alone(line, is_wanted))


async def subscribe_by_subject(hall: Hall, request: pb.SubscribeBySubjectRequest, line: Line) -> None:
    opened = _across(hall.journal, request.subject_pattern, request.predicate_cel, held=request.epoch)
    options = RpcStream(run_id=None, open_after=opened, after=request.from_global_seq, epoch=hall.journal.epoch)
    await push(hall.subscribers, hall.meters, options, line, _alone(line))


async def tail_batches(hall: Hall, request: pb.TailBatchesRequest, line: Line) -> None:
    most = min(bounded(request.max_entries, BLOCK), MOST_IN_BATCH)

    async def deliver(entries: Sequence[Entry]) -> None:
        for message in hall.batches.messages(entries):
            await line.write(message)

    options = _tailed(hall, request, most, line)
    if request.no_follow:
        await _tell_all(hall, options, line, deliver)
    else:
        await push(hall.subscribers, hall.meters, options, line, deliver)


async def watch_value(hall: Hall, request: pb.WatchValueRequest, line: Line) -> None:
    from_version = request.from_version if request.HasField("from_version") else None
    with hall.subscribers.join(None) as place:
        watch = await hall.ledgers.values.watch(request.namespace, request.key, from_version)
        async with aclosing(watch):
            await line.send_initial_metadata((*opening(hall.journal.epoch), (VERSION, str(watch.began_at))))
            while True:
                await line.write(CHANGE.message(await _next(watch, place)).SerializeToString())


async def _next(watch: Watching, place: Subscriber) -> ValueChange:
    with anyio.CancelScope() as scope:
        place.goaway = lambda _: scope.cancel()
        if not place.is_goaway_sent:
            return await watch.__anext__()
    raise ServerUnavailable(LEAVING)


def _tailed(hall: Hall, request: pb.TailBatchesRequest, most: int, line: Line) -> RpcStream:
    filters = request.subject_pattern, request.predicate_cel
    finish = _finish(hall, request, line)
    tail = partial(RpcStream, epoch=hall.journal.epoch, takes_what_is_left=False, most=most, finish=finish)
    follow, held = not request.no_follow, request.epoch
    if not request.run_id:
        in_blocks = _blocks(hall, line) if most >= BLOCK and not any(filters) else None
        opened = _across(hall.journal, *filters, follow=follow, held=held)
        return tail(run_id=None, open_after=opened, after=request.from_global_seq, in_blocks=in_blocks)
    run_id, after = check_run_id(request.run_id), max(request.from_seq, 1) - 1
    return tail(run_id=run_id, open_after=_run(hall.journal, run_id, *filters, follow=follow, held=held), after=after)


def _finish(hall: Hall, request: pb.TailBatchesRequest, line: Line) -> Finish:
    """Writes the last message, without which a reader takes the stream for interrupted."""

    async def finish(reader: StreamReader) -> None:
        end = pb.StreamEnd(reason=HEAD, last_id=reader.cursor)
        if not request.no_follow:
            told = await hall.run_ends.of(RunId(request.run_id), reader.cursor)
            end = pb.StreamEnd(reason=told.reason, last_id=told.last_event_id, state=told.state)
        await line.write(pb.EventBatch(end=end).SerializeToString())

    return finish


def _blocks(hall: Hall, line: Line) -> Replayed:
    async def write(messages: Sequence[bytes], count: int) -> None:
        for message in messages:
            await line.write(message)
        hall.meters.streamed.add(count)

    return lambda reader: Blocks(reader, hall.store, hall.batches, write)


async def _tell_all(hall: Hall, options: RpcStream, line: Line, deliver: Deliver) -> None:
    """What there is, and no more."""
    with closing(options.open_after(options.after)) as reader:
        replay = options.replayed(reader, deliver)
        await line.send_initial_metadata(opening(options.epoch))
        while not await replay.tell():
            pass
        if options.finish is not None:
            await options.finish(reader)


def _run(
    journal: Journal, run_id: RunId, subject: str = "", where: str = "", *, follow: bool = True, held: int = 0
) -> Callable[[int], StreamReader]:
    reader = partial(journal.reader, run_id=run_id, follow=follow, epoch=held or None)
    opened = partial(reader, subject=subject or None, where=where or None)
    return lambda after: opened(from_seq=after + 1)


def _across(
    journal: Journal, subject: str = "", where: str = "", *, follow: bool = True, held: int = 0
) -> Callable[[int], StreamReader]:
    reader = partial(journal.reader, follow=follow, epoch=held or None)
    opened = partial(reader, subject=subject or None, where=where or None)
    return lambda after: opened(from_global_seq=after)


def _alone(line: Line, is_wanted: Callable[[Entry], bool] = lambda _: True) -> Deliver:
    async def deliver(entries: Sequence[Entry]) -> None:
        for entry in entries:
            if is_wanted(entry):
                await line.write(encoded(entry))

    return deliver


async def _before(journal: Journal, since_ms: int) -> int:
    """The last position before a time, found by halves: time never falls along positions."""
    low: int = await journal.floor() - 1
    high: int = await journal.head()
    while low < high:
        middle = (low + high) // 2
        if await _time_after(journal, middle) < since_ms:
            low = middle + 1
        else:
            high = middle
    return low


async def _time_after(journal: Journal, position: int) -> int:
    async with aclosing(journal.stream(from_global_seq=position, follow=False)) as entries:
        async for entry in entries:
            return entry.ts_ms
    return 1 << 63
