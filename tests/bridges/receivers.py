"""Peers that tests send to: what each has received, and how to kill, overload and make it reject a message."""

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
SEND_DEADLINE_S: Final = 1.0


class Received(NamedTuple):
    """A message as the peer stores it."""

    key: str
    order: str
    body: str
    headers: dict[str, str]

    @property
    def payload(self) -> Any:
        return json.loads(self.body)["payload"]


class Receiver(ABC):
    """A peer with a topic of its own for one test."""

    name: str
    drops_duplicates: bool = False  # whether the peer drops a second message with the same key
    rejection: str  # its error text for a message that it rejects
    rejected_payload: str = "poison" * 40_000

    def __init__(self, server: PrivateServer) -> None:
        self.server = server

    @property
    @abstractmethod
    def target(self) -> str: ...

    @property
    def rejecting_target(self) -> str:
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
    async def killed(self) -> AsyncIterator[None]:
        """Kills the server with SIGKILL, and restarts it at the end of the block."""
        await to_thread.run_sync(self.server.kill_hard)
        yield
        await to_thread.run_sync(self.server.restart)

    @asynccontextmanager
    async def overloaded(self) -> AsyncIterator[None]:
        """Accepts nothing during the block."""
        with self.server.frozen():
            yield


class NatsReceiver(Receiver):
    name = "nats"
    drops_duplicates = True
    rejection = "message size exceeds maximum allowed"

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
    async def overloaded(self) -> AsyncIterator[None]:
        """The stream is at its limit and rejects new messages."""
        async with self._streams() as streams:
            self._bounds["max_msgs"] = max(1, (await streams.stream_info(self._subject)).state.messages)
            await streams.update_stream(self._config)
            yield
            self._bounds["max_msgs"] = -1
            await streams.update_stream(self._config)


class RedisReceiver(Receiver):
    name = "redis-stream"
    drops_duplicates = True
    rejection = "WRONGTYPE"

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
    def rejecting_target(self) -> str:
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


class KafkaReceiver(Receiver):
    name = "kafka"
    rejection = "MSG_SIZE_TOO_LARGE"

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
        options = {"bootstrap.servers": self._mock.servers, "enable.partition.eof": True, "group.id": uuid4().hex}
        consumer = Consumer(options)
        try:
            return await to_thread.run_sync(lambda: [_of_kafka(each) for each in _drained(consumer, self._topic)])
        finally:
            consumer.close()

    @asynccontextmanager
    async def killed(self) -> AsyncIterator[None]:
        """A restarted mock is empty, so its brokers go down instead of the process."""
        with self._mock.down():
            yield


class PubsubReceiver(Receiver):
    name = "pubsub"
    target = "pubsub://shop/orders"
    rejection = "message_size is too large"

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
    async def overloaded(self) -> AsyncIterator[None]:
        with _busy(self._service):
            yield


class WebhookReceiver(Receiver):
    name = "billing"
    target = "webhook://billing"
    rejection = "HTTP 422: no such account"
    rejected_payload = "poison"

    def __init__(self, server: WebhookServer) -> None:
        super().__init__(server)
        self._endpoint = server
        server.forget()

    @property
    def settings(self) -> dict[str, object]:
        return {"url": f"http://127.0.0.1:{self.server.port}/hook", "secret": SECRET, "allow": ["127.0.0.1/32"]}

    async def received(self) -> list[Received]:
        accepted = self._endpoint.accepted
        return [
            Received(each["headers"]["webhook-id"], each["headers"]["tape-run-id"], each["body"], each["headers"])
            for each in accepted
        ]

    @asynccontextmanager
    async def overloaded(self) -> AsyncIterator[None]:
        with _busy(self._endpoint):
            yield


def _drained(consumer: Consumer, topic: str) -> Iterator[Message]:
    """All messages of a topic, each partition to its end."""
    partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
    unread = set(partitions)
    while unread:
        message = consumer.poll(10)
        assert message is not None, "the cluster did not answer"
        error = message.error()
        if error is None:
            yield message
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - that is its public name
            unread.discard(message.partition())


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
