"""A run: its producer's description, and its state in the directory."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tape.core.errors import UsageError, quoted
from tape.core.fork import Lineage
from tape.core.ids import Epoch, RunId, Seq
from tape.core.lease import STALE

MAX_LENGTH: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMeta:
    """A description given by the producer; Tape stores it and does not interpret it."""

    label: str | None = None
    started_at: str | None = None
    app: str | None = None
    user: str | None = None
    session: str | None = None

    def __post_init__(self) -> None:
        for name in ("label", "started_at", "app", "user", "session"):
            text = getattr(self, name)
            if text is not None and not (isinstance(text, str) and len(text) <= MAX_LENGTH and text.isprintable()):
                raise UsageError(f"{name} is printable text of at most {MAX_LENGTH} characters, not {quoted(text)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRun:
    run_id: RunId
    label: str | None
    started_at: str | None
    n_events: int


@dataclass(frozen=True, slots=True)
class Head:
    """A run's last seq, where it was closed, and where its history and its newest incarnation begin."""

    last_seq: Seq = Seq(0)
    closed_seq: Seq | None = None
    floor: Seq = Seq(1)
    opened_seq: Seq = Seq(0)
    content_type: str | None = None
    lineage: Lineage = ()

    @property
    def is_open(self) -> bool:
        return self.closed_seq is None


class RunActivity(StrEnum):
    """A run's activity; a stale run is open, but its producer does not renew its lease."""

    RUNNING = "running"
    STALE = "stale"
    COMPLETE = "complete"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A run in the directory; `silent_ms` is the time since its producer renewed its lease, if it has one."""

    run_id: RunId
    meta: RunMeta
    head: Head
    opened_at_ms: int
    closed_at_ms: int | None = None
    is_reaped: bool = False
    silent_ms: int | None = None

    @property
    def n_events(self) -> int:
        return self.head.last_seq

    @property
    def status(self) -> RunActivity:
        if not self.head.is_open:
            return RunActivity.COMPLETE
        is_stale = self.silent_ms is not None and self.silent_ms > STALE.total_seconds() * 1000
        return RunActivity.STALE if is_stale else RunActivity.RUNNING


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedRun:
    """A run that was opened, and the epoch of its journal."""

    run_id: RunId
    epoch: Epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedRun:
    """A run that was closed, cancelled or reaped, and its last seq."""

    run_id: RunId
    last_seq: Seq


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkedRun:
    """A child run; it can be read at once."""

    child_run_id: RunId
    parent_run_id: RunId
    at_seq: Seq
