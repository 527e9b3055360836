"""The parts of a server that its handlers use; compose puts them together."""

from dataclasses import dataclass, field
from datetime import timedelta

import anyio

from tape.bus.journal import Journal
from tape.core.lake import LakeQueries
from tape.core.ports import RunDirectory
from tape.core.search import Searches
from tape.operations.handlers import Handlers
from tape.runs.cold_runs import ColdRuns
from tape.runs.forks import Forks
from tape.runs.ledgers import LocalLedgers
from tape.server.sse.fan_out import FanOutGroups
from tape.server.sse.subscribers import Subscribers
from tape.telemetry import Meters


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One server over one journal.

    A bounded store deletes old entries, an ephemeral one ends with this process. `operations` runs every operation.
    `cold` is set if files keep what the store deletes, `ledgers` if it has any, `lake` and `searches` if it can have a
    lake.
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
    ledgers: LocalLedgers | None = None
    lake: LakeQueries | None = None
    searches: Searches | None = None
    is_bounded: bool = False
    is_ephemeral: bool = False
    reap_after: timedelta = timedelta(minutes=30)

    @property
    def is_draining(self) -> bool:
        """Whether the server is shutting down: open streams get a goaway, new ones a 503."""
        return self.draining.is_set()
