"""Sessions in their ledger."""

import pytest

from tape.bus.journal import Journal
from tape.core.errors import NotFound
from tape.sdk.nouns.node import AsyncNode
from tests.contract.backends import Backend, needs_ledgers
from tests.contract.ledgers import concurrently, subjects, two_nodes

pytestmark = needs_ledgers


async def test_an_event_and_its_change_of_state_are_both_there(node: AsyncNode, journal: Journal) -> None:
    await node.sessions.create("chat", "ann", "s1", {"a": 1})

    await node.sessions.append("chat", "ann", "s1", {"text": "hi"}, {"b": 2}, author="ann")
    session = await node.sessions.get("chat", "ann", "s1")

    assert session.state == {"a": 1, "b": 2}
    assert [(event.author, event.content_json) for event in session.events] == [("ann", '{"text":"hi"}')]
    assert (await subjects(journal))[-1] == "/tape/event/appended/chat/ann/s1"


async def test_an_event_that_comes_twice_counts_once(backend: Backend) -> None:
    async with two_nodes(backend) as nodes:
        await nodes[0].sessions.create("chat", "ann", "s1")

        await concurrently(6, lambda n: nodes[n % 2].sessions.append("chat", "ann", "s1", n % 3, event_id=f"e{n % 3}"))
        session = await nodes[0].sessions.get("chat", "ann", "s1")

        assert sorted(event.id for event in session.events) == ["e0", "e1", "e2"] and session.event_count == 3


async def test_sessions_whose_names_hold_slashes_share_nothing(node: AsyncNode) -> None:
    names = [("app1", "b/c", "d"), ("app1", "b", "c/d"), ("app1/b", "c", "d")]
    for name in names:
        await node.sessions.create(*name)
        await node.sessions.append(*name, "/".join(name), event_id=f"of {name}")

    found = [await node.sessions.get(*name) for name in names]

    assert [[event.id for event in session.events] for session in found] == [[f"of {name}"] for name in names]


async def test_only_the_newest_events_are_given_if_that_is_enough(node: AsyncNode) -> None:
    await node.sessions.create("chat", "ann", "s1")
    for number in range(5):
        await node.sessions.append("chat", "ann", "s1", number, event_id=f"e{number}")

    newest = await node.sessions.get("chat", "ann", "s1", max_events=2)
    none = await node.sessions.get("chat", "ann", "s1", max_events=0)

    assert [event.id for event in newest.events] == ["e3", "e4"] and none.events == ()


async def test_a_session_without_a_name_gets_one(node: AsyncNode) -> None:
    one, other = await node.sessions.create("chat", "ann"), await node.sessions.create("chat", "ann")

    assert one.of.session != other.of.session
    assert {each.of.session for each in await node.sessions.list_all("chat", "ann")} == {
        one.of.session,
        other.of.session,
    }
    assert await node.sessions.list_all("chat", "bob") == []


async def test_a_deleted_session_begins_anew_without_its_events(node: AsyncNode) -> None:
    await node.sessions.create("chat", "ann", "s1")
    await node.sessions.append("chat", "ann", "s1", 1, {"n": 1}, event_id="e1")

    assert await node.sessions.delete("chat", "ann", "s1") and not await node.sessions.delete("chat", "ann", "s1")
    with pytest.raises(NotFound):
        await node.sessions.get("chat", "ann", "s1")
    await node.sessions.create("chat", "ann", "s1")
    await node.sessions.append("chat", "ann", "s1", 2, event_id="e1")
    session = await node.sessions.get("chat", "ann", "s1")

    assert session.state == {} and [event.content_json for event in session.events] == ["2"]
