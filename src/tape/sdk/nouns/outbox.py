"""The outbox, as a program of its operator looks at and replays it."""

from collections.abc import Sequence
from dataclasses import fields
from uuid import UUID

from tape.core.outbox import OutboxRetention, OutboxStatus
from tape.core.outbox_record import OutboxDetail, OutboxRecord, OutboxStats, RetentionResult
from tape.core.page import Page
from tape.operations.ledgers import Ledgers
from tape.operations.outbox import (
    ROWS,
    GetOutboxEvent,
    GetOutboxStats,
    HandOverOutbox,
    ListOutbox,
    ReplayOutbox,
    RetainOutbox,
)


class Outbox:
    """The rows of the outbox beside a store, or of the one that TAPE_OUTBOX_URL names."""

    def __init__(self, ledgers: Ledgers) -> None:
        self._ledgers = ledgers

    async def list(
        self,
        status: OutboxStatus | None = None,
        *,
        event_type: str = "",
        generation: int | None = None,
        limit: int = ROWS,
        cursor: str = "",
    ) -> Page[OutboxRecord]:
        """A page of rows, the newest first: all, or those with one status, of one type or of one generation."""
        request = ListOutbox(status=status, event_type=event_type, generation=generation, limit=limit, cursor=cursor)
        return await self._ledgers.call(request)

    async def get(self, event_id: UUID) -> OutboxDetail:
        """A row, with each of its deliveries."""
        return await self._ledgers.call(GetOutboxEvent(event_id=event_id))

    async def stats(self) -> OutboxStats:
        """How many rows wait and for how long, and how long deliveries take."""
        return await self._ledgers.call(GetOutboxStats())

    async def replay(
        self,
        event_ids: Sequence[UUID] = (),
        *,
        event_type: str = "",
        handler_name: str = "",
        from_generation: int | None = None,
        generation: int | None = None,
        replayed_by: str = "operator",
    ) -> int:
        """Delivers ended rows again: the named ones, or the selected dead letters; how many it were."""
        request = ReplayOutbox(
            event_ids=tuple(event_ids), event_type=event_type, handler_name=handler_name,
            from_generation=from_generation, generation=generation, replayed_by=replayed_by,
        )  # fmt: skip
        return (await self._ledgers.call(request)).replayed

    async def hand_over(self, retired: int, generation: int | None = None) -> int:
        """Moves the rows of a retired generation that have not ended to another one; how many it were."""
        return (await self._ledgers.call(HandOverOutbox(retired=retired, generation=generation))).handed_over

    async def retain(self, retention: OutboxRetention | None = None) -> RetentionResult:
        """Marks old rows that have ended, and deletes those that were marked for the grace period."""
        given = {} if retention is None else {each.name: getattr(retention, each.name) for each in fields(retention)}
        return await self._ledgers.call(RetainOutbox(**given))
