"""Large answers: every gRPC client can receive them, and items that do not fit are not claimed."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import anyio
import grpc
import msgspec
import pytest

from tape.bus.journal import Journal
from tape.core.errors import InvalidCursor, TooLarge
from tape.core.event import Event
from tape.core.page import ANSWER_BYTES
from tape.core.ports import Store
from tape.core.run import RunMeta
from tape.core.task import ClaimRequest, Died, Failed, Settlement, TaskClaim, TaskStatus
from tape.sdk.remote.channel import Channel
from tape.sdk.remote.dispatcher import Tasks
from tape.sdk.remote.ledgers import connect
from tape.wire import tape_pb2 as pb
from tests.contract.backends import needs_ledgers
from tests.contract.events import append
from tests.contract.reactions import LONG, match, publish, reaction, tasks
from tests.contract.serving import served
from tests.deadlines import DEADLINE_S
from tests.servers.grpc_stub import TapeStub

pytestmark = needs_ledgers

LARGE = "x" * 900_000
MODEST = "x" * 9_000  # where the caller names fewer bytes than 4 MiB


@pytest.fixture
async def url(store: Store, journal: Journal) -> AsyncIterator[str]:
    async with served(store, journal) as url:
        yield url


@pytest.fixture
async def stock(url: str) -> AsyncIterator[Any]:
    """A client as gRPC makes it, which accepts messages of 4 MiB."""
    async with grpc.aio.insecure_channel(url.removeprefix("tape://")) as channel:
        yield TapeStub(channel)


async def eight_large_tasks(store: Store, *names: str, payload: str = LARGE) -> None:
    for name in names or ("rule",):
        await store.reactions.register(reaction(name))
    for _ in range(8):
        await append(store, Event(run_id="r1", payload=payload, subject="/a/b"))
    await match(store)


async def begun(stock: Any) -> str:
    """A run."""
    names: dict[str, Any] = {"app_name": "a", "user_id": "u", "session_id": "s", "invocation_id": "1"}
    run_id: str = (await stock.BeginRun(pb.BeginRunRequest(**names, lease_owner="w"))).run_id
    return run_id


async def whole(ask: Any, request: Any, noun: str) -> list[Any]:
    """All items of a list, page by page."""
    found: list[Any] = []
    with anyio.fail_after(DEADLINE_S):
        while True:
            answer = await ask(request)
            found.extend(getattr(answer, noun))
            if not answer.next_cursor:
                return found
            request.cursor = answer.next_cursor


async def test_a_claim_leases_only_what_its_answer_carries(store: Store) -> None:
    await eight_large_tasks(store)

    claimed = (await store.tasks.claim(ClaimRequest(owner="me", limit=8, lease=LONG))).tasks

    left = [task for task in await tasks(store) if task.status is TaskStatus.PENDING]
    assert sum(task.size for task in claimed) <= ANSWER_BYTES and len(claimed) + len(left) == 8
    assert {task.attempts for task in left} == {0} and claimed[0].source_global_seq < left[0].source_global_seq


async def test_the_bytes_of_a_claim_are_those_of_all_its_reactions(store: Store) -> None:
    await eight_large_tasks(store, "one", "two")

    claimed = (await store.tasks.claim(ClaimRequest(owner="me", limit=16, lease=LONG))).tasks

    assert claimed and sum(task.size for task in claimed) <= ANSWER_BYTES


async def test_a_claim_stays_within_the_caller_s_bytes_and_says_that_more_is_due(store: Store) -> None:
    await eight_large_tasks(store, "one", "two", payload=MODEST)

    claimed = await store.tasks.claim(ClaimRequest(owner="me", limit=16, lease=LONG, max_bytes=25_000))

    assert len(claimed.tasks) == 2 and sum(task.size for task in claimed.tasks) <= 25_000
    assert claimed.more_after == timedelta(0) and not claimed.is_all


async def test_a_claim_gives_one_task_that_just_fits(store: Store) -> None:
    await eight_large_tasks(store, payload=MODEST)
    size = (await tasks(store))[0].size

    claimed = await store.tasks.claim(ClaimRequest(owner="me", limit=8, lease=LONG, max_bytes=size))

    assert len(claimed.tasks) == 1


async def test_tasks_of_which_none_fits_are_not_leased_and_the_caller_learns_their_size(store: Store) -> None:
    await eight_large_tasks(store, "one", "two", payload=MODEST)
    size = (await tasks(store))[0].size

    with pytest.raises(TooLarge, match=f"takes {size:,} bytes"):
        await store.tasks.claim(ClaimRequest(owner="me", limit=16, lease=LONG, max_bytes=size - 1))

    assert {(task.status, task.attempt, task.attempts) for task in await tasks(store)} == {(TaskStatus.PENDING, 0, 0)}


async def test_a_task_that_does_not_fit_delays_no_other(store: Store) -> None:
    await eight_large_tasks(store, payload=MODEST)
    await append(store, Event(run_id="r1", payload="small", subject="/a/b"))
    await match(store)

    claimed = await store.tasks.claim(ClaimRequest(owner="me", limit=8, lease=LONG, max_bytes=5_000))

    assert [task.source_seq for task in claimed.tasks] == [9]


async def test_a_claim_at_its_limit_of_starts_is_no_claim_that_does_not_fit(store: Store) -> None:
    await store.reactions.register(reaction(max_concurrency=1))
    await publish(store, 2)
    await match(store)
    await store.tasks.claim(ClaimRequest(owner="other", limit=1, lease=LONG))

    claimed = await store.tasks.claim(ClaimRequest(owner="me", limit=8, lease=LONG, max_bytes=10_000))

    assert claimed.tasks == [] and not claimed.is_all


async def test_a_stock_client_claims_all_large_tasks_at_their_first_attempt(store: Store, stock: Any) -> None:
    await eight_large_tasks(store)

    found: list[pb.Task] = []
    for _ in range(8):
        found += (await stock.ClaimTasks(pb.ClaimTasksRequest(shard=-1, owner="me", max=16))).tasks

    assert len({task.task_id for task in found}) == len(found) == 8 and {task.attempts for task in found} == {1}


async def test_an_answer_stays_within_the_bytes_that_its_caller_names(store: Store, stock: Any) -> None:
    await eight_large_tasks(store, payload=MODEST)

    answer = await stock.ClaimTasks(pb.ClaimTasksRequest(shard=-1, owner="me", max=16, max_bytes=25_000))

    assert len(answer.tasks) == 2 and answer.ByteSize() <= 25_000
    assert answer.HasField("more_after_ms") and answer.more_after_ms == 0


@pytest.mark.parametrize(("max_bytes", "code"), [(-1, "INVALID_ARGUMENT"), (5_000, "RESOURCE_EXHAUSTED")])
async def test_bytes_that_no_task_fits_into_are_refused(store: Store, stock: Any, max_bytes: int, code: str) -> None:
    await eight_large_tasks(store, payload=MODEST)

    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stock.ClaimTasks(pb.ClaimTasksRequest(shard=-1, owner="me", max=16, max_bytes=max_bytes))

    assert caught.value.code().name == code and "max_bytes" in caught.value.details()
    assert {task.attempts for task in await tasks(store)} == {0}


async def test_a_caller_gets_no_more_than_4_mib_whatever_it_names(store: Store, stock: Any) -> None:
    await eight_large_tasks(store)

    answer = await stock.ClaimTasks(pb.ClaimTasksRequest(shard=-1, owner="me", max=16, max_bytes=1 << 40))

    assert len(answer.tasks) == 4 and answer.ByteSize() <= 4 << 20


async def test_a_remote_worker_names_its_bytes(store: Store, url: str) -> None:
    await eight_large_tasks(store, payload=MODEST)

    async with Channel(url) as channel:
        claimed = await Tasks(channel).claim(ClaimRequest(owner="me", limit=8, lease=LONG, max_bytes=12_000))

    assert len(claimed.tasks) == 1 and claimed.more_after == timedelta(0)


async def test_a_stock_client_gets_its_own_large_claims_back(store: Store, stock: Any) -> None:
    await eight_large_tasks(store)
    for _ in range(8):
        await store.tasks.claim(ClaimRequest(owner="me", limit=1, lease=LONG))
    names = [task.task_id for task in await tasks(store)]
    before = {task.task_id: task.lease_expires_at_ms for task in await tasks(store)}

    answer = await stock.ClaimTasks(pb.ClaimTasksRequest(owner="me", task_ids=names, lease_ms=600_000))

    carried = [task.task_id for task in answer.tasks]
    assert 1 <= len(carried) < 8 and carried == names[: len(carried)]
    kept = {task.task_id for task in await tasks(store) if task.lease_expires_at_ms == before[task.task_id]}
    assert kept == set(names[len(carried) :])


async def test_a_stock_client_lists_large_tasks_page_by_page(store: Store, stock: Any) -> None:
    await eight_large_tasks(store, "one", "two")

    found = await whole(stock.ListTasks, pb.ListTasksRequest(limit=100), "tasks")

    places = [(task.source_global_seq, task.reaction_id) for task in found]
    assert places == sorted(set(places), reverse=True) and len(places) == 16


async def test_a_list_goes_on_where_its_limit_ended_it(store: Store, stock: Any) -> None:
    await store.reactions.register(reaction())
    await publish(store, 5)
    await match(store)

    found = await whole(stock.ListTasks, pb.ListTasksRequest(limit=2), "tasks")

    assert [task.source_seq for task in found] == [5, 4, 3, 2, 1]


async def test_a_bare_list_is_bounded_by_what_it_carries(store: Store) -> None:
    await eight_large_tasks(store)

    found = await store.tasks.listed(max_bytes=ANSWER_BYTES, is_bare=True)

    assert [(task.payload_json, task.prev_value_json) for task in found] == [("", "")] * 8


BEYOND = [f'[{place}, "a"]' for place in (1 << 63, -(1 << 63) - 1)]


async def test_a_cursor_that_no_list_gave_is_refused(stock: Any) -> None:
    for cursor in ("x", "[1]", '["a", 1]', "[" * 2_000, "null", '[1, "a", 2]', *BEYOND):
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stock.ListTasks(pb.ListTasksRequest(cursor=cursor))

        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert InvalidCursor("").code in str(caught.value.trailing_metadata())


async def test_lists_of_a_run_reach_every_client(stock: Any, url: str) -> None:
    run_id = await begun(stock)
    for n in range(6):
        await stock.RecordDecision(pb.RecordDecisionRequest(run_id=run_id, decision_index=n, request_json=f'"{LARGE}"'))
        effect = pb.BeginEffectRequest(run_id=run_id, tool_name="t", call_index=n, request_json=f'"{LARGE}"')
        await stock.BeginEffect(effect)

    decisions = await whole(stock.ListDecisions, pb.ListDecisionsRequest(run_id=run_id), "decisions")
    effects = await whole(stock.ListEffects, pb.ListEffectsRequest(run_id=run_id), "effects")
    async with connect(url) as node:
        listed = await node.decisions.list_all(run_id), await node.effects.list_all(run_id)

    assert [each.decision_index for each in decisions] == [0, 1, 2, 3, 4, 5]
    assert len({each.idempotency_key for each in effects}) == len(effects) == 6
    assert [len(each) for each in listed] == [6, 6]


async def test_an_effect_with_large_texts_reaches_every_client(stock: Any, url: str) -> None:
    run_id, text = await begun(stock), json.dumps(LARGE)
    asked = pb.BeginEffectRequest(run_id=run_id, tool_name="t", request_json=text)
    key = (await stock.BeginEffect(asked)).idempotency_key
    done: dict[str, Any] = {"status": pb.EFFECT_STATUS_FAILED, "response_json": text, "error_json": text}
    await stock.CompleteEffect(pb.CompleteEffectRequest(run_id=run_id, idempotency_key=key, **done))

    again = await stock.BeginEffect(asked)
    async with connect(url) as node:
        mine = await node.effects.begin(run_id, "t", LARGE)

    assert (again.response_json, again.error_json, again.effect.request_json) == (text, text, text)
    assert (mine.response_json, mine.error_json, mine.request_json) == (text, text, text)


async def test_texts_of_an_effect_that_no_answer_carries_are_refused(stock: Any) -> None:
    run_id, text = await begun(stock), json.dumps(LARGE)
    undo = pb.Compensation(kind="k", payload_json=text, max_attempts=1)
    asked = pb.BeginEffectRequest(run_id=run_id, tool_name="t", request_json=text, compensation=undo)
    key = (await stock.BeginEffect(asked)).idempotency_key

    done: dict[str, Any] = {"status": pb.EFFECT_STATUS_FAILED, "response_json": text, "error_json": text}
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stock.CompleteEffect(pb.CompleteEffectRequest(run_id=run_id, idempotency_key=key, **done))
    settled = await stock.CompleteEffect(
        pb.CompleteEffectRequest(run_id=run_id, idempotency_key=key, status=pb.EFFECT_STATUS_FAILED, error_json="{}")
    )

    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and "together" in caught.value.details()
    assert settled.status == pb.EFFECT_STATUS_FAILED


async def test_obligations_of_a_run_reach_every_client(stock: Any, url: str) -> None:
    run_id = await begun(stock)
    for n in range(6):
        effect = await stock.BeginEffect(pb.BeginEffectRequest(run_id=run_id, tool_name="t", call_index=n))
        key = effect.idempotency_key
        asked = pb.RegisterCompensationRequest(run_id=run_id, effect_key=key, kind="k", payload_json=f'"{LARGE}"')
        await stock.RegisterCompensation(asked)

    found = await whole(stock.ListObligations, pb.ListObligationsRequest(run_id=run_id), "obligations")
    async with connect(url) as node:
        listed = await node.obligations.list_all(run_id)

    numbers = [each.seq for each in found]
    assert numbers == sorted(set(numbers), reverse=True) and len(numbers) == len(listed) == 6


async def test_values_and_sessions_reach_every_client(stock: Any, url: str) -> None:
    text = json.dumps("v" * 150_000)  # 30 are over 4 MiB
    for n in range(30):
        await stock.WriteValue(pb.WriteValueRequest(namespace="n", key=f"{n:02}", value_json=text, if_version=-1))
        session = pb.CreateSessionRequest(app_name="a", user_id="u", session_id=str(n), state_json=f'{{"s": {text}}}')
        await stock.CreateSession(session)

    values = await whole(stock.ListValues, pb.ListValuesRequest(namespace="n"), "values")
    sessions = await whole(stock.ListSessions, pb.ListSessionsRequest(app_name="a", user_id="u"), "sessions")
    async with connect(url) as node:
        listed = await node.values.list_all("n"), await node.sessions.list_all("a", "u")

    assert [each.key for each in values] == [f"{n:02}" for n in range(30)]
    assert len({each.session_id for each in sessions}) == 30 and [len(each) for each in listed] == [30, 30]


async def test_a_long_session_reaches_every_client(stock: Any, url: str) -> None:
    of: dict[str, Any] = {"app_name": "a", "user_id": "u", "session_id": "s"}
    session = await stock.CreateSession(pb.CreateSessionRequest(**of))
    for n in range(6):
        event = pb.SessionEvent(id=str(n), content_json=json.dumps(LARGE))
        await stock.AppendEvent(pb.AppendEventRequest(**of, event=event))

    newest = await stock.GetSession(pb.GetSessionRequest(**of))
    async with connect(url) as node:
        mine = await node.sessions.get("a", "u", session.session_id)
        five = await node.sessions.get("a", "u", session.session_id, 5)

    carried = [event.id for event in newest.events]
    assert 1 <= len(carried) < 6 and carried == list("012345")[-len(carried) :] and newest.event_count == 6
    assert [event.id for event in mine.events] == list("012345")
    assert [event.id for event in five.events] == list("12345")


async def test_only_timers_that_the_answer_carries_are_claimed(stock: Any) -> None:
    run_id = await begun(stock)
    for n in range(6):
        timer = pb.SetTimerRequest(run_id=run_id, timer_id=f"t{n}", fire_at_ms=1, kind="k", payload_json=f'"{LARGE}"')
        await stock.SetTimer(timer)

    found: list[str] = []
    for _ in range(6):
        answer = await stock.ListDueTimers(pb.ListDueTimersRequest(claim=True, claimer="me"))
        found += [timer.timer_id for timer in answer.timers]

    assert sorted(found) == [f"t{n}" for n in range(6)]


async def test_a_thousand_tasks_with_long_errors_die_and_are_replayed_together(store: Store) -> None:
    await store.reactions.register(reaction())
    await publish(store, 1_000)
    await match(store)
    claimed = (await store.tasks.claim(ClaimRequest(owner="me", limit=1_000, lease=LONG))).tasks
    error = "😀" * 4_096

    died = [Settlement(TaskClaim(task.task_id, "me", task.attempt), Died(error)) for task in claimed]
    refused = [answer for answer in await store.tasks.settle(died) if answer]
    replayed = await store.tasks.replay(await store.tasks.dead("", 1_000))

    assert not refused and len(replayed) == len(claimed) == 1_000


async def test_a_gate_with_its_signals_reaches_every_client(stock: Any) -> None:
    run_id = await begun(stock)
    signal = pb.SendSignalRequest(run_id=run_id, gate="g", resolution_json=f'"{LARGE}"')
    for _ in range(3):
        await stock.SendSignal(signal)

    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stock.SendSignal(signal)
    waited = await stock.AwaitSignal(pb.AwaitSignalRequest(run_id=run_id, gate="g", index=2))
    gate = (await stock.GetGate(pb.GetGateRequest(run_id=run_id, gate="g"))).gate
    (listed,) = (await stock.ListGates(pb.ListGatesRequest(run_id=run_id))).gates

    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and "another gate" in caught.value.details()
    assert waited.resolution_json == f'"{LARGE}"' and len(gate.resolutions) == len(listed.resolutions) == 3


async def test_a_small_signal_releases_a_run_that_waits_at_a_full_gate(stock: Any) -> None:
    run_id = await begun(stock)
    for _ in range(3):
        await stock.SendSignal(pb.SendSignalRequest(run_id=run_id, gate="g", resolution_json=f'"{LARGE}"'))
    await stock.AwaitSignal(pb.AwaitSignalRequest(run_id=run_id, gate="g", index=3))
    timeout = {"kind": "gate_timeout", "payload_json": json.dumps({"gate": "g", "index": 3, "why": LARGE})}

    await stock.SetTimer(pb.SetTimerRequest(run_id=run_id, timer_id="t", fire_at_ms=1, **timeout))
    fired = (await stock.ListDueTimers(pb.ListDueTimersRequest(claim=True))).timers
    waited = await stock.AwaitSignal(pb.AwaitSignalRequest(run_id=run_id, gate="g", index=3))

    assert [timer.timer_id for timer in fired] == ["t"]
    assert json.loads(waited.resolution_json) == {"timed_out": True, "payload": None}


async def test_runs_with_long_names_reach_every_client(stock: Any, journal: Journal) -> None:
    long = "😀" * 1_024
    for n in range(280):
        await journal.open_run(f"r{n:03}", RunMeta(label=long, app=long, user=long, session=long))

    found = await whole(stock.ListRuns, pb.ListRunsRequest(limit=1_000, order=pb.RUN_ORDER_ID), "runs")

    assert sum(each.ByteSize() for each in found) > ANSWER_BYTES
    assert [each.run_id for each in found] == [f"r{n:03}" for n in range(280)]


async def test_renewing_a_task_that_does_not_fit_is_refused_like_claiming_it(store: Store, stock: Any) -> None:
    await eight_large_tasks(store, payload=MODEST)
    (task,) = (await store.tasks.claim(ClaimRequest(owner="me", limit=1, lease=LONG))).tasks

    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stock.ClaimTasks(pb.ClaimTasksRequest(owner="me", task_ids=[task.task_id], max_bytes=1_000))

    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and "max_bytes" in caught.value.details()


async def test_a_task_is_as_large_as_json_makes_it_in_every_store(store: Store) -> None:
    odd = ("".join(map(chr, range(1, 256))) + '"\\😀' * 9) * 14
    await store.reactions.register(reaction())
    await append(store, Event(run_id="r1", payload=odd, subject="/a/b"))
    await match(store)
    (claimed,) = (await store.tasks.claim(ClaimRequest(owner="me", limit=1, lease=LONG))).tasks
    await store.tasks.settle([Settlement(claimed.claim, Failed(odd, timedelta(0)))])
    (task,) = await tasks(store)

    with pytest.raises(TooLarge, match=f"takes {task.size:,} bytes"):
        await store.tasks.claim(ClaimRequest(owner="me", limit=1, lease=LONG, max_bytes=task.size - 1))

    (again,) = (await store.tasks.claim(ClaimRequest(owner="me", limit=1, lease=LONG, max_bytes=task.size))).tasks
    assert len(msgspec.json.encode(again)) <= task.size and task.last_error == odd
