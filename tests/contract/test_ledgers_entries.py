"""Every change of a ledger's state is one entry with its subject."""

from collections import Counter

import pytest

from tape.bus.journal import Journal
from tape.core.caller import Caller
from tape.core.causation import caused_by
from tape.core.effect import Compensation, EffectStatus
from tape.core.errors import RunClosed
from tape.core.event import Event
from tape.core.ports import Store
from tape.core.run_state import RunStatus
from tape.core.sequence import CellId
from tape.sdk.nouns.node import AsyncNode
from tests.contract.backends import Backend, needs_ledgers
from tests.contract.events import positions, read_all, seqs
from tests.contract.ledgers import all_entries, begin_run, concurrently, far_or_not, kinds, subjects, two_nodes

pytestmark = needs_ledgers


async def live(node: AsyncNode) -> str:
    """A life in which everything happens that has a subject."""
    run = await begin_run(node)
    await node.decisions.record(run.run_id, 0, model="m")
    how = Compensation(kind="refund")
    for tool, status in (("sweep", "confirmed"), ("hedge", "failed"), ("post", "unknown")):
        effect = await node.effects.begin(run.run_id, tool, key=tool, compensation=how)
        await node.effects.complete(run.run_id, effect.idempotency_key, EffectStatus(status))
    await node.effects.reconcile(run.run_id, "post", EffectStatus.FAILED)
    await node.gates.wait(run.run_id, "approval")
    await node.gates.send(run.run_id, "approval", "no")
    await node.values.set("treasury", "fx rate", 1.1)
    await node.values.delete("treasury", "fx rate")
    await node.sessions.create("chat", "ann", "s")
    await node.sessions.append("chat", "ann", "s", "hi")
    await node.runs.end(run.run_id, RunStatus.FAILED)
    held = (await node.obligations.claim(run.run_id, 1, "d1")).obligation
    await node.obligations.resolve(run.run_id, 1, attempt=held.claim.attempt)
    return run.run_id


async def test_every_canonical_subject_is_written(node: AsyncNode, journal: Journal) -> None:
    run_id = await live(node)

    written = set(await subjects(journal))

    assert written >= {
        f"/tape/run/running/treasury/ann/s/{run_id}",
        f"/tape/run/waiting/treasury/ann/s/{run_id}",
        f"/tape/run/failed/treasury/ann/s/{run_id}",
        f"/tape/decision/recorded/{run_id}/0",
        f"/tape/effect/pending/sweep/{run_id}",
        f"/tape/effect/confirmed/sweep/{run_id}",
        f"/tape/effect/failed/hedge/{run_id}",
        f"/tape/effect/unknown/post/{run_id}",
        f"/tape/effect/reconciled/post/{run_id}",
        f"/tape/obligation/registered/refund/{run_id}",
        f"/tape/obligation/compensated/refund/{run_id}",
        f"/tape/gate/waiting/approval/{run_id}",
        f"/tape/gate/released/approval/{run_id}",
        "/tape/value/changed/treasury/fx%20rate",
        "/tape/value/deleted/treasury/fx%20rate",
        "/tape/event/appended/chat/ann/s",
    }


async def test_there_are_as_many_entries_as_changes(node: AsyncNode, journal: Journal) -> None:
    await live(node)

    # running, waiting, runnable, failed · three begun, three completed, one reconciled · registered, claimed, met
    expected = {"run": 4, "decision": 1, "effect": 7, "obligation": 3, "gate": 2, "value": 2, "session": 1, "event": 1}
    assert await kinds(journal) == Counter(expected)


async def test_repeating_everything_writes_no_entry(node: AsyncNode, journal: Journal) -> None:
    run = await begin_run(node)
    effect = await node.effects.begin(run.run_id, "wire")
    await node.effects.complete(run.run_id, effect.idempotency_key)
    await node.decisions.record(run.run_id, 0)
    await node.gates.send(run.run_id, "g", key="k")
    await node.timers.set(run.run_id, "t", 1)
    await node.budgets.set(run.run_id, 1)
    await node.budgets.reserve(run.run_id, "r", 0.5)
    await node.obligations.register(run.run_id, "e", "refund")
    before = await all_entries(journal)

    await node.effects.begin(run.run_id, "wire")
    await node.effects.complete(run.run_id, effect.idempotency_key)
    await node.decisions.record(run.run_id, 0)
    await node.gates.send(run.run_id, "g", key="k")
    await node.timers.set(run.run_id, "t", 1)
    await node.budgets.set(run.run_id, 1)
    await node.budgets.reserve(run.run_id, "r", 0.5)
    await node.obligations.register(run.run_id, "e", "refund")
    await node.runs.heartbeat(run.run_id, run.claim.attempt)

    assert await all_entries(journal) == before


async def test_entries_of_a_run_are_caused_by_the_entry_it_was_begun_for(node: AsyncNode, journal: Journal) -> None:
    (cause,) = await journal.append(Event(run_id="r0", payload=1), open=True)
    begun = await node.runs.begin("treasury", owner="w", caller=Caller(cause=cause.global_seq))

    await node.decisions.record(begun.run.run_id, 0)
    await node.runs.end(begun.run.run_id)
    entries = await read_all(journal, begun.run.run_id)

    assert [(entry.type, entry.cause, entry.depth) for entry in entries] == [
        (verb, cause.global_seq, 1) for verb in ("running", "recorded", "terminal")
    ]


async def test_what_a_handler_changes_was_caused_by_what_it_handles(node: AsyncNode, journal: Journal) -> None:
    (cause,) = await journal.append(Event(run_id="r0", payload=1), open=True)

    with caused_by(cause.global_seq):
        run = await begin_run(node)
        await node.values.set("treasury", "fx", 1)
    await node.decisions.record(run.run_id, 0)

    assert [entry.cause for entry in await all_entries(journal)] == [None, *[cause.global_seq] * 3]


async def test_a_refused_change_leaves_neither_cell_nor_entry(store: Store, node: AsyncNode, journal: Journal) -> None:
    run = await begin_run(node)
    await journal.close_run(run.run_id)  # by somebody who does not know that it is being worked on

    with pytest.raises(RunClosed):
        await node.effects.begin(run.run_id, "wire", key="k")

    assert len(await all_entries(journal)) == 1
    assert await store.cells.read([CellId("effect", f"{run.run_id}/k")]) == {}


@far_or_not
async def test_ledgers_and_appends_do_not_stand_in_each_other_s_way(backend: Backend, far: bool) -> None:
    async with two_nodes(backend, far=far) as (one, other):
        run = await begin_run(one)

        async def act(number: int) -> object:
            node = (one, other)[number % 2]
            if number % 3 == 0:
                return await node.effects.begin(run.run_id, f"tool{number}")
            if number % 3 == 1:
                return await node.decisions.record(run.run_id, number)
            return await node.values.set("ns", "k", number)

        await concurrently(30, act)

        assert len(await one.effects.list_all(run.run_id)) == 10
        assert (await other.values.newest("ns", "k")).version == 10


async def test_the_seqs_of_a_run_that_many_write_to_are_dense(node: AsyncNode, journal: Journal) -> None:
    run = await begin_run(node)

    async def act(number: int) -> object:
        if number % 2:
            return await journal.append(Event(run_id=run.run_id, payload=number))
        return await node.effects.begin(run.run_id, f"tool{number}")

    await concurrently(20, act)
    entries = await read_all(journal, run.run_id)

    assert seqs(entries) == [*range(1, 22)] and positions(entries) == [*range(1, 22)]
