"""A fork inherits what its parent had settled."""

import pytest

from tape.bus.journal import Journal
from tape.compose import open_backend
from tape.core.effect import EffectStatus
from tape.core.errors import BrokerOverflowError
from tape.core.event import Entry
from tape.core.fork_policy import EffectPolicy, key_in, labels_of_child, policy_of
from tape.core.ids import RunId
from tape.runs.fork_ledgers import settled_by
from tape.runs.ledgers import LocalLedgers
from tape.sdk.nouns.node import AsyncNode


async def entries_of(journal: Journal, run_id: str) -> list[Entry]:
    return [entry async for entry in journal.stream(run_id=run_id, follow=False)]


async def test_only_what_had_an_outcome_by_then_is_settled() -> None:
    async with open_backend("memory://") as backend:
        node = AsyncNode(LocalLedgers(backend.store, backend.journal))
        run_id = (await node.runs.begin("app", owner="w")).run.run_id
        for tool, status in (("done", "confirmed"), ("lost", "unknown")):
            effect = await node.effects.begin(run_id, tool)
            await node.effects.complete(run_id, effect.idempotency_key, EffectStatus(status))
        await node.effects.begin(run_id, "begun")
        entries = await entries_of(backend.journal, run_id)
        await node.effects.reconcile(run_id, f"{run_id}/decision--1/lost/0", EffectStatus.FAILED)
        later = await entries_of(backend.journal, run_id)

    assert settled_by(entries, run_id).effects == {f"{run_id}/decision--1/done/0": EffectStatus.CONFIRMED}
    assert settled_by(later, run_id).effects[f"{run_id}/decision--1/lost/0"] is EffectStatus.FAILED
    assert settled_by(entries[:2], run_id).effects == {}


async def test_a_run_that_has_lost_entries_leaves_no_ledgers_to_a_child() -> None:
    async with open_backend("memory://", keep_per_run=3) as backend:
        ledgers = LocalLedgers(backend.store, backend.journal)
        node = AsyncNode(ledgers)
        run_id = (await node.runs.begin("app", owner="w")).run.run_id
        for number in range(4):
            effect = await node.effects.begin(run_id, "wire", call_index=number)
            await node.effects.complete(run_id, effect.idempotency_key)

        with pytest.raises(BrokerOverflowError):
            await ledgers.fork(run_id, 9, EffectPolicy.LIVE)


@pytest.mark.parametrize(
    ("key", "expected"), [("a/decision-0/wire/0", "b/decision-0/wire/0"), ("ab/x", "ab/x"), ("own", "own"), ("a", "a")]
)
def test_a_key_that_names_its_run_names_the_other_one(key: str, expected: str) -> None:
    assert key_in(key, "a", "b") == expected


def test_a_child_of_a_child_has_the_policy_that_it_was_given() -> None:
    child = labels_of_child({"team": "red"}, RunId("a"), 3, EffectPolicy.REPLAY)
    grandchild = labels_of_child(child, RunId("b"), 5, EffectPolicy.LIVE)

    assert (policy_of({}), policy_of(child)) == (EffectPolicy.LIVE, EffectPolicy.REPLAY)
    assert grandchild == {"team": "red", "tape.parent_run_id": "b", "tape.fork_seq": "5", "tape.effects": "live"}
