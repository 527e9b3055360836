"""A process that archives everything, a few positions at a time, so that there are many moments to kill it in."""

import sys
from pathlib import Path

import anyio

from tape.compose import open_store
from tape.lake.archive import ComparedPositions, archive
from tape.lake.log import DeltaLog
from tape.store import retention

STEP = 10


async def main(url: str, table: str) -> None:
    retention.STEP = STEP  # type: ignore[misc]
    async with open_store(url) as store:
        await archive(store, DeltaLog(Path(table)), 1 << 60, print_progress)


def print_progress(compared: ComparedPositions) -> None:
    print(compared.through, flush=True)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2])
