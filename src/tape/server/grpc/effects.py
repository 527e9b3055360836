"""Procedures of effects."""

from collections.abc import Iterable

from tape.core.caller import Caller
from tape.core.effect import Effect, EffectStatus
from tape.server.grpc.hall import Hall, bounded
from tape.server.grpc.pages import first, page
from tape.wire import tape_pb2 as pb
from tape.wire.message_mapping import member
from tape.wire.messages.effects import EFFECT, ORDER

LIMIT = 200


async def begin_effect(hall: Hall, request: pb.BeginEffectRequest, caller: Caller) -> pb.BeginEffectResponse:
    fence = request.fence if request.HasField("fence") else None
    told = EFFECT.message(await hall.ledgers.effects.begin(ORDER.value(request), fence, caller))
    return pb.BeginEffectResponse(
        idempotency_key=told.idempotency_key,
        status=told.status,
        response_json=told.response_json,
        error_json=told.error_json,
        effect=told,
    )


async def complete_effect(hall: Hall, request: pb.CompleteEffectRequest, caller: Caller) -> pb.EffectRecord:
    status, fence = member(EffectStatus, request.status), request.fence if request.HasField("fence") else None
    effect = await hall.ledgers.effects.complete(
        request.run_id, request.idempotency_key, status, request.response_json, request.error_json, fence, caller
    )
    return EFFECT.message(effect)


async def reconcile_effect(hall: Hall, request: pb.ReconcileEffectRequest, caller: Caller) -> pb.EffectRecord:
    status = member(EffectStatus, request.resolved_status)
    effect = await hall.ledgers.effects.reconcile(
        request.run_id, request.idempotency_key, status, request.response_json, request.error_json, caller
    )
    return EFFECT.message(effect)


async def get_effect(hall: Hall, request: pb.GetEffectRequest, caller: Caller) -> pb.GetEffectResponse:
    found = await hall.ledgers.effects.find(request.run_id, request.idempotency_key)
    return pb.GetEffectResponse(found=found is not None, effect=None if found is None else EFFECT.message(found))


async def list_effects(hall: Hall, request: pb.ListEffectsRequest, caller: Caller) -> pb.ListEffectsResponse:
    found = await hall.ledgers.effects.listed(request.run_id)
    carried, rest = page(found, lambda each: (each.began_at_ms, each.idempotency_key), EFFECT.message, request.cursor)
    return pb.ListEffectsResponse(effects=carried, next_cursor=rest)


async def list_pending_effects(
    hall: Hall, request: pb.ListPendingEffectsRequest, caller: Caller
) -> pb.ListEffectsResponse:
    limit = bounded(request.limit, LIMIT)
    return listed(await hall.ledgers.effects.in_doubt(request.older_than_ms, limit, _wanted(request)))


def listed(effects: Iterable[Effect]) -> pb.ListEffectsResponse:
    return pb.ListEffectsResponse(effects=first(map(EFFECT.message, effects)))


def _wanted(request: pb.ListPendingEffectsRequest) -> set[EffectStatus]:
    flags = {EffectStatus.PENDING: request.include_pending, EffectStatus.UNKNOWN: request.include_unknown}
    return {status for status, is_wanted in flags.items() if is_wanted} or set(flags)
