"""Every test here that asks for a side runs over all bridges."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tape.compose import open_store
from tape.core.ports import Store
from tests.bridges.sides import KafkaSide, NatsSide, PubsubSide, RedisSide, Side, WebhookSide
from tests.servers.listening import KafkaMockServer, PubsubServer, WebhookServer

SIDES = {
    "nats": (NatsSide, "nats_server"),
    "redis-stream": (RedisSide, "valkey_server"),
    "kafka-mock": (KafkaSide, "kafka_mock"),
    "pubsub-loopback": (PubsubSide, "pubsub_service"),
    "webhook": (WebhookSide, "webhook_receiver"),
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
def webhook_receiver() -> Iterator[WebhookServer]:
    with WebhookServer() as server:
        yield server


@pytest.fixture(params=SIDES)
async def side(request: pytest.FixtureRequest) -> AsyncIterator[Side]:
    kind, fixture = SIDES[request.param]
    made = kind(request.getfixturevalue(fixture))
    async with made.prepared():
        yield made


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with open_store("memory://") as store:
        yield store
