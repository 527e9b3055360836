"""What every bridge does, whatever is on its far side."""

import json
from base64 import b64decode
from collections import Counter

import pytest
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from tape.bridges.message import Message
from tape.bridges.target import Target
from tape.core.event import Event
from tape.core.ports import Store
from tape.core.task import TaskStatus
from tests.bridges.bridging import bridging, ended, is_noted, line, react, say, until
from tests.bridges.sides import Side
from tests.conftest import Scale
from tests.contract.reacting import match, reaction
from tests.contract.saying import append

BLOB = bytes(range(256)) * 3


async def test_each_match_reaches_the_peer_once_with_its_entry(side: Side, store: Store) -> None:
    await react(store, side.target)

    async with bridging(store, line(side)):
        await say(store, 5)
        await ended(store, 5)

    received = await side.received()
    keys = [task.task_id for task in await store.tasks.listed()]
    assert sorted(each.payload["n"] for each in received) == [1, 2, 3, 4, 5]
    assert {each.key for each in received} == set(keys) and {each.order for each in received} == {"r1"}
    assert {each.headers["content-type"] for each in received} == {"application/json"}
    assert {each.headers["tape-subject"] for each in received} == {"/a/b"}


async def test_one_at_a_time_keeps_the_order_of_the_journal(side: Side, store: Store) -> None:
    await react(store, side.target, max_concurrency=1)

    async with bridging(store, line(side)):
        await say(store, 20)
        await ended(store, 20)

    numbers = [each.payload["n"] for each in await side.received()]
    assert numbers == list(range(1, 21))


async def test_a_message_is_a_cloud_event_where_the_settings_say_so(side: Side, store: Store) -> None:
    await react(store, side.target)

    async with bridging(store, line(side, format="cloudevents")):
        await say(store, 1)
        await ended(store, 1)

    (received,) = await side.received()
    event = JSONFormat().read(CloudEvent, received.body)
    assert received.headers["content-type"] == "application/cloudevents+json"
    assert (event.get_id(), event.get_subject(), event.get_data()) == (received.key, "/a/b", {"n": 1})
    assert (event.get_source(), event.get_extension("partitionkey")) == ("/tape/reaction/rule", "r1")


@pytest.mark.parametrize("content", [BLOB, b""])
async def test_content_that_is_not_json_reaches_the_peer_to_the_byte(side: Side, store: Store, content: bytes) -> None:
    await react(store, side.target)

    async with bridging(store, line(side)):
        await append(store, Event(run_id="r1", subject="/a/b", payload=content, content_type="image/png"))
        await ended(store, 1)

    (received,) = await side.received()
    body = json.loads(received.body)
    assert (body["content_type"], body["payload"]) == ("image/png", None)
    assert b64decode(body["payload_base64"], validate=True) == content


async def test_content_that_is_not_json_is_the_binary_data_of_a_cloud_event(side: Side, store: Store) -> None:
    await react(store, side.target)

    async with bridging(store, line(side, format="cloudevents")):
        await append(store, Event(run_id="r1", subject="/a/b", payload=BLOB, content_type="image/png"))
        await ended(store, 1)

    (received,) = await side.received()
    event = JSONFormat().read(CloudEvent, received.body)
    assert (event.get_data(), event.get_datacontenttype()) == (BLOB, "image/png")


async def test_content_that_has_left_the_journal_is_a_dead_task_and_no_empty_message(side: Side, store: Store) -> None:
    await react(store, side.target)
    await append(store, Event(run_id="r1", subject="/a/b", payload=BLOB, content_type="image/png"))
    await match(store)
    await store.retention.trim((await store.journal.bounds()).head)

    async with bridging(store, line(side)):
        await ended(store, 1)

    (dead,) = await store.tasks.listed()
    assert dead.status is TaskStatus.DLQ and "no longer in the journal" in dead.last_error
    assert await side.received() == []


async def test_nothing_is_lost_when_the_peer_is_killed_in_the_middle(
    side: Side, store: Store, scale: Scale, caplog: pytest.LogCaptureFixture
) -> None:
    count = scale(150)
    await react(store, side.target, max_concurrency=8)

    async def has_begun() -> bool:
        return any(task.status is TaskStatus.DONE for task in await store.tasks.listed(limit=100_000))

    async with bridging(store, line(side)):
        await say(store, count)
        await until(has_begun)
        async with side.gone():
            await say(store, count)
            await until(lambda: is_noted(caplog))
        await ended(store, 2 * count)

    keys = Counter(each.key for each in await side.received())
    found = await store.tasks.listed(limit=100_000)
    assert set(keys) == {task.task_id for task in found}
    assert {task.status for task in found} == {TaskStatus.DONE}
    assert not side.collapses or set(keys.values()) == {1}


async def test_a_message_that_is_sent_twice_has_one_key(side: Side, store: Store) -> None:
    message = Message(key="k1", order="r1", body=b"{}", facts={"tape-run-id": "r1"})
    topic, once = Target.parse(side.target).topic, line(side)

    await once.send(topic, message)
    await once.send(topic, message)
    await once.close()

    received = await side.received()
    assert {(each.key, each.body) for each in received} == {("k1", "{}")}
    assert len(received) == (1 if side.collapses else 2)


async def test_what_the_peer_refuses_is_dead_with_its_reason_and_holds_up_nobody(side: Side, store: Store) -> None:
    await react(store, side.poison_target, "bad", "/bad")
    await react(store, side.target, "good", "/a/**")

    async with bridging(store, line(side)):
        await say(store, 1, side.poison, "/bad")
        await say(store, 3)
        await ended(store, 4)

    (dead,) = await store.tasks.listed(reaction_id="bad")
    assert (dead.status, dead.attempts) == (TaskStatus.DLQ, 1)
    assert side.reason in dead.last_error
    assert sorted(each.payload["n"] for each in await side.received()) == [1, 2, 3]


async def test_a_peer_that_takes_nothing_slows_its_bridge_and_nobody_else(side: Side, store: Store) -> None:
    handled: list[int] = []

    def handle(envelope: dict[str, int]) -> None:
        handled.append(envelope["global_seq"])

    await react(store, side.target, "far")
    await store.reactions.register(reaction("near"))

    async with bridging(store, line(side), {"near": handle}):
        await say(store, 1)
        await ended(store, 2)
        async with side.full():
            await say(store, 100)
            await ended(store, 102)
            waiting = await store.tasks.listed(reaction_id="far", limit=1_000)
        await ended(store, 202)

    assert len(handled) == 101
    assert Counter(task.status is TaskStatus.DONE for task in waiting) == {True: 1, False: 100}
    assert {task.attempts for task in await store.tasks.listed(reaction_id="far", limit=1_000)} == {1}
    assert len({each.key for each in await side.received()}) == 101
