"""The rows of an outbox for its operator: list, replay, hand over, retain, partition."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Final
from uuid import UUID

from tape.core.errors import UsageError
from tape.core.outbox import OutboxRetention, OutboxStatus, check_generation
from tape.core.outbox_record import DeliveryState, OutboxDetail, OutboxRecord, OutboxStats, RetentionResult
from tape.store import caller_connection
from tape.store.clock import now_ms
from tape.store.connection import Row
from tape.store.outbox.database import OutboxDatabase
from tape.store.outbox.event import event_fields
from tape.telemetry import log

FILE: Final = "outbox_table.sql"
PAGE: Final = 1_000
EVENT_COLUMNS: Final = 12
ANY_GENERATION: Final = -1
LAST: Final = (1 << 63) - 1
MONTHS: Final = 3  # partitions that are created ahead
_MS: Final = timedelta(milliseconds=1)
_STATS: Final = [each.name for each in fields(OutboxStats) if each.name != "advice"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFilter:
    """Selects rows of an outbox; a field that is left out selects any."""

    status: OutboxStatus | None = None
    event_type: str = ""
    generation: int = ANY_GENERATION
    handler_name: str = ""


ALL: Final = RowFilter()


class OutboxTable:
    """All rows of an outbox. Those that failed are its dead letters."""

    def __init__(self, database: OutboxDatabase) -> None:
        self._database = database

    async def is_there(self) -> bool:
        """Whether the tables of the outbox exist."""
        async with self._database.own() as connection:
            ((found,),) = await self._run(connection, "is_there")
        return bool(found)

    async def listed(self, which: RowFilter = ALL, limit: int = 50, before: int = LAST) -> list[OutboxRecord]:
        """The newest first, those before a position."""
        status = "" if which.status is None else which.status.value
        asked = {"status": status, "event_type": which.event_type, "generation": which.generation}
        async with self._database.own() as connection:
            page = await self._run(connection, "page", before=before, most=limit, **asked)
            return [_record(row) for row in await self._run(connection, "rows", ids=_ids(page))]

    async def find(self, event_id: UUID) -> OutboxDetail | None:
        async with self._database.own() as connection:
            found = await self._run(connection, "rows", ids=_ids([(str(event_id),)]))
            states = await self._run(connection, "deliveries", event_id=str(event_id))
        return OutboxDetail(row=_record(found[0]), deliveries=tuple(map(_delivery, states))) if found else None

    async def replay(self, event_ids: Sequence[UUID], generation: int, replayed_by: str) -> list[UUID]:
        """Restarts rows that have ended, and returns their ids; a handler that succeeded before does not run again."""
        ids = json.dumps(sorted(map(str, event_ids)))  # locked in this order
        asked = {"new_generation": check_generation(generation), "replayed_by": replayed_by, "ids": ids}
        async with self._database.own() as connection:
            rows = await self._run(connection, "replay", **asked)
            await self._restart(connection, rows)
        return [UUID(event_id) for (event_id,) in rows]

    async def replay_failed(self, which: RowFilter, generation: int, replayed_by: str) -> int:
        """Replays all selected dead letters, a page at a time."""
        asked = {"event_type": which.event_type, "generation": which.generation, "handler_name": which.handler_name}
        count = 0
        while True:
            async with self._database.own() as connection:
                rows = await self._run(connection, "ended", most=PAGE, **asked)
            if not rows:
                return count
            count += len(await self.replay([UUID(event_id) for (event_id,) in rows], generation, replayed_by))

    async def hand_over(self, retired: int, generation: int) -> int:
        """Moves the unfinished rows of a retired generation to another one, a page at a time."""
        asked = {"generation": check_generation(retired), "new_generation": check_generation(generation)}
        count = 0
        while retired != generation:
            async with self._database.own() as connection:
                rows = await self._run(connection, "hand_over", most=PAGE, **asked)
                await self._restart(connection, rows)
            count += len(rows)
            if len(rows) < PAGE:
                break
        return count

    async def retain(self, retention: OutboxRetention) -> RetentionResult:
        """Marks old rows, deletes rows that were marked long ago, and creates the partitions of coming months."""
        active, grace = retention.active // _MS, retention.grace // _MS
        handled = (retention.handled_active + retention.handled_grace) // _MS
        deleted = await self._in_pages("delete", active_ms=active, grace_ms=grace)
        marked = await self._in_pages("mark", active_ms=active)
        forgotten = await self._in_pages("forget_handled", handled_ms=handled)
        async with self._database.own() as connection:
            ((lacks_months, may_make_them),) = await self._run(connection, "lacks_months", months=MONTHS)
        if lacks_months and may_make_them:
            await self.divide()
        elif lacks_months:
            log.warning("outbox.months_missing", schema=self._database.schema)
        return RetentionResult(marked=marked, deleted=deleted, forgotten=forgotten)

    async def divide(self) -> list[str]:
        """Partitions the table by month, if it is not yet, and creates the partitions of coming months."""
        self._database.steps.check_partitions()
        async with self._database.own() as connection:
            hindrances = [name for (name,) in await self._run(connection, "undividable")]
            if hindrances:
                raise UsageError(f"a divided outbox cannot carry {', '.join(hindrances)}; remove it first")
            return [name for (name,) in await self._run(connection, "divide", months=MONTHS)]

    async def stats(self) -> OutboxStats:
        async with self._database.own() as connection:
            (row,) = await self._run(connection, "stats")
        return OutboxStats(**dict(zip(_STATS, row, strict=True)))

    async def _in_pages(self, name: str, **asked: int) -> int:
        count, found = 0, PAGE
        while found == PAGE:
            async with self._database.own() as connection:
                rows = await self._run(connection, name, most=PAGE, **asked)
                if name == "delete":
                    await self._run(connection, "delete_deliveries", ids=_ids(rows))
            found = len(rows)
            count += found
        return count

    async def _restart(self, connection: object, rows: Sequence[Row]) -> None:
        """Deletes the deliveries of rows and notifies the handlers that may take them now."""
        await self._run(connection, "delete_deliveries", ids=_ids(rows))
        await self._run(connection, "announce", ids=_ids(rows))

    async def _run(self, connection: object, name: str, **asked: object) -> list[Row]:
        return await caller_connection.execute(
            connection, FILE, name, {"now_ms": now_ms(), **asked}, self._database.schema
        )


def _ids(rows: Sequence[Row]) -> str:
    return json.dumps([event_id for (event_id,) in rows])


def _record(row: Row) -> OutboxRecord:
    generation, channel, status, attempts, error, history, first_failed_at, deleted_at, position = row[EVENT_COLUMNS:]
    return OutboxRecord(
        **event_fields(row[:EVENT_COLUMNS]), generation=generation, channel=channel, status=OutboxStatus(status),
        attempts=attempts, last_error=error, failure_history=tuple(json.loads(history)),
        first_failed_at_ms=first_failed_at, deleted_at_ms=deleted_at, position=position,
    )  # fmt: skip


def _delivery(row: Row) -> DeliveryState:
    handler_name, status, attempts, error, owner = row
    return DeliveryState(
        handler_name=handler_name, status=OutboxStatus(status), attempts=attempts, last_error=error, lease_owner=owner
    )
