"""The procedures that carry no operation and answer once: one appends to the journal, one describes the server."""

from collections.abc import Sequence
from functools import cache
from time import perf_counter

from tape.core.caller import Caller
from tape.core.errors import TapeError, TooLarge
from tape.core.event import Entry
from tape.core.sequence import MAX_EVENTS
from tape.server.grpc.rpc_context import RpcContext
from tape.server.journal_head import epoch_of_positions, head_or_none
from tape.server.version import server_version
from tape.wire import tape_pb2 as pb
from tape.wire.known_messages import messages_of
from tape.wire.messages.entries import event_value


async def append(rpc: RpcContext, request: pb.AppendRequest, caller: Caller) -> pb.AppendResponse:
    began, known = perf_counter(), rpc.journal.epoch
    try:
        entries = await _appended(rpc, request, caller)
    except TapeError as error:
        rpc.meters.refused.add(1, error.code)
        raise
    rpc.meters.append_seconds.observe(perf_counter() - began)
    rpc.meters.published.add(len(entries))
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
    return pb.AppendResponse(entries=positions, epoch=epoch_of_positions(entries, known))


async def _appended(rpc: RpcContext, request: pb.AppendRequest, caller: Caller) -> Sequence[Entry]:
    if len(request.events) > MAX_EVENTS:
        raise TooLarge(f"a request is at most {MAX_EVENTS:,} events, not {len(request.events):,}")
    events = [event_value(event, caller) for event in request.events]
    expected = request.expected_seq if request.HasField("expected_seq") else None
    return await rpc.journal.send(events, key=request.key or None, expected_seq=expected, open=request.open)


async def get_capabilities(
    rpc: RpcContext, request: pb.GetCapabilitiesRequest, caller: Caller
) -> pb.GetCapabilitiesResponse:
    answer = pb.GetCapabilitiesResponse(head=await head_or_none(rpc.journal), epoch=rpc.journal.epoch)
    answer.MergeFrom(capabilities())
    return answer


@cache
def capabilities() -> pb.GetCapabilitiesResponse:
    methods = pb.DESCRIPTOR.services_by_name["Tape"].methods
    messages = messages_of(method.input_type for method in methods)
    return pb.GetCapabilitiesResponse(
        version=server_version(),
        procedures=[method.name for method in methods],
        messages=[pb.KnownMessage(name=name, fields=sorted(fields)) for name, fields in messages.items()],
    )
