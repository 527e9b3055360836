"""Why an entry became a task of a reaction or not, and the history of a task."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tape.core.event import Entry
from tape.core.ids import GlobalSeq
from tape.core.predicate.parts import Part
from tape.core.predicate.predicate import Verdict
from tape.core.reaction import Reaction
from tape.core.task import MAX_DEPTH, Task

EVENT_BYTES: Final = 128  # an upper bound of the type and the numbers of an event


class MatchOutcome(StrEnum):
    """What a reaction did with an entry."""

    NOT_ACTIVE = "not_active"
    OTHER_SUBJECT = "other_subject"
    NO_MATCH = "no_match"
    PREDICATE_ERROR = "predicate_error"
    TOO_DEEP = "too_deep"
    NOT_YET = "not_yet"
    TASK = "task"
    COALESCED = "coalesced"
    BACKFILLED = "backfilled"
    FORGOTTEN = "forgotten"


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleEvent:
    """An entry about a reaction or a task, with what explains it."""

    global_seq: GlobalSeq
    ts_ms: int
    type: str
    attempts: int = 0
    error: str = ""
    reason: str = ""
    paused: str = ""

    @property
    def size(self) -> int:
        """An upper bound of its encoded size in bytes."""
        return EVENT_BYTES + len((self.error + self.reason + self.paused).encode())

    @classmethod
    def of(cls, entry: Entry) -> "LifecycleEvent":
        payload = entry.payload if isinstance(entry.payload, dict) else {}
        given = {name: payload[name] for name in ("attempts", "error", "reason", "paused") if payload.get(name)}
        return cls(global_seq=entry.global_seq, ts_ms=entry.ts_ms, type=entry.type, **given)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDetail:
    """A task, and the entries of its deaths and replays."""

    task: Task
    life: tuple[LifecycleEvent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """How the rules judge an entry: the definition that applies, whether it is active, and its results."""

    definition: Reaction
    is_active: bool
    reason: str
    is_subject: bool
    verdict: Verdict
    parts: tuple[Part, ...]
    depth: int

    @property
    def refusal(self) -> MatchOutcome | None:
        """Why the entry becomes no task; None if it does."""
        if not self.is_active:
            return MatchOutcome.NOT_ACTIVE
        if not self.is_subject:
            return MatchOutcome.OTHER_SUBJECT
        if self.verdict.error is not None:
            return MatchOutcome.PREDICATE_ERROR
        if not self.verdict.matched:
            return MatchOutcome.NO_MATCH
        return MatchOutcome.TOO_DEEP if self.depth > MAX_DEPTH else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The judgement of an entry, the registrations of the reaction, and the task with its history."""

    reaction_id: str
    global_seq: GlobalSeq
    subject: str
    outcome: MatchOutcome
    judgement: Judgement
    registrations: tuple[LifecycleEvent, ...]
    cursor: GlobalSeq
    task: Task | None
    life: tuple[LifecycleEvent, ...]
