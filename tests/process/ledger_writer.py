"""A process that changes every ledger repeatedly until it is killed."""

import sys
from itertools import count
from pathlib import Path

import anyio

from tape.compose import aconnect
from tape.core.effect import Compensation
from tape.core.run_state import RunStatus
from tape.sdk.nouns.node import AsyncNode
from tests.process.lifetime import end_with_parent
from tests.process.log import Log, Op, now_ns


async def run(url: str, log: Path) -> None:
    records = Log(log)
    async with aconnect(url) as node:
        for number in count():
            await change_all(node, f"{now_ns()}")
            records.write(Op(now_ns(), number, "ok"))


async def change_all(node: AsyncNode, name: str) -> None:
    run_id = (await node.runs.begin("books", invocation=name, owner="w")).run.run_id
    await node.budgets.set(run_id, 1)
    await node.budgets.reserve(run_id, "r", 0.5)
    effect = await node.effects.begin(run_id, "wire", compensation=Compensation(kind="undo"))
    await node.effects.complete(run_id, effect.idempotency_key)
    await node.gates.wait(run_id, "gate")
    await node.gates.send(run_id, "gate", name)
    await node.values.set("books", "n", name)
    await node.runs.end(run_id, RunStatus.FAILED)
    held = (await node.obligations.claim(run_id, 1, "d")).obligation
    await node.obligations.resolve(run_id, 1, attempt=held.claim.attempt)


if __name__ == "__main__":
    end_with_parent()
    anyio.run(run, sys.argv[1], Path(sys.argv[2]))
