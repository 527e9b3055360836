"""The connections to the peers that the settings name; a peer's client library is imported with its connection."""

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Final, cast

from tape.bridges.config import (
    KafkaConfig,
    NatsConfig,
    PeerConfig,
    PubsubConfig,
    RedisConfig,
    WebhookConfig,
    read_configs,
)
from tape.bridges.peer import Connect, PeerConnection
from tape.bridges.target import Target
from tape.core.errors import UsageError

_HOMES: Final[Mapping[type[PeerConfig], tuple[str, str, str]]] = {
    KafkaConfig: ("tape.bridges.kafka", "confluent_kafka", "kafka"),
    NatsConfig: ("tape.bridges.nats", "nats", "nats"),
    PubsubConfig: ("tape.bridges.pubsub", "google.pubsub_v1", "pubsub"),
    RedisConfig: ("tape.bridges.redis_stream", "redis", "redis"),
    WebhookConfig: ("tape.bridges.webhook", "httpcore", "webhook"),
}


def peer_connections(tables: Mapping[str, Mapping[str, object]]) -> dict[str, PeerConnection]:
    """A connection for each `[connections.<name>]` of the settings, by name; none is connected yet."""
    return {name: _peer_connection(config) for name, config in read_configs(tables).items()}


def peer_of_target(target: str, tables: Mapping[str, Mapping[str, object]]) -> tuple[PeerConnection, str]:
    """The connection that a target names, and the topic on its peer."""
    parsed = Target.parse(target)
    if parsed.connection not in tables:
        raise UsageError(f"{target} needs [connections.{parsed.connection}] in the file of TAPE_CONFIG")
    return peer_connections({parsed.connection: tables[parsed.connection]})[parsed.connection], parsed.topic


def _peer_connection(config: PeerConfig) -> PeerConnection:
    module, package, extra = _HOMES[type(config)]
    if not _is_installed(package):
        raise UsageError(f"[connections.{config.name}] needs the package {package}; install tape-bus[{extra}]")
    connect = cast(Connect, partial(import_module(module).connect, config))  # an imported module has no types
    return PeerConnection(config, connect)


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False  # the parent package is missing
