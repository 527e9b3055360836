"""A process that follows the journal and logs its entries; restarted, it resumes at its last position."""

import sys
from contextlib import aclosing
from pathlib import Path

import anyio

import tape
from tape.core.errors import Unavailable
from tests.process import log
from tests.process.lifetime import end_with_parent
from tests.process.log import Log, Seen, now_ns


async def run(url: str, path: Path) -> None:
    while True:
        try:
            await follow(url, path)
        except Unavailable:
            await anyio.sleep(0.05)


async def follow(url: str, path: Path) -> None:
    seen = log.last(path, Seen)
    records = Log(path)
    async with tape.open_journal(url) as journal:
        after = seen.global_seq if seen else 0
        async with aclosing(journal.stream(from_global_seq=after)) as stream:
            async for entry in stream:
                records.write(Seen(now_ns(), entry.global_seq, entry.run_id, entry.seq, entry.event_id))


if __name__ == "__main__":
    end_with_parent()
    anyio.run(run, sys.argv[1], Path(sys.argv[2]))
