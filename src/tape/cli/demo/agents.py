"""The producers of the demo: agents that plan trips and publish what they do, here or in another process."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Final

import anyio

from tape.bus.journal import Journal
from tape.compose import open_journal
from tape.core.errors import Unavailable
from tape.core.event import Event
from tape.core.run import RunMeta
from tape.work.child_process import run_child

BATCHES: Final = 20
BATCH: Final = 100
PAUSE_S: Final = (0.02, 0.06)

PLACES: Final = ("Oslo", "Porto", "Lyon", "Graz", "Bern", "Turin", "Malmö", "Gdańsk", "Cádiz", "Zürich")
TOOLS: Final = ("trains", "ferries", "weather", "hotels")
MODELS: Final = ("small", "large")
SCRIPT: Final = (
    ("question.asked", "user", "how do I get from {start} to {end}?"),
    ("plan.made", "plan", "{start} to {end}: look, compare, decide"),
    ("model.called", "model/{model}", "{model}: which way to {end}?"),
    ("tool.called", "tool/{tool}", "{tool} from {start} to {end}"),
    ("tool.answered", "tool/{tool}", "{tool}: {number} ways found"),
    ("note.taken", "memory", "{end} is cheapest on day {number}"),
    ("budget.counted", "budget", "{number} of 50 spent"),
    ("answer.given", "user", "take the one at {number}:15 to {end}"),
)
COSTS: Final[Mapping[str, tuple[float, float]]] = {"model.called": (0.001, 0.04), "tool.called": (0.0, 0.01)}


class Agent:
    """One producer with two runs. Its events depend only on its name."""

    def __init__(self, name: str, prefix: str) -> None:
        self.name = name
        self.run_ids = tuple(f"{prefix}{name}.{number}" for number in (1, 2))
        self._random = Random(name)
        self._steps = 0

    def next_event(self, sent_ns: int | None = None) -> Event:
        """Its next event; both runs follow the same script."""
        turn, which = divmod(self._steps, len(self.run_ids))
        self._steps += 1
        name, about, text = SCRIPT[turn % len(SCRIPT)]
        details = self._details()
        cost = round(self._random.uniform(*COSTS.get(name, (0.0, 0.0))), 4)
        return Event(
            run_id=self.run_ids[which],
            type=name,
            subject=f"/trips/{self.name}/{about.format(**details)}",
            payload={"text": text.format(**details), "cost": cost, "sent_ns": sent_ns},
        )

    def pause_s(self) -> float:
        return self._random.uniform(*PAUSE_S)

    def _details(self) -> dict[str, str]:
        start, end = self._random.sample(PLACES, 2)
        tool, model = self._random.choice(TOOLS), self._random.choice(MODELS)
        return {"start": start, "end": end, "tool": tool, "model": model, "number": str(self._random.randint(2, 23))}


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentWork:
    """Which agent publishes where, and until when; all processes of a machine share the clock."""

    url: str
    name: str
    prefix: str
    until_ns: int


async def produce(journal: Journal, work: AgentWork) -> Sequence[int]:
    """Publishes events one by one until the time is over, then a batch; returns how long each append took."""
    agent = Agent(work.name, work.prefix)
    acks = []
    for run_id in agent.run_ids:
        await journal.open_run(run_id, RunMeta(label=f"a trip planned by {work.name}"))
    while (sent_ns := time.monotonic_ns()) < work.until_ns:
        await journal.append(agent.next_event(sent_ns))
        acks.append(time.monotonic_ns() - sent_ns)
        await anyio.sleep(agent.pause_s())
    for _ in range(BATCHES):
        await journal.append([agent.next_event() for _ in range(BATCH)])
    for run_id in agent.run_ids:
        await journal.close_run(run_id)
    return acks


async def produce_elsewhere(work: AgentWork) -> Sequence[int]:
    """The same in another process."""
    command = [sys.executable, "-m", "tape.cli.demo.agents", work.url, work.name, work.prefix, str(work.until_ns)]
    done = await run_child(command)
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise Unavailable(f"producer {work.name} has failed ({reason})", "unknown")
    acks: list[int] = json.loads(done.stdout)
    return acks


async def _alone(work: AgentWork) -> Sequence[int]:
    async with open_journal(work.url) as journal:
        return await produce(journal, work)


if __name__ == "__main__":
    url, name, prefix, until_ns = sys.argv[1:]
    work = AgentWork(url=url, name=name, prefix=prefix, until_ns=int(until_ns))
    sys.stdout.write(json.dumps(anyio.run(partial(_alone, work))))
