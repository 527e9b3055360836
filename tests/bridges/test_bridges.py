"""What every bridge does, whatever its peer is."""

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
from tests.bridges.bridge_worker import (
    connect_to,
    is_unavailable_logged,
    publish,
    register,
    running_bridge,
    wait_for_ended,
    wait_until,
)
from tests.bridges.receivers import Receiver
from tests.conftest import Scale
from tests.contract.events import append
from tests.contract.reactions import match, reaction

BLOB = bytes(range(256)) * 3


async def test_each_match_reaches_the_peer_once_with_its_entry(receiver: Receiver, store: Store) -> None:
    await register(store, receiver.target)

    async with running_bridge(store, connect_to(receiver)):
        await publish(store, 5)
        await wait_for_ended(store, 5)

    received = await receiver.received()
    keys = [task.task_id for task in await store.tasks.listed()]
    assert sorted(each.payload["n"] for each in received) == [1, 2, 3, 4, 5]
    assert {each.key for each in received} == set(keys) and {each.order for each in received} == {"r1"}
    assert {each.headers["content-type"] for each in received} == {"application/json"}
    assert {each.headers["tape-subject"] for each in received} == {"/a/b"}


async def test_one_at_a_time_keeps_the_order_of_the_journal(receiver: Receiver, store: Store) -> None:
    await register(store, receiver.target, max_concurrency=1)

    async with running_bridge(store, connect_to(receiver)):
        await publish(store, 20)
        await wait_for_ended(store, 20)

    numbers = [each.payload["n"] for each in await receiver.received()]
    assert numbers == list(range(1, 21))


async def test_a_message_is_a_cloud_event_when_the_settings_ask_for_it(receiver: Receiver, store: Store) -> None:
    await register(store, receiver.target)

    async with running_bridge(store, connect_to(receiver, format="cloudevents")):
        await publish(store, 1)
        await wait_for_ended(store, 1)

    (received,) = await receiver.received()
    event = JSONFormat().read(CloudEvent, received.body)
    assert received.headers["content-type"] == "application/cloudevents+json"
    assert (event.get_id(), event.get_subject(), event.get_data()) == (received.key, "/a/b", {"n": 1})
    assert (event.get_source(), event.get_extension("partitionkey")) == ("/tape/reaction/rule", "r1")


@pytest.mark.parametrize("content", [BLOB, b""])
async def test_a_payload_that_is_not_json_reaches_the_peer_byte_for_byte(
    receiver: Receiver, store: Store, content: bytes
) -> None:
    await register(store, receiver.target)

    async with running_bridge(store, connect_to(receiver)):
        await append(store, Event(run_id="r1", subject="/a/b", payload=content, content_type="image/png"))
        await wait_for_ended(store, 1)

    (received,) = await receiver.received()
    body = json.loads(received.body)
    assert (body["content_type"], body["payload"]) == ("image/png", None)
    assert b64decode(body["payload_base64"], validate=True) == content


async def test_a_payload_that_is_not_json_is_the_binary_data_of_a_cloud_event(receiver: Receiver, store: Store) -> None:
    await register(store, receiver.target)

    async with running_bridge(store, connect_to(receiver, format="cloudevents")):
        await append(store, Event(run_id="r1", subject="/a/b", payload=BLOB, content_type="image/png"))
        await wait_for_ended(store, 1)

    (received,) = await receiver.received()
    event = JSONFormat().read(CloudEvent, received.body)
    assert (event.get_data(), event.get_datacontenttype()) == (BLOB, "image/png")


async def test_a_payload_that_was_trimmed_is_a_dead_task_and_no_empty_message(receiver: Receiver, store: Store) -> None:
    await register(store, receiver.target)
    await append(store, Event(run_id="r1", subject="/a/b", payload=BLOB, content_type="image/png"))
    await match(store)
    await store.retention.trim((await store.journal.bounds()).head)

    async with running_bridge(store, connect_to(receiver)):
        await wait_for_ended(store, 1)

    (dead,) = await store.tasks.listed()
    assert dead.status is TaskStatus.DLQ and "no longer in the journal" in dead.last_error
    assert await receiver.received() == []


async def test_nothing_is_lost_when_the_peer_is_killed_in_the_middle(
    receiver: Receiver, store: Store, scale: Scale, caplog: pytest.LogCaptureFixture
) -> None:
    count = scale(150)
    await register(store, receiver.target, max_concurrency=8)

    async def has_begun() -> bool:
        return any(task.status is TaskStatus.DONE for task in await store.tasks.listed(limit=100_000))

    async with running_bridge(store, connect_to(receiver)):
        await publish(store, count)
        await wait_until(has_begun)
        async with receiver.killed():
            await publish(store, count)
            await wait_until(lambda: is_unavailable_logged(caplog))
        await wait_for_ended(store, 2 * count)

    keys = Counter(each.key for each in await receiver.received())
    found = await store.tasks.listed(limit=100_000)
    assert set(keys) == {task.task_id for task in found}
    assert {task.status for task in found} == {TaskStatus.DONE}
    assert not receiver.drops_duplicates or set(keys.values()) == {1}


async def test_a_message_that_is_sent_twice_has_one_key(receiver: Receiver, store: Store) -> None:
    message = Message(key="k1", order="r1", body=b"{}", extra_headers={"tape-run-id": "r1"})
    topic, peer = Target.parse(receiver.target).topic, connect_to(receiver)

    await peer.send(topic, message)
    await peer.send(topic, message)
    await peer.close()

    received = await receiver.received()
    assert {(each.key, each.body) for each in received} == {("k1", "{}")}
    assert len(received) == (1 if receiver.drops_duplicates else 2)


async def test_a_rejected_message_is_dead_with_the_peers_reason_and_blocks_no_other(
    receiver: Receiver, store: Store
) -> None:
    await register(store, receiver.rejecting_target, "bad", "/bad")
    await register(store, receiver.target, "good", "/a/**")

    async with running_bridge(store, connect_to(receiver)):
        await publish(store, 1, receiver.rejected_payload, "/bad")
        await publish(store, 3)
        await wait_for_ended(store, 4)

    (dead,) = await store.tasks.listed(reaction_id="bad")
    assert (dead.status, dead.attempts) == (TaskStatus.DLQ, 1)
    assert receiver.rejection in dead.last_error
    assert sorted(each.payload["n"] for each in await receiver.received()) == [1, 2, 3]


async def test_an_overloaded_peer_slows_only_its_own_bridge(receiver: Receiver, store: Store) -> None:
    handled: list[int] = []

    def handle(envelope: dict[str, int]) -> None:
        handled.append(envelope["global_seq"])

    await register(store, receiver.target, "far")
    await store.reactions.register(reaction("near"))

    async with running_bridge(store, connect_to(receiver), {"near": handle}):
        await publish(store, 1)
        await wait_for_ended(store, 2)
        async with receiver.overloaded():
            await publish(store, 100)
            await wait_for_ended(store, 102)
            waiting = await store.tasks.listed(reaction_id="far", limit=1_000)
        await wait_for_ended(store, 202)

    assert len(handled) == 101
    assert Counter(task.status is TaskStatus.DONE for task in waiting) == {True: 1, False: 100}
    assert {task.attempts for task in await store.tasks.listed(reaction_id="far", limit=1_000)} == {1}
    assert len({each.key for each in await receiver.received()}) == 101
