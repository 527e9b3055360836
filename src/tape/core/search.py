"""A search through the whole history for one reaction: a dry run counts matches, a backfill makes tasks of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class SearchKind(StrEnum):
    DRY_RUN = "dry_run"
    BACKFILL = "backfill"


class SearchState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class DayFound:
    """How many matches a day had; `day_ms` is its first millisecond."""

    day_ms: int
    matches: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFound:
    """The positions, subject and time of a matching entry."""

    global_seq: int
    run_id: str
    seq: int
    subject: str
    ts_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorFound:
    """An error of a predicate: on how many entries it occurred, and the first and the last of them."""

    error: str
    entries: int
    first_global_seq: int
    last_global_seq: int

    def merged(self, other: "ErrorFound") -> "ErrorFound":
        """Adds the same error on other entries."""
        return ErrorFound(
            error=self.error,
            entries=self.entries + other.entries,
            first_global_seq=min(self.first_global_seq, other.first_global_seq),
            last_global_seq=max(self.last_global_seq, other.last_global_seq),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a search has found so far; `searched` of the positions above `after` up to `through` are done.

    `older` counts matches that debouncing merged into newer ones; samples are the newest matches.
    """

    after: int = 0
    through: int = 0
    searched: int = 0
    matches: int = 0
    older: int = 0
    made: int = 0
    days: tuple[DayFound, ...] = ()
    samples: tuple[EntryFound, ...] = ()
    errors: tuple[ErrorFound, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """One search and its findings; `reason` says why it failed."""

    kind: SearchKind
    reaction_id: str
    started_at_ms: int
    state: SearchState = SearchState.RUNNING
    ended_at_ms: int | None = None
    reason: str = ""
    findings: Findings = Findings()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOrder:
    """The input of a search process; `folder` is where Spark keeps its files."""

    kind: str
    reaction_id: str
    after: int
    through: int | None
    store: str
    lake: str
    folder: str
    master: str


class Searches(Protocol):
    """Runs searches on Spark, one at a time, each in a process; remembers the last of each kind by reaction.

    `begin` raises LimitReached while another search runs, and UsageError where Spark cannot run.
    """

    async def begin(self, kind: SearchKind, reaction_id: str, after: int = 0, through: int | None = None) -> Search: ...
    async def cancel(self, reaction_id: str) -> Search: ...
    def of(self, reaction_id: str) -> Mapping[SearchKind, Search]: ...
