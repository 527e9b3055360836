"""Clients generated from the first contract work with today's server: every procedure of it, with its answers."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from tape.wire import tape_pb2 as pb
from tests.process.processes import until
from tests.server.old_client import OldClient, contract, old_client, promises, unknown_fields
from tests.server.server import TapeServer
from tests.servers.grpc_stub import TapeStub

SESSION = {"app_name": "shop", "user_id": "ann", "session_id": "monday"}
CHAT = {"app_name": "chat", "user_id": "ann", "session_id": "s1"}
RATE = {"namespace": "rates", "key": "eur"}
STORES = pytest.mark.parametrize("store_url", ["sqlite", "postgres"], indirect=True, scope="module")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("generated")


@STORES
def test_every_procedure_of_the_first_contract_answers_as_then(server: TapeServer, folder: Path) -> None:
    with old_client(folder, server.rpc) as old:
        run = run_begins(old)
        decisions(old, run)
        effects(old, run)
        dispatches(old, run)
        budgets(old, run)
        gates(old, run)
        timers(old, run)
        obligations(old)
        run_ends(old, run)
        values(old)
        sessions(old)
        journal(old)
        reactions(old)

    assert old.procedures - old.called == set()


@STORES
def test_fields_that_are_newer_than_a_client_do_not_disturb_it(server: TapeServer, folder: Path) -> None:
    with old_client(folder, server.rpc) as old, grpc.insecure_channel(server.rpc.removeprefix("tape://")) as channel:
        new, run = TapeStub(channel), old.BeginRun(app_name="newer", invocation_id="1").run_id
        place = {"run_id": run, "app": "newer"}
        new.BeginEffect(pb.BeginEffectRequest(**place, tool_name="pay"))
        new.RegisterCompensation(pb.RegisterCompensationRequest(**place, effect_key="k", kind="refund"))
        new.RegisterReaction(
            pb.Reaction(reaction_id="slow", subject_pattern="/x", handler_kind=pb.HANDLER_KIND_TASK, timeout_ms=9_000)
        )
        (effect,) = old.ListEffects(run_id=run).effects
        (obligation,) = old.ListObligations(run_id=run).obligations
        (reaction,) = old.ListReactions(subject_pattern="/x").reactions
        (entry,) = taken(old.SubscribeRun(run_id=run), 1)

    assert [unknown_fields(each) for each in (effect, obligation, reaction, entry)] == [[24], [19], [18], [13]]
    assert (effect.tool_name, obligation.kind, reaction.reaction_id, entry.seq) == ("pay", "refund", "slow", 1)


@pytest.mark.parametrize("name", ["seed.proto", "first.proto"])
def test_a_contract_is_found_by_reflection_as_it_was(lasting_server: TapeServer, tmp_path: Path, name: str) -> None:
    with grpc.insecure_channel(lasting_server.rpc.removeprefix("tape://")) as channel:
        served = ProtoReflectionDescriptorDatabase(channel).FindFileContainingSymbol("tape.v1.Tape")

    assert promises(contract(name, tmp_path)) - promises(served) == set()


def run_begins(old: OldClient) -> str:
    asked = {**SESSION, "invocation_id": "one", "lease_owner": "w1", "scopes": ["pay"], "labels": {"team": "a"}}

    first, again = old.BeginRun(**asked), old.BeginRun(**asked)
    alive = old.ResumeRun(run_id=first.run_id, attempt=again.run.attempt)
    found = old.GetRun(run_id=first.run_id)

    assert (first.resumed, first.acquired, first.next_seq, first.status) == (False, True, 2, 2)
    assert (again.run_id, again.resumed, alive.lease_owner) == (first.run_id, True, "w1")
    assert (found.app_name, found.lease_ttl_ms, found.scopes, found.labels["team"]) == ("shop", 120_000, ["pay"], "a")
    assert old.FindNewestRun(**SESSION).run_id == first.run_id
    return str(first.run_id)


def decisions(old: OldClient, run: str) -> None:
    recorded = old.RecordDecision(run_id=run, decision_index=0, model="m", response_json='{"a":1}', rationale="r")
    found, nothing = (old.GetDecision(run_id=run, decision_index=index) for index in (0, 9))

    assert (recorded.model, recorded.response_json, recorded.rationale) == ("m", '{"a":1}', "r")
    assert (found.found, found.decision, nothing.found) == (True, recorded, False)
    assert list(old.ListDecisions(run_id=run).decisions) == [recorded]


def effects(old: OldClient, run: str) -> None:
    begun = old.BeginEffect(run_id=run, decision_index=-1, tool_name="pay", compensation={"kind": "refund"})
    place = {"run_id": run, "idempotency_key": begun.idempotency_key}
    pending = old.ListPendingEffects(include_pending=True).effects
    unknown = old.CompleteEffect(**place, status="EFFECT_STATUS_UNKNOWN")
    settled = old.ReconcileEffect(**place, resolved_status="EFFECT_STATUS_CONFIRMED", response_json='{"id":1}')

    assert (begun.idempotency_key, begun.status) == (f"{run}/decision--1/pay/0", 1)
    assert ([each.idempotency_key for each in pending], unknown.status) == ([begun.idempotency_key], 4)
    assert (settled.status, settled.response_json, settled.compensation.kind) == (2, '{"id":1}', "refund")
    assert old.GetEffect(**place).effect == settled
    assert not old.GetEffect(run_id=run, idempotency_key="nothing").found
    assert list(old.ListEffects(run_id=run).effects) == [settled]


def dispatches(old: OldClient, run: str) -> None:
    place = {"run_id": run, "idempotency_key": "parcel"}
    sent = {"custom_key": "parcel", "dispatch_mode": "DISPATCH_MODE_OUTBOX", "connector": "post", "scope": "pay"}
    old.BeginEffect(run_id=run, tool_name="ship", **sent)

    (due,) = old.ListEffectsToDispatch(connector="post").effects
    claims = [old.ClaimEffectDispatch(**place, claimer=name) for name in ("d1", "d2")]
    silent = old.DoubtSilentDispatches(limit=5).effects
    failed = old.RecordDispatchAttempt(**place, error="no answer", attempt=1)
    seen = old.RecordExternalObservation(**place, resolution="RESOLUTION_CONFIRMED", external_ref="p-1")

    assert (due.connector, due.dispatch_mode, [claim.acquired for claim in claims]) == ("post", 2, [True, False])
    assert ([*silent], failed.status, failed.last_dispatch_error) == ([], 4, "no answer")
    assert (seen.status, seen.external_ref, seen.dispatch_attempts) == (2, "p-1", 1)


def budgets(old: OldClient, run: str) -> None:
    capped = old.SetBudget(run_id=run, usd_cap=1.5, token_cap=100)
    refused = old.AdmitBudget(run_id=run, tokens=101)
    reserved = old.ReserveBudget(run_id=run, usd=0.25, tokens=10, reservation_id="call")
    settled = old.SettleBudget(run_id=run, usd=0.125, tokens=5, reservation_id="call")
    charged = old.ChargeBudget(run_id=run, usd=0.5, key="k")

    assert (capped.usd_cap, capped.token_cap, refused.admitted, bool(refused.reason)) == (1.5, 100, False, True)
    assert (reserved.admitted, reserved.state.usd_reserved, settled.tokens_reserved) == (True, 0.25, 0)
    assert (charged.usd_spent, charged.tokens_spent) == (0.625, 5)
    assert old.GetBudget(run_id=run) == charged


def gates(old: OldClient, run: str) -> None:
    place = {"run_id": run, "gate": "ok"}

    waiting = old.AwaitSignal(**place, payload_json='"who"')
    sent = old.SendSignal(**SESSION, gate="ok", resolution_json='"yes"', key="answer")
    passed = old.AwaitSignal(**place)
    gate = old.GetGate(**place)

    assert (waiting.delivered, sent.accepted, sent.run_id, sent.run_status) == (False, True, run, 1)
    assert (passed.delivered, passed.resolution_json) == (True, '"yes"')
    assert (gate.found, gate.gate.context_json, gate.gate.resolutions) == (True, '"who"', ['"yes"'])
    assert not old.GetGate(run_id=run, gate="other").found


def timers(old: OldClient, run: str) -> None:
    place = {"run_id": run, "timer_id": "t"}
    placed = old.SetTimer(**place, fire_at_ms=1, kind="remind", payload_json="7")
    old.SetTimer(run_id=run, timer_id="later", fire_at_ms=1 << 42)

    (due,) = old.ListDueTimers().timers
    claim = old.ClaimTimer(**place, claimer="w1")
    fired = old.FireTimer(**place, attempt=claim.timer.attempt)

    assert (placed.status, due.timer_id, due.payload_json, claim.acquired, fired.status) == (1, "t", "7", True, 2)
    assert [old.CancelTimer(run_id=run, timer_id=name).cancelled for name in ("later", "none")] == [True, False]


def obligations(old: OldClient) -> None:
    run = old.BeginRun(**SESSION, invocation_id="two").run_id
    for kind in ("refund", "recall"):
        old.RegisterCompensation(run_id=run, effect_key=kind, kind=kind)
    assert run in [each.run_id for each in old.ListRunsToRecover(app_name="shop").runs]
    old.EndRun(run_id=run, status="RUN_STATUS_FAILED")

    newest, oldest = old.ListObligations(run_id=run).obligations
    place = {"run_id": run, "seq": newest.seq}
    due = old.ListUnresolvedObligations(include_pending=True).obligations
    claim = old.ClaimObligation(**place, claimer="w1")
    stuck = old.RecordObligationAttempt(**place, error="no", attempt=claim.obligation.attempt)
    resolved = old.ResolveObligation(**place, status="OBLIGATION_STATUS_COMPENSATED", result_json="1")

    assert (newest.kind, oldest.kind, newest.max_attempts) == ("recall", "refund", 5)
    assert ([*due], claim.acquired, stuck.status, stuck.last_error) == ([newest], True, 4, "no")
    assert (resolved.status, resolved.result_json) == (3, "1")
    assert list(old.ListObligations(run_id=run, only_unresolved=True).obligations) == [oldest]


def run_ends(old: OldClient, run: str) -> None:
    ended = old.EndRun(run_id=run, status="RUN_STATUS_TERMINAL", detail_json='"done"')
    old_runs = old.ListCompactableRuns(before_ms=1 << 42).runs
    reports = [old.CompactRun(run_id=run) for _ in range(2)]
    entries = taken(old.SubscribeRun(run_id=run), 2)

    assert (ended.status, ended.detail_json, ended.lease_owner) == (4, '"done"', "")
    assert run in [each.run_id for each in old_runs]
    assert [(each.decisions_zeroed, each.already_compacted) for each in reports] == [(1, False), (0, True)]
    assert [(each.seq, each.kind, each.run_id) for each in entries] == [(1, "run", run), (2, "run", run)]


def values(old: OldClient) -> None:
    written = [old.WriteValue(**RATE, value_json=text, if_version=-1, writer="ann") for text in ("1", "2")]
    with status("ABORTED"):
        old.WriteValue(**RATE, value_json="3", if_version=1)
    listed = old.ListValues(namespace="rates").values
    deleted = old.DeleteValue(**RATE, if_version=2)
    found = old.GetValue(**RATE)
    changes = taken(old.WatchValue(**RATE, from_version=0), 3)

    assert [each.version for each in written] == [1, 2]
    assert ([*listed], deleted.deleted, deleted.version) == ([written[1]], True, 3)
    assert (found.found, found.value.deleted, found.value.version) == (False, True, 3)
    assert [(each.value.version, each.value.value_json) for each in changes[:2]] == [(1, "1"), (2, "2")]


def sessions(old: OldClient) -> None:
    made = old.CreateSession(**CHAT, state_json='{"a":1}')
    appended = old.AppendEvent(**CHAT, event={"author": "ann", "content_json": "1"}, state_delta_json='{"b":2}')
    old.AppendEvent(**CHAT, event={"author": "bot", "content_json": "2"})
    counts = [len(old.GetSession(**CHAT, max_events=most).events) for most in (0, 1, -1)]

    assert (made.state_json, appended.session.state_json) == ('{"a":1}', '{"a":1,"b":2}')
    assert (appended.event.author, bool(appended.event.id), counts) == ("ann", True, [2, 1, 0])
    assert [each.event_count for each in old.ListSessions(app_name="chat", user_id="ann").sessions] == [2]
    assert [old.DeleteSession(**CHAT).deleted for _ in range(2)] == [True, False]


def journal(old: OldClient) -> None:
    sold = {"run_id": "sales", "type": "sold", "subject": "/shop/sold"}
    events = [{**sold, "payload_json": str(number)} for number in range(3)]
    with status("NOT_FOUND"):
        old.Append(events=events)
    first, again = (old.Append(events=events, key="k", open=True) for _ in range(2))
    with status("ABORTED"):
        old.Append(events=events, expected_seq=1)
    start = first.entries[0].global_seq - 1
    by_subject = old.SubscribeBySubject(subject_pattern="/shop/*", predicate_cel="payload > 0", from_global_seq=start)
    by_run = old.SubscribeEvents(run_id="sales", kind="event")
    batches = list(old.TailBatches(run_id="sales", from_seq=2, no_follow=True))

    assert [each.seq for each in first.entries] == [1, 2, 3]
    assert again.entries == first.entries
    assert [each.payload_json for each in taken(by_subject, 2)] == ["1", "2"]
    assert [(each.type, each.subject) for each in taken(by_run, 3)] == [("sold", "/shop/sold")] * 3
    assert [each.seq for batch in batches for each in batch.entries] == [2, 3]


def reactions(old: OldClient) -> None:
    bounds = {"max_concurrency": 2, "retry_backoff_ms": 1}
    asked = {"reaction_id": "greet", "subject_pattern": "/tape/event/*/guests", **bounds}
    made = old.RegisterReaction(**asked, handler_kind="HANDLER_KIND_TASK", bootstrap_from_head=True)
    guests = [{"run_id": "guests", "payload_json": str(number)} for number in range(2)]
    old.Append(events=guests, open=True)

    tasks(old)

    assert (made.num_shards, made.retry_max, made.dlq_after_n, made.deleted) == (1, 5, 5, False)
    assert [*old.ListReactions(subject_pattern="/tape/event/*/guests").reactions] == [made]
    assert [old.DeregisterReaction(reaction_id="greet").deregistered for _ in range(2)] == [True, False]


def tasks(old: OldClient) -> None:
    first, second = claimed(old, 2)
    kept = old.ExtendTask(task_id=first.task_id, owner="w1", attempt=1, lease_ms=90_000).task
    done = old.CompleteTask(task_id=first.task_id, owner="w1").task  # a client of the seed knows no attempt
    old.NackTask(task_id=second.task_id, owner="w1", error="once")
    (retried,) = claimed(old, 1)
    dead = old.NackTask(task_id=second.task_id, owner="w1", error="for good", permanent=True, attempt=2).task
    with status("ABORTED"):
        old.CompleteTask(task_id=second.task_id, owner="w2", attempt=1)

    assert {first.payload_json, second.payload_json} == {"0", "1"}
    assert (first.status, first.attempts, kept.lease_expires_at_ms > first.lease_expires_at_ms) == (2, 1, True)
    assert (done.status, retried.last_error, retried.attempt) == (3, "once", 2)
    assert (dead.status, dead.last_error) == (5, "for good")
    assert list(old.ListTasks(reaction_id="greet", status="TASK_STATUS_DLQ", limit=5).tasks) == [dead]


def claimed(old: OldClient, count: int) -> list[Any]:
    """So many tasks, as soon as there are."""
    found: list[Any] = []

    def is_enough() -> bool:
        found.extend(old.ClaimTasks(reaction_id="greet", shard=-1, owner="w1", max=count, lease_ms=60_000).tasks)
        return len(found) >= count

    until(is_enough, f"{count} tasks")
    return found


def taken(stream: Any, count: int) -> list[Any]:
    found = list(islice(stream, count))
    stream.cancel()
    return found


@contextmanager
def status(name: str) -> Iterator[None]:
    with pytest.raises(grpc.RpcError) as caught:
        yield
    assert caught.value.code().name == name
