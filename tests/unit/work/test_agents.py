"""Agents: a match begins one run, within the limits of its reaction, caused by the entry that matched."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import anyio
import pytest

from tape.bus.journal import Journal
from tape.compose import open_store, run_journal
from tape.core.ports import Store
from tape.core.reaction import HandlerKind, Reaction
from tape.core.run_state import RunState, RunStatus
from tape.core.task import TaskStatus
from tape.matcher.agents import invocation
from tape.matcher.dispatcher import Dispatcher, WorkerConfig
from tape.operations.runs import EndRun, ListRunsToRecover
from tape.runs.ledgers import LocalLedgers
from tests.contract.reactions import expire, publish, tasks
from tests.deadlines import DEADLINE_S


class Node(NamedTuple):
    """A store with its journal and ledgers."""

    store: Store
    journal: Journal
    ledgers: LocalLedgers

    async def begun(self, count: int) -> list[RunState]:
        """The runs, when that many have begun."""
        while True:
            found = list(await self.ledgers.call(ListRunsToRecover(app="followup")))
            if len(found) >= count:
                return found
            await anyio.sleep(0.01)

    def dispatcher(self) -> Dispatcher:
        return Dispatcher(self.store, WorkerConfig(handlers={}), journal=self.journal)


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    async with open_store("memory://") as store, run_journal(store) as journal:
        yield Node(store, journal, LocalLedgers(store, journal))


@asynccontextmanager
async def matching(node: Node) -> AsyncIterator[None]:
    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as group:
            group.start_soon(node.dispatcher().match)
            yield
            group.cancel_scope.cancel()


def agent(reaction_id: str = "rule", pattern: str = "/a/**", max_concurrency: int = 1) -> Reaction:
    return Reaction(
        reaction_id=reaction_id,
        subject_pattern=pattern,
        handler_kind=HandlerKind.AGENT,
        agent_app="followup",
        max_concurrency=max_concurrency,
    )


async def test_a_match_begins_a_run_and_leaves_no_task(node: Node) -> None:
    await node.store.reactions.register(agent())
    await publish(node.store, 1)

    async with matching(node):
        (run,) = await node.begun(1)

    assert run.run_id == invocation("followup", "rule", 2).run_id
    assert run.of.invocation == "react-rule-2" and run.status is RunStatus.RUNNABLE
    assert await tasks(node.store) == []


async def test_a_match_that_is_handled_again_begins_no_second_run(node: Node) -> None:
    await node.store.reactions.register(agent())
    await publish(node.store, 1)

    for _ in range(3):
        async with matching(node):
            await node.begun(1)
        await expire(node.store)
    await node.dispatcher().run_once()

    assert len(await node.ledgers.call(ListRunsToRecover(app="followup"))) == 1
    assert await tasks(node.store) == []


async def test_no_more_runs_are_under_way_than_the_reaction_allows(node: Node) -> None:
    await node.store.reactions.register(agent(max_concurrency=2))
    await publish(node.store, 3)

    async with matching(node):
        one, _ = await node.begun(2)
        before = await node.ledgers.call(ListRunsToRecover(app="followup"))
        await node.ledgers.call(EndRun(run_id=one.run_id, status=RunStatus.TERMINAL))
        after = await node.begun(2)

    assert len(before) == 2
    assert {run.of.invocation for run in after} > {"react-rule-4"} - {one.of.invocation}


async def test_a_run_is_caused_by_the_entry_that_started_it(node: Node) -> None:
    await node.store.reactions.register(agent())
    await publish(node.store, 1)

    async with matching(node):
        (run,) = await node.begun(1)
    (entry,) = [entry async for entry in node.journal.stream(run_id=run.run_id, follow=False)]

    assert (entry.cause, entry.depth) == (2, 1)


async def test_agents_that_start_each_other_come_to_an_end(node: Node) -> None:
    await node.store.reactions.register(agent("rule", "/tape/run/runnable/**", max_concurrency=100))
    await node.store.reactions.register(agent("first"))
    await publish(node.store, 1)

    with anyio.fail_after(DEADLINE_S):
        await node.dispatcher().run_once()

    (dead,) = await tasks(node.store, status=TaskStatus.DLQ)
    assert "depth 16" in dead.last_error
    assert len(await node.ledgers.call(ListRunsToRecover(app="followup"))) == 16
