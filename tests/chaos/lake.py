"""The lake of the chaos: `tape lake sync --follow` on a small disk, and what it has written in the end."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pyarrow.parquet as pq

from tape.core.errors import Conflict
from tape.lake.log import DeltaLog
from tape.lake.verify import faults
from tests.chaos.parts import Part
from tests.servers.account import Account
from tests.servers.small_disk import SmallDisk, mounted_disk
from tests.servers.spark import brief_settings

DISK = 128 << 20
STEP = "500"
REFUSED_S = 180.0  # its process may have to start a JVM first
NO_ROOM = ("No space left", "no room")

Checksums = Mapping[int, int]  # of the entries, by position


class ChaosLake:
    """A lake, the process that fills it, and the operator who follows its runbook."""

    def __init__(self, folder: Path, url: str) -> None:
        self._stack = ExitStack()
        self._disk: SmallDisk = self._stack.enter_context(mounted_disk(DISK, Account()))
        self.rebuilt = 0
        environment = {
            **brief_settings(),
            "TAPE_LAKE": str(self._disk.folder / "lake"),
            "TAPE_SPARK_MASTER": "local[1]",
        }
        sync = ["lake", "sync", "--follow", "--step", STEP, "--store", url]
        self.part = Part("lake", folder, "tape.cli.main", sync, environment)

    @property
    def log(self) -> DeltaLog:
        return DeltaLog(self._disk.folder / "lake" / "journal")

    @property
    def through(self) -> int:
        return int(self.log.snapshot().through)

    @property
    def refusals(self) -> int:
        """How many steps had no room."""
        return sum(any(text in line for text in NO_ROOM) for line in self.part.output.splitlines())

    def fill_disk(self, for_s: float) -> bool:
        """Leaves it no room until a step was refused, and for a while longer; False without a small disk."""
        before, until = self.refusals, time.monotonic() + REFUSED_S
        with self._disk.full():
            while self._disk.is_mounted and self.refusals == before and time.monotonic() < until:
                time.sleep(0.1)
            time.sleep(for_s)
        return self._disk.is_mounted

    def attend(self, *, may_conflict: bool) -> None:
        """What an operator does: moves a lake away that holds what a promotion has lost, and fills a new one."""
        if may_conflict and self.part.exit_code == Conflict.exit_code:
            self.rebuilt += 1
            (self._disk.folder / "lake").rename(self._disk.folder / f"lake.{self.rebuilt}")
            self.part.start()
        else:
            self.part.revive()

    def positions(self) -> list[int]:
        """The global_seqs as the files hold them, in the order of the log."""
        return [position for position, _ in self._rows()]

    def wrong(self, journal: Checksums) -> Iterator[str]:
        """The faults that a deep check finds, and entries that are not the journal's."""
        if not self.log.exists:
            yield "the lake is empty"
            return
        yield from (f"the lake: {fault}" for fault in faults(self.log, is_deep=True))
        for position, checksum in self._rows():
            if journal.get(position) != checksum:
                yield f"the lake's entry {position} is not the journal's"

    def close(self) -> None:
        self.part.kill()
        self._stack.close()

    def _rows(self) -> Iterator[tuple[int, int]]:
        for file in self.log.snapshot().files:
            rows = pq.read_table(self.log.table / file.path, columns=["global_seq", "crc"])
            yield from zip(rows["global_seq"].to_pylist(), rows["crc"].to_pylist(), strict=True)


def ranges(positions: Iterable[int]) -> Sequence[tuple[int, int]]:
    """Positions as ranges without a hole, in the order in which they came."""
    found: list[tuple[int, int]] = []
    for position in positions:
        if found and position == found[-1][1] + 1:
            found[-1] = (found[-1][0], position)
        else:
            found.append((position, position))
    return found
