"""Forks meet effects: recorded results are served, and nothing outside notices unless it is meant to."""

import pytest

import tape
from tape.bus.journal import Journal
from tape.core.effect import Compensation, DispatchMode, EffectStatus
from tape.core.errors import NotReady, UsageError
from tape.core.fork_policy import EffectPolicy
from tape.core.ids import RunId
from tape.core.ledger_diff import compare_actions
from tape.core.ports import Store
from tape.core.run_state import RunState, RunStatus
from tape.operations.run_actions import read_actions
from tape.runs.ledgers import LocalLedgers
from tape.sdk.durable.agent_job import AgentJob
from tape.sdk.durable.agent_worker import AgentWorker
from tape.sdk.nouns.node import AsyncNode
from tests.contract.backends import on_disk
from tests.contract.events import read_all

pytestmark = on_disk

REPLAY, STUB, LIVE = EffectPolicy.REPLAY, EffectPolicy.STUB, EffectPolicy.LIVE

CALLS: list[str] = []


def recall(receipt: object, amount: int) -> None:
    CALLS.append("recall")


@tape.effect(compensate=recall, stub=lambda amount: {"stub": amount})
def wire(amount: int) -> object:
    CALLS.append(tape.idempotency_key())
    return {"paid": amount}


@tape.effect()
def post(text: str) -> str:
    CALLS.append(tape.idempotency_key())
    return f"posted {text}"


async def sweep(run: RunState) -> object:
    """Pays, decides by the mutation, and posts the decision."""
    seen = await tape.random()
    paid = await wire(7)
    changed = await tape.mutation() or {}
    decision = await tape.decide(lambda: changed.get("word", "hello"), model="m")
    answer = await tape.gate("approval") if changed.get("asks") else None
    return [seen, paid, await post(decision), answer]


@pytest.fixture(autouse=True)
def calls() -> list[str]:
    CALLS.clear()
    return CALLS


@pytest.fixture
def ledgers(store: Store, journal: Journal) -> LocalLedgers:
    return LocalLedgers(store, journal)


async def parent(node: AsyncNode) -> RunState:
    run_id = (await node.runs.begin("treasury", invocation="parent")).run.run_id
    return await AgentJob(node, "treasury", sweep, owner="w0").resume(run_id)


async def child(
    ledgers: LocalLedgers, run_id: str, at_seq: int, policy: EffectPolicy, mutation: object = None
) -> RunId:
    entries = await ledgers.fork(RunId(run_id), at_seq, policy, mutation=mutation)  # type: ignore[arg-type]
    return entries[0].run_id


async def played(node: AsyncNode, run_id: str) -> RunState:
    return await AgentJob(node, "treasury", sweep, owner="w1").resume(run_id)


async def place_of(journal: Journal, run_id: str, tool: str, verb: str = "confirmed") -> int:
    """The seq at which a tool's effect had an outcome."""
    entries = await read_all(journal, run_id)
    return next(entry.seq for entry in entries if entry.subject.startswith(f"/tape/effect/{verb}/{tool}/"))


@pytest.mark.parametrize("at", ["nothing", "half", "everything"])
async def test_a_replay_is_served_what_was_recorded_and_nothing_fires(
    node: AsyncNode, ledgers: LocalLedgers, journal: Journal, calls: list[str], at: str
) -> None:
    origin = await parent(node)
    places = {"nothing": 0, "half": await place_of(journal, origin.run_id, "wire")}
    at_seq = places.get(at, (await read_all(journal, origin.run_id))[-1].seq)
    calls.clear()

    ended = await played(node, await child(ledgers, origin.run_id, at_seq, REPLAY))

    assert (ended.status, ended.detail_json) == (RunStatus.TERMINAL, origin.detail_json)
    assert calls == []


async def test_what_the_parent_never_did_cannot_be_replayed(
    node: AsyncNode, ledgers: LocalLedgers, journal: Journal, calls: list[str]
) -> None:
    origin = await parent(node)
    at_seq = await place_of(journal, origin.run_id, "wire")
    calls.clear()

    ended = await played(node, await child(ledgers, origin.run_id, at_seq, REPLAY, {"word": "goodbye"}))

    assert ended.status is RunStatus.FAILED and "NotRecorded" in ended.detail_json
    assert calls == []


async def test_a_stub_answers_for_what_is_new_and_what_is_inherited_is_served(
    node: AsyncNode, ledgers: LocalLedgers, journal: Journal, calls: list[str]
) -> None:
    origin = await parent(node)
    at_seq = await place_of(journal, origin.run_id, "wire")
    calls.clear()

    late = await played(node, await child(ledgers, origin.run_id, at_seq, STUB, {"word": "goodbye"}))
    early = await played(node, await child(ledgers, origin.run_id, 0, STUB))

    assert late.detail_json.endswith(',{"paid":7},null,null]')
    assert early.detail_json.endswith(',{"stub":7},null,null]') and calls == []


async def test_live_effects_take_place_after_the_fork_under_keys_of_the_child(
    node: AsyncNode, ledgers: LocalLedgers, journal: Journal, calls: list[str]
) -> None:
    origin = await parent(node)
    at_seq = await place_of(journal, origin.run_id, "wire")
    calls.clear()

    ended = await played(node, await child(ledgers, origin.run_id, at_seq, LIVE, {"word": "goodbye"}))

    assert ended.detail_json.endswith(',{"paid":7},"posted goodbye",null]')
    assert calls == [f"{ended.run_id}/decision-0/post/0"]


@pytest.mark.parametrize("policy", EffectPolicy)
async def test_a_child_that_fails_undoes_nothing_of_its_parent(
    node: AsyncNode, ledgers: LocalLedgers, journal: Journal, calls: list[str], policy: EffectPolicy
) -> None:
    origin = await parent(node)
    run_id = await child(ledgers, origin.run_id, await place_of(journal, origin.run_id, "wire"), policy)
    calls.clear()

    async def fail(run: RunState) -> None:
        await tape.random()
        await wire(7)
        raise ValueError

    await AgentWorker(app="treasury", function=fail).run_once(node)

    assert (await node.runs.get(run_id)).status is RunStatus.FAILED
    assert (calls, await node.obligations.list_all(run_id)) == ([], [])


@pytest.mark.parametrize("policy", [REPLAY, STUB])
async def test_no_client_makes_a_sheltered_run_act(
    node: AsyncNode, ledgers: LocalLedgers, policy: EffectPolicy
) -> None:
    run_id = await child(ledgers, (await parent(node)).run_id, 0, policy)

    with pytest.raises(UsageError, match="no outbox"):
        await node.effects.begin(run_id, "wire", dispatch_mode=DispatchMode.OUTBOX)
    with pytest.raises(UsageError, match="nothing to undo"):
        await node.obligations.register(run_id, "wire", "recall")
    effect = await node.effects.begin(run_id, "wire", compensation=Compensation(kind="recall"))
    await node.effects.complete(run_id, effect.idempotency_key)

    assert await node.obligations.list_all(run_id) == []


async def test_a_child_of_a_child_is_served_what_both_before_it_did(
    node: AsyncNode, ledgers: LocalLedgers, journal: Journal, calls: list[str]
) -> None:
    origin = await parent(node)
    at_seq = await place_of(journal, origin.run_id, "wire")
    middle = await played(node, await child(ledgers, origin.run_id, at_seq, LIVE, {"word": "goodbye"}))
    calls.clear()

    last = (await read_all(journal, middle.run_id))[-1].seq
    ended = await played(node, await child(ledgers, middle.run_id, last, REPLAY, {"word": "never asked"}))

    assert (ended.status, ended.detail_json) == (RunStatus.TERMINAL, middle.detail_json) and calls == []


async def test_a_child_keeps_the_answers_and_the_budget_that_it_inherits(
    node: AsyncNode, ledgers: LocalLedgers, journal: Journal
) -> None:
    run_id = (await node.runs.begin("treasury")).run.run_id
    await node.budgets.set(run_id, 1, 100)
    await node.budgets.charge(run_id, 0.25, 10)
    await node.gates.send(run_id, "approval", "yes")
    at_seq = (await read_all(journal, run_id))[-1].seq
    await node.gates.send(run_id, "approval", "later")
    await node.budgets.charge(run_id, 0.5)

    copy = await child(ledgers, run_id, at_seq, REPLAY)

    budget, gate = await node.budgets.get(copy), await node.gates.get(copy, "approval")
    assert (budget.usd_cap_micros, budget.token_cap, budget.spent.usd, budget.spent.tokens) == (10**6, 100, 0.25, 10)
    assert gate is not None and gate.resolutions == ('"yes"',)


async def test_p16_a_fork_leaves_the_ledgers_of_its_parent_as_they_were(
    node: AsyncNode, ledgers: LocalLedgers, journal: Journal
) -> None:
    origin = await parent(node)
    before = [await read_all(journal, origin.run_id), await read_actions(ledgers, origin.run_id)]

    await played(node, await child(ledgers, origin.run_id, 3, LIVE, {"word": "goodbye"}))

    assert [await read_all(journal, origin.run_id), await read_actions(ledgers, origin.run_id)] == before
    assert await node.runs.get(origin.run_id) == origin


async def test_the_fork_s_entry_has_the_policy_for_effects(
    node: AsyncNode, ledgers: LocalLedgers, journal: Journal
) -> None:
    run_id = await child(ledgers, (await parent(node)).run_id, 2, STUB)

    (entry,) = [entry for entry in await read_all(journal, run_id) if entry.type == "fork"]
    assert isinstance(entry.payload, dict) and entry.payload["effects"] == "stub"


async def test_a_run_without_ledgers_leaves_none(node: AsyncNode, ledgers: LocalLedgers, journal: Journal) -> None:
    await journal.open_run("plain")
    await journal.append(tape.Event(run_id="plain", payload=1))

    run_id = await child(ledgers, "plain", 1, REPLAY)

    with pytest.raises(tape.NotFound):
        await node.runs.get(run_id)


async def test_a_compacted_run_has_no_results_to_serve(node: AsyncNode, ledgers: LocalLedgers) -> None:
    origin = await parent(node)
    await node.runs.compact(origin.run_id)

    with pytest.raises(NotReady, match="compacted"):
        await child(ledgers, origin.run_id, 1, REPLAY)


async def test_decisions_and_effects_stand_side_by_side(
    node: AsyncNode, ledgers: LocalLedgers, journal: Journal
) -> None:
    origin = await parent(node)
    at_seq = await place_of(journal, origin.run_id, "wire")
    ended = await played(node, await child(ledgers, origin.run_id, at_seq, STUB, {"word": "goodbye"}))

    rows = compare_actions(await read_actions(ledgers, origin.run_id), await read_actions(ledgers, ended.run_id))

    assert [(row.what, row.place, row.is_same) for row in rows] == [
        ("effect", "sample-random-0", True),
        ("effect", "decision--1/wire/0", True),
        ("decision", "0", False),
        ("effect", "decision-0/post/0", False),
    ]
    assert [side and side.response_json for side in rows[2][3:]] == ['"hello"', '"goodbye"']
    assert all(side is not None and side.status == EffectStatus.CONFIRMED for side in rows[3][3:])
