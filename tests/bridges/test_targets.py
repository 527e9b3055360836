"""The targets of reactions: a topic on a configured connection, never a host."""

import pytest

from tape.bridges.target import Target
from tape.core.errors import UsageError
from tape.core.reaction import HandlerKind, Reaction

GOOD = {
    "kafka://orders.placed": ("kafka", "orders.placed"),
    "nats://orders.placed": ("nats", "orders.placed"),
    "pubsub://my-proj/incident-stream": ("pubsub", "projects/my-proj/topics/incident-stream"),
    "redis-stream://orders:placed": ("redis-stream", "orders:placed"),
    "webhook://billing": ("billing", ""),
}
BAD = [
    "",
    "file:///etc/passwd",
    "http://169.254.169.254",
    "http://example.com",
    "kafka://",
    "nats://orders.*",
    "nats://orders.>",
    "nats://a b",
    "pubsub://a@b",
    "pubsub://a@b/topic",
    "pubsub://project",
    "redis://127.0.0.1",
    "webhook://../etc",
    "webhook://http://127.0.0.1",
    "webhook://nats",
]
HOSTS = ["http://169.254.169.254", "file:///", "redis://127.0.0.1", "pubsub://a@b", "pubsub://a@b/topic"]


@pytest.mark.parametrize("text", GOOD)
def test_a_target_names_a_connection_and_a_topic(text: str) -> None:
    target = Target.parse(text)

    assert (target.connection, target.topic) == GOOD[text]


@pytest.mark.parametrize("text", BAD)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        Target.parse(text)


@pytest.mark.parametrize("text", HOSTS)
def test_a16_a_reaction_that_names_a_host_cannot_exist(text: str) -> None:
    with pytest.raises(UsageError, match="publish_target"):
        Reaction(reaction_id="r", handler_kind=HandlerKind.PUBLISH, publish_target=text)
