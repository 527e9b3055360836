"""Everybody that durable functions need: who runs them, who undoes, dispatches, and keeps the time."""

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypedDict

import anyio

from tape.core.claim import RUN_LEASE
from tape.core.run_state import RunState
from tape.sdk.durable.agents import Agents, Function
from tape.sdk.durable.budgets import Budget
from tape.sdk.durable.compensating import Compensating
from tape.sdk.durable.dispatching import Connector, Dispatching
from tape.sdk.durable.timing import Timing
from tape.sdk.nouns.node import AsyncNode
from tape.work.rounds import Rounds


class CrewOptions(TypedDict, total=False):
    """What `run_agent` and `resume` accept beside the function."""

    owner: str
    slots: int
    lease: timedelta
    budget: Budget | None
    connectors: Mapping[str, Connector]


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

    def agents(self, node: AsyncNode) -> Agents:
        return Agents(
            node, self.app, self.function, owner=self.owner, lease=self.lease, budget=self.budget, threads=self.slots
        )

    def rounds(self, node: AsyncNode) -> list[Rounds[Any]]:
        return [
            Rounds(self.agents(node), slots=self.slots),
            Rounds(Timing(node, owner=self.owner), slots=self.slots),
            Rounds(Dispatching(node, self.connectors, owner=self.owner), slots=self.slots),
            Rounds(Compensating(node, owner=self.owner), slots=self.slots),
        ]

    async def run_once(self, node: AsyncNode) -> int:
        """Does what is due now, and what that makes due; how many runs and other errands that were."""
        rounds = self.rounds(node)
        before = -1
        while (done := sum(each.done for each in rounds)) > before:
            before = done
            async with anyio.create_task_group() as tasks:
                for each in rounds:
                    tasks.start_soon(each.run_once)
        return done

    async def run_until_told(self, node: AsyncNode) -> int:
        """Goes on until a signal says to leave, and then finishes what was begun."""
        rounds = self.rounds(node)
        async with anyio.create_task_group() as tasks:
            for each in rounds:
                tasks.start_soon(each.run)
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                async for _ in signals:
                    break
            for each in rounds:
                each.stop()
        return sum(each.done for each in rounds)

    async def resume(self, node: AsyncNode, run_id: str) -> RunState:
        return await self.agents(node).resume(run_id)
