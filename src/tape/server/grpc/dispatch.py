"""Procedures of the outbox of effects."""

from tape.core.caller import Caller
from tape.core.claim import WORK_LEASE
from tape.core.effect import Compensation
from tape.core.errors import NotReady
from tape.server.grpc.effects import LIMIT, listed
from tape.server.grpc.hall import Hall, bounded, moment, span
from tape.wire import tape_pb2 as pb
from tape.wire.messages.effects import EFFECT, OBSERVATION


async def list_effects_to_dispatch(
    hall: Hall, request: pb.ListEffectsToDispatchRequest, caller: Caller
) -> pb.ListEffectsResponse:
    limit, now_ms = bounded(request.limit, LIMIT), moment(request.now_ms)
    return listed(await hall.ledgers.dispatch.due(request.connector, limit, now_ms, request.app))


async def claim_effect_dispatch(
    hall: Hall, request: pb.ClaimEffectDispatchRequest, caller: Caller
) -> pb.ClaimEffectDispatchResponse:
    lease = span(request.lease_ttl_ms, WORK_LEASE)
    claim = await hall.ledgers.dispatch.claim(
        request.run_id, request.idempotency_key, request.claimer, lease, caller, request.app
    )
    return pb.ClaimEffectDispatchResponse(acquired=claim.is_acquired, effect=EFFECT.message(claim.effect))


async def record_dispatch_attempt(
    hall: Hall, request: pb.RecordDispatchAttemptRequest, caller: Caller
) -> pb.EffectRecord:
    attempt = request.attempt or await _newest(hall, request.run_id, request.idempotency_key)
    effect = await hall.ledgers.dispatch.attempt(
        request.run_id, request.idempotency_key, attempt, request.error, request.next_dispatch_at_ms, caller
    )
    return EFFECT.message(effect)


async def record_external_observation(
    hall: Hall, request: pb.RecordExternalObservationRequest, caller: Caller
) -> pb.EffectRecord:
    seen = OBSERVATION.value(request, **_on_duplicate(request))
    return EFFECT.message(await hall.ledgers.dispatch.observe(request.run_id, request.idempotency_key, seen, caller))


async def doubt_silent_dispatches(
    hall: Hall, request: pb.DoubtSilentDispatchesRequest, caller: Caller
) -> pb.ListEffectsResponse:
    limit, now_ms = bounded(request.limit, LIMIT), moment(request.now_ms)
    return listed(await hall.ledgers.dispatch.mark_lost_in_doubt(limit, now_ms))


async def _newest(hall: Hall, run_id: str, key: str) -> int:
    found = await hall.ledgers.effects.find(run_id, key)
    if found is None:
        raise NotReady(f"effect {key!r} of run {run_id!r} was never begun")
    return found.claim.attempt


def _on_duplicate(request: pb.RecordExternalObservationRequest) -> dict[str, Compensation]:
    kind = request.compensate_on_duplicate_kind
    return {"compensate_on_duplicate": Compensation(kind=kind)} if kind else {}
