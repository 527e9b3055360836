"""A task: the work for one match, its states, and the transitions between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple, NewType, TypeAlias, assert_never
from zlib import crc32

from tape.core import codec
from tape.core.claim import WORK_LEASE, check_lease, check_owner
from tape.core.errors import UsageError, quoted
from tape.core.event import Entry, Event
from tape.core.page import ANSWER_BYTES, PagePosition
from tape.core.reaction import Reaction, system_run
from tape.core.retry import backoff, is_last
from tape.core.subject import canonical
from tape.core.text import replace_unstorable

TaskId = NewType("TaskId", str)

ANY_SHARD: Final = -1
MAX_CLAIM: Final = 10_000
TASK_BYTES: Final = 1_536  # an upper bound of the names, ids and numbers of a task in JSON
MAX_DEPTH: Final = 16
MAX_ERROR: Final = 4096
LARGEST: Final = (3 << 20) + (128 << 10)  # more bytes than a task can have: its payload has its previous value, too
DEREGISTERED: Final = "deregistered"
DEBOUNCE_WINDOWS: Final = 10  # a stream of events delays a debounced task for at most this many windows
TASK: Final = "task"


class TaskStatus(IntEnum):
    """The state of a task; the protocol has a 4 (failed), which no task has."""

    PENDING = 1
    CLAIMED = 2
    DONE = 3
    DLQ = 5


@dataclass(slots=True, kw_only=True, unsafe_hash=True)  # a frozen one takes three times as long to construct
class Task:
    """A row of tape_tasks. `attempt` is the fencing number and never falls; `attempts` counts since the last replay."""

    task_id: TaskId
    reaction_id: str
    shard: int = 0
    source_run_id: str = ""
    source_seq: int = 0
    source_global_seq: int = 0
    kind: str = ""
    type: str = ""
    subject: str = ""
    schema_version: int = 0
    ts_ms: int = 0
    payload_json: str = ""
    prev_value_json: str = ""
    status: TaskStatus = TaskStatus.PENDING
    attempt: int = 0
    attempts: int = 0
    next_attempt_at_ms: int = 0
    lease_owner: str = ""
    lease_expires_at_ms: int = 0
    last_error: str = ""
    coalesced: int = 0
    created_at_ms: int = 0
    completed_at_ms: int = 0
    trace_id: str = ""
    span_id: str = ""

    @property
    def claim(self) -> "TaskClaim":
        """The newest attempt, the only one that may renew the lease and settle."""
        return TaskClaim(self.task_id, self.lease_owner, self.attempt)

    @property
    def size(self) -> int:
        """An upper bound of its bytes in an answer in JSON, which escapes its texts; stores compute the same number."""
        return TASK_BYTES + codec.size(self.payload_json + self.prev_value_json + self.last_error + self.subject)

    @property
    def place(self) -> PagePosition:
        """Its position in a list of tasks, the newest first."""
        return self.source_global_seq, self.reaction_id


class Match(NamedTuple):
    """An entry that a reaction matches; `older` counts the earlier matches that it replaces (debounce)."""

    reaction: Reaction
    entry: Entry
    prev_value_json: str = ""
    older: int = 0

    @property
    def is_too_deep(self) -> bool:
        return self.entry.depth >= MAX_DEPTH


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRequest:
    """Which tasks to claim, for whom, and how many. No reaction_ids means any reaction, shard -1 any shard.

    A claim leases what fits into `max_bytes`, and at least one task if one is due that fits by itself. If there are
    only larger ones it raises TooLarge and leases nothing.
    """

    owner: str
    limit: int = 16
    reaction_ids: Sequence[str] = ()
    shard: int = ANY_SHARD
    lease: timedelta = WORK_LEASE
    max_bytes: int = ANSWER_BYTES

    def __post_init__(self) -> None:
        check_owner(self.owner)
        check_lease(self.lease)
        if not 1 <= self.limit <= MAX_CLAIM:
            raise UsageError(f"a claim is for 1 to {MAX_CLAIM:,} tasks, not {quoted(self.limit)}")
        if self.max_bytes < 1:
            raise UsageError(f"max_bytes is at least 1, not {quoted(self.max_bytes)}")

    def is_cut(self, claimed: "Sequence[Task]") -> bool:
        """Whether more tasks may be due that did not fit: the next largest one would not have."""
        return 0 < len(claimed) < self.limit and sum(task.size for task in claimed) + LARGEST > self.max_bytes

    @property
    def lease_ms(self) -> int:
        return self.lease // timedelta(milliseconds=1)


class Claimed(NamedTuple):
    """The claimed tasks, and after how long more will be due (None: not known; 0: more may be due that did not fit).

    It `is_all` if nothing that was due is left: there is no need to claim again before a wake-up.
    """

    tasks: Sequence[Task]
    more_after: timedelta | None = None
    is_all: bool = False


class TaskClaim(NamedTuple):
    """Identifies one attempt: task, owner, fencing number.

    0 means the owner's current attempt while its lease is valid.
    """

    task_id: TaskId
    owner: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Done:
    """The work is done."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt failed. If attempts are left, the task is retried after this time or after the backoff."""

    error: str
    after: timedelta | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "error", replace_unstorable(self.error))


@dataclass(frozen=True, slots=True)
class Died:
    """The attempt failed and the task must not be retried."""

    error: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "error", replace_unstorable(self.error))


@dataclass(frozen=True, slots=True)
class Released:
    """The task was given back: the attempt is not counted, and any worker may claim it at once."""


Outcome: TypeAlias = Done | Failed | Died | Released


class Settlement(NamedTuple):
    """How an attempt ended."""

    claim: TaskClaim
    outcome: Outcome


class Outcomes(NamedTuple):
    """Statistics of the tasks of a reaction with one status; times are from insert to end."""

    reaction_id: str
    status: str
    n_tasks: int
    n_attempts: int
    n_coalesced: int
    mean_ms: int
    max_ms: int
    oldest_ms: int


class RetrySettings(NamedTuple):
    """The retry settings of a reaction; after its removal no attempts are left."""

    retry_max: int
    retry_backoff_ms: int
    dlq_after_n: int
    is_removed: bool = False


class NextState(NamedTuple):
    """The state of a task after an attempt."""

    status: TaskStatus
    next_attempt_at_ms: int
    last_error: str
    is_released: bool = False


def settled(attempts: int, outcome: Outcome, policy: RetrySettings, now_ms: int, jitter: float) -> NextState:
    """The next state of a task whose newest attempt had this outcome."""
    match outcome:
        case Done():
            return NextState(TaskStatus.DONE, 0, "")
        case Died(error):
            return NextState(TaskStatus.DLQ, 0, error[:MAX_ERROR])
        case Failed() | Released() if policy.is_removed:
            return NextState(TaskStatus.DLQ, 0, DEREGISTERED)
        case Released():
            return NextState(TaskStatus.PENDING, now_ms, "", is_released=True)
        case Failed(error, after):
            if is_last(attempts, policy.retry_max, policy.dlq_after_n):
                return NextState(TaskStatus.DLQ, 0, error[:MAX_ERROR])
            base = timedelta(milliseconds=policy.retry_backoff_ms)
            wait = backoff(attempts, base, jitter) if after is None else max(after, timedelta(0))
            return NextState(TaskStatus.PENDING, now_ms + wait // timedelta(milliseconds=1), error[:MAX_ERROR])
        case _:
            assert_never(outcome)


def due_at_ms(now_ms: int, first_at_ms: int, debounce_ms: int) -> int:
    """When a debounced task is due: one window after its newest event, at most DEBOUNCE_WINDOWS after the first."""
    return min(now_ms + debounce_ms, first_at_ms + DEBOUNCE_WINDOWS * debounce_ms)


def task_id(reaction_id: str, global_seq: int) -> TaskId:
    """The id of the task of a reaction for an entry; ids of one reaction sort like positions."""
    return TaskId(f"{task_prefix(reaction_id)}.{global_seq:015}")


@lru_cache(maxsize=16_384)
def task_prefix(reaction_id: str) -> str:
    """The common prefix of the task ids of a reaction."""
    return system_run(reaction_id)[-16:]


def has_settled(task: Task, claim: TaskClaim, outcome: Outcome) -> bool:
    """Whether this attempt has settled the task with this outcome; of a task that was given back nobody knows."""
    is_newest = task.lease_owner == claim.owner and task.attempt == (claim.attempt or task.attempt)
    match outcome:
        case Done():
            return is_newest and task.status is TaskStatus.DONE
        case Failed(error) | Died(error):
            statuses = (TaskStatus.DLQ,) if isinstance(outcome, Died) else (TaskStatus.DLQ, TaskStatus.PENDING)
            return is_newest and claim.attempt > 0 and task.status in statuses and task.last_error == error[:MAX_ERROR]
        case Released():
            return False
        case _:
            assert_never(outcome)


def shard_hash(run_id: str) -> int:
    """A hash of a run id that is the same in every process."""
    return crc32(run_id.encode()) & 0x7FFFFFFF


def task_event(verb: str, reaction_id: str, task: TaskId, cause: int, facts: dict[str, int | str]) -> Event:
    """The entry of a task that died or was replayed."""
    return Event(
        run_id=system_run(reaction_id),
        kind=TASK,
        type=verb,
        subject=canonical(TASK, verb, reaction_id, task),
        payload={"task_id": task, "reaction_id": reaction_id, "source_global_seq": cause, **facts},
        cause=cause,
    )
