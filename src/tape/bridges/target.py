"""A publish target: a connection of the settings and a topic on its peer. It never names a host."""

import re
from dataclasses import dataclass
from typing import Final

from tape.core.errors import UsageError, quoted

KINDS: Final = ("kafka", "nats", "pubsub", "redis-stream")
WEBHOOK: Final = "webhook"
_SHAPES: Final = {
    "kafka": re.compile("[A-Za-z0-9._-]{1,249}"),
    "nats": re.compile(r"[^\s.*>@]+([.][^\s.*>@]+)*"),
    "pubsub": re.compile("[A-Za-z0-9][A-Za-z0-9.:-]*/[A-Za-z][A-Za-z0-9._~%+-]{2,254}"),
    "redis-stream": re.compile("[!-?A-~]{1,256}"),
    WEBHOOK: re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,127}"),
}
_EXAMPLES: Final = "pubsub://project/topic, nats://subject, kafka://topic, redis-stream://key or webhook://name"


@dataclass(frozen=True, slots=True)
class Target:
    """A connection by its name in the settings, and a topic on its peer."""

    kind: str
    connection: str
    topic: str = ""

    @classmethod
    def parse(cls, text: str) -> "Target":
        kind, mark, place = text.partition("://")
        if not mark or kind not in _SHAPES or not _SHAPES[kind].fullmatch(place) or not place.isascii():
            raise UsageError(f"a target is {_EXAMPLES}, not {quoted(text)}")
        if kind == WEBHOOK:
            if place in KINDS:
                raise UsageError(f"connection {place!r} is that of another bridge; name the webhook otherwise")
            return cls(kind, place)
        project, _, topic = place.partition("/")
        return cls(kind, kind, f"projects/{project}/topics/{topic}" if kind == "pubsub" else place)
