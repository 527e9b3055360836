"""A test that takes `receiver` runs once per kind of peer."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tape.compose import open_store
from tape.core.ports import Store
from tests.bridges.receivers import (
    KafkaReceiver,
    NatsReceiver,
    PubsubReceiver,
    Receiver,
    RedisReceiver,
    WebhookReceiver,
)
from tests.servers.listening import KafkaMockServer, PubsubServer, WebhookServer

RECEIVERS = {
    "nats": (NatsReceiver, "nats_server"),
    "redis-stream": (RedisReceiver, "valkey_server"),
    "kafka-mock": (KafkaReceiver, "kafka_mock"),
    "pubsub-loopback": (PubsubReceiver, "pubsub_service"),
    "webhook": (WebhookReceiver, "webhook_server"),
}


@pytest.fixture(scope="session")
def kafka_mock() -> Iterator[KafkaMockServer]:
    with KafkaMockServer() as server:
        yield server


@pytest.fixture(scope="session")
def pubsub_service() -> Iterator[PubsubServer]:
    with PubsubServer() as server:
        yield server


@pytest.fixture(scope="session")
def webhook_server() -> Iterator[WebhookServer]:
    with WebhookServer() as server:
        yield server


@pytest.fixture(params=RECEIVERS)
async def receiver(request: pytest.FixtureRequest) -> AsyncIterator[Receiver]:
    kind, fixture = RECEIVERS[request.param]
    made = kind(request.getfixturevalue(fixture))
    async with made.prepared():
        yield made


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with open_store("memory://") as store:
        yield store
