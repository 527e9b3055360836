"""What the gRPC procedures work with."""

from dataclasses import dataclass, field
from typing import Final

from tape.bus.journal import Journal
from tape.core.errors import UsageError
from tape.core.ids import RunId
from tape.core.ports import Store
from tape.core.run import Head
from tape.operations.handlers import Handlers
from tape.runs.ledgers import LocalLedgers
from tape.server.grpc.batches import Batches
from tape.server.sse.run_end import RunEndFrames
from tape.server.sse.subscribers import Subscribers
from tape.telemetry import Meters

MOST: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RpcContext:
    """One store, its journal, ledgers and operations, and the subscribers of streams; some stores have no ledgers."""

    store: Store
    journal: Journal
    ledgers: LocalLedgers
    operations: Handlers = field(default_factory=Handlers)
    subscribers: Subscribers = field(default_factory=Subscribers)
    batches: Batches = field(default_factory=Batches)
    meters: Meters = field(default_factory=Meters)
    has_ledgers: bool = True

    @property
    def run_ends(self) -> RunEndFrames:
        return RunEndFrames(self.store.runs, self.ledgers if self.has_ledgers else None)

    async def heads(self, run_ids: list[RunId]) -> dict[RunId, Head]:
        return dict(await self.store.runs.heads(run_ids))


def bounded(limit: int, usual: int) -> int:
    """A limit that was requested; 0 is the usual one."""
    if not 0 <= limit <= MOST:
        raise UsageError(f"a limit is 1 to {MOST:,}, or 0 for {usual}, not {limit}")
    return limit or usual
