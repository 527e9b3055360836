"""What a server's handlers work with, put together by compose."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol, TypeAlias

import anyio

from tape.bus.journal import Journal
from tape.core.event import Entry
from tape.core.ids import RunId, Seq
from tape.core.lake import LakeQueries
from tape.core.ports import RunDirectory, Store
from tape.core.run import Head, RunMeta, RunRecord
from tape.core.search import Searches
from tape.runs.forks import Forks
from tape.runs.ledgers import Ledgers
from tape.server.sse.fan_out import FanOutGroups
from tape.server.sse.subscribers import Subscribers
from tape.store.outbox.table import OutboxTable
from tape.telemetry import Meters


class ColdFile(Protocol):
    """What a file says of a run it holds."""

    @property
    def run_id(self) -> RunId: ...
    @property
    def meta(self) -> RunMeta: ...
    @property
    def last_seq(self) -> Seq: ...


class ColdFiles(Protocol):
    """Runs of a store that forgets, as files keep them: the same entries, the same numbers, the same bytes.

    `keep` follows a run into its file and returns when the run has ended and all of it is there. A file belongs to
    whoever writes it: while one does, `is_being_written` says so and nobody reads it.
    """

    def has(self, run_id: RunId) -> bool: ...
    def is_being_written(self, run_id: RunId) -> bool: ...
    async def find(self, run_id: RunId) -> ColdFile | None: ...
    def stream(self, run_id: RunId, from_seq: Seq) -> AsyncIterator[Entry]: ...
    async def listed(self) -> Sequence[ColdFile]: ...
    async def keep(self, run_id: RunId, read: Callable[[Seq], AsyncIterator[Entry]], meta: RunMeta) -> None: ...


class ColdRuns:
    """The same runs as a directory would know them: they have ended, and no store holds them any more.

    `incarnations` are those that a store still holds and whose files are complete, by run and first seq.
    """

    def __init__(self, files: ColdFiles) -> None:
        self._files = files
        self.incarnations: set[tuple[RunId, Seq]] = set()
        self.has = files.has
        self.is_being_written = files.is_being_written
        self.stream = files.stream
        self.keep = files.keep

    async def find(self, run_id: RunId) -> RunRecord | None:
        file = await self._files.find(run_id)
        return None if file is None else _record(file)

    async def listed(self) -> list[RunRecord]:
        return [_record(file) for file in await self._files.listed()]


OpenOutbox: TypeAlias = Callable[[], AbstractAsyncContextManager[OutboxTable]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One server over one journal.

    A bounded store forgets, an ephemeral one ends with this process; `cold` is there when files keep what it forgets,
    `store` and `ledgers` when it has reactions, tasks and ledgers, `lake` and `searches` when it can have a lake. An
    outbox is opened for each look at it: it is somebody else's database, and looked at now and then.
    """

    journal: Journal
    runs: RunDirectory
    forks: Forks
    subscribers: Subscribers = field(default_factory=Subscribers)
    fan_out_groups: FanOutGroups = field(default_factory=FanOutGroups)
    meters: Meters = field(default_factory=Meters)
    draining: anyio.Event = field(default_factory=anyio.Event)
    cold: ColdRuns | None = None
    store: Store | None = None
    ledgers: Ledgers | None = None
    outbox: OpenOutbox | None = None
    lake: LakeQueries | None = None
    searches: Searches | None = None
    is_bounded: bool = False
    is_ephemeral: bool = False
    reap_after: timedelta = timedelta(minutes=30)

    @property
    def is_draining(self) -> bool:
        """Whether the server is leaving: streams say so, and nobody new is let in."""
        return self.draining.is_set()


def _record(file: ColdFile) -> RunRecord:
    head = Head(last_seq=file.last_seq, closed_seq=file.last_seq)
    return RunRecord(run_id=file.run_id, meta=file.meta, head=head, opened_at_ms=0, is_reaped=True)
