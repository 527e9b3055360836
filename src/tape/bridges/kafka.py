"""Kafka: an idempotent producer, so that what librdkafka sends again is there once; a header has the key."""

from collections.abc import Callable
from functools import partial
from threading import Thread
from typing import Any, Final

import anyio
from anyio.from_thread import run_sync as call_in_loop
from anyio.lowlevel import EventLoopToken, current_token
from confluent_kafka import KafkaError, KafkaException, Producer

from tape.bridges.connections import KafkaConnection
from tape.bridges.line import Away
from tape.bridges.message import Message
from tape.work.answers import Dead, Retry

POLL_S: Final = 0.1
POISON: Final = frozenset(
    {
        KafkaError.INVALID_MSG,
        KafkaError.INVALID_RECORD,
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.TOPIC_EXCEPTION,
    }
)


class _Receipt:
    """What the cluster says of one message."""

    def __init__(self) -> None:
        self._is_given = anyio.Event()
        self._error: KafkaError | None = None

    def give(self, error: KafkaError | None) -> None:
        self._error = error
        self._is_given.set()

    async def wait(self) -> None:
        await self._is_given.wait()
        if self._error is not None:
            raise _refusal(self._error)


class KafkaPeer:
    """A cluster; librdkafka looks after its brokers, and one thread of ours hears what became of messages."""

    def __init__(self, producer: Producer, token: EventLoopToken) -> None:
        self._producer = producer
        self._token = token
        self._is_open = True
        self._thread = Thread(target=self._listen, name="tape-kafka", daemon=True)
        self._thread.start()

    async def send(self, topic: str, message: Message) -> None:
        receipt = _Receipt()
        try:
            self._producer.produce(
                topic,
                value=message.body,
                key=message.order.encode(),
                headers={name: value.encode() for name, value in message.headers.items()},
                on_delivery=partial(self._deliver, receipt.give),
            )
        except BufferError as error:
            raise Away("Kafka: its queue in this process is full") from error
        except KafkaException as error:
            raise _refusal(error.args[0]) from error
        await receipt.wait()

    async def close(self) -> None:
        self._is_open = False
        await anyio.to_thread.run_sync(self._thread.join)

    def _listen(self) -> None:
        while self._is_open:
            self._producer.poll(POLL_S)
        self._producer.purge()
        self._producer.flush(0)

    def _deliver(self, give: Callable[[KafkaError | None], None], error: KafkaError | None, _: object) -> None:
        if self._is_open:
            call_in_loop(give, error, token=self._token)


async def connect(connection: KafkaConnection) -> KafkaPeer:
    """A producer; what it does not get rid of within the deadline comes back, and the line tries again."""
    settings: dict[str, Any] = {
        "bootstrap.servers": connection.servers,
        "client.id": "tape",
        "enable.idempotence": True,
        "linger.ms": 1,
        "message.timeout.ms": round(connection.deadline_s * 900),
        "logger": _Silent(),
        **connection.options,
    }
    try:
        return KafkaPeer(Producer(settings), current_token())
    except KafkaException as error:
        raise Dead(f"Kafka: {error.args[0].str()}") from error


class _Silent:
    """Takes librdkafka's own log lines; what goes wrong is seen by whoever sends."""

    def log(self, *_: object, **__: object) -> None:
        return None


def _refusal(error: KafkaError) -> Exception:
    said = f"Kafka: {error.name()}: {error.str()}"
    if error.code() in POISON:
        return Dead(said)
    if error.fatal() or error.retriable() or error.code() < 0:
        return Away(said, is_lost=error.fatal())
    return Retry(said)
