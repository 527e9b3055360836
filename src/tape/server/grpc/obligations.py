"""Procedures of obligations."""

from tape.core.caller import Caller
from tape.core.claim import WORK_LEASE
from tape.core.effect import ATTEMPTS
from tape.core.errors import NotFound
from tape.core.obligation import Obligation, ObligationStatus
from tape.runs.obligations import OWED
from tape.server.grpc.hall import Hall, bounded, moment, span
from tape.server.grpc.pages import first, page
from tape.wire import tape_pb2 as pb
from tape.wire.message_mapping import member
from tape.wire.messages.effects import OBLIGATION, REGISTERED

LIMIT = 500


async def register_compensation(
    hall: Hall, request: pb.RegisterCompensationRequest, caller: Caller
) -> pb.ObligationRecord:
    how = REGISTERED.value(request, **({} if request.max_attempts else {"max_attempts": ATTEMPTS}))
    return OBLIGATION.message(await hall.ledgers.obligations.register(request.run_id, request.effect_key, how, caller))


async def list_obligations(
    hall: Hall, request: pb.ListObligationsRequest, caller: Caller
) -> pb.ListObligationsResponse:
    status = member(ObligationStatus, request.status_filter) if request.status_filter else None
    is_owed = request.only_unresolved and status is None
    found = await hall.ledgers.obligations.listed(request.run_id, only_unresolved=is_owed)
    wanted = (each for each in found if status in (None, each.status))
    carried, rest = page(wanted, lambda each: (-each.number,), OBLIGATION.message, request.cursor)
    return pb.ListObligationsResponse(obligations=carried, next_cursor=rest)


async def list_unresolved_obligations(
    hall: Hall, request: pb.ListUnresolvedObligationsRequest, caller: Caller
) -> pb.ListObligationsResponse:
    limit, wanted = bounded(request.limit, LIMIT), _wanted(request)
    found: list[Obligation] = []
    if owed := wanted & OWED:
        found += await hall.ledgers.obligations.due(
            limit, moment(request.now_ms), owed, app=request.app, compensators=[*request.compensators] or None
        )
    if ObligationStatus.STUCK in wanted and len(found) < limit:
        found += await hall.ledgers.obligations.stuck(limit - len(found))
    return pb.ListObligationsResponse(obligations=first(map(OBLIGATION.message, found)))


async def claim_obligation(
    hall: Hall, request: pb.ClaimObligationRequest, caller: Caller
) -> pb.ClaimObligationResponse:
    lease = span(request.lease_ttl_ms, WORK_LEASE)
    claim = await hall.ledgers.obligations.claim(
        request.run_id, request.seq, request.claimer, lease, caller, request.app
    )
    return pb.ClaimObligationResponse(acquired=claim.is_acquired, obligation=OBLIGATION.message(claim.obligation))


async def record_obligation_attempt(
    hall: Hall, request: pb.RecordObligationAttemptRequest, caller: Caller
) -> pb.ObligationRecord:
    attempt = request.attempt or await _newest(hall, request.run_id, request.seq)
    obligation = await hall.ledgers.obligations.attempt(
        request.run_id, request.seq, attempt, request.error, request.next_attempt_at_ms, caller
    )
    return OBLIGATION.message(obligation)


async def resolve_obligation(hall: Hall, request: pb.ResolveObligationRequest, caller: Caller) -> pb.ObligationRecord:
    status = member(ObligationStatus, request.status)
    attempt = request.attempt if request.HasField("attempt") else None
    obligation = await hall.ledgers.obligations.resolve(
        request.run_id, request.seq, status, request.result_json, attempt, caller
    )
    return OBLIGATION.message(obligation)


async def _newest(hall: Hall, run_id: str, number: int) -> int:
    for each in await hall.ledgers.obligations.listed(run_id):
        if each.number == number:
            return each.claim.attempt
    raise NotFound(f"run {run_id!r} has no obligation {number}")


def _wanted(request: pb.ListUnresolvedObligationsRequest) -> set[ObligationStatus]:
    flags = {
        ObligationStatus.PENDING: request.include_pending,
        ObligationStatus.COMMITTED: request.include_committed_expired,
        ObligationStatus.STUCK: request.include_stuck,
    }
    asked = {status for status, is_wanted in flags.items() if is_wanted}
    return asked or set(OWED)
