"""The parts of a server that its handlers use; compose puts them together."""

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
from tape.operations.handlers import Handlers
from tape.runs.forks import Forks
from tape.runs.ledgers import Ledgers
from tape.server.sse.fan_out import FanOutGroups
from tape.server.sse.subscribers import Subscribers
from tape.store.outbox.table import OutboxTable
from tape.telemetry import Meters


class ColdFile(Protocol):
    """A run as its file describes it."""

    @property
    def run_id(self) -> RunId: ...
    @property
    def meta(self) -> RunMeta: ...
    @property
    def last_seq(self) -> Seq: ...


class ColdFiles(Protocol):
    """Files with the runs of a bounded store: the same entries, numbers and bytes.

    `keep` copies a run into its file and returns when the run has ended and the file is complete. Nobody reads a file
    while `is_being_written`.
    """

    def has(self, run_id: RunId) -> bool: ...
    def is_being_written(self, run_id: RunId) -> bool: ...
    async def find(self, run_id: RunId) -> ColdFile | None: ...
    async def page(self, run_id: RunId, from_seq: Seq) -> Sequence[Entry]: ...
    async def listed(self) -> Sequence[ColdFile]: ...
    async def keep(self, run_id: RunId, read: Callable[[Seq], AsyncIterator[Entry]], meta: RunMeta) -> None: ...


class ColdRuns:
    """The runs in files as run records: ended and reaped.

    `incarnations` are those that a store still holds and whose files are complete, by run and first seq.
    """

    def __init__(self, files: ColdFiles) -> None:
        self._files = files
        self.incarnations: set[tuple[RunId, Seq]] = set()
        self.has = files.has
        self.is_being_written = files.is_being_written
        self.page = files.page
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

    A bounded store deletes old entries, an ephemeral one ends with this process. `operations` runs every operation.
    `cold` is set if files keep what the store deletes, `store` and `ledgers` if it has reactions, tasks and ledgers,
    `lake` and `searches` if it can have a lake. `outbox` opens the outbox's own database for each request, because
    requests are rare.
    """

    journal: Journal
    runs: RunDirectory
    forks: Forks
    operations: Handlers = field(default_factory=Handlers)
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
        """Whether the server is shutting down: open streams get a goaway, new ones a 503."""
        return self.draining.is_set()


def _record(file: ColdFile) -> RunRecord:
    head = Head(last_seq=file.last_seq, closed_seq=file.last_seq)
    return RunRecord(run_id=file.run_id, meta=file.meta, head=head, opened_at_ms=0, is_reaped=True)
