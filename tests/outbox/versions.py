"""One version of a handler in a process of its own, and what time does to it."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tape.core.outbox import RetryPolicy, Subscription
from tape.core.task import ClaimRequest, Outcome, Settlement, Task
from tape.outbox.database import Database
from tape.store.outbox.deliveries import Deliveries
from tape.store.outbox.versions import HandlerVersions
from tests.outbox.places import Place

NAME = "test.seen"
WANT = ClaimRequest(owner="me", reaction_ids=(NAME,), lease=timedelta(minutes=1))


class Running:
    """One version of the handler test.seen, by the types it takes."""

    def __init__(self, database: Database, *types: str, attempts: int = 6, **fields: Any) -> None:
        handler = Subscription(
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
        return (await self.deliveries.claim(WANT)).tasks

    async def claimed(self) -> list[str]:
        return [task.type for task in await self.tasks()]

    async def settle(self, task: Task, outcome: Outcome) -> object:
        """None if the attempt was the newest one."""
        (answer,) = await self.deliveries.settle([Settlement(task.claim, outcome)])
        return answer


async def lapse(place: Place) -> None:
    """Every lease and every wait ends."""
    await place.run(f"UPDATE {place.outbox}_deliveries SET next_attempt_at = {place.long_ago}")


async def silence(place: Place, running: Running) -> None:
    """A version has not been seen for long."""
    table = "core.event_handlers" if place.name == "postgres" else "core_event_handlers"
    await place.run(f"UPDATE {table} SET seen_at = {place.long_ago} WHERE version = '{running.version}'")
