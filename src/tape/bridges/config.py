"""The configuration of peers: `[connections.<name>]` of the settings, with addresses and credentials."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from ipaddress import IPv4Network, IPv6Network, ip_network
from types import UnionType
from typing import Any, Final, TypeAlias, get_args
from urllib.parse import urlsplit

from tape.bridges.message import Format
from tape.core.errors import UsageError, quoted

MAX_SLOTS: Final = 1_000
PREFIX: Final = "whsec_"
MIN_KEY: Final = 24  # bytes; the minimum of Standard Webhooks
Network: TypeAlias = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerConfig:
    """A peer by name. `slots` messages are in flight at a time; `deadline_s` bounds one send."""

    name: str
    format: str = Format.TAPE.value
    slots: int = 16
    deadline_s: float = 10.0

    def __post_init__(self) -> None:
        if self.format not in [each.value for each in Format]:
            raise UsageError(f"[connections.{self.name}] format is tape or cloudevents, not {quoted(self.format)}")
        if not 1 <= self.slots <= MAX_SLOTS:
            raise UsageError(f"[connections.{self.name}] slots is 1 to {MAX_SLOTS:,}, not {self.slots}")
        if not 0 < self.deadline_s <= 60:
            raise UsageError(f"[connections.{self.name}] deadline_s is up to 60 seconds, not {self.deadline_s}")

    @property
    def body_format(self) -> Format:
        return Format(self.format)


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsConfig(PeerConfig):
    """NATS with JetStream; the streams must exist."""

    url: str = field(default="nats://127.0.0.1:4222", repr=False)
    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    credentials: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaConfig(PeerConfig):
    """Kafka; `options` are those of librdkafka, such as TLS and SASL."""

    servers: str = "127.0.0.1:9092"
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisConfig(PeerConfig):
    """Redis or Valkey. Duplicate keys are dropped for `remember_s`; a `max_len` of 0 never trims the stream."""

    url: str = field(default="redis://127.0.0.1:6379/0", repr=False)
    remember_s: int = 86_400
    max_len: int = 0

    def __post_init__(self) -> None:
        PeerConfig.__post_init__(self)
        if self.remember_s < 1 or self.max_len < 0:
            raise UsageError(f"[connections.{self.name}] remember_s is from 1 second on, and max_len is never negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class PubsubConfig(PeerConfig):
    """Google Pub/Sub at its default endpoint or at `endpoint`; an `emulator` needs no TLS and no credentials."""

    endpoint: str = ""
    emulator: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookConfig(PeerConfig):
    """An HTTPS endpoint. Private addresses and plain HTTP are refused unless `allow` lists networks."""

    url: str
    secret: str | list[str] = field(repr=False)
    allow: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        PeerConfig.__post_init__(self)
        parts = urlsplit(self.url)
        schemes = ("https", "http") if self.allow else ("https",)
        if parts.scheme not in schemes or not parts.hostname or parts.username or parts.password:
            raise UsageError(f"[connections.{self.name}] url is https://host/path, without a user or a password")
        _ = self.networks, self.keys

    @property
    def secrets(self) -> list[str]:
        """The secret in use, then older ones that receivers may still hold."""
        return [self.secret] if isinstance(self.secret, str) else list(self.secret)

    @property
    def keys(self) -> list[bytes]:
        """The secrets, decoded from base64."""
        found = [_key(secret) for secret in self.secrets]
        if not found or min(map(len, found)) < MIN_KEY:
            raise UsageError(f"[connections.{self.name}] secret is {PREFIX} and base64 of at least {MIN_KEY} bytes")
        return found

    @property
    def networks(self) -> tuple[Network, ...]:
        try:
            return tuple(ip_network(each) for each in self.allow)
        except ValueError as error:
            raise UsageError(f"[connections.{self.name}] allow lists networks like 10.0.0.0/8: {error}") from error


def _key(secret: object) -> bytes:
    """The decoded secret, or no bytes when it is not base64."""
    try:
        return base64.b64decode(str(secret).removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return b""


_KINDS: Final[Mapping[str, type[PeerConfig]]] = {
    "kafka": KafkaConfig,
    "nats": NatsConfig,
    "pubsub": PubsubConfig,
    "redis-stream": RedisConfig,
}


def read_configs(tables: Mapping[str, Mapping[str, object]]) -> dict[str, PeerConfig]:
    """The configurations by name; a name that is not a kind of peer is a webhook."""
    return {name: _read(name, table) for name, table in tables.items()}


def _read(name: str, table: Mapping[str, object]) -> PeerConfig:
    kind = _KINDS.get(name, WebhookConfig)
    known = {each.name: each for each in fields(kind) if each.name != "name"}
    if unknown := table.keys() - known.keys():
        raise UsageError(f"[connections.{name}] knows {', '.join(sorted(known))}, not {quoted(min(unknown))}")
    if kind is WebhookConfig and (missing := {"url", "secret"} - table.keys()):
        raise UsageError(f"[connections.{name}] is a webhook and needs {' and '.join(sorted(missing))}")
    return kind(name=name, **{field: _typed(name, known[field], value) for field, value in table.items()})


def _typed(name: str, known: Any, value: object) -> Any:
    """The value from TOML, checked against the field's type."""
    if known.name == "allow" and isinstance(value, list):
        return tuple(map(str, value))
    kinds: Mapping[str, Any] = {"deadline_s": int | float, "options": dict, "secret": str | list}
    expected = kinds.get(known.name, known.type)
    alternatives = get_args(expected) if isinstance(expected, UnionType) else (expected,)
    if not isinstance(value, alternatives) or isinstance(value, bool):
        found = quoted(value) if known.repr else type(value).__name__  # a secret is not shown
        raise UsageError(f"[connections.{name}] {known.name} cannot be {found}")
    return value
