"""The ledgers of decisions and effects, behind a wire."""

from collections.abc import Collection, Sequence
from datetime import timedelta

from tape.core.caller import PLAIN, Caller
from tape.core.claim import WORK_LEASE
from tape.core.decision import Decision
from tape.core.effect import IN_DOUBT, Effect, EffectClaim, EffectSpec, EffectStatus, Observation
from tape.sdk.remote.channel import Channel
from tape.wire import tape_pb2 as pb
from tape.wire.message_mapping import build, number
from tape.wire.messages.effects import DECIDED, DECISION, EFFECT, OBSERVATION, ORDER

_MS = timedelta(milliseconds=1)


class Decisions:
    """Decisions of runs."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def record(self, decision: Decision, fence: int | None = None, caller: Caller = PLAIN) -> Decision:
        request = DECIDED.message(decision, fence=fence)
        return DECISION.value(await self._channel.call("RecordDecision", request, pb.DecisionRecord, caller))

    async def find(self, run_id: str, decision_index: int) -> Decision | None:
        request = build(pb.GetDecisionRequest, run_id=run_id, decision_index=decision_index)
        answer = await self._channel.call("GetDecision", request, pb.GetDecisionResponse)
        return DECISION.value(answer.decision) if answer.found else None

    async def listed(self, run_id: str) -> Sequence[Decision]:
        request = build(pb.ListDecisionsRequest, run_id=run_id)
        answers = await self._channel.pages("ListDecisions", request, pb.ListDecisionsResponse)
        return [DECISION.value(each) for answer in answers for each in answer.decisions]


class Effects:
    """Effects of runs."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def begin(self, spec: EffectSpec, fence: int | None = None, caller: Caller = PLAIN) -> Effect:
        request = ORDER.message(spec, fence=fence)
        answer = await self._channel.call("BeginEffect", request, pb.BeginEffectResponse, caller)
        return EFFECT.value(answer.effect)

    async def complete(
        self,
        run_id: str,
        idempotency_key: str,
        status: EffectStatus,
        response_json: str = "",
        error_json: str = "",
        fence: int | None = None,
        caller: Caller = PLAIN,
    ) -> Effect:
        request = build(
            pb.CompleteEffectRequest,
            run_id=run_id,
            idempotency_key=idempotency_key,
            status=number(status),
            response_json=response_json,
            error_json=error_json,
            fence=fence,
        )
        return EFFECT.value(await self._channel.call("CompleteEffect", request, pb.EffectRecord, caller))

    async def reconcile(
        self,
        run_id: str,
        idempotency_key: str,
        status: EffectStatus,
        response_json: str = "",
        error_json: str = "",
        caller: Caller = PLAIN,
    ) -> Effect:
        request = build(
            pb.ReconcileEffectRequest,
            run_id=run_id,
            idempotency_key=idempotency_key,
            resolved_status=number(status),
            response_json=response_json,
            error_json=error_json,
        )
        return EFFECT.value(await self._channel.call("ReconcileEffect", request, pb.EffectRecord, caller))

    async def find(self, run_id: str, idempotency_key: str) -> Effect | None:
        request = build(pb.GetEffectRequest, run_id=run_id, idempotency_key=idempotency_key)
        answer = await self._channel.call("GetEffect", request, pb.GetEffectResponse)
        return EFFECT.value(answer.effect) if answer.found else None

    async def listed(self, run_id: str) -> Sequence[Effect]:
        request = build(pb.ListEffectsRequest, run_id=run_id)
        return _values(*await self._channel.pages("ListEffects", request, pb.ListEffectsResponse))

    async def in_doubt(
        self, older_than_ms: int = 0, limit: int = 200, among: Collection[EffectStatus] = IN_DOUBT
    ) -> Sequence[Effect]:
        request = build(
            pb.ListPendingEffectsRequest,
            older_than_ms=older_than_ms,
            limit=limit,
            include_pending=EffectStatus.PENDING in among,
            include_unknown=EffectStatus.UNKNOWN in among,
        )
        return _values(await self._channel.call("ListPendingEffects", request, pb.ListEffectsResponse))


class Dispatch:
    """The outbox of effects."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def due(
        self, connector: str = "", limit: int = 200, now_ms: int | None = None, app: str = ""
    ) -> Sequence[Effect]:
        request = build(pb.ListEffectsToDispatchRequest, connector=connector, limit=limit, now_ms=now_ms, app=app)
        return _values(await self._channel.call("ListEffectsToDispatch", request, pb.ListEffectsResponse))

    async def claim(
        self,
        run_id: str,
        idempotency_key: str,
        owner: str,
        lease: timedelta = WORK_LEASE,
        caller: Caller = PLAIN,
        app: str = "",
    ) -> EffectClaim:
        request = build(
            pb.ClaimEffectDispatchRequest,
            run_id=run_id,
            idempotency_key=idempotency_key,
            claimer=owner,
            lease_ttl_ms=lease // _MS,
            app=app,
        )
        answer = await self._channel.call("ClaimEffectDispatch", request, pb.ClaimEffectDispatchResponse, caller)
        return EffectClaim(effect=EFFECT.value(answer.effect), is_acquired=answer.acquired)

    async def attempt(
        self,
        run_id: str,
        idempotency_key: str,
        attempt_number: int,
        error: str,
        next_dispatch_at_ms: int = 0,
        caller: Caller = PLAIN,
    ) -> Effect:
        request = build(
            pb.RecordDispatchAttemptRequest,
            run_id=run_id,
            idempotency_key=idempotency_key,
            error=error,
            next_dispatch_at_ms=next_dispatch_at_ms,
            attempt=attempt_number,
        )
        return EFFECT.value(await self._channel.call("RecordDispatchAttempt", request, pb.EffectRecord, caller))

    async def observe(self, run_id: str, idempotency_key: str, seen: Observation, caller: Caller = PLAIN) -> Effect:
        request = OBSERVATION.message(seen, run_id=run_id, idempotency_key=idempotency_key)
        return EFFECT.value(await self._channel.call("RecordExternalObservation", request, pb.EffectRecord, caller))

    async def mark_lost_in_doubt(self, limit: int = 200, now_ms: int | None = None) -> Sequence[Effect]:
        request = build(pb.DoubtSilentDispatchesRequest, limit=limit, now_ms=now_ms)
        return _values(await self._channel.call("DoubtSilentDispatches", request, pb.ListEffectsResponse))


def _values(*answers: pb.ListEffectsResponse) -> list[Effect]:
    return [EFFECT.value(each) for answer in answers for each in answer.effects]
