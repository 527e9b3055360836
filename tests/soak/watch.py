"""Watches the processes of a suite: the most of each resource that they used at a time."""

import time
from typing import Final

import psutil

from tests.soak.outcome import Peak

EVERY_S: Final = 5.0


class Watch:
    """Looks at a process and its descendants every few seconds, however often it is asked to."""

    def __init__(self, pid: int) -> None:
        self.peak = Peak()
        self._root = psutil.Process(pid)
        self._looked = 0.0

    def look(self) -> None:
        if (now := time.monotonic()) >= self._looked + EVERY_S:
            self._looked = now
            self.peak = most(self.peak, seen(self._root))


def seen(root: psutil.Process) -> Peak:
    """What the descendants of a process use now, and what all of the machine does."""
    try:
        found = [_use(process) for process in root.children(recursive=True)]
    except psutil.Error:
        found = []
    memory = psutil.virtual_memory()
    size, name, _ = max(found, default=(0, "", 0))
    return Peak(
        processes=len(found),
        largest_mib=size >> 20,
        largest=name,
        used_mib=(memory.total - memory.available) >> 20,
        descriptors=max((descriptors for _, _, descriptors in found), default=0),
    )


def most(one: Peak, other: Peak) -> Peak:
    larger = max(one, other, key=lambda peak: peak.largest_mib)
    return Peak(
        processes=max(one.processes, other.processes),
        largest_mib=larger.largest_mib,
        largest=larger.largest,
        used_mib=max(one.used_mib, other.used_mib),
        descriptors=max(one.descriptors, other.descriptors),
    )


def _use(process: psutil.Process) -> tuple[int, str, int]:
    """Its resident memory, its name and its open descriptors; nothing if it has ended meanwhile."""
    try:
        with process.oneshot():
            return process.memory_info().rss, process.name(), process.num_fds()
    except psutil.Error:
        return 0, "", 0
