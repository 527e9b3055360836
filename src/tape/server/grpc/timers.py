"""Procedures of timers."""

from os import urandom

from tape.core.caller import Caller
from tape.core.claim import WORK_LEASE
from tape.core.page import fit_answer
from tape.core.timer import Timer
from tape.server.grpc.hall import Hall, bounded, moment, span
from tape.server.grpc.pages import size
from tape.wire import tape_pb2 as pb
from tape.wire.messages.known import TIMER

LIMIT = 200
NOBODY = "nobody"
CLAIM = 256  # bytes that a claim adds to a timer


async def set_timer(hall: Hall, request: pb.SetTimerRequest, caller: Caller) -> pb.TimerRecord:
    timer_id = request.timer_id or f"timer-{urandom(16).hex()}"
    timer = await hall.ledgers.timers.set(
        request.run_id, timer_id, request.fire_at_ms, request.kind, request.payload_json, caller, request.app
    )
    return TIMER.message(timer)


async def cancel_timer(hall: Hall, request: pb.CancelTimerRequest, caller: Caller) -> pb.CancelTimerResponse:
    was_there = await hall.ledgers.timers.cancel(request.run_id, request.timer_id, caller)
    return pb.CancelTimerResponse(cancelled=was_there)


async def list_due_timers(hall: Hall, request: pb.ListDueTimersRequest, caller: Caller) -> pb.ListDueTimersResponse:
    due = await hall.ledgers.timers.due(
        bounded(request.limit, LIMIT), moment(request.now_ms), app=request.app, kinds=[*request.kinds] or None
    )
    carried = fit_answer(due, lambda timer: size(TIMER.message(timer)) + CLAIM)
    claims = [await _claimed(hall, timer, request, caller) for timer in carried] if request.claim else carried
    return pb.ListDueTimersResponse(timers=[TIMER.message(timer) for timer in claims if timer is not None])


async def claim_timer(hall: Hall, request: pb.ClaimTimerRequest, caller: Caller) -> pb.ClaimTimerResponse:
    lease = span(request.lease_ttl_ms, WORK_LEASE)
    claim = await hall.ledgers.timers.claim(
        request.run_id, request.timer_id, request.claimer, lease, caller, request.app
    )
    return pb.ClaimTimerResponse(acquired=claim.is_acquired, timer=TIMER.message(claim.timer))


async def fire_timer(hall: Hall, request: pb.FireTimerRequest, caller: Caller) -> pb.TimerRecord:
    return TIMER.message(await hall.ledgers.timers.fire(request.run_id, request.timer_id, request.attempt, caller))


async def _claimed(hall: Hall, timer: Timer, request: pb.ListDueTimersRequest, caller: Caller) -> Timer | None:
    """A timer for who asks; who does not say their name has handled it with that."""
    timers, lease = hall.ledgers.timers, span(request.lease_ttl_ms, WORK_LEASE)
    claim = await timers.claim(timer.run_id, timer.timer_id, request.claimer or NOBODY, lease, caller, request.app)
    if not claim.is_acquired:
        return None
    if request.claimer:
        return claim.timer
    return await timers.fire(timer.run_id, timer.timer_id, claim.timer.claim.attempt, caller)
