"""The operations of reactions, in this process and over gRPC."""

import pytest

from tape.core.errors import InvalidCursor, NotFound, UsageError
from tape.core.explanation import MatchOutcome
from tape.core.ports import Store
from tape.core.predicate.parts import Part
from tape.core.reaction import HandlerKind
from tape.sdk.nouns.node import AsyncNode
from tests.contract.backends import needs_ledgers
from tests.contract.reactions import match, publish, reaction

pytestmark = needs_ledgers


async def test_a_registered_reaction_is_found_and_listed_with_its_progress(node: AsyncNode, store: Store) -> None:
    rule = reaction(retry_max=3, handler_kind=HandlerKind.PUBLISH, publish_target="nats://a.b")
    registered = await node.reactions.register(rule)
    await publish(store, 2)
    await match(store)

    found = await node.reactions.get("rule")

    assert (registered.reaction, registered.cursor, registered.created_at_ms > 0) == (rule, 0, True)
    assert (found.reaction, found.cursor, found.errors, found.paused) == (rule, 3, 0, "")
    assert (await node.reactions.list()).rows == [found] == [await store.reactions.find("rule")]


async def test_a_list_has_pages_of_the_reactions_with_one_pattern(node: AsyncNode) -> None:
    for name in "cab":
        await node.reactions.register(reaction(name, "/x/**"))
    await node.reactions.register(reaction("d", "/y/**"))

    first = await node.reactions.list("/x/**", limit=2)
    last = await node.reactions.list("/x/**", limit=2, cursor=first.next_cursor)

    assert [record.reaction.reaction_id for record in first.rows] == ["a", "b"]
    assert [record.reaction.reaction_id for record in last.rows] == ["c"] and last.next_cursor == ""
    with pytest.raises(InvalidCursor):
        await node.reactions.list("/y/**", cursor=first.next_cursor)


async def test_a_reaction_is_paused_with_a_reason_until_it_is_resumed(node: AsyncNode, store: Store) -> None:
    await node.reactions.register(reaction())
    paused = [await node.reactions.pause("rule", "a deploy"), await node.reactions.pause("rule", "another")]
    await publish(store, 1)
    await match(store)
    resumed = [await node.reactions.resume("rule") for _ in range(2)]

    assert [record.paused for record in (*paused, *resumed)] == ["a deploy", "a deploy", "", ""]
    assert (await node.tasks.list()).rows == []


async def test_a_reaction_is_removed_once(node: AsyncNode) -> None:
    await node.reactions.register(reaction())

    assert [await node.reactions.remove("rule") for _ in range(2)] == [True, False]
    assert (await node.reactions.get("rule")).is_removed and (await node.reactions.list()).rows == []


async def test_what_a_reaction_did_with_an_entry_is_explained(node: AsyncNode, store: Store) -> None:
    await node.reactions.register(reaction(predicate_cel="seq > 1"))
    await publish(store, 2)
    await match(store)

    found = [await node.reactions.explain("rule", position) for position in (2, 3)]

    assert [(each.outcome, each.subject) for each in found] == [
        (MatchOutcome.NO_MATCH, "/a/b"),
        (MatchOutcome.TASK, "/a/b"),
    ]
    assert found[0].judgement.parts[0] == Part("1:5", "seq > 1", "false") and found[0].task is None
    assert found[1].task is not None and found[1].task.source_global_seq == 3
    assert found[1].judgement.refusal is None and found[1].judgement.definition.predicate_cel == "seq > 1"
    assert [event.type for event in found[1].registrations] == ["registered"] and found[1].cursor == 3


@pytest.mark.parametrize("reaction_id", ["", "a b", "ü", "a\0b"])
async def test_what_is_no_id_is_refused(node: AsyncNode, reaction_id: str) -> None:
    for ask in (node.reactions.get, node.reactions.pause, node.reactions.resume, node.reactions.remove):
        with pytest.raises(UsageError, match="reaction_id must be"):
            await ask(reaction_id)


async def test_what_is_not_there_is_not_found(node: AsyncNode) -> None:
    for ask in (node.reactions.get, node.reactions.pause, node.reactions.resume):
        with pytest.raises(NotFound, match="there is no reaction 'none'"):
            await ask("none")
    with pytest.raises(NotFound):
        await node.reactions.explain("none", 1)


@pytest.mark.parametrize("limit", [-1, 10_001])
async def test_a_limit_is_bounded(node: AsyncNode, limit: int) -> None:
    for ask in (node.reactions.list, node.tasks.list, node.tasks.replay):
        with pytest.raises(UsageError, match="a limit is 1 to 10,000"):
            await ask(limit=limit)
