"""The lines to the peers of the settings; a peer's library is loaded with its line."""

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Final, cast

from tape.bridges.connections import (
    Connection,
    KafkaConnection,
    NatsConnection,
    PubsubConnection,
    RedisConnection,
    WebhookConnection,
    connections_of,
)
from tape.bridges.line import Connect, Line
from tape.bridges.target import Target
from tape.core.errors import UsageError

_HOMES: Final[Mapping[type[Connection], tuple[str, str, str]]] = {
    KafkaConnection: ("tape.bridges.kafka", "confluent_kafka", "kafka"),
    NatsConnection: ("tape.bridges.nats", "nats", "nats"),
    PubsubConnection: ("tape.bridges.pubsub", "google.pubsub_v1", "pubsub"),
    RedisConnection: ("tape.bridges.redis_stream", "redis", "redis"),
    WebhookConnection: ("tape.bridges.webhook", "httpcore", "webhook"),
}


def lines_of(tables: Mapping[str, Mapping[str, object]]) -> dict[str, Line]:
    """A line for each connection of the settings, by its name; none is connected yet."""
    return {name: line_of(connection) for name, connection in connections_of(tables).items()}


def line_to(target: str, tables: Mapping[str, Mapping[str, object]]) -> tuple[Line, str]:
    """The line that a target goes over, and the topic on its far side."""
    parsed = Target.parse(target)
    if parsed.connection not in tables:
        raise UsageError(f"{target} needs [connections.{parsed.connection}] in the file of TAPE_CONFIG")
    return lines_of({parsed.connection: tables[parsed.connection]})[parsed.connection], parsed.topic


def line_of(connection: Connection) -> Line:
    module, package, extra = _HOMES[type(connection)]
    if not _is_installed(package):
        raise UsageError(f"[connections.{connection.name}] needs the package {package}; install tape-bus[{extra}]")
    connect = cast(Connect, partial(import_module(module).connect, connection))  # a module has no types to check
    return Line(connection, connect)


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False  # not even the package around it
