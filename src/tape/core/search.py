"""A search through all of history for one reaction: a dry run, which only counts, or a backfill, which makes tasks."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class SearchKind(StrEnum):
    """What is done with what is found."""

    DRY_RUN = "dry_run"
    BACKFILL = "backfill"


class SearchState(StrEnum):
    """How far a search is, and how it ended."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class DayFound:
    """A day that had matches, by its first millisecond."""

    day_ms: int
    matches: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFound:
    """One that matches, by its places."""

    global_seq: int
    run_id: str
    seq: int
    subject: str
    ts_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorFound:
    """How the predicate erred, how often, and where first and last."""

    error: str
    entries: int
    first_global_seq: int
    last_global_seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a search has come to so far: of the positions above `after` and up to `through` so many are searched.

    `older` matches are merged into newer ones, where a reaction is debounced; samples are the newest matches.
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
    """One search and what it found; `reason` says why it failed."""

    kind: SearchKind
    reaction_id: str
    started_at_ms: int
    state: SearchState = SearchState.RUNNING
    ended_at_ms: int | None = None
    reason: str = ""
    findings: Findings = Findings()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOrder:
    """What the process that searches has to know: also the folder that belongs to Spark, and its master."""

    kind: str
    reaction_id: str
    after: int
    through: int | None
    store: str
    lake: str
    folder: str
    master: str


class Searches(Protocol):
    """Searches on Spark, in a process of its own, one at a time; the last of each kind is remembered by reaction.

    A search that is asked for while another is under way is refused, and so is one where Spark cannot run.
    """

    async def begin(self, kind: SearchKind, reaction_id: str, after: int = 0, through: int | None = None) -> Search: ...
    async def cancel(self, reaction_id: str) -> Search: ...
    def of(self, reaction_id: str) -> Mapping[SearchKind, Search]: ...
