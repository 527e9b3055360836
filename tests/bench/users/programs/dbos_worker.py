"""A queue worker of DBOS, as its example "Queue Worker" writes it (docs.dbos.dev/python/examples/queue-worker).

Its workflows: one that notes its number, one of many steps, one that waits after its steps, and one that hangs there.
"""

import os
import threading
import time

from dbos import DBOS, DBOSConfig

from tests.bench.users.handled import note

APP = "bench-worker"
QUEUE = "bench-queue"


@DBOS.workflow(name="handle")  # type: ignore[untyped-decorator]
def handle(number: int) -> None:
    note(number)


@DBOS.step()  # type: ignore[untyped-decorator]
def step(number: int) -> int:
    return number


@DBOS.workflow(name="steps")  # type: ignore[untyped-decorator]
def steps(first: int, count: int) -> None:
    """Notes `first` before its first step, and `first + 1` after its last."""
    note(first)
    for number in range(count):
        step(number)
    note(first + 1)


@DBOS.step()  # type: ignore[untyped-decorator]
def arrive(number: int) -> None:
    note(number)


@DBOS.workflow(name="waiting")  # type: ignore[untyped-decorator]
def waiting(first: int, count: int) -> None:
    """Takes its steps, notes `first`, waits for a message, and notes `first + 1`."""
    for number in range(count):
        step(number)
    arrive(first)
    DBOS.recv("go", timeout_seconds=600)
    note(first + 1)


@DBOS.step()  # type: ignore[untyped-decorator]
def hang(number: int) -> None:
    """Notes its number and never ends, except in the process that comes after."""
    if os.environ.get("HANGS"):
        note(number)
        time.sleep(3600)


@DBOS.workflow(name="hanging")  # type: ignore[untyped-decorator]
def hanging(first: int, count: int) -> None:
    for number in range(count):
        step(number)
    hang(first)
    note(first + 1)


def main() -> None:
    config: DBOSConfig = {
        "name": APP,
        "application_version": "1",
        "system_database_url": os.environ["DBOS_SYSTEM_DATABASE_URL"],
        # Processes that share a queue need ids of their own (docs.dbos.dev/python/tutorials/queue-tutorial).
        "executor_id": os.environ["DBOS_EXECUTOR"],
        "run_admin_server": False,  # several processes cannot share its port
        "log_level": "WARNING",
    }
    DBOS(config=config)
    DBOS.launch()
    DBOS.register_queue(QUEUE)
    threading.Event().wait()


if __name__ == "__main__":
    main()
