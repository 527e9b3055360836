"""The connections of the settings: which peers there are, where they are, and how to prove who we are."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from ipaddress import IPv4Network, IPv6Network, ip_network
from types import UnionType
from typing import Any, Final, TypeAlias, get_args
from urllib.parse import urlsplit

from tape.bridges.message import Format
from tape.core.errors import UsageError, shown

MOST_SLOTS: Final = 1_000
PREFIX: Final = "whsec_"
LEAST_KEY: Final = 24  # bytes, below which Standard Webhooks has a key guessed
Network: TypeAlias = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A peer by its name. `slots` is how many messages it is given at a time, `deadline_s` how long one may take."""

    name: str
    format: str = Format.TAPE.value
    slots: int = 16
    deadline_s: float = 10.0

    def __post_init__(self) -> None:
        if self.format not in [each.value for each in Format]:
            raise UsageError(f"[connections.{self.name}] format is tape or cloudevents, not {shown(self.format)}")
        if not 1 <= self.slots <= MOST_SLOTS:
            raise UsageError(f"[connections.{self.name}] slots is 1 to {MOST_SLOTS:,}, not {self.slots}")
        if not 0 < self.deadline_s <= 60:
            raise UsageError(f"[connections.{self.name}] deadline_s is up to 60 seconds, not {self.deadline_s}")

    @property
    def writes(self) -> Format:
        return Format(self.format)


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsConnection(Connection):
    """NATS with JetStream, whose streams somebody else has made."""

    url: str = field(default="nats://127.0.0.1:4222", repr=False)
    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    credentials: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaConnection(Connection):
    """Kafka; `options` are librdkafka's own, such as those of TLS and SASL."""

    servers: str = "127.0.0.1:9092"
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisConnection(Connection):
    """Redis or Valkey. A second message with one key is known as such for `remember_s`; 0 keeps a stream whole."""

    url: str = field(default="redis://127.0.0.1:6379/0", repr=False)
    remember_s: int = 86_400
    max_len: int = 0

    def __post_init__(self) -> None:
        Connection.__post_init__(self)
        if self.remember_s < 1 or self.max_len < 0:
            raise UsageError(f"[connections.{self.name}] remember_s is from 1 second on, and max_len is never negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class PubsubConnection(Connection):
    """Google Pub/Sub, found by its client; an `emulator` is reached without TLS and without credentials."""

    endpoint: str = ""
    emulator: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookConnection(Connection):
    """Somebody's HTTPS endpoint. Private addresses are refused unless `allow` lists them, and so is plain HTTP."""

    url: str
    secret: str | list[str] = field(repr=False)
    allow: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        Connection.__post_init__(self)
        parts = urlsplit(self.url)
        schemes = ("https", "http") if self.allow else ("https",)
        if parts.scheme not in schemes or not parts.hostname or parts.username or parts.password:
            raise UsageError(f"[connections.{self.name}] url is https://host/path, without a user or a password")
        _ = self.networks, self.keys

    @property
    def secrets(self) -> list[str]:
        """The one that signs now, and older ones that receivers may still have."""
        return [self.secret] if isinstance(self.secret, str) else list(self.secret)

    @property
    def keys(self) -> list[bytes]:
        """The bytes of the secrets, which are written in base64."""
        found = [_key(secret) for secret in self.secrets]
        if not found or min(map(len, found)) < LEAST_KEY:
            raise UsageError(f"[connections.{self.name}] secret is {PREFIX} and base64 of at least {LEAST_KEY} bytes")
        return found

    @property
    def networks(self) -> tuple[Network, ...]:
        try:
            return tuple(ip_network(each) for each in self.allow)
        except ValueError as error:
            raise UsageError(f"[connections.{self.name}] allow lists networks like 10.0.0.0/8: {error}") from error


def _key(secret: object) -> bytes:
    """The bytes of a secret; of what is none, none."""
    try:
        return base64.b64decode(str(secret).removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return b""


_KINDS: Final[Mapping[str, type[Connection]]] = {
    "kafka": KafkaConnection,
    "nats": NatsConnection,
    "pubsub": PubsubConnection,
    "redis-stream": RedisConnection,
}


def connections_of(tables: Mapping[str, Mapping[str, object]]) -> dict[str, Connection]:
    """The connections by their names; one that bears no bridge's name is a webhook."""
    return {name: _connection(name, table) for name, table in tables.items()}


def _connection(name: str, table: Mapping[str, object]) -> Connection:
    kind = _KINDS.get(name, WebhookConnection)
    known = {each.name: each for each in fields(kind) if each.name != "name"}
    if unknown := table.keys() - known.keys():
        raise UsageError(f"[connections.{name}] knows {', '.join(sorted(known))}, not {shown(min(unknown))}")
    if kind is WebhookConnection and (missing := {"url", "secret"} - table.keys()):
        raise UsageError(f"[connections.{name}] is a webhook and needs {' and '.join(sorted(missing))}")
    return kind(name=name, **{field: _typed(name, known[field], value) for field, value in table.items()})


def _typed(name: str, known: Any, value: object) -> Any:
    """A value as TOML has it, if it is of the field's kind."""
    if known.name == "allow" and isinstance(value, list):
        return tuple(map(str, value))
    kinds: Mapping[str, Any] = {"deadline_s": int | float, "options": dict, "secret": str | list}
    wanted = kinds.get(known.name, known.type)
    alternatives = get_args(wanted) if isinstance(wanted, UnionType) else (wanted,)
    if not isinstance(value, alternatives) or isinstance(value, bool):
        said = shown(value) if known.repr else type(value).__name__
        raise UsageError(f"[connections.{name}] {known.name} cannot be {said}")
    return value
