"""A run: what its producer says of it, and where it stands."""

from dataclasses import dataclass
from typing import Final

from tape.core.errors import UsageError, shown
from tape.core.ids import RunId, Seq

MAX_LENGTH: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMeta:
    """A run's identity as its producer gives it; Tape stores it and never reads it."""

    label: str | None = None
    started_at: str | None = None

    def __post_init__(self) -> None:
        for name, text in (("label", self.label), ("started_at", self.started_at)):
            if text is not None and not (isinstance(text, str) and len(text) <= MAX_LENGTH and text.isprintable()):
                raise UsageError(f"{name} is printable text of at most {MAX_LENGTH} characters, not {shown(text)}")


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

    @property
    def is_open(self) -> bool:
        return self.closed_seq is None
