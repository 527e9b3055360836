"""Ends, kills or suspends a server's process together with its children, by id."""

import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

import psutil

from tests.deadlines import DEADLINE_S


def end(server: psutil.Process) -> None:
    """Asks a server to finish now, and insists if it does not."""
    with suppress(psutil.NoSuchProcess):
        server.send_signal(signal.SIGINT)
        server.resume()  # a suspended one handles no signal
    if not _wait(lambda: is_gone(server)):
        kill(server)


def kill(server: psutil.Process) -> None:
    """Does what a power switch would, but for the disk; returns when none of them is left."""
    processes = _frozen(server)
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    assert _wait(lambda: all(map(is_gone, processes))), f"some of {processes} cannot be killed"


def freeze(server: psutil.Process) -> list[psutil.Process]:
    """Stops all of them where they stand: their connections stay open, and nobody answers."""
    processes = _frozen(server)
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.suspend()
    _wait(lambda: all(is_gone(process) or process.status() == psutil.STATUS_STOPPED for process in processes))
    return processes


def thaw(processes: Iterable[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.resume()


def is_gone(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _frozen(server: psutil.Process) -> list[psutil.Process]:
    """The server and its children, of which there can be no more: the one who starts them is stopped."""
    try:
        server.suspend()
        _wait(lambda: is_gone(server) or server.status() == psutil.STATUS_STOPPED)
        return [server, *server.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _wait(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True
