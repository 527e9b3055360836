"""A predicate about a value's change gives the same answer in a reaction and in every stream."""

import pytest

from tape.bus.journal import Journal
from tape.core.ports import Store
from tape.matcher.explain import explain
from tape.sdk.nouns.node import AsyncNode
from tests.contract.backends import needs_ledgers
from tests.contract.reactions import match, reaction, sources
from tests.contract.test_events_noun import taken

pytestmark = needs_ledgers

CHANGED = "payload.value.value_json != prev_value_json && double(payload.value.value_json) > 100.0"
BEFORE = "prev_value_json != ''"
EXPECTED = {CHANGED: [2, 4], BEFORE: [2, 3, 4]}


async def change(node: AsyncNode) -> None:
    """Four versions: 70, then 120 twice, then 130."""
    for value in (70, 120, 120, 130):
        await node.values.set("treasury", "fx", value)


@pytest.mark.parametrize("where", [CHANGED, BEFORE])
async def test_a_stream_has_the_entries_that_a_reaction_matches(
    node: AsyncNode, store: Store, journal: Journal, where: str
) -> None:
    await change(node)
    await store.reactions.register(reaction(pattern="/tape/value/**", predicate_cel=where))
    await match(store)

    by_subject = await taken(node, subject="/tape/value/**", where=where, follow=False)
    (first, *_) = by_subject
    by_run = await taken(node, run_id=first.run_id, where=where, follow=False)
    whole = [entry async for entry in journal.stream(where=where, follow=False)]

    assert await sources(store) == EXPECTED[where]
    for found in (by_subject, by_run, whole):
        assert [entry.global_seq for entry in found] == EXPECTED[where]
    assert (await explain(store, journal, "rule", 3)).judgement.verdict.matched == (3 in EXPECTED[where])
