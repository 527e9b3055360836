"""Helpers of the tests of reactions and tasks."""

from collections.abc import Sequence
from datetime import timedelta

import anyio

from tape.core.event import Entry
from tape.core.ports import Store
from tape.core.reaction import Reaction
from tape.core.task import ClaimRequest, Done, Outcome, Settlement, Task
from tape.matcher.matcher import Matcher
from tape.store.postgres.store import PostgresStore
from tests.contract.events import append, make_event
from tests.deadlines import DEADLINE_S

LONG = timedelta(seconds=60)


def reaction(reaction_id: str = "rule", pattern: str = "/a/**", **options: object) -> Reaction:
    options = {"max_concurrency": 1_000, **options}
    return Reaction(reaction_id=reaction_id, subject_pattern=pattern, **options)  # type: ignore[arg-type]


async def match(store: Store) -> Matcher:
    """A matcher that has read the whole journal."""
    matcher = Matcher(store)
    await catch_up(matcher)
    return matcher


class RecordingSlots:
    """Slots that are always free, and record the tasks that were started."""

    def __init__(self, limit: int = 100, *names: str) -> None:
        self._request = ClaimRequest(owner="slots", limit=limit, reaction_ids=names or ("rule",))
        self.started: list[Task] = []

    async def wait_for_slots(self, count: int) -> None:
        return

    def reserve(self) -> ClaimRequest:
        return self._request

    def start(self, request: ClaimRequest, tasks: Sequence[Task]) -> None:
        self.started += tasks


async def catch_up(matcher: Matcher) -> None:
    with anyio.fail_after(DEADLINE_S):
        while await matcher.step():
            pass


async def repeatedly(matcher: Matcher, times: int) -> None:
    for _ in range(times):
        await matcher.step()


async def publish(store: Store, count: int, subject: str = "/a/b", run_id: str = "r1") -> Sequence[Entry]:
    return await append(store, *(make_event(run_id, n, subject=subject) for n in range(1, count + 1)))


async def tasks(store: Store, reaction_id: str = "", status: int = 0) -> list[Task]:
    """Tasks in the order of the entries they are for."""
    found = await store.tasks.listed(reaction_id=reaction_id, status=status, limit=100_000)
    return sorted(found, key=lambda task: (task.reaction_id, task.source_global_seq))


async def sources(store: Store, reaction_id: str = "", status: int = 0) -> list[int]:
    return [task.source_global_seq for task in await tasks(store, reaction_id, status)]


async def claim(store: Store, limit: int = 100, owner: str = "me", lease: timedelta = LONG) -> list[Task]:
    return list((await store.tasks.claim(ClaimRequest(owner=owner, limit=limit, lease=lease))).tasks)


async def settle(store: Store, task: Task, outcome: Outcome | None = None) -> object:
    """None, or why the claim is stale."""
    (answer,) = await store.tasks.settle([Settlement(task.claim, outcome or Done())])
    return answer


async def expire(store: Store) -> None:
    """Ends every lease and every retry delay now."""
    async with store.transaction() as tx:
        await tx.fetch("UPDATE tape_tasks SET lease_expires_at_ms = 1, next_attempt_at_ms = 1 WHERE status = 2", {})
        await tx.fetch("UPDATE tape_tasks SET next_attempt_at_ms = 1 WHERE status = 1", {})
        if isinstance(store, PostgresStore):
            await tx.fetch("UPDATE tape_page_claims SET lease_expires_at_ms = 1", {})
