"""A process that publishes single events to one run, and fails if one is refused."""

import sys

import anyio

import tape
from tests.process.lifetime import end_with_parent


async def publish(url: str, run_id: str, count: int) -> None:
    async with tape.open_journal(url) as journal:
        for number in range(count):
            await journal.append(tape.Event(run_id=run_id, payload=number), open=True)


if __name__ == "__main__":
    end_with_parent()
    anyio.run(publish, sys.argv[1], sys.argv[2], int(sys.argv[3]))
