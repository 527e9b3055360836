"""One version of a handler, and helpers that let time pass."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tape.core.outbox import HandlerSubscription, RetryPolicy
from tape.core.task import ClaimRequest, Outcome, Settlement, Task
from tape.outbox.database import WakingOutboxDatabase
from tape.store.outbox.deliveries import Deliveries
from tape.store.outbox.versions import HandlerVersions
from tests.outbox.business_database import BusinessDatabase

NAME = "test.seen"
CLAIM = ClaimRequest(owner="me", reaction_ids=(NAME,), lease=timedelta(minutes=1))


class HandlerVersion:
    """One version of the handler test.seen, by the types it takes."""

    def __init__(self, database: WakingOutboxDatabase, *types: str, attempts: int = 6, **fields: Any) -> None:
        handler = HandlerSubscription(
            handler_name=NAME,
            generation=0,
            channel="outbox_gen_0",
            event_types=types,
            max_attempts=attempts,
            **fields,
        )
        self.versions = HandlerVersions(database, [handler])
        self.deliveries = Deliveries(database, [handler], {NAME: RetryPolicy(retries=attempts - 1)})
        self.version = handler.version

    async def tasks(self) -> Sequence[Task]:
        return (await self.deliveries.claim(CLAIM)).tasks

    async def claimed(self) -> list[str]:
        return [task.type for task in await self.tasks()]

    async def settle(self, task: Task, outcome: Outcome) -> object:
        """None if the attempt was the newest one."""
        (answer,) = await self.deliveries.settle([Settlement(task.claim, outcome)])
        return answer


async def expire_leases(business: BusinessDatabase) -> None:
    """Ends every lease and every retry delay."""
    await business.run(f"UPDATE {business.outbox}_deliveries SET next_attempt_at = {business.long_ago}")


async def mark_unseen(business: BusinessDatabase, version: HandlerVersion) -> None:
    """Makes a version look unseen for a long time."""
    table = "core.event_handlers" if business.name == "postgres" else "core_event_handlers"
    await business.run(f"UPDATE {table} SET seen_at = {business.long_ago} WHERE version = '{version.version}'")
