"""Operations of the outbox: its rows are listed, shown and replayed, and old ones deleted."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from tape.core.errors import UsageError
from tape.core.outbox import OutboxRetention, OutboxStatus
from tape.core.outbox_record import OutboxDetail, OutboxRecord, OutboxStats, RetentionResult
from tape.operations.operation import Access, Operation, OperationRequest, PageRequest, Repeat, Scope, Shape

ROWS: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOutbox(PageRequest[OutboxRecord]):
    """Rows of the outbox, the newest first: all, or those with one status, of one type or of one generation."""

    status: OutboxStatus | None = None
    event_type: str = ""
    generation: int | None = None
    limit: int = ROWS


@dataclass(frozen=True, slots=True, kw_only=True)
class GetOutboxEvent(OperationRequest[OutboxDetail]):
    """A row of the outbox, with each of its deliveries."""

    event_id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class GetOutboxStats(OperationRequest[OutboxStats]):
    """How many rows wait and for how long, how long deliveries take, and what to do about exceeded limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedOutbox:
    """How many rows are pending again."""

    replayed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOutbox(OperationRequest[ReplayedOutbox]):
    """Delivers ended rows again, except to handlers that have handled them: the named ones, or selected dead letters.

    Without a generation it is that of the process at the outbox, TAPE_GENERATION.
    """

    event_ids: tuple[UUID, ...] = ()
    event_type: str = ""
    handler_name: str = ""
    from_generation: int | None = None
    generation: int | None = None
    replayed_by: str = "operator"

    def check(self) -> None:
        if self.event_ids and (self.event_type or self.handler_name or self.from_generation is not None):
            raise UsageError("name events, or a type, a handler or a generation, not both")


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOverRows:
    """How many rows belong to another generation now."""

    handed_over: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOverOutbox(OperationRequest[HandedOverRows]):
    """Moves the rows of a retired generation that have not ended to another one, by default TAPE_GENERATION."""

    retired: int
    generation: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetainOutbox(OperationRequest[RetentionResult], OutboxRetention):
    """Marks old rows that have ended, and deletes those that were marked for the grace period."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MadePartitions:
    """The partitions that were made."""

    made: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionOutbox(OperationRequest[MadePartitions]):
    """Partitions the table of the outbox by month, if it is not yet, and makes the partitions of coming months."""


OPERATIONS: Final = (
    Operation("outbox.list", ListOutbox, Access.READ, Scope.OUTBOX, Repeat.SAFE, Shape.PAGE),
    Operation("outbox.get", GetOutboxEvent, Access.READ, Scope.OUTBOX, Repeat.SAFE),
    Operation("outbox.stats", GetOutboxStats, Access.READ, Scope.OUTBOX, Repeat.SAFE),
    Operation("outbox.replay", ReplayOutbox, Access.WRITE, Scope.OUTBOX, Repeat.AGAIN),
    Operation("outbox.hand-over", HandOverOutbox, Access.WRITE, Scope.OUTBOX, Repeat.AGAIN),
    Operation("outbox.retain", RetainOutbox, Access.WRITE, Scope.OUTBOX, Repeat.AGAIN),
    Operation("outbox.partition", PartitionOutbox, Access.WRITE, Scope.OUTBOX, Repeat.SAME),
)
