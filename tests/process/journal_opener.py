"""A process that opens new journals on a schedule that its siblings share."""

import sys
from pathlib import Path

import anyio

import tape
from tests.process.lifetime import end_with_parent
from tests.process.log import now_ns

STEP_NS = 20_000_000


async def run(folder: Path, files: int, start_ns: int) -> None:
    for number in range(files):
        await anyio.sleep(max(0, start_ns + number * STEP_NS - now_ns()) / 1e9)
        async with tape.open_journal(f"sqlite:///{folder / str(number)}.db"):
            pass


if __name__ == "__main__":
    end_with_parent()
    anyio.run(run, Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
