"""Procedures of gates."""

from tape.core.caller import Caller
from tape.server.grpc.hall import Hall
from tape.wire import tape_pb2 as pb
from tape.wire.message_mapping import build, number
from tape.wire.messages.known import GATE


async def await_signal(hall: Hall, request: pb.AwaitSignalRequest, caller: Caller) -> pb.AwaitSignalResponse:
    fence = request.fence if request.HasField("fence") else None
    passage = await hall.ledgers.gates.wait(
        request.run_id, request.gate, request.index, request.payload_json, fence, caller
    )
    return pb.AwaitSignalResponse(
        delivered=passage.is_delivered, resolution_json=passage.resolution_json or "", gate=GATE.message(passage.gate)
    )


async def send_signal(hall: Hall, request: pb.SendSignalRequest, caller: Caller) -> pb.SendSignalResponse:
    runs = hall.ledgers.runs
    run_id = request.run_id or await runs.newest(request.app_name, request.user_id, request.session_id)
    signal = await hall.ledgers.gates.send(run_id, request.gate, request.resolution_json, request.key or None, caller)
    status = number(signal.run_status)
    return build(pb.SendSignalResponse, accepted=signal.is_accepted, run_id=signal.run_id, run_status=status)


async def get_gate(hall: Hall, request: pb.GetGateRequest, caller: Caller) -> pb.GetGateResponse:
    found = await hall.ledgers.gates.find(request.run_id, request.gate)
    return pb.GetGateResponse(found=found is not None, gate=None if found is None else GATE.message(found))
