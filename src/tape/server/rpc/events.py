"""The procedure that appends to the journal."""

from tape.core.caller import Caller
from tape.server.rpc.hall import Hall
from tape.wire import tape_pb2 as pb
from tape.wire.messages.entries import event_value


async def append(hall: Hall, request: pb.AppendRequest, caller: Caller) -> pb.AppendResponse:
    events = [event_value(event, caller) for event in request.events]
    expected = request.expected_seq if request.HasField("expected_seq") else None
    entries = await hall.journal.send(events, key=request.key or None, expected_seq=expected, open=request.open)
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
