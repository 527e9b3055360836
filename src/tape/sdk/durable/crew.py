"""Everybody that durable functions need: who runs them, who undoes, dispatches, and keeps the time."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypedDict

import anyio

from tape.core.claim import RUN_LEASE
from tape.core.run_state import RunState
from tape.sdk.durable.agent_job import AgentJob, Function
from tape.sdk.durable.budgets import Budget
from tape.sdk.durable.compensation_job import CompensationJob
from tape.sdk.durable.dispatch_job import Connector, DispatchJob
from tape.sdk.durable.outbox_waits import OutboxWaits
from tape.sdk.durable.timer_job import TimerJob
from tape.sdk.nouns.node import AsyncNode
from tape.work.deadline import DEADLINE
from tape.work.jobs import POLL, job_worker
from tape.work.shutdown import until_signal
from tape.work.worker import Worker


class CrewOptions(TypedDict, total=False):
    """What `run_agent` and `resume` accept beside the function; the deadline is that of a connector's call."""

    owner: str
    slots: int
    lease: timedelta
    budget: Budget | None
    connectors: Mapping[str, Connector]
    deadline: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """What a process does for the runs of an application, and under which name."""

    app: str | None
    function: Function
    owner: str = field(default_factory=lambda: f"agent-{os.urandom(8).hex()}")
    slots: int = 4
    lease: timedelta = RUN_LEASE
    budget: Budget | None = None
    connectors: Mapping[str, Connector] = field(default_factory=dict)
    deadline: timedelta = DEADLINE

    def agents(self, node: AsyncNode, waiting: OutboxWaits | None = None) -> AgentJob:
        return AgentJob(
            node, self.app, self.function, owner=self.owner, lease=self.lease, budget=self.budget, threads=self.slots,
            waiting=waiting,
        )  # fmt: skip

    def workers(self, node: AsyncNode, waiting: OutboxWaits | None = None) -> list[Worker]:
        return [
            job_worker(self.agents(node, waiting), slots=self.slots),
            job_worker(TimerJob(node, owner=self.owner), slots=self.slots),
            job_worker(DispatchJob(node, self.connectors, owner=self.owner, deadline=self.deadline), slots=self.slots),
            job_worker(CompensationJob(node, owner=self.owner), slots=self.slots),
        ]

    async def run_once(self, node: AsyncNode) -> int:
        """Does what is due now, and what that makes due; returns how many runs and other items that were.

        A run that waits for an effect which nobody here can carry out now is left: who takes it next waits on.
        """
        waiting = OutboxWaits()
        agents, *others = workers = self.workers(node, waiting)
        before = -1
        while (done := _handled(workers)) > before:
            before = done
            is_over = anyio.Event()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_to_its_end, agents, is_over)
                await _beside(others, waiting, is_over)
        return done

    async def run_until_signal(self, node: AsyncNode) -> int:
        """Goes on until a signal says to leave, and then finishes what was begun."""
        workers = self.workers(node)

        async def run() -> None:
            async with anyio.create_task_group() as tasks:
                for each in workers:
                    tasks.start_soon(each.run)

        def stop() -> None:
            for each in workers:
                each.stop()

        await until_signal(run, stop)
        return _handled(workers)

    async def resume(self, node: AsyncNode, run_id: str) -> RunState:
        return await self.agents(node).resume(run_id)


async def _to_its_end(agents: Worker, is_over: anyio.Event) -> None:
    await agents.run_once()
    is_over.set()


async def _beside(others: Sequence[Worker], waiting: OutboxWaits, is_over: anyio.Event) -> None:
    """Does what the functions make due; when that is nothing and all of them wait, they have waited enough."""
    is_last = False
    while not is_last:
        is_last = is_over.is_set()
        begun, done = waiting.begun, _handled(others)
        was_all = waiting.all_waiting
        async with anyio.create_task_group() as tasks:
            for each in others:
                tasks.start_soon(each.run_once)
        if was_all and waiting.all_waiting and (begun, done) == (waiting.begun, _handled(others)):
            waiting.leave()
        with anyio.move_on_after(POLL.total_seconds()):
            await is_over.wait()


def _handled(workers: Sequence[Worker]) -> int:
    return sum(each.handled for each in workers)
