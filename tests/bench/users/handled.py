"""What handlers leave behind, the same for every side: a line in a file, by one write, with the time and the number."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic_ns

import anyio

from tests.deadlines import DEADLINE_S

VARIABLE = "HANDLED"
POLL_S = 0.002
WIDTH = 32


def note(number: int) -> None:
    """Called by a handler, in a worker's process."""
    os.write(_file(), f"{monotonic_ns():020d} {number:010d}\n".encode())


@cache
def _file() -> int:
    return os.open(os.environ[VARIABLE], os.O_WRONLY | os.O_APPEND)


class Handled:
    """The lines of all workers; their clock is the one that all processes of a machine share."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.environment = {VARIABLE: str(path)}

    def count(self) -> int:
        return self.path.stat().st_size // WIDTH

    async def reach(self, count: int, within_s: float = DEADLINE_S) -> None:
        """Waits until so many lines are there."""
        try:
            with anyio.fail_after(within_s):
                while self.count() < count:  # noqa: ASYNC110 - other processes write the file
                    await anyio.sleep(POLL_S)
        except TimeoutError:
            raise AssertionError(f"only {self.count()} of {count} were handled") from None

    def times(self) -> dict[int, int]:
        """When each number was handled, in nanoseconds; none may be handled twice."""
        lines = [line.split() for line in self.path.read_text().splitlines()]
        times = {int(number): int(at) for at, number in lines}
        assert len(times) == len(lines), f"{len(lines) - len(times)} were handled twice"
        return times


@contextmanager
def handled() -> Iterator[Handled]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "handled"
        path.touch()
        yield Handled(path)
