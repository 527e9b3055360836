"""The ledger of obligations, behind a wire."""

from collections.abc import Sequence
from datetime import timedelta

from tape.core.caller import PLAIN, Caller
from tape.core.claim import WORK_LEASE
from tape.core.effect import Compensation
from tape.core.obligation import Obligation, ObligationClaim, ObligationStatus
from tape.sdk.remote.channel import Channel
from tape.wire import tape_pb2 as pb
from tape.wire.message_mapping import build, number as number_of
from tape.wire.messages.effects import OBLIGATION, REGISTERED


class Obligations:
    """What runs have to undo."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def register(self, run_id: str, effect_key: str, how: Compensation, caller: Caller = PLAIN) -> Obligation:
        request = REGISTERED.message(how, run_id=run_id, effect_key=effect_key)
        return OBLIGATION.value(await self._channel.call("RegisterCompensation", request, pb.ObligationRecord, caller))

    async def listed(self, run_id: str, *, only_unresolved: bool = False) -> Sequence[Obligation]:
        request = build(pb.ListObligationsRequest, run_id=run_id, only_unresolved=only_unresolved)
        return _values(*await self._channel.pages("ListObligations", request, pb.ListObligationsResponse))

    async def due(
        self, limit: int = 500, now_ms: int | None = None, *, app: str = "", compensators: Sequence[str] | None = None
    ) -> Sequence[Obligation]:
        if compensators is not None and not compensators:
            return ()  # an empty list on the wire is any
        request = build(
            pb.ListUnresolvedObligationsRequest, limit=limit, now_ms=now_ms, app=app, compensators=compensators
        )
        return _values(await self._channel.call("ListUnresolvedObligations", request, pb.ListObligationsResponse))

    async def stuck(self, limit: int = 500) -> Sequence[Obligation]:
        request = build(pb.ListUnresolvedObligationsRequest, limit=limit, include_stuck=True)
        return _values(await self._channel.call("ListUnresolvedObligations", request, pb.ListObligationsResponse))

    async def claim(
        self,
        run_id: str,
        number: int,
        owner: str,
        lease: timedelta = WORK_LEASE,
        caller: Caller = PLAIN,
        app: str = "",
    ) -> ObligationClaim:
        lease_ms = lease // timedelta(milliseconds=1)
        request = build(
            pb.ClaimObligationRequest, run_id=run_id, seq=number, claimer=owner, lease_ttl_ms=lease_ms, app=app
        )
        answer = await self._channel.call("ClaimObligation", request, pb.ClaimObligationResponse, caller)
        return ObligationClaim(obligation=OBLIGATION.value(answer.obligation), is_acquired=answer.acquired)

    async def attempt(
        self, run_id: str, number: int, attempt: int, error: str, next_attempt_at_ms: int = 0, caller: Caller = PLAIN
    ) -> Obligation:
        request = build(
            pb.RecordObligationAttemptRequest,
            run_id=run_id,
            seq=number,
            error=error,
            next_attempt_at_ms=next_attempt_at_ms,
            attempt=attempt,
        )
        return OBLIGATION.value(
            await self._channel.call("RecordObligationAttempt", request, pb.ObligationRecord, caller)
        )

    async def resolve(
        self,
        run_id: str,
        number: int,
        status: ObligationStatus = ObligationStatus.COMPENSATED,
        result_json: str = "",
        attempt: int | None = None,
        caller: Caller = PLAIN,
    ) -> Obligation:
        request = build(
            pb.ResolveObligationRequest,
            run_id=run_id,
            seq=number,
            status=number_of(status),
            result_json=result_json,
            attempt=attempt,
        )
        return OBLIGATION.value(await self._channel.call("ResolveObligation", request, pb.ObligationRecord, caller))


def _values(*answers: pb.ListObligationsResponse) -> list[Obligation]:
    return [OBLIGATION.value(each) for answer in answers for each in answer.obligations]
