"""Obligations in their ledger."""

from datetime import timedelta

import anyio
import grpc
import pytest

from tape.bus.journal import Journal
from tape.core.effect import Compensation
from tape.core.errors import NotFound, StaleClaim
from tape.core.ids import RunId
from tape.core.obligation import ObligationStatus
from tape.core.ports import Store
from tape.core.run_state import RunStatus
from tape.runs.ledgers import LocalLedgers
from tape.sdk.nouns.node import AsyncNode
from tape.wire import tape_pb2 as pb
from tests.contract.backends import Backend, needs_ledgers
from tests.contract.claim_history import ClaimSpan, overlaps
from tests.contract.events import drain, read_all
from tests.contract.ledgers import begin_run, concurrently, far_or_not, two_nodes, until
from tests.contract.serving import served
from tests.deadlines import DEADLINE_S
from tests.servers.grpc_stub import TapeStub

pytestmark = needs_ledgers

SECOND = timedelta(seconds=1)


async def failed(
    node: AsyncNode, *tools: str, status: RunStatus = RunStatus.FAILED, most: int = 5, name: str = "1"
) -> RunId:
    """A run that did so much and then failed."""
    run = await begin_run(node, name)
    for tool in tools:
        how = Compensation(kind=f"undo_{tool}", payload_json="7", compensator_ref="bank:undo", max_attempts=most)
        effect = await node.effects.begin(run.run_id, tool, compensation=how)
        await node.effects.complete(run.run_id, effect.idempotency_key)
    await node.runs.end(run.run_id, status)
    return run.run_id


async def test_what_was_done_is_undone_newest_first(node: AsyncNode, journal: Journal) -> None:
    run_id = await failed(node, "sweep", "hedge", "post")
    undone = []

    while due := await node.obligations.due():
        held = (await node.obligations.claim(run_id, due[0].number, "d1")).obligation
        undone.append(held.kind)
        await node.obligations.resolve(run_id, held.number, result="ok", attempt=held.claim.attempt)

    assert undone == ["undo_post", "undo_hedge", "undo_sweep"]
    assert await node.obligations.list_all(run_id, only_unresolved=True) == []
    written = [entry.type for entry in await drain(journal.stream(run_id=run_id)) if entry.kind == "obligation"]
    assert written == ["registered"] * 3 + ["committed", "compensated"] * 3


async def test_effects_and_kinds_whose_names_hold_blanks_share_no_obligation(node: AsyncNode) -> None:
    run = await begin_run(node)
    for key, kind in (("a b", "c"), ("a", "b c")):
        effect = await node.effects.begin(run.run_id, "wire", key=key, compensation=Compensation(kind=kind))
        await node.effects.complete(run.run_id, effect.idempotency_key)

    owed = await node.obligations.list_all(run.run_id)

    assert [(each.effect_key, each.kind) for each in owed] == [("a", "b c"), ("a b", "c")]


@pytest.mark.parametrize("status", [RunStatus.TERMINAL, None])
async def test_a_healthy_run_is_left_alone(node: AsyncNode, status: RunStatus | None) -> None:
    run = await begin_run(node)
    await node.obligations.register(run.run_id, "effect", "refund")
    if status is not None:
        await node.runs.end(run.run_id, status)

    assert await node.obligations.due(now_ms=1 << 50) == []
    assert not (await node.obligations.claim(run.run_id, 1, "d1")).is_acquired


async def test_who_drains_finds_the_function_by_its_name(node: AsyncNode) -> None:
    await failed(node, "sweep")

    (due,) = await node.obligations.due()

    assert (due.compensator_ref, due.payload_json) == ("bank:undo", "7")


async def test_after_its_last_attempt_it_is_stuck_and_listed_as_such(node: AsyncNode) -> None:
    run_id = await failed(node, "sweep", most=2)
    first = (await node.obligations.claim(run_id, 1, "d1")).obligation
    retried = await node.obligations.attempt(run_id, 1, first.claim.attempt, "busy", 1)
    second = (await node.obligations.claim(run_id, 1, "d1")).obligation

    stuck = await node.obligations.attempt(run_id, 1, second.claim.attempt, "busy", 1)

    assert (retried.status, retried.attempts) == (ObligationStatus.PENDING, 1)
    assert (stuck.status, stuck.attempts, stuck.next_attempt_at_ms) == (ObligationStatus.STUCK, 2, 0)
    assert await node.obligations.due(now_ms=1 << 50) == [] and await node.obligations.stuck() == [stuck]


async def test_without_a_next_time_it_is_stuck_after_the_first_attempt(node: AsyncNode) -> None:
    run_id = await failed(node, "sweep")
    held = (await node.obligations.claim(run_id, 1, "d1")).obligation

    stuck = await node.obligations.attempt(run_id, 1, held.claim.attempt, "hopeless", 0)

    assert (stuck.status, stuck.attempts, stuck.last_error) == (ObligationStatus.STUCK, 1, "hopeless")


async def test_what_waits_for_its_next_attempt_cannot_be_claimed_before(node: AsyncNode) -> None:
    run_id = await failed(node, "sweep")
    held = (await node.obligations.claim(run_id, 1, "d1")).obligation
    later = held.claim.expires_at_ms

    await node.obligations.attempt(run_id, 1, held.claim.attempt, "busy", later)

    assert not (await node.obligations.claim(run_id, 1, "d1")).is_acquired
    assert await node.obligations.due(now_ms=later - 1) == []
    assert [each.number for each in await node.obligations.due(now_ms=later)] == [1]


async def test_a_fresh_claim_is_hidden_and_an_expired_one_is_shown(node: AsyncNode) -> None:
    run_id = await failed(node, "sweep")
    held = (await node.obligations.claim(run_id, 1, "d1")).obligation

    assert await node.obligations.due() == []
    assert await node.obligations.due(now_ms=held.claim.expires_at_ms) == [held]


async def test_a_list_is_filled_with_what_was_asked_for(store: Store, journal: Journal) -> None:
    async with served(store, journal) as url, grpc.aio.insecure_channel(url.removeprefix("tape://")) as channel:
        tape, node = TapeStub(channel), AsyncNode(LocalLedgers(store, journal))
        claimed, *_ = [await failed(node, "sweep", name=name) for name in "abc"]
        held = (await node.obligations.claim(claimed, 1, "d1", SECOND)).obligation
        after = held.claim.expires_at_ms + 1
        asked = pb.ListUnresolvedObligationsRequest(limit=1, now_ms=after, include_committed_expired=True)

        found = await tape.ListUnresolvedObligations(asked)

    assert [each.run_id for each in found.obligations] == [claimed]


async def test_a_silent_drainer_is_replaced_and_fenced_off(node: AsyncNode) -> None:
    run_id = await failed(node, "sweep")
    first = await node.obligations.claim(run_id, 1, "d1", SECOND)

    second = await until(lambda: node.obligations.claim(run_id, 1, "d2"), lambda claim: claim.is_acquired)

    with pytest.raises(StaleClaim):
        await node.obligations.resolve(run_id, 1, attempt=first.obligation.claim.attempt)
    met = await node.obligations.resolve(run_id, 1, attempt=second.obligation.claim.attempt)
    assert met.status is ObligationStatus.COMPENSATED


@far_or_not
async def test_of_eight_who_claim_at_once_one_wins_and_the_others_see_it(backend: Backend, far: bool) -> None:
    async with two_nodes(backend, far=far) as nodes:
        run_id = await failed(nodes[0], "sweep")

        claims = await concurrently(8, lambda n: nodes[n % 2].obligations.claim(run_id, 1, f"d{n}"))

        assert [claim.is_acquired for claim in claims].count(True) == 1
        assert len({claim.obligation.claim.owner for claim in claims}) == 1


@far_or_not
async def test_those_who_take_over_from_each_other_never_hold_it_at_one_time(backend: Backend, far: bool) -> None:
    async with two_nodes(backend, far=far) as nodes:
        run_id = await failed(nodes[0], "sweep", most=9)
        history: list[ClaimSpan] = []

        async def compete(number: int) -> None:
            while len(history) < 3:
                claimed = await nodes[number % 2].obligations.claim(run_id, 1, f"d{number}", SECOND)
                held = claimed.obligation.claim
                if claimed.is_acquired:
                    history.append(ClaimSpan(held.owner, held.attempt, held.expires_at_ms - 1000, held.expires_at_ms))
                await anyio.sleep(0.01)

        with anyio.fail_after(DEADLINE_S):
            await concurrently(4, compete)

        assert len(history) >= 3 and overlaps(history) == []


@far_or_not
async def test_effects_that_are_confirmed_while_their_run_fails_are_all_owed(backend: Backend, far: bool) -> None:
    async with two_nodes(backend, far=far) as (one, other):
        run = await begin_run(one)
        how = Compensation(kind="undo")
        begun_effects = [await one.effects.begin(run.run_id, f"tool{n}", compensation=how) for n in range(6)]

        async def act(number: int) -> object:
            if number == 3:
                return await other.runs.end(run.run_id, RunStatus.CANCELLED)
            effect = begun_effects[number % 6]
            return await one.effects.complete(run.run_id, effect.idempotency_key)

        await concurrently(7, act)
        owed = await one.obligations.list_all(run.run_id, only_unresolved=True)

        assert len(owed) == 5 and [each.number for each in owed] == [5, 4, 3, 2, 1]
        assert [each.number for each in await other.obligations.due()] == [5]


async def test_a_run_stays_open_until_it_has_met_all(node: AsyncNode, journal: Journal) -> None:
    run_id = await failed(node, "sweep")
    before = [run.run_id for run in await journal.live_runs()]
    held = (await node.obligations.claim(run_id, 1, "d1")).obligation

    await node.obligations.resolve(run_id, 1, attempt=held.claim.attempt)

    assert before == [run_id] and await journal.live_runs() == []
    assert (await read_all(journal, run_id))[-1].subject == f"/tape/obligation/compensated/undo_sweep/{run_id}"


async def test_what_is_registered_after_a_good_end_leaves_the_run_closed(node: AsyncNode, journal: Journal) -> None:
    run = await begin_run(node)
    await node.runs.end(run.run_id)

    await node.obligations.register(run.run_id, "effect", "refund")

    assert await journal.live_runs() == [] and await node.obligations.due() == []


async def test_a_stuck_one_that_is_retried_is_due_with_all_its_attempts(node: AsyncNode, journal: Journal) -> None:
    run_id = await failed(node, "sweep", "post", most=1)
    for number in (2, 1):
        held = (await node.obligations.claim(run_id, number, "d1")).obligation
        await node.obligations.attempt(run_id, number, held.claim.attempt, "bank closed", 1)

    again = await node.obligations.retry(run_id, 2)
    held = (await node.obligations.claim(run_id, 2, "d2")).obligation
    done = await node.obligations.resolve(run_id, 2, attempt=held.claim.attempt)

    assert (again.status, again.attempts, again.last_error) == (ObligationStatus.PENDING, 0, "bank closed")
    assert (held.status, held.attempts, held.claim.attempt) == (ObligationStatus.COMMITTED, 1, 2)
    assert done.status is ObligationStatus.COMPENSATED and [each.number for each in await node.obligations.stuck()] == [
        1
    ]
    written = [entry.type for entry in await drain(journal.stream(run_id=run_id)) if entry.kind == "obligation"]
    assert written[-3:] == ["pending", "committed", "compensated"]


async def test_only_a_stuck_one_is_changed_by_a_retry(node: AsyncNode) -> None:
    run_id = await failed(node, "sweep", "post")
    held = (await node.obligations.claim(run_id, 2, "d1")).obligation
    await node.obligations.resolve(run_id, 2, attempt=held.claim.attempt)
    before = await node.obligations.list_all(run_id)

    answers = [await node.obligations.retry(run_id, number) for number in (2, 1)]

    assert answers == before == await node.obligations.list_all(run_id)


async def test_a_retry_of_what_was_never_registered_is_refused(node: AsyncNode) -> None:
    with pytest.raises(NotFound, match="no obligation 9"):
        await node.obligations.retry(await failed(node, "sweep"), 9)
