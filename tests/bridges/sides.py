"""The far sides of bridges: what a peer has received, and how it is killed, filled and provoked."""

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, NamedTuple
from uuid import uuid4

import nats
from anyio import to_thread
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition
from nats.js.api import DiscardPolicy, StreamConfig
from redis import Redis

from tests.servers.listening import KafkaMockServer, ListeningServer, PubsubServer, WebhookServer
from tests.servers.nats import NatsServer
from tests.servers.process import PrivateServer
from tests.servers.valkey import ValkeyServer

SECRET: Final = "whsec_" + "bm90IHNvIHNlY3JldCBhcyBpdCBsb29rcw=="
DEADLINE_S: Final = 1.0


class Received(NamedTuple):
    """A message as its peer has it."""

    key: str
    order: str
    body: str
    headers: dict[str, str]

    @property
    def payload(self) -> Any:
        return json.loads(self.body)["payload"]


class Side(ABC):
    """A peer with a place of its own for one test."""

    name: str
    collapses: bool = False  # whether the peer itself keeps one of two messages with the same key
    reason: str  # what it says of a poisonous message
    poison: str = "poison" * 40_000

    def __init__(self, server: PrivateServer) -> None:
        self.server = server

    @property
    @abstractmethod
    def target(self) -> str: ...

    @property
    def poison_target(self) -> str:
        return self.target

    @property
    @abstractmethod
    def settings(self) -> dict[str, object]: ...

    @abstractmethod
    async def received(self) -> list[Received]: ...

    @asynccontextmanager
    async def prepared(self) -> AsyncIterator[None]:
        yield

    @asynccontextmanager
    async def gone(self) -> AsyncIterator[None]:
        """Is killed in the middle of whatever it does, and comes back at the end of the block."""
        await to_thread.run_sync(self.server.kill_hard)
        yield
        await to_thread.run_sync(self.server.restart)

    @asynccontextmanager
    async def full(self) -> AsyncIterator[None]:
        """Takes nothing for as long as the block."""
        with self.server.frozen():
            yield


class NatsSide(Side):
    name = "nats"
    collapses = True
    reason = "message size exceeds maximum allowed"

    def __init__(self, server: NatsServer) -> None:
        super().__init__(server)
        self._url = server.url
        self._subject = f"orders{uuid4().hex}"
        self._bounds: dict[str, Any] = {"discard": DiscardPolicy.NEW, "max_msg_size": 100_000}

    @property
    def target(self) -> str:
        return f"nats://{self._subject}.placed"

    @property
    def settings(self) -> dict[str, object]:
        return {"url": self._url}

    @asynccontextmanager
    async def _streams(self) -> AsyncIterator[Any]:
        client = await nats.connect(self._url, allow_reconnect=False)
        try:
            yield client.jetstream()
        finally:
            await client.close()

    @property
    def _config(self) -> StreamConfig:
        return StreamConfig(name=self._subject, subjects=[f"{self._subject}.>"], **self._bounds)

    @asynccontextmanager
    async def prepared(self) -> AsyncIterator[None]:
        async with self._streams() as streams:
            await streams.add_stream(self._config)
        yield
        async with self._streams() as streams:
            await streams.delete_stream(self._subject)

    async def received(self) -> list[Received]:
        async with self._streams() as streams:
            count = (await streams.stream_info(self._subject)).state.messages
            found = [await streams.get_msg(self._subject, seq) for seq in range(1, count + 1)]
        return [
            Received(each.headers["Nats-Msg-Id"], each.headers["tape-run-id"], each.data.decode(), each.headers)
            for each in found
        ]

    @asynccontextmanager
    async def full(self) -> AsyncIterator[None]:
        """The stream is at its limit and discards what is new."""
        async with self._streams() as streams:
            self._bounds["max_msgs"] = max(1, (await streams.stream_info(self._subject)).state.messages)
            await streams.update_stream(self._config)
            yield
            self._bounds["max_msgs"] = -1
            await streams.update_stream(self._config)


class RedisSide(Side):
    name = "redis-stream"
    collapses = True
    reason = "WRONGTYPE"

    def __init__(self, server: ValkeyServer) -> None:
        super().__init__(server)
        self._url = server.url
        self._key = f"orders:{uuid4().hex}"

    @property
    def target(self) -> str:
        return f"redis-stream://{self._key}"

    @property
    def settings(self) -> dict[str, object]:
        return {"url": self._url, "remember_s": 60}

    @property
    def poison_target(self) -> str:
        return f"redis-stream://{self._key}:text"

    @asynccontextmanager
    async def prepared(self) -> AsyncIterator[None]:
        with Redis.from_url(self._url) as client:
            client.set(f"{self._key}:text", "no stream")
        yield

    async def received(self) -> list[Received]:
        with Redis.from_url(self._url, decode_responses=True) as client:
            found: Any = client.xrange(self._key)
        return [Received(each["tape-key"], each["tape-run-id"], each["body"], each) for _, each in found]


class KafkaSide(Side):
    name = "kafka"
    reason = "MSG_SIZE_TOO_LARGE"

    def __init__(self, server: KafkaMockServer) -> None:
        super().__init__(server)
        self._mock = server
        self._topic = f"orders.{uuid4().hex}"

    @property
    def target(self) -> str:
        return f"kafka://{self._topic}"

    @property
    def settings(self) -> dict[str, object]:
        return {"servers": self._mock.servers, "deadline_s": 2.0, "options": {"message.max.bytes": 100_000}}

    async def received(self) -> list[Received]:
        said = {"bootstrap.servers": self._mock.servers, "enable.partition.eof": True, "group.id": uuid4().hex}
        consumer = Consumer(said)
        try:
            return await to_thread.run_sync(lambda: [_of_kafka(each) for each in _drained(consumer, self._topic)])
        finally:
            consumer.close()

    @asynccontextmanager
    async def gone(self) -> AsyncIterator[None]:
        """A mock that dies has nothing when it comes back, so its brokers go down, and it lives."""
        with self._mock.down():
            yield


class PubsubSide(Side):
    name = "pubsub"
    target = "pubsub://shop/orders"
    reason = "message_size is too large"

    def __init__(self, server: PubsubServer) -> None:
        super().__init__(server)
        self._service = server
        server.forget()

    @property
    def settings(self) -> dict[str, object]:
        return {"emulator": f"127.0.0.1:{self.server.port}"}

    async def received(self) -> list[Received]:
        accepted = self._service.accepted
        return [
            Received(each["headers"]["tape-key"], each["order"], each["body"], each["headers"]) for each in accepted
        ]

    @asynccontextmanager
    async def full(self) -> AsyncIterator[None]:
        with _busy(self._service):
            yield


class WebhookSide(Side):
    name = "billing"
    target = "webhook://billing"
    reason = "HTTP 422: no such account"
    poison = "poison"

    def __init__(self, server: WebhookServer) -> None:
        super().__init__(server)
        self._receiver = server
        server.forget()

    @property
    def settings(self) -> dict[str, object]:
        place = f"http://127.0.0.1:{self.server.port}/hook"
        return {"url": place, "secret": SECRET, "allow": ["127.0.0.1/32"]}

    async def received(self) -> list[Received]:
        accepted = self._receiver.accepted
        return [
            Received(each["headers"]["webhook-id"], each["headers"]["tape-run-id"], each["body"], each["headers"])
            for each in accepted
        ]

    @asynccontextmanager
    async def full(self) -> AsyncIterator[None]:
        with _busy(self._receiver):
            yield


def _drained(consumer: Consumer, topic: str) -> Iterator[Message]:
    """Everything there is in a topic, partition by partition up to its end."""
    partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
    open_ones = set(partitions)
    while open_ones:
        message = consumer.poll(10)
        assert message is not None, "the cluster does not answer"
        error = message.error()
        if error is None:
            yield message
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - that is its public name
            open_ones.discard(message.partition())


def _of_kafka(message: Message) -> Received:
    headers = {pair[0]: _text(pair[1]) for pair in message.headers() or []}
    return Received(headers["tape-key"], _text(message.key()), _text(message.value()), headers)


def _text(value: str | bytes | None) -> str:
    return value.decode() if isinstance(value, bytes) else value or ""


@contextmanager
def _busy(server: ListeningServer) -> Iterator[None]:
    server.busy_at.touch()
    yield
    server.busy_at.unlink()
