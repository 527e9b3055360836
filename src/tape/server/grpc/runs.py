"""Procedures of runs."""

from collections.abc import Iterable

from tape.core.caller import Caller
from tape.core.claim import RUN_LEASE
from tape.core.run_state import RunState, RunStatus
from tape.server.grpc.hall import Hall, bounded, moment, span
from tape.server.grpc.pages import first
from tape.wire import tape_pb2 as pb
from tape.wire.message_mapping import member
from tape.wire.messages import runs as messages
from tape.wire.messages.runs import COMPACTION, ORDER, RUN

LIMIT = 100


async def begin_run(hall: Hall, request: pb.BeginRunRequest, caller: Caller) -> pb.BeginRunResponse:
    return messages.begun(await hall.ledgers.runs.begin(ORDER.value(request), caller))


async def resume_run(hall: Hall, request: pb.ResumeRunRequest, caller: Caller) -> pb.RunState:
    if request.HasField("attempt"):
        return await _told(hall, await hall.ledgers.runs.heartbeat(request.run_id, request.attempt))
    lease = span(request.lease_ttl_ms, RUN_LEASE)
    return messages.resumed(await hall.ledgers.runs.take(request.run_id, request.lease_owner, lease, caller))


async def end_run(hall: Hall, request: pb.EndRunRequest, caller: Caller) -> pb.RunState:
    status, fence = member(RunStatus, request.status), request.fence if request.HasField("fence") else None
    return await _told(hall, await hall.ledgers.runs.end(request.run_id, status, request.detail_json, fence, caller))


async def get_run(hall: Hall, request: pb.GetRunRequest, caller: Caller) -> pb.RunState:
    return await _told(hall, await hall.ledgers.runs.find(request.run_id))


async def find_newest_run(hall: Hall, request: pb.FindNewestRunRequest, caller: Caller) -> pb.FindNewestRunResponse:
    run_id = await hall.ledgers.runs.newest(request.app_name, request.user_id, request.session_id)
    return pb.FindNewestRunResponse(run_id=run_id)


async def list_runs_to_recover(hall: Hall, request: pb.ListRunsToRecoverRequest, caller: Caller) -> pb.ListRunsResponse:
    limit, now_ms = bounded(request.limit, LIMIT), moment(request.now_ms)
    return await _listed(hall, await hall.ledgers.runs.to_recover(request.app_name or None, limit, now_ms))


async def list_compactable_runs(
    hall: Hall, request: pb.ListCompactableRunsRequest, caller: Caller
) -> pb.ListRunsResponse:
    limit = bounded(request.limit, LIMIT)
    return await _listed(hall, await hall.ledgers.compactions.compactable(request.before_ms, limit))


async def compact_run(hall: Hall, request: pb.CompactRunRequest, caller: Caller) -> pb.CompactionReport:
    return COMPACTION.message(await hall.ledgers.compactions.compact(request.run_id, caller))


async def _told(hall: Hall, run: RunState) -> pb.RunState:
    (told,) = await _numbered(hall, [run])
    return told


async def _listed(hall: Hall, runs: Iterable[RunState]) -> pb.ListRunsResponse:
    return pb.ListRunsResponse(runs=first(await _numbered(hall, list(runs))))


async def _numbered(hall: Hall, runs: list[RunState]) -> list[pb.RunState]:
    heads = await hall.heads([run.run_id for run in runs])
    return [RUN.message(run, seq_cursor=heads[run.run_id].last_seq + 1) for run in runs]
