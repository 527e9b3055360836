"""The worker of durable functions: runs them, fires their timers, dispatches and compensates their effects."""

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


class AgentOptions(TypedDict, total=False):
    """The options of `run_agent` and `resume`; `deadline` limits each call of a connector."""

    owner: str
    slots: int
    lease: timedelta
    budget: Budget | None
    connectors: Mapping[str, Connector]
    deadline: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentWorker:
    """Works on the runs of an application: one worker per job, all under one owner."""

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
        """Works on what is due now, and on what that makes due; returns how many runs and other items that were.

        A run that waits for an effect which this process cannot dispatch now is left for a later worker.
        """
        waiting = OutboxWaits()
        agents, *others = workers = self.workers(node, waiting)
        before = -1
        while (done := _handled(workers)) > before:
            before = done
            has_ended = anyio.Event()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_run_agents, agents, has_ended)
                await _run_others(others, waiting, has_ended)
        return done

    async def run_until_signal(self, node: AsyncNode) -> int:
        """Works until a signal, then finishes what has begun; returns how many items it handled."""
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


async def _run_agents(agents: Worker, has_ended: anyio.Event) -> None:
    await agents.run_once()
    has_ended.set()


async def _run_others(others: Sequence[Worker], waiting: OutboxWaits, has_ended: anyio.Event) -> None:
    """Works on what the functions make due; if all of them wait and nothing is due, interrupts them."""
    is_last = False
    while not is_last:
        is_last = has_ended.is_set()
        begun, done = waiting.begun, _handled(others)
        was_all = waiting.all_waiting
        async with anyio.create_task_group() as tasks:
            for each in others:
                tasks.start_soon(each.run_once)
        if was_all and waiting.all_waiting and (begun, done) == (waiting.begun, _handled(others)):
            waiting.leave()
        with anyio.move_on_after(POLL.total_seconds()):
            await has_ended.wait()


def _handled(workers: Sequence[Worker]) -> int:
    return sum(each.handled for each in workers)
