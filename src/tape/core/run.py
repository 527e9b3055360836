"""A run: what its producer says of it, and where it stands."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tape.core.errors import UsageError, quoted
from tape.core.fork import Lineage
from tape.core.ids import RunId, Seq
from tape.core.lease import STALE

MAX_LENGTH: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMeta:
    """A run's identity as its producer gives it; Tape stores it and never reads it."""

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
    """An open run."""

    run_id: RunId
    label: str | None
    started_at: str | None
    n_events: int


@dataclass(frozen=True, slots=True)
class Head:
    """Where a run stands: its last seq, where it was closed, where its history and its present life begin."""

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
    """How a run is doing; a stale one is open, but its producer has fallen silent."""

    RUNNING = "running"
    STALE = "stale"
    COMPLETE = "complete"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A run as the directory knows it; `silent_ms` is since its producer last renewed its lease, if it took one."""

    run_id: RunId
    meta: RunMeta
    head: Head
    opened_at_ms: int
    closed_at_ms: int | None = None
    is_reaped: bool = False
    silent_ms: int | None = None

    @property
    def status(self) -> RunActivity:
        if not self.head.is_open:
            return RunActivity.COMPLETE
        is_stale = self.silent_ms is not None and self.silent_ms > STALE.total_seconds() * 1000
        return RunActivity.STALE if is_stale else RunActivity.RUNNING
