"""A worker of durable functions, as docs/runs.md writes it: `python -m … URL`.

Its functions, by the label `kind` of their run: one of many steps, one that waits after its steps, one that hangs
there. DBOS has the same ones in `dbos_worker`.
"""

import os
import sys
import time
from typing import Any

import tape
from tests.bench.users.handled import note


@tape.effect()
def step(number: int) -> int:
    return number


@tape.effect()
def arrive(number: int) -> None:
    note(number)


@tape.effect()
def hang(number: int) -> None:
    """Notes its number and never ends, except in the process that comes after."""
    if os.environ.get("HANGS"):
        note(number)
        time.sleep(3600)


def work(run: Any) -> None:
    kind, first, count = run.labels["kind"], int(run.labels["first"]), int(run.labels["count"])
    if kind in ("steps", "samples"):
        note(first)
    for number in range(count):
        if kind == "samples":
            tape.sample("step", lambda n=number: n)  # type: ignore[misc]
        else:
            step(number)
    if kind == "waiting":
        arrive(first)
        tape.gate("go")
    elif kind == "hanging":
        hang(first)
    note(first + 1)


if __name__ == "__main__":
    tape.run_agent("bench", work, sys.argv[1])
