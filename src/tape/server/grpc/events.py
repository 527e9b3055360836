"""The procedure that appends to the journal."""

from collections.abc import Sequence
from time import perf_counter

from tape.core.caller import Caller
from tape.core.errors import TapeError, TooLarge
from tape.core.event import Entry
from tape.core.sequence import MAX_EVENTS
from tape.server.grpc.hall import Hall
from tape.wire import tape_pb2 as pb
from tape.wire.messages.entries import event_value


async def append(hall: Hall, request: pb.AppendRequest, caller: Caller) -> pb.AppendResponse:
    began = perf_counter()
    try:
        entries = await _appended(hall, request, caller)
    except TapeError as error:
        hall.meters.refused.add(1, error.code)
        raise
    hall.meters.append_seconds.observe(perf_counter() - began)
    hall.meters.published.add(len(entries))
    positions = [
        pb.Position(
            seq=entry.seq,
            global_seq=entry.global_seq,
            ts_ms=entry.ts_ms,
            depth=entry.depth,
            event_id=entry.event_id,
        )
        for entry in entries
    ]
    return pb.AppendResponse(entries=positions, epoch=hall.journal.epoch)


async def _appended(hall: Hall, request: pb.AppendRequest, caller: Caller) -> Sequence[Entry]:
    if len(request.events) > MAX_EVENTS:
        raise TooLarge(f"a request is at most {MAX_EVENTS:,} events, not {len(request.events):,}")
    events = [event_value(event, caller) for event in request.events]
    expected = request.expected_seq if request.HasField("expected_seq") else None
    return await hall.journal.send(events, key=request.key or None, expected_seq=expected, open=request.open)
