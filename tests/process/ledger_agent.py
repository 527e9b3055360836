"""A process that works on a run as a durable function does, and can be killed at a step."""

import os
import signal
import sys
from argparse import ArgumentParser, Namespace
from datetime import timedelta
from pathlib import Path

import anyio

from tape.compose import aconnect
from tape.core.effect import EffectStatus
from tape.core.run_state import RunStatus
from tape.sdk.nouns.node import AsyncNode
from tests.deadlines import DEADLINE_S
from tests.process.lifetime import end_with_parent

LEASE = timedelta(seconds=1)
STEPS = ("decided", "intended", "done", "confirmed")


async def run(options: Namespace) -> None:
    async with aconnect(options.url) as node:
        await node.runs.begin("treasury", "ann", "s", "sweep")
        with anyio.fail_after(DEADLINE_S):
            begun = await node.runs.take(await node.runs.newest("treasury", "ann", "s"), options.owner, LEASE)
            while not begun.is_acquired and begun.run.is_active:
                await anyio.sleep(0.05)
                begun = await node.runs.take(begun.run.run_id, options.owner, LEASE)
        if begun.run.is_active:
            await sweep(node, begun.run.run_id, begun.run.claim.attempt, options)


async def sweep(node: AsyncNode, run_id: str, fence: int, options: Namespace) -> None:
    """Decides, wires the money and ends the run, each once, however often it is restarted."""
    decision = await node.decisions.record(run_id, 0, model="m", response={"amount": os.getpid()}, fence=fence)
    die_at(options, "decided")
    effect = await node.effects.begin(run_id, "wire", decision_index=0, fence=fence)
    die_at(options, "intended")
    if effect.status is EffectStatus.PENDING:
        wire(options.bank, effect.idempotency_key, decision.response_json)
        die_at(options, "done")
        await node.effects.complete(run_id, effect.idempotency_key, response="wired", fence=fence)
    die_at(options, "confirmed")
    await node.runs.end(run_id, RunStatus.TERMINAL, fence=fence)


def wire(bank: Path, key: str, order: str) -> None:
    """A bank that deduplicates by key, and fails if the same key has another order."""
    account = bank / key.replace("/", "_")
    try:
        with account.open("x") as paid:
            paid.write(order)
    except FileExistsError:
        assert account.read_text() == order, "the same wire was ordered with another amount"


def die_at(options: Namespace, step: str) -> None:
    if options.dies_at == step:
        os.kill(os.getpid(), signal.SIGKILL)


def parse(arguments: list[str]) -> Namespace:
    parser = ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("bank", type=Path)
    parser.add_argument("owner")
    parser.add_argument("--dies-at", choices=STEPS)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    end_with_parent()
    anyio.run(run, parse(sys.argv[1:]))
