"""A node for tests: journal, ledgers and handlers in memory, driven by the test alone."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import Any, Final

from tape.bus.journal import Journal
from tape.compose import ledgers_of, run_journal
from tape.core.codec import JsonValue
from tape.core.errors import Unavailable, UsageError
from tape.core.event import Entry, Event
from tape.core.ports import DueCursor, Store
from tape.core.reaction import HandlerKind
from tape.core.task import ClaimRequest, Task, TaskStatus
from tape.core.timer import TimerStatus
from tape.matcher.dispatcher import Dispatcher, WorkerConfig
from tape.runs.effects import EFFECTS, IN_FLIGHT, OUTBOX
from tape.runs.lifecycle import DEBTS, LEASED, RUNS
from tape.runs.timers import TIMERS
from tape.sdk.durable.agent_job import Function
from tape.sdk.durable.agent_worker import AgentWorker
from tape.sdk.nouns.node import AsyncNode
from tape.testing.clock import START, Clock
from tape.testing.expecting import assert_entries
from tape.testing.faults import Faults, crashing
from tape.testing.store import open_store
from tape.work.collected import Collected, collected

OWNER: Final = "test"
TRIES: Final = 100
MAX_TASKS: Final = 100_000
TICK: Final = timedelta(milliseconds=1)
FAR_MS: Final = 1 << 53
WAITING: Final = (
    (TIMERS.name, TimerStatus.SET),
    (RUNS.name, LEASED),
    (DEBTS.name, "due"),
    (EFFECTS.name, OUTBOX),
    (EFFECTS.name, IN_FLIGHT),
)
PASSES: Final = 10_000  # limit before the work is considered endless


class TestNode:
    """A complete node in which nothing happens by itself: the clock stands still and no handler runs.

    `run_due` runs what is due now. `advance` moves the clock and runs what becomes due on the way, each at its time.
    `quiesce` continues until nothing will become due.
    """

    __test__ = False  # pytest would collect a class of this name

    def __init__(
        self,
        store: Store,
        journal: Journal,
        clock: Clock,
        faults: Faults,
        reactions: Sequence[Collected],
        agents: Mapping[str, Function],
    ) -> None:
        self.journal = journal
        self.clock = clock
        self.faults = faults
        self.client = AsyncNode(ledgers_of(store, journal))
        self._store = store
        self._reactions = reactions
        self._local = [each for each in reactions if each.reaction.handler_kind is HandlerKind.TASK]
        self._agents = [AgentWorker(app=app, function=function, owner=OWNER) for app, function in agents.items()]
        self._published = 0

    async def publish(self, run_id: str, payload: JsonValue = None, **event: Any) -> Entry:
        """Appends an event with a key, and retries while the store is unavailable."""
        self._published += 1
        built, key = Event(run_id=run_id, payload=payload, **event), f"test-{self._published}"
        for _ in range(TRIES):
            with suppress(Unavailable):
                return (await self.journal.append(built, key=key, open=True))[0]
        raise Unavailable(f"{TRIES} faults were injected in a row")

    async def run_due(self) -> int:
        """Matches entries and runs due handlers and agents, repeatedly; returns how many."""
        done = 0
        while some := await self._dispatched() + await self._served():
            done += some
        return done

    async def advance(self, by: timedelta) -> int:
        """Moves the clock and runs what becomes due on the way; returns how many."""
        until = self.clock.now + by
        done = await self.run_due()
        while (due := await self._next_due()) is not None and due <= until:
            done += await self._run_at(due)
        return done + await self._run_at(until)

    async def quiesce(self) -> int:
        """Runs until nothing is left, moving the clock as needed; returns how many."""
        done = await self.run_due()
        for _ in range(PASSES):
            due = await self._next_due()
            if due is None:
                return done
            done += await self._run_at(due)
        raise UsageError(f"there is work at {PASSES:,} moments and no end of it; use advance() for what repeats itself")

    async def entries(
        self, pattern: str | None = None, *, run_id: str | None = None, where: str | None = None
    ) -> list[Entry]:
        """The journal's entries in order; without a pattern only those of users."""
        subject = pattern or (None if run_id else "/**")
        stream = self.journal.stream(subject=subject, run_id=run_id, where=where, follow=False)
        return [entry async for entry in stream if pattern or run_id or entry.kind == "event"]

    async def assert_entries(
        self, expected: Sequence[Mapping[str, Any]], pattern: str | None = None, *, run_id: str | None = None
    ) -> None:
        """Fails unless the entries of a pattern or a run are these; only named fields are compared."""
        assert_entries(await self.entries(pattern, run_id=run_id), expected)

    async def tasks(self, reaction_id: str = "") -> list[Task]:
        """All tasks, in the order of their source entries."""
        found = await self._store.tasks.listed(reaction_id=reaction_id, limit=MAX_TASKS)
        return sorted(found, key=lambda task: (task.source_global_seq, task.reaction_id))

    async def assert_no_dead(self) -> None:
        """Fails with the dead tasks and their errors, if there are any."""
        dead = [task for task in await self.tasks() if task.status is TaskStatus.DLQ]
        named = [f"{task.reaction_id} of entry {task.source_global_seq}: {task.last_error}" for task in dead]
        if named:
            raise AssertionError("\n".join([f"{len(named)} tasks are dead:", *named]))

    async def replay_dead(self) -> int:
        """Replays every dead task; returns how many."""
        dead = [task.task_id for task in await self.tasks() if task.status is TaskStatus.DLQ]
        return len(await self._store.tasks.replay(dead))

    async def _run_at(self, moment: datetime) -> int:
        self.clock.advance(max(moment - self.clock.now, timedelta(0)))
        return await self.run_due()

    async def _dispatched(self) -> int:
        config = WorkerConfig(
            handlers={each.reaction.reaction_id: crashing(each.handler, self.faults) for each in self._local},
            reactions=tuple(each.reaction for each in self._reactions),
            owner=OWNER,
        )
        return await Dispatcher(self._store, config, self.journal).run_once()

    async def _served(self) -> int:
        return sum([await agents.run_once(self.client) for agents in self._agents])

    async def _next_due(self) -> datetime | None:
        """When the next work becomes due."""
        waits = [await self._next_task(), *[await self._next_cell(*waiting) for waiting in WAITING]]
        known = [wait for wait in waits if wait is not None]
        return self.clock.now + min(known) if known else None

    async def _next_task(self) -> timedelta | None:
        handlers = [each.reaction.reaction_id for each in self._local]
        if not handlers:
            return None
        wait = (await self._store.tasks.claim(ClaimRequest(owner=OWNER, limit=1, reaction_ids=handlers))).more_after
        return None if wait is None else -(-wait // TICK) * TICK  # the clock must move by at least one tick

    async def _next_cell(self, ledger: str, status: str) -> timedelta | None:
        """The next due time of a ledger; work that is due now and left over belongs to no agent here."""
        if not self._agents:
            return None
        now = self.clock.now_ms()
        found = await self._store.cells.due(ledger, status, FAR_MS, 1, DueCursor(now + 1))
        return next(((cell.due_at_ms - now) * TICK for cell in found.values() if cell.due_at_ms is not None), None)


@asynccontextmanager
async def open_node(
    *handlers: Callable[..., Any],
    agents: Mapping[str, Function] | None = None,
    start: datetime = START,
    faults: Faults | None = None,
) -> AsyncIterator[TestNode]:
    """An empty node with these handlers, or with all that decorators have collected.

    `agents` are durable functions by application.
    """
    clock, given = Clock(start), faults or Faults()
    async with open_store(clock, given) as store, run_journal(store) as journal:
        yield TestNode(store, journal, clock, given, _chosen(handlers), agents or {})


def _chosen(handlers: Sequence[Callable[..., Any]]) -> list[Collected]:
    """The collected handlers of these functions, or all."""
    undecorated = set(handlers) - {each.handler.function for each in collected}
    if undecorated:
        names = ", ".join(sorted(function.__qualname__ for function in undecorated))
        raise UsageError(f"{names} handles nothing; decorate it with tape.on(...) first")
    return [each for each in collected if not handlers or each.handler.function in handlers]
