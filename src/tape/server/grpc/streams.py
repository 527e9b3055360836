"""The procedures that answer with a stream; it ends when its reader disconnects."""

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
from tape.server.grpc.replay import Blocks, Deliver
from tape.server.grpc.rpc_context import RpcContext, bounded
from tape.server.grpc.tail import LEAVING, Finish, Replayed, RpcStream, StreamWriter, opening, push
from tape.server.sse.subscribers import Subscriber
from tape.wire import tape_pb2 as pb
from tape.wire.messages.entries import encoded, journal_entry
from tape.wire.messages.ledgers import CHANGE

MOST_IN_BATCH = 1_000
HEAD = "head"
VERSION = "tape-version"


async def subscribe_run(rpc: RpcContext, request: pb.SubscribeRunRequest, writer: StreamWriter) -> None:
    run_id = check_run_id(request.run_id)

    async def deliver(entries: Sequence[Entry]) -> None:
        for entry in entries:
            await writer.write(journal_entry(entry).SerializeToString())

    after, epoch = max(request.from_seq, 1) - 1, rpc.journal.epoch
    opened = _run(rpc.journal, run_id, held=request.epoch)
    options = RpcStream(run_id=run_id, open_after=opened, after=after, epoch=epoch)
    await push(rpc.subscribers, rpc.meters, options, writer, deliver)


async def subscribe_events(rpc: RpcContext, request: pb.SubscribeEventsRequest, writer: StreamWriter) -> None:
    after, since, kind = request.from_global_seq, request.from_ts_ms, request.kind

    def is_wanted(entry: Entry) -> bool:
        return entry.global_seq > after and entry.ts_ms >= since and kind in ("", entry.kind)

    if request.run_id:
        run_id = check_run_id(request.run_id)
        opened = _run(rpc.journal, run_id, request.subject_pattern)
        options = RpcStream(run_id=run_id, open_after=opened, after=0, epoch=rpc.journal.epoch)
    else:
        start = max(after, await _before(rpc.journal, since)) if since > 0 else after
        opened = _across(rpc.journal, request.subject_pattern, held=request.epoch)
        options = RpcStream(run_id=None, open_after=opened, after=start, epoch=rpc.journal.epoch)
    await push(rpc.subscribers, rpc.meters, options, writer, _alone(writer, is_wanted))


async def subscribe_by_subject(rpc: RpcContext, request: pb.SubscribeBySubjectRequest, writer: StreamWriter) -> None:
    opened = _across(rpc.journal, request.subject_pattern, request.predicate_cel, held=request.epoch)
    options = RpcStream(run_id=None, open_after=opened, after=request.from_global_seq, epoch=rpc.journal.epoch)
    await push(rpc.subscribers, rpc.meters, options, writer, _alone(writer))


async def tail_batches(rpc: RpcContext, request: pb.TailBatchesRequest, writer: StreamWriter) -> None:
    most = min(bounded(request.max_entries, BLOCK), MOST_IN_BATCH)

    async def deliver(entries: Sequence[Entry]) -> None:
        for message in rpc.batches.messages(entries):
            await writer.write(message)

    options = _tailed(rpc, request, most, writer)
    if request.no_follow:
        await _send_all(rpc, options, writer, deliver)
    else:
        await push(rpc.subscribers, rpc.meters, options, writer, deliver)


async def watch_value(rpc: RpcContext, request: pb.WatchValueRequest, writer: StreamWriter) -> None:
    from_version = request.from_version if request.HasField("from_version") else None
    with rpc.subscribers.join(None) as place:
        watch = await rpc.ledgers.values.watch(request.namespace, request.key, from_version)
        async with aclosing(watch):
            await writer.send_initial_metadata((*opening(rpc.journal.epoch), (VERSION, str(watch.began_at))))
            while True:
                await writer.write(CHANGE.message(await _next(watch, place)).SerializeToString())


async def _next(watch: Watching, place: Subscriber) -> ValueChange:
    with anyio.CancelScope() as scope:
        place.goaway = lambda _: scope.cancel()
        if not place.is_goaway_sent:
            return await watch.__anext__()
    raise ServerUnavailable(LEAVING)


def _tailed(rpc: RpcContext, request: pb.TailBatchesRequest, most: int, writer: StreamWriter) -> RpcStream:
    filters = request.subject_pattern, request.predicate_cel
    finish = _finish(rpc, request, writer)
    tail = partial(RpcStream, epoch=rpc.journal.epoch, takes_what_is_left=False, most=most, finish=finish)
    follow, held = not request.no_follow, request.epoch
    if not request.run_id:
        in_blocks = _blocks(rpc, writer) if most >= BLOCK and not any(filters) else None
        opened = _across(rpc.journal, *filters, follow=follow, held=held)
        return tail(run_id=None, open_after=opened, after=request.from_global_seq, in_blocks=in_blocks)
    run_id, after = check_run_id(request.run_id), max(request.from_seq, 1) - 1
    return tail(run_id=run_id, open_after=_run(rpc.journal, run_id, *filters, follow=follow, held=held), after=after)


def _finish(rpc: RpcContext, request: pb.TailBatchesRequest, writer: StreamWriter) -> Finish:
    """Writes the last message; a stream without it counts as interrupted."""

    async def finish(reader: StreamReader) -> None:
        end = pb.StreamEnd(reason=HEAD, last_id=reader.cursor)
        if not request.no_follow:
            ended = await rpc.run_ends.of(RunId(request.run_id), reader.cursor)
            end = pb.StreamEnd(reason=ended.reason, last_id=ended.last_event_id, state=ended.state)
        await writer.write(pb.EventBatch(end=end).SerializeToString())

    return finish


def _blocks(rpc: RpcContext, writer: StreamWriter) -> Replayed:
    async def write(messages: Sequence[bytes], count: int) -> None:
        for message in messages:
            await writer.write(message)
        rpc.meters.streamed.add(count)

    return lambda reader: Blocks(reader, rpc.store, rpc.batches, write)


async def _send_all(rpc: RpcContext, options: RpcStream, writer: StreamWriter, deliver: Deliver) -> None:
    """Sends what there is, and ends."""
    with closing(options.open_after(options.after)) as reader:
        replay = options.replayed(reader, deliver)
        await writer.send_initial_metadata(opening(options.epoch))
        while not await replay.send_page():
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


def _alone(writer: StreamWriter, is_wanted: Callable[[Entry], bool] = lambda _: True) -> Deliver:
    async def deliver(entries: Sequence[Entry]) -> None:
        for entry in entries:
            if is_wanted(entry):
                await writer.write(encoded(entry))

    return deliver


async def _before(journal: Journal, since_ms: int) -> int:
    """The last position before a time, by binary search: time never falls along positions."""
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
