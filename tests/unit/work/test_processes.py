"""Handlers in child processes: they answer like others, and are killed at their deadline."""

import os
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from tape.compose import open_store
from tape.core.event import Event
from tape.core.ports import Store
from tape.core.task import Task, TaskStatus
from tape.matcher.dispatcher import Dispatcher, WorkerConfig
from tape.work.handler import handler
from tests.contract.events import append
from tests.contract.reactions import reaction, tasks
from tests.deadlines import DEADLINE_S
from tests.process import hanging_handlers as hanging


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with open_store("memory://") as store:
        yield store


async def worked_off(store: Store, deadline_s: float, *events: Event) -> list[Task]:
    """The tasks of some events, after a worker has run once."""
    await store.reactions.register(reaction(dlq_after_n=1))
    await append(store, *events)
    made = handler(hanging.in_process, timeout=timedelta(seconds=deadline_s), is_process=True)
    with anyio.fail_after(DEADLINE_S):
        await Dispatcher(store, WorkerConfig(handlers={"rule": made}, owner="me")).run_once()
    return await tasks(store)


async def test_a_process_that_hangs_is_killed(store: Store, tmp_path: Path) -> None:
    pid = tmp_path / "pid"

    (task,) = await worked_off(store, 10, of_process(pid, hangs=True))

    assert task.status is TaskStatus.DLQ and task.last_error.endswith("longer than its deadline of 10 s")
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


async def test_a_process_answers_like_any_handler(store: Store, tmp_path: Path) -> None:
    pid = tmp_path / "pid"

    done, dead = await worked_off(store, DEADLINE_S, of_process(pid), of_process(pid, fails=True))

    assert int(pid.read_text()) != os.getpid()
    assert (done.status, dead.status, dead.last_error) == (TaskStatus.DONE, TaskStatus.DLQ, "it cannot be")


def of_process(pid: Path, *, hangs: bool = False, fails: bool = False) -> Event:
    return Event(run_id="r1", payload={"pid": str(pid), "hangs": hangs, "fails": fails}, subject="/a/b")
