"""Ledgers over gRPC: defaults, flags and filters that clients in other languages rely on."""

from collections.abc import Iterator
from typing import Any

import grpc
import httpx
import pytest

from tape.wire import tape_pb2 as pb
from tests.server.server import TapeServer
from tests.servers.grpc_stub import TapeStub


@pytest.fixture
def tape(lasting_server: TapeServer) -> Iterator[Any]:
    with grpc.insecure_channel(lasting_server.rpc.removeprefix("tape://")) as channel:
        yield TapeStub(channel)


@pytest.fixture
def run(tape: Any, run_id: str) -> pb.BeginRunResponse:
    """A run that is held by a worker."""
    return begun(tape, run_id)


def begun(tape: Any, name: str) -> pb.BeginRunResponse:
    asked = pb.BeginRunRequest(
        app_name="treasury", user_id="ann", session_id=name, invocation_id="1", lease_owner="w1", scopes=["pay"]
    )
    return tape.BeginRun(asked)  # type: ignore[no-any-return]


def test_a_run_begins_once_and_returns_its_head(tape: Any, run: pb.BeginRunResponse, run_id: str) -> None:
    again = begun(tape, run_id)
    found = tape.GetRun(pb.GetRunRequest(run_id=run.run_id))

    assert (run.resumed, run.acquired, run.next_seq, run.status) == (False, True, 2, pb.RUN_STATUS_RUNNING)
    assert (again.run_id, again.resumed) == (run.run_id, True)
    assert (found.app_name, found.session_id, found.lease_owner) == ("treasury", run_id, "w1")
    assert (found.seq_cursor, found.lease_ttl_ms, list(found.scopes)) == (again.next_seq, 120_000, ["pay"])


def test_a_heartbeat_is_a_resume_with_its_attempt(tape: Any, run: pb.BeginRunResponse) -> None:
    alive = tape.ResumeRun(pb.ResumeRunRequest(run_id=run.run_id, attempt=run.run.attempt))

    with pytest.raises(grpc.RpcError, match="ABORTED"):
        tape.ResumeRun(pb.ResumeRunRequest(run_id=run.run_id, attempt=run.run.attempt + 1))
    taken = tape.ResumeRun(pb.ResumeRunRequest(run_id=run.run_id, lease_owner="w2"))

    assert alive.lease_expires_at_ms >= run.run.lease_expires_at_ms
    assert (taken.acquired, taken.lease_owner) == (False, "w1")


def test_a_run_ends_with_a_number(tape: Any, run: pb.BeginRunResponse) -> None:
    ended = tape.EndRun(pb.EndRunRequest(run_id=run.run_id, status=pb.RUN_STATUS_CANCELLED, detail_json='"why"'))

    assert (ended.status, ended.detail_json, ended.lease_owner) == (8, '"why"', "")


def test_an_effect_needs_no_more_than_a_tool(tape: Any, run: pb.BeginRunResponse) -> None:
    first = tape.BeginEffect(pb.BeginEffectRequest(run_id=run.run_id, tool_name="wire"))
    tape.CompleteEffect(
        pb.CompleteEffectRequest(
            run_id=run.run_id, idempotency_key=first.idempotency_key, status=pb.EFFECT_STATUS_CONFIRMED
        )
    )
    again = tape.BeginEffect(pb.BeginEffectRequest(run_id=run.run_id, tool_name="wire"))

    assert first.idempotency_key == f"{run.run_id}/decision--1/wire/0"
    assert (first.status, again.status) == (pb.EFFECT_STATUS_PENDING, pb.EFFECT_STATUS_CONFIRMED)
    assert (first.effect.semantics, first.effect.dispatch_mode) == (pb.SEMANTICS_IDEMPOTENT, pb.DISPATCH_MODE_INLINE)


def test_a_scope_that_is_missing_is_permission_denied(tape: Any, run: pb.BeginRunResponse) -> None:
    with pytest.raises(grpc.RpcError, match="PERMISSION_DENIED"):
        tape.BeginEffect(pb.BeginEffectRequest(run_id=run.run_id, tool_name="wire", scope="trade"))


def test_completing_what_never_began_is_a_failed_precondition(tape: Any, run: pb.BeginRunResponse) -> None:
    asked = pb.CompleteEffectRequest(run_id=run.run_id, idempotency_key="never", status=pb.EFFECT_STATUS_CONFIRMED)

    with pytest.raises(grpc.RpcError, match="FAILED_PRECONDITION"):
        tape.CompleteEffect(asked)


def in_doubt(tape: Any, run_id: str, **flags: bool) -> list[int]:
    found = tape.ListPendingEffects(pb.ListPendingEffectsRequest(limit=1_000, **flags)).effects
    return sorted(effect.status for effect in found if effect.run_id == run_id)


def test_flags_choose_among_effects_in_doubt(tape: Any, run: pb.BeginRunResponse) -> None:
    for tool in ("a", "b"):
        tape.BeginEffect(pb.BeginEffectRequest(run_id=run.run_id, tool_name=tool))
    key = f"{run.run_id}/decision--1/b/0"
    tape.CompleteEffect(
        pb.CompleteEffectRequest(run_id=run.run_id, idempotency_key=key, status=pb.EFFECT_STATUS_UNKNOWN)
    )

    assert in_doubt(tape, run.run_id) == [pb.EFFECT_STATUS_PENDING, pb.EFFECT_STATUS_UNKNOWN]
    assert in_doubt(tape, run.run_id, include_pending=True) == [pb.EFFECT_STATUS_PENDING]
    assert in_doubt(tape, run.run_id, include_unknown=True) == [pb.EFFECT_STATUS_UNKNOWN]


def test_a_limit_counts_only_the_effects_that_flags_choose(tape: Any, run: pb.BeginRunResponse) -> None:
    tape.BeginEffect(pb.BeginEffectRequest(run_id=run.run_id, tool_name="wire", call_index=0))
    key = tape.BeginEffect(pb.BeginEffectRequest(run_id=run.run_id, tool_name="wire", call_index=1)).idempotency_key
    lost = pb.CompleteEffectRequest(run_id=run.run_id, idempotency_key=key, status=pb.EFFECT_STATUS_UNKNOWN)
    tape.CompleteEffect(lost)

    one_pending = tape.ListPendingEffects(pb.ListPendingEffectsRequest(include_pending=True, limit=1))
    one_unknown = tape.ListPendingEffects(pb.ListPendingEffectsRequest(include_unknown=True, limit=1))

    assert [effect.status for effect in one_pending.effects] == [pb.EFFECT_STATUS_PENDING]
    assert [effect.status for effect in one_unknown.effects] == [pb.EFFECT_STATUS_UNKNOWN]


def test_a_dispatch_that_failed_for_the_last_time_is_unknown(tape: Any, run: pb.BeginRunResponse) -> None:
    asked = pb.BeginEffectRequest(
        run_id=run.run_id, tool_name="wire", dispatch_mode=pb.DISPATCH_MODE_OUTBOX, connector=run.run_id
    )
    key = tape.BeginEffect(asked).idempotency_key
    (due,) = tape.ListEffectsToDispatch(pb.ListEffectsToDispatchRequest(connector=run.run_id)).effects
    claim = tape.ClaimEffectDispatch(
        pb.ClaimEffectDispatchRequest(run_id=run.run_id, idempotency_key=key, claimer="d1")
    )

    left = tape.RecordDispatchAttempt(
        pb.RecordDispatchAttemptRequest(run_id=run.run_id, idempotency_key=key, error="no")
    )

    assert (due.idempotency_key, claim.acquired, claim.effect.dispatch_claimed_by) == (key, True, "d1")
    assert (left.status, left.last_dispatch_error, left.dispatch_attempts) == (pb.EFFECT_STATUS_UNKNOWN, "no", 1)


def new_obligation(tape: Any, run_id: str, *tools: str) -> None:
    """Obligations of a run that has failed."""
    for tool in tools:
        key = tape.BeginEffect(pb.BeginEffectRequest(run_id=run_id, tool_name=tool)).idempotency_key
        tape.CompleteEffect(
            pb.CompleteEffectRequest(run_id=run_id, idempotency_key=key, status=pb.EFFECT_STATUS_CONFIRMED)
        )
        tape.RegisterCompensation(pb.RegisterCompensationRequest(run_id=run_id, effect_key=key, kind=f"undo-{tool}"))
    tape.EndRun(pb.EndRunRequest(run_id=run_id, status=pb.RUN_STATUS_FAILED))


def unresolved(tape: Any, run_id: str, **flags: Any) -> list[str]:
    found = tape.ListUnresolvedObligations(pb.ListUnresolvedObligationsRequest(limit=1_000, **flags)).obligations
    return [each.kind for each in found if each.run_id == run_id]


def test_obligations_are_met_newest_first_and_filtered(tape: Any, run: pb.BeginRunResponse) -> None:
    new_obligation(tape, run.run_id, "a", "b")

    (newest, oldest) = tape.ListObligations(pb.ListObligationsRequest(run_id=run.run_id)).obligations
    claim = tape.ClaimObligation(pb.ClaimObligationRequest(run_id=run.run_id, seq=newest.seq, claimer="d1"))
    stuck = tape.RecordObligationAttempt(
        pb.RecordObligationAttemptRequest(run_id=run.run_id, seq=newest.seq, error="no")
    )
    filtered = tape.ListObligations(
        pb.ListObligationsRequest(run_id=run.run_id, status_filter=pb.OBLIGATION_STATUS_PENDING)
    ).obligations

    assert (newest.kind, oldest.kind, newest.max_attempts) == ("undo-b", "undo-a", 5)
    assert (claim.acquired, stuck.status) == (True, pb.OBLIGATION_STATUS_STUCK)
    assert [each.kind for each in filtered] == ["undo-a"]
    assert unresolved(tape, run.run_id, include_stuck=True) == ["undo-b"]


def test_a_timer_claimed_without_a_claimer_fires_at_once(tape: Any, run: pb.BeginRunResponse) -> None:
    timer = tape.SetTimer(pb.SetTimerRequest(run_id=run.run_id, fire_at_ms=1, kind="wake"))

    claimed = tape.ListDueTimers(pb.ListDueTimersRequest(claim=True, limit=1_000)).timers
    again = tape.ListDueTimers(pb.ListDueTimersRequest(limit=1_000)).timers

    assert timer.timer_id.startswith("timer-")
    assert [each.status for each in claimed if each.run_id == run.run_id] == [pb.TIMER_STATUS_FIRED]
    assert not [each for each in again if each.run_id == run.run_id]


def test_a_timer_claimed_by_a_claimer_fires_when_the_claimer_says(tape: Any, run: pb.BeginRunResponse) -> None:
    tape.SetTimer(pb.SetTimerRequest(run_id=run.run_id, timer_id="t", fire_at_ms=1))

    leased = tape.ListDueTimers(pb.ListDueTimersRequest(claim=True, claimer="w1", limit=1_000)).timers
    (mine,) = [each for each in leased if each.run_id == run.run_id]
    fired = tape.FireTimer(pb.FireTimerRequest(run_id=run.run_id, timer_id="t", attempt=mine.attempt))

    assert (mine.status, mine.claimer, fired.status) == (pb.TIMER_STATUS_SET, "w1", pb.TIMER_STATUS_FIRED)


def test_a_signal_finds_the_newest_run_of_a_session(tape: Any, run: pb.BeginRunResponse, run_id: str) -> None:
    parked = tape.AwaitSignal(pb.AwaitSignalRequest(run_id=run.run_id, gate="approval"))

    sent = tape.SendSignal(
        pb.SendSignalRequest(
            app_name="treasury", user_id="ann", session_id=run_id, gate="approval", resolution_json='"yes"'
        )
    )
    passed = tape.AwaitSignal(pb.AwaitSignalRequest(run_id=run.run_id, gate="approval"))

    assert (parked.delivered, sent.accepted, sent.run_id) == (False, True, run.run_id)
    assert (sent.run_status, passed.delivered, passed.resolution_json) == (pb.RUN_STATUS_RUNNABLE, True, '"yes"')


def test_a_deleted_value_is_not_found_and_its_tombstone_is_returned(tape: Any, run_id: str) -> None:
    place: dict[str, Any] = {"namespace": "wire", "key": run_id}
    tape.WriteValue(pb.WriteValueRequest(**place, value_json="1", if_version=-1))

    gone = [tape.DeleteValue(pb.DeleteValueRequest(**place)) for _ in range(2)]
    found = tape.GetValue(pb.GetValueRequest(**place))

    assert [(each.deleted, each.version) for each in gone] == [(True, 2), (False, 2)]
    assert (found.found, found.value.deleted, found.value.version) == (False, True, 2)


@pytest.mark.parametrize("text", ["", "no JSON", "NaN", "{", '"\\ud800"'])
def test_a_value_that_is_no_json_is_refused_and_lists_stay_readable(
    tape: Any, lasting: httpx.Client, run_id: str, text: str
) -> None:
    tape.WriteValue(pb.WriteValueRequest(namespace=run_id, key="good", value_json="1", if_version=-1))
    with pytest.raises(grpc.RpcError) as refused:
        tape.WriteValue(pb.WriteValueRequest(namespace=run_id, key="bad", value_json=text, if_version=-1))

    assert (refused.value.code(), "value_json" in refused.value.details()) == (grpc.StatusCode.INVALID_ARGUMENT, True)
    assert [each["value"] for each in lasting.get(f"/values/{run_id}").json()["values"]] == [1]


def test_a_budget_without_caps_admits_everything(tape: Any, run: pb.BeginRunResponse) -> None:
    free = tape.SetBudget(pb.SetBudgetRequest(run_id=run.run_id, usd_cap=0, token_cap=-1))
    admitted = tape.AdmitBudget(pb.AdmitBudgetRequest(run_id=run.run_id, usd=1e6, tokens=1 << 40)).admitted
    tape.SetBudget(pb.SetBudgetRequest(run_id=run.run_id, usd_cap=0.5))
    refused = tape.AdmitBudget(pb.AdmitBudgetRequest(run_id=run.run_id, usd=0.500001))

    assert (free.HasField("usd_cap"), free.HasField("token_cap"), admitted) == (False, False, True)
    assert not refused.admitted and "over the cap" in refused.reason


def test_a_session_gives_all_some_or_none_of_its_events(tape: Any, run_id: str) -> None:
    names: dict[str, Any] = {"app_name": "chat", "user_id": "ann", "session_id": run_id}
    tape.CreateSession(pb.CreateSessionRequest(**names, state_json='{"a": 1}'))
    for number in range(3):
        event = pb.SessionEvent(author="ann", content_json=str(number))
        tape.AppendEvent(pb.AppendEventRequest(**names, event=event, state_delta_json='{"b": 2}'))

    counts = [len(tape.GetSession(pb.GetSessionRequest(**names, max_events=most)).events) for most in (0, 2, -1)]

    assert counts == [3, 2, 0]
    assert tape.DeleteSession(pb.DeleteSessionRequest(**names)).deleted
