"""A process that copies a run of a journal into a DuckDB file, to the run's end."""

import sys
from pathlib import Path

import anyio

from tape.compose import open_journal
from tape.core.ids import RunId
from tape.lake.cold.persist import persist_entries
from tests.process.lifetime import end_with_parent


async def main(url: str, run_id: str, path: str) -> None:
    async with open_journal(url) as journal:
        await persist_entries(lambda seq: journal.stream(run_id=run_id, from_seq=seq), RunId(run_id), Path(path))


if __name__ == "__main__":
    end_with_parent()
    anyio.run(main, sys.argv[1], sys.argv[2], sys.argv[3])
