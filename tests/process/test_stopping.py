"""SIGTERM ends a worker within its grace, whatever its handlers do."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from tape.compose import open_store
from tape.core.codec import JsonValue
from tape.core.event import Event
from tape.core.task import Task, TaskStatus
from tests.contract.events import append
from tests.contract.reactions import tasks
from tests.deadlines import DEADLINE_S
from tests.process.processes import ROOT, until
from tests.servers import forked
from tests.servers.forked import Forked

GRACE_S = "0.5"


@contextmanager
def worker(url: str, handler: str, *given: str, grace_s: str = GRACE_S) -> Iterator[Forked]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TAPE_GRACE": grace_s}
    with Path(os.devnull).open("wb") as nothing:
        process = forked.start(
            "tests.process.hung_worker", [url, handler, *given], folder=ROOT, environment=environment,
            output=nothing.fileno(), errors=nothing.fileno(),
        )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A store with an event whose handler writes its process's id before it hangs."""
    place = f"sqlite:///{tmp_path / 'tape.db'}"

    async def publish() -> None:
        async with open_store(place) as store:
            payload: JsonValue = {"pid": str(tmp_path / "pid"), "hangs": True}
            await append(store, Event(run_id="r1", payload=payload, subject="/a/b"))

    anyio.run(publish)
    return place


def found(url: str) -> list[Task]:
    async def look() -> list[Task]:
        async with open_store(url) as store:
            return await tasks(store)

    return anyio.run(look)


def has_begun(tmp_path: Path) -> Callable[[], bool]:
    return lambda: (tmp_path / "pid").exists()


@pytest.mark.parametrize("handler", ["in_thread", "in_loop"])
def test_a_worker_whose_handler_hangs_ends_within_its_grace(url: str, tmp_path: Path, handler: str) -> None:
    with worker(url, handler) as process:
        until(has_begun(tmp_path), "a handler that hangs")
        process.send_signal(signal.SIGTERM)
        status = process.wait(DEADLINE_S)

    (task,) = found(url)
    assert status == 128 + signal.SIGTERM and task.status is TaskStatus.CLAIMED


def test_a_thread_that_was_left_does_not_keep_the_process_alive(url: str, tmp_path: Path) -> None:
    with worker(url, "in_thread", "0.2") as process:
        until(lambda: any(task.status is TaskStatus.DLQ for task in found(url)), "the end of the attempt")
        process.send_signal(signal.SIGTERM)
        status = process.wait(DEADLINE_S)

    assert status == 0


def test_a_handler_that_ignores_cancellation_does_not_keep_the_process_alive(url: str) -> None:
    with worker(url, "without_end", "0.2", grace_s=str(DEADLINE_S)) as process:
        until(lambda: any(task.status is TaskStatus.DLQ for task in found(url)), "the end of the attempt")
        process.send_signal(signal.SIGTERM)
        status = process.wait(DEADLINE_S)

    assert status == 0


def test_a_worker_with_once_ends_although_a_handler_ignores_cancellation(url: str) -> None:
    with worker(url, "without_end", "0.2", "once") as process:
        status = process.wait(DEADLINE_S)

    (task,) = found(url)
    assert status == 0 and task.status is TaskStatus.DLQ


@pytest.mark.parametrize("ending", [(signal.SIGTERM,), (signal.SIGTERM, signal.SIGTERM), (signal.SIGKILL,)])
def test_a_handler_in_a_process_ends_with_its_worker(url: str, tmp_path: Path, ending: tuple[signal.Signals]) -> None:
    with worker(url, "in_process") as process:
        until(has_begun(tmp_path), "a handler that hangs")
        for each in ending:
            process.send_signal(each)
        process.wait(DEADLINE_S)

        until(lambda: not is_alive(tmp_path / "pid"), "the end of the handler's process")


def is_alive(pid: Path) -> bool:
    """Whether it runs; a zombie does not."""
    try:
        status = Path(f"/proc/{pid.read_text()}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
