"""A process that writes to a run and forks it repeatedly, and logs each child."""

import sys
from itertools import count
from pathlib import Path

import anyio

from tape.compose import open_store, run_journal
from tape.core.event import Event
from tests.process.lifetime import end_with_parent
from tests.process.log import Log, Seen, now_ns


async def run(url: str, log: Path) -> None:
    records = Log(log)
    async with open_store(url) as store, run_journal(store) as journal:
        for number in count():
            (entry,) = await journal.append(Event(run_id="parent", payload=number), open=True)
            *_, last = await journal.fork("parent", entry.seq // 2, mutation={"number": number})
            records.write(Seen(now_ns(), int(last.global_seq), last.run_id, int(last.seq), last.event_id))


if __name__ == "__main__":
    end_with_parent()
    anyio.run(run, sys.argv[1], Path(sys.argv[2]))
