"""Runs in their ledger: begun once, worked on by one, ended for good."""

from datetime import timedelta

import anyio
import pytest

from tape.bus.journal import Journal
from tape.core.caller import Caller
from tape.core.errors import Conflict, NotFound, NotReady, RunClosed, StaleClaim, UsageError
from tape.core.event import Event, Trace
from tape.core.run_state import Invocation, RunSpec, RunStatus
from tape.sdk.nouns.node import AsyncNode
from tests.contract.backends import Backend, needs_ledgers
from tests.contract.events import drain, read_all
from tests.contract.ledgers import all_entries, begin_run, concurrently, two_nodes, until
from tests.deadlines import DEADLINE_S

pytestmark = needs_ledgers

SECOND = timedelta(seconds=1)


async def test_a_run_is_begun_once_and_resumed_after_that(node: AsyncNode) -> None:
    first = await node.runs.begin("treasury", "ann", "s", "1", owner="w1")
    second = await node.runs.begin("treasury", "ann", "s", "1", owner="w1")
    await node.runs.end(first.run.run_id)
    third = await node.runs.begin("treasury", "ann", "s", "1", owner="w1")

    assert first.run.run_id == second.run.run_id == third.run.run_id
    assert [each.is_resumed for each in (first, second, third)] == [False, True, True]
    assert (third.is_acquired, third.run.status) == (False, RunStatus.TERMINAL)


async def test_the_first_entry_of_a_run_is_that_it_runs(node: AsyncNode, journal: Journal) -> None:
    begun = await node.runs.begin("treasury", "ann", "s", "1", owner="w1", labels={"desk": "fx"})

    (entry,) = await read_all(journal, begun.run.run_id)

    assert (entry.seq, entry.kind, begun.next_seq) == (1, "run", 2)
    assert entry.subject == f"/tape/run/running/treasury/ann/s/{begun.run.run_id}"
    assert isinstance(entry.payload, dict) and entry.payload["labels"] == {"desk": "fx"}


async def test_a_stream_of_a_run_ends_with_the_run(node: AsyncNode, journal: Journal) -> None:
    run = await begin_run(node)
    await journal.append(Event(run_id=run.run_id, payload="work"))
    await node.runs.end(run.run_id, RunStatus.TERMINAL, {"paid": 7})

    entries = await drain(journal.stream(run_id=run.run_id))

    assert [entry.type for entry in entries] == ["running", "message", "terminal"]
    with pytest.raises(RunClosed):
        await journal.append(Event(run_id=run.run_id, payload="late"))


async def test_a_run_is_not_begun_for_an_entry_that_cannot_be(node: AsyncNode) -> None:
    with pytest.raises(UsageError, match="cause"):
        RunSpec(of=Invocation(app="treasury"), cause=0)


async def test_a_run_that_was_cancelled_stays_so_and_is_never_recovered(node: AsyncNode) -> None:
    run = await begin_run(node)
    await node.runs.cancel(run.run_id)

    with pytest.raises(Conflict):
        await node.runs.end(run.run_id, RunStatus.TERMINAL, fence=run.claim.attempt)
    later = run.claim.expires_at_ms + 1_000_000

    assert (await node.runs.get(run.run_id)).status is RunStatus.CANCELLED
    assert await node.runs.to_recover(now_ms=later) == []


async def test_runs_to_recover_are_those_that_nobody_works_on(node: AsyncNode) -> None:
    leased = await begin_run(node, "leased", "w1")
    free = await begin_run(node, "free", "")
    parked = await begin_run(node, "parked", "w1")
    await node.gates.wait(parked.run_id, "approval")

    now = await node.runs.to_recover()
    later = await node.runs.to_recover(now_ms=leased.claim.expires_at_ms)
    other = await node.runs.to_recover("hr")
    await node.gates.send(parked.run_id, "approval")

    assert [run.run_id for run in now] == [free.run_id] and other == []
    assert {run.run_id for run in later} == {free.run_id, leased.run_id}
    assert {run.run_id for run in await node.runs.to_recover()} == {free.run_id, parked.run_id}


async def test_listing_what_to_recover_ends_at_its_limit(node: AsyncNode) -> None:
    for number in range(4):
        await begin_run(node, str(number), "")

    assert len(await node.runs.to_recover(limit=3)) == 3


async def test_a_silent_worker_is_replaced_and_fenced_off(node: AsyncNode) -> None:
    run = (await node.runs.begin("treasury", invocation="1", owner="w1", lease=SECOND)).run

    early = await node.runs.take(run.run_id, "w2")
    late = await until(lambda: node.runs.take(run.run_id, "w2"), lambda taken: taken.is_acquired)

    assert not early.is_acquired and early.run.claim.owner == "w1"
    with pytest.raises(StaleClaim):
        await node.decisions.record(run.run_id, 0, fence=run.claim.attempt)
    with pytest.raises(StaleClaim):
        await node.runs.heartbeat(run.run_id, run.claim.attempt)
    assert (await node.runs.heartbeat(run.run_id, late.run.claim.attempt)).claim.owner == "w2"


async def test_of_eight_who_begin_at_once_one_has_the_run_and_the_others_see_who(backend: Backend) -> None:
    async with two_nodes(backend) as nodes:
        begun = await concurrently(8, lambda n: nodes[n % 2].runs.begin("treasury", invocation="1", owner=f"w{n}"))

    assert [each.is_acquired for each in begun].count(True) == 1
    assert [each.is_resumed for each in begun].count(False) == 1
    assert len({(each.run.run_id, each.run.claim.owner) for each in begun}) == 1


async def test_what_a_worker_does_under_its_fence_keeps_its_lease(node: AsyncNode) -> None:
    run = await begin_run(node)

    await anyio.sleep(0.002)
    await node.decisions.record(run.run_id, 0, fence=run.claim.attempt)

    assert (await node.runs.get(run.run_id)).claim.expires_at_ms > run.claim.expires_at_ms


async def test_what_was_begun_last_in_a_session_is_its_newest_run(node: AsyncNode) -> None:
    await begin_run(node, "1")
    newest = await begin_run(node, "2")

    assert await node.runs.newest("treasury", "ann", "s") == newest.run_id
    with pytest.raises(NotFound):
        await node.runs.newest("treasury", "bob", "s")


async def test_an_unknown_run_is_not_found(node: AsyncNode) -> None:
    with pytest.raises(NotFound, match="no run 'r9'"):
        await node.runs.get("r9")


async def test_the_trace_and_the_version_are_those_of_the_caller(node: AsyncNode, journal: Journal) -> None:
    trace = Trace("0" * 31 + "1", "0" * 15 + "2", "0" * 15 + "3")

    await node.runs.begin("treasury", invocation="1", caller=Caller(trace=trace, schema_version=7))
    (entry,) = await all_entries(journal)

    assert (entry.trace_id, entry.span_id, entry.parent_span_id) == (
        trace.trace_id,
        trace.span_id,
        trace.parent_span_id,
    )
    assert entry.schema_version == 7


async def test_a_settled_run_is_compacted_once(node: AsyncNode, journal: Journal) -> None:
    run = await begin_run(node)
    await node.decisions.record(run.run_id, 0, model="m", request="ask", response="answer")
    effect = await node.effects.begin(run.run_id, "wire", {"amount": 7})
    await node.effects.complete(run.run_id, effect.idempotency_key, response="ok")
    ended = await node.runs.end(run.run_id)

    listed = await node.runs.compactable(ended.ended_at_ms)
    report, again = await node.runs.compact(run.run_id), await node.runs.compact(run.run_id)
    decision = await node.decisions.get(run.run_id, 0)

    assert [each.run_id for each in listed] == [run.run_id]
    assert (report.decisions_zeroed, report.effects_zeroed, report.already_compacted) == (1, 1, False)
    assert report.bytes_saved > 0 and again.already_compacted and again.bytes_saved == 0
    assert decision is not None and (decision.model, decision.request_json) == ("m", "")
    assert await node.runs.compactable(ended.ended_at_ms) == []
    assert (await drain(journal.stream(run_id=run.run_id)))[-1].type == "compacted"


async def test_what_is_not_settled_is_not_compacted_and_stops_nobody(node: AsyncNode) -> None:
    open_run, doubtful, settled = [await begin_run(node, name) for name in ("open", "doubtful", "settled")]
    effect = await node.effects.begin(doubtful.run_id, "wire")
    await node.effects.complete(doubtful.run_id, effect.idempotency_key, "unknown")  # type: ignore[arg-type]
    await node.runs.end(doubtful.run_id)
    await node.runs.end(settled.run_id)

    with pytest.raises(NotReady, match="not terminal"):
        await node.runs.compact(open_run.run_id)
    with pytest.raises(NotReady, match="not settled"):
        await node.runs.compact(doubtful.run_id)
    with anyio.fail_after(DEADLINE_S):
        assert not (await node.runs.compact(settled.run_id)).already_compacted


async def test_one_workload_done_twice_writes_the_same_entries(node: AsyncNode, journal: Journal) -> None:
    async def work(name: str, tool: str) -> list[tuple[str, object]]:
        run = await begin_run(node, name)
        await node.decisions.record(run.run_id, 0, model="m")
        effect = await node.effects.begin(run.run_id, tool, key=f"{name}-key")
        await node.effects.complete(run.run_id, effect.idempotency_key)
        await node.runs.end(run.run_id)
        return [(entry.type, entry.subject.replace(run.run_id, "run")) for entry in await read_all(journal, run.run_id)]

    assert await work("1", "wire") == await work("2", "wire") != await work("3", "post")
