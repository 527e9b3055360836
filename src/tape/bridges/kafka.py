"""Kafka: an idempotent producer, so that librdkafka's own retries make no duplicates; the key is a header."""

from collections.abc import Callable
from functools import partial
from threading import Thread
from typing import Any, Final

import anyio
from anyio.from_thread import run_sync as call_in_loop
from anyio.lowlevel import EventLoopToken, current_token
from confluent_kafka import KafkaError, KafkaException, Producer

from tape.bridges.config import KafkaConfig
from tape.bridges.message import Message
from tape.bridges.peer import PeerUnavailable
from tape.work.answers import Dead, Retry

POLL_S: Final = 0.1
REJECTED: Final = frozenset(
    {
        KafkaError.INVALID_MSG,
        KafkaError.INVALID_RECORD,
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.TOPIC_EXCEPTION,
    }
)


class _Ack:
    """The cluster's acknowledgement of one message."""

    def __init__(self) -> None:
        self._is_set = anyio.Event()
        self._error: KafkaError | None = None

    def set(self, error: KafkaError | None) -> None:
        self._error = error
        self._is_set.set()

    async def wait(self) -> None:
        await self._is_set.wait()
        if self._error is not None:
            raise _error_of(self._error)


class KafkaPeer:
    """A cluster. librdkafka reconnects to its brokers; one thread polls for acknowledgements."""

    def __init__(self, producer: Producer, token: EventLoopToken) -> None:
        self._producer = producer
        self._token = token
        self._is_open = True
        self._thread = Thread(target=self._poll, name="tape-kafka", daemon=True)
        self._thread.start()

    async def send(self, topic: str, message: Message) -> None:
        ack = _Ack()
        try:
            self._producer.produce(
                topic,
                value=message.body,
                key=message.order.encode(),
                headers={name: value.encode() for name, value in message.headers.items()},
                on_delivery=partial(self._on_delivery, ack.set),
            )
        except BufferError as error:
            raise PeerUnavailable("Kafka: the producer queue of this process is full") from error
        except KafkaException as error:
            raise _error_of(error.args[0]) from error
        await ack.wait()

    async def close(self) -> None:
        self._is_open = False
        await anyio.to_thread.run_sync(self._thread.join)

    def _poll(self) -> None:
        while self._is_open:
            self._producer.poll(POLL_S)
        self._producer.purge()
        self._producer.flush(0)

    def _on_delivery(self, set_ack: Callable[[KafkaError | None], None], error: KafkaError | None, _: object) -> None:
        if self._is_open:
            call_in_loop(set_ack, error, token=self._token)


async def connect(config: KafkaConfig) -> KafkaPeer:
    """A producer. A message that it cannot deliver within the deadline fails, and `PeerConnection` retries it."""
    settings: dict[str, Any] = {
        "bootstrap.servers": config.servers,
        "client.id": "tape",
        "enable.idempotence": True,
        "linger.ms": 1,
        "message.timeout.ms": round(config.deadline_s * 900),
        "logger": _Silent(),
        **config.options,
    }
    try:
        return KafkaPeer(Producer(settings), current_token())
    except KafkaException as error:
        raise Dead(f"Kafka: {error.args[0].str()}") from error


class _Silent:
    """Drops the log lines of librdkafka; `send` raises the errors."""

    def log(self, *_: object, **__: object) -> None:
        return None


def _error_of(error: KafkaError) -> Exception:
    reason = f"Kafka: {error.name()}: {error.str()}"
    if error.code() in REJECTED:
        return Dead(reason)
    if error.fatal() or error.retriable() or error.code() < 0:
        return PeerUnavailable(reason, is_lost=error.fatal())
    return Retry(reason)
