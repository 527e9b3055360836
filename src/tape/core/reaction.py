"""A reaction: which entries it matches, what handles a match, and with which limits."""

import re
from dataclasses import asdict, dataclass
from enum import IntEnum
from hashlib import sha256
from typing import Final

from tape.core.codec import JsonValue
from tape.core.errors import UsageError, quoted
from tape.core.ids import ID_IN_WORDS, SYSTEM_PREFIX, RunId, is_id
from tape.core.subject import Pattern

TIMEOUT_MS: Final = 3_600_000
EVERYTHING: Final = "/**"
MAX_NAME: Final = 256
BOUNDS: Final = {
    "max_concurrency": (1, 100_000),
    "rate_limit_per_s": (0, 1_000_000),
    "debounce_ms": (0, 86_400_000),
    "retry_max": (0, 1_000),
    "retry_backoff_ms": (0, 3_600_000),
    "dlq_after_n": (1, 1_001),
    "num_shards": (1, 1_024),
    "timeout_ms": (1, 604_800_000),
}

_is_target = re.compile(r"(pubsub://[^/@\s]+/|nats://|kafka://|redis-stream://|webhook://)[!-?A-~]{1,256}").fullmatch


class HandlerKind(IntEnum):
    """What handles a match: a run of an agent, a function of a worker, or a message to a peer."""

    AGENT = 1
    TASK = 2
    PUBLISH = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaction:
    """A registered reaction. All fields are validated, except that the predicate needs the CEL compiler."""

    reaction_id: str
    subject_pattern: str = EVERYTHING
    name: str = ""
    predicate_cel: str = ""
    handler_kind: HandlerKind = HandlerKind.TASK
    agent_app: str = ""
    publish_target: str = ""
    max_concurrency: int = 1
    rate_limit_per_s: int = 0
    debounce_ms: int = 0
    retry_max: int = 5
    retry_backoff_ms: int = 1000
    dlq_after_n: int = 5
    num_shards: int = 1
    bootstrap_from_head: bool = False
    timeout_ms: int = TIMEOUT_MS

    def __post_init__(self) -> None:
        check_reaction_id(self.reaction_id)
        object.__setattr__(self, "subject_pattern", self.subject_pattern or EVERYTHING)
        Pattern.parse(self.subject_pattern)
        _check_texts(self)
        for option, (least, most) in BOUNDS.items():
            _check_number(option, getattr(self, option), least, most)
        _check_kind(self)

    @property
    def max_attempts(self) -> int:
        """How many attempts a task has before it becomes a dead letter."""
        return min(self.retry_max + 1, self.dlq_after_n)

    def definition(self) -> dict[str, JsonValue]:
        """The reaction as the payload of its registration; `from_definition` reads it."""
        return {**asdict(self), "handler_kind": int(self.handler_kind)}


def from_definition(definition: JsonValue) -> Reaction:
    """The reaction of a registration; fields that this version does not know are ignored."""
    if not isinstance(definition, dict):
        raise UsageError("a definition is a JSON object")
    known = {name: value for name, value in definition.items() if name in Reaction.__dataclass_fields__}
    return Reaction(**known)  # type: ignore[arg-type]


def check_reaction_id(reaction_id: str) -> str:
    if not isinstance(reaction_id, str) or not is_id(reaction_id):
        raise UsageError(f"reaction_id must be {ID_IN_WORDS}, not {quoted(reaction_id)}")
    return reaction_id


def system_run(reaction_id: str) -> RunId:
    """The run of the entries about a reaction and its tasks."""
    return RunId(f"{SYSTEM_PREFIX}reaction.{sha256(reaction_id.encode()).hexdigest()[:32]}")


def _check_texts(reaction: Reaction) -> None:
    for option in ("name", "predicate_cel", "agent_app", "publish_target"):
        if not isinstance(getattr(reaction, option), str):
            raise UsageError(f"{option} must be text, not {quoted(getattr(reaction, option))}")
    if len(reaction.name) > MAX_NAME or not reaction.name.isprintable():
        raise UsageError(f"name must be printable text of at most {MAX_NAME} characters, not {quoted(reaction.name)}")
    if "\0" in reaction.predicate_cel:
        raise UsageError("predicate_cel holds a NUL character, which no store can hold")
    if type(reaction.bootstrap_from_head) is not bool:
        raise UsageError(f"bootstrap_from_head is true or false, not {quoted(reaction.bootstrap_from_head)}")


def _check_number(option: str, value: object, least: int, most: int) -> None:
    if type(value) is not int or not least <= value <= most:
        raise UsageError(f"{option} must be {least:,} to {most:,}, not {quoted(value)}")


def _check_kind(reaction: Reaction) -> None:
    try:
        kind = HandlerKind(reaction.handler_kind)
    except ValueError:
        raise UsageError(
            f"handler_kind must be 1 (agent), 2 (task) or 3 (publish), not {quoted(reaction.handler_kind)}"
        ) from None
    object.__setattr__(reaction, "handler_kind", kind)
    if (kind is HandlerKind.AGENT) != bool(reaction.agent_app):
        raise UsageError("an agent reaction, and no other, names its agent_app")
    if reaction.agent_app and not is_id(reaction.agent_app):
        raise UsageError(f"agent_app must be {ID_IN_WORDS}, not {quoted(reaction.agent_app)}")
    if (kind is HandlerKind.PUBLISH) != bool(reaction.publish_target):
        raise UsageError("a publish reaction, and no other, names its publish_target")
    if reaction.publish_target and not _is_target(reaction.publish_target):
        targets = "pubsub://project/topic, nats://subject, kafka://topic, redis-stream://key or webhook://name"
        raise UsageError(f"publish_target must be {targets}, not {quoted(reaction.publish_target)}")
