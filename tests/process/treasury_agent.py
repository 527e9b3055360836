"""A process that runs the treasury of the examples, and can be killed before or after any request."""

import os
import signal
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from tape.bus.journal import Journal
from tape.compose import open_backend
from tape.core.event import Entry
from tape.core.sequence import AppendRequest
from tape.runs.ledgers import LocalLedgers
from tape.sdk.durable.agent_worker import AgentWorker
from tape.sdk.durable.budgets import Budget
from tape.sdk.nouns.node import AsyncNode
from tests.deadlines import DEADLINE_S
from tests.process.lifetime import end_with_parent
from tests.process.processes import ROOT

if TYPE_CHECKING:
    import asyncio

LEASE = timedelta(seconds=1)


class MortalJournal(Journal):
    """A journal whose process dies at a request: before it is sent, or as soon as it is answered.

    Renewals of leases append no event and are not counted: how many there are depends on the machine.
    """

    def __init__(self, journal: Journal, step: int, when: str) -> None:
        self.__dict__.update(journal.__dict__)
        self.requests = 0
        self._step = step
        self._when = when

    def submit(self, request: AppendRequest) -> "asyncio.Future[Sequence[Entry]]":
        self.requests += bool(request.events)
        is_last = bool(request.events) and self.requests == self._step
        if is_last and self._when == "before":
            die()
        answer = super().submit(request)
        if is_last:
            answer.add_done_callback(die)
        return answer


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def run(options: Namespace) -> None:
    async with open_backend(options.url) as backend:
        journal = MortalJournal(backend.journal, options.step, options.when)
        node = AsyncNode(LocalLedgers(backend.store, journal))
        with anyio.fail_after(DEADLINE_S):
            await live(node, options.app, treasury(options.bank).treasury)
        if options.count:
            options.count.write_text(str(journal.requests))


async def live(node: AsyncNode, app: str, function: Any) -> None:
    """Begins or resumes the run, runs it, and approves when asked."""
    run_id = (await node.runs.begin(app)).run.run_id
    worker = AgentWorker(app=app, function=function, lease=LEASE, budget=Budget(usd=1))
    while (state := await node.runs.get(run_id)).is_active:
        if state.waiting_on_gate:
            await node.gates.send(run_id, state.waiting_on_gate, "yes", key=f"{run_id}-yes")
        if not await worker.run_once(node):
            await anyio.sleep(0.05)


def treasury(bank: str) -> Any:
    sys.path.insert(0, str(ROOT / "examples"))
    module = import_module("treasury")
    module.BANK = bank  # type: ignore[attr-defined]
    return module


def parse(arguments: list[str]) -> Namespace:
    parser = ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("bank")
    parser.add_argument("app")
    parser.add_argument("--step", type=int, default=0)
    parser.add_argument("--when", choices=("before", "after"))
    parser.add_argument("--count", type=Path)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    end_with_parent()
    anyio.run(run, parse(sys.argv[1:]))
