"""The ledger of runs, behind a wire."""

from collections.abc import Sequence
from datetime import timedelta

from tape.core.caller import PLAIN, Caller
from tape.core.claim import RUN_LEASE, check_lease, check_owner
from tape.core.ids import RunId
from tape.core.run_state import Compaction, RunClaim, RunSpec, RunState, RunStatus
from tape.sdk.remote.channel import Channel
from tape.wire import tape_pb2 as pb
from tape.wire.message_mapping import build, number
from tape.wire.messages.runs import COMPACTION, ORDER, RUN, begun_value

_MS = timedelta(milliseconds=1)


class Runs:
    """Runs, and what is left of those that have ended."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def begin(self, spec: RunSpec, caller: Caller = PLAIN) -> RunClaim:
        answer = await self._channel.call("BeginRun", ORDER.message(spec), pb.BeginRunResponse, caller)
        return begun_value(answer.run)

    async def take(self, run_id: str, owner: str, lease: timedelta = RUN_LEASE, caller: Caller = PLAIN) -> RunClaim:
        lease_ms = check_lease(lease) // _MS
        request = build(pb.ResumeRunRequest, run_id=run_id, lease_owner=check_owner(owner), lease_ttl_ms=lease_ms)
        return begun_value(await self._channel.call("ResumeRun", request, pb.RunState, caller))

    async def heartbeat(self, run_id: str, attempt: int) -> RunState:
        request = build(pb.ResumeRunRequest, run_id=run_id, attempt=attempt)
        return RUN.value(await self._channel.call("ResumeRun", request, pb.RunState))

    async def end(
        self, run_id: str, status: RunStatus, detail_json: str = "", fence: int | None = None, caller: Caller = PLAIN
    ) -> RunState:
        request = build(pb.EndRunRequest, run_id=run_id, status=number(status), detail_json=detail_json, fence=fence)
        return RUN.value(await self._channel.call("EndRun", request, pb.RunState, caller))

    async def find(self, run_id: str) -> RunState:
        return RUN.value(await self._channel.call("GetRun", build(pb.GetRunRequest, run_id=run_id), pb.RunState))

    async def newest(self, app: str, user: str, session: str) -> RunId:
        request = build(pb.FindNewestRunRequest, app_name=app, user_id=user, session_id=session)
        answer = await self._channel.call("FindNewestRun", request, pb.FindNewestRunResponse)
        return RunId(answer.run_id)

    async def to_recover(
        self, app: str | None = None, limit: int = 100, now_ms: int | None = None
    ) -> Sequence[RunState]:
        request = build(pb.ListRunsToRecoverRequest, limit=limit, now_ms=now_ms, app_name=app)
        answer = await self._channel.call("ListRunsToRecover", request, pb.ListRunsResponse)
        return [RUN.value(run) for run in answer.runs]

    async def compactable(self, before_ms: int, limit: int = 100) -> Sequence[RunState]:
        request = build(pb.ListCompactableRunsRequest, before_ms=before_ms, limit=limit)
        answer = await self._channel.call("ListCompactableRuns", request, pb.ListRunsResponse)
        return [RUN.value(run) for run in answer.runs]

    async def compact(self, run_id: str, caller: Caller = PLAIN) -> Compaction:
        request = build(pb.CompactRunRequest, run_id=run_id)
        return COMPACTION.value(await self._channel.call("CompactRun", request, pb.CompactionReport, caller))
