"""A run in its ledger: who it belongs to, its status, and its worker."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Final

from tape.core.claim import RUN_LEASE, UNCLAIMED, Claim, check_lease, check_owner
from tape.core.codec import JsonValue
from tape.core.errors import UsageError, quoted
from tape.core.fork_policy import RESERVED
from tape.core.ids import RunId
from tape.core.text import check_count, check_name

MAX_LABELS: Final = 64
MAX_SCOPES: Final = 256


class RunStatus(StrEnum):
    """In the order of their numbers on the wire, from 1 on."""

    RUNNABLE = "runnable"
    RUNNING = "running"
    WAITING = "waiting"
    TERMINAL = "terminal"
    FAILED = "failed"
    COMPENSATING = "compensating"
    STUCK = "stuck"
    CANCELLED = "cancelled"


ACTIVE: Final = frozenset({RunStatus.RUNNABLE, RunStatus.RUNNING, RunStatus.WAITING})
FINAL: Final = frozenset({RunStatus.TERMINAL, RunStatus.FAILED, RunStatus.CANCELLED})
ENDINGS: Final = frozenset(RunStatus) - ACTIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """On whose behalf a run acts; Tape adds it to every entry about the run."""

    tenant_id: str = ""
    actor: str = ""
    subject: str = ""
    agent_id: str = ""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            check_name(name, getattr(self, name), may_be_empty=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """The identity of a run: the four names together are unique."""

    app: str
    user: str = ""
    session: str = ""
    invocation: str = ""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            check_name(name, getattr(self, name), may_be_empty=name != "app")

    @property
    def run_id(self) -> RunId:
        """The same for the same names, so that beginning twice gives one run."""
        names = "\x1f".join((self.app, self.user, self.session, self.invocation))
        return RunId(f"run-{sha256(names.encode()).hexdigest()[:32]}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """How a run begins; without an owner it waits for a worker."""

    of: Invocation
    owner: str = ""
    lease: timedelta = RUN_LEASE
    identity: Identity = Identity()
    scopes: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    cause: int | None = None

    def __post_init__(self) -> None:
        check_lease(self.lease)
        if self.cause is not None:
            check_count("cause", self.cause, 1)
        if self.owner:
            check_owner(self.owner)
        if len(self.scopes) > MAX_SCOPES or len(self.labels) > MAX_LABELS:
            raise UsageError(f"a run has at most {MAX_SCOPES} scopes and {MAX_LABELS} labels")
        for scope in self.scopes:
            check_name("a scope", scope)
        for label, value in self.labels.items():
            check_name("a label", label)
            if label.startswith(RESERVED):
                raise UsageError(f"labels beginning {RESERVED!r} belong to Tape, {quoted(label)} too")
            check_name(f"label {quoted(label)}", value, may_be_empty=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """A run's state; `claim.attempt` fences its worker, and `cause` is the entry that it was begun for."""

    run_id: RunId
    of: Invocation
    status: RunStatus
    claim: Claim = UNCLAIMED
    lease_ms: int
    started_at_ms: int
    ended_at_ms: int = 0
    waiting_on_gate: str = ""
    detail_json: str = ""
    identity: Identity = Identity()
    scopes: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    compacted_at_ms: int = 0
    cause: int | None = None

    @property
    def is_active(self) -> bool:
        return self.status in ACTIVE

    @property
    def summary(self) -> dict[str, JsonValue]:
        """What operators need to know about it."""
        of = self.of
        return {
            "app": of.app, "user": of.user, "session": of.session, "invocation": of.invocation,
            "work": self.status.value, "owner": self.claim.owner, "attempt": self.claim.attempt,
            "waiting_on_gate": self.waiting_on_gate, "detail_json": self.detail_json, "labels": dict(self.labels),
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RunClaim:
    """The result of beginning or taking a run: whether it existed, and whether the caller now holds it."""

    run: RunState
    is_resumed: bool
    is_acquired: bool
    next_seq: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """What compacting a run has deleted."""

    decisions_zeroed: int = 0
    effects_zeroed: int = 0
    bytes_saved: int = 0
    already_compacted: bool = False
