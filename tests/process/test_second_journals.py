"""A process that opens its journal twice loses nothing."""

import subprocess
import sys
from pathlib import Path

from tape.compose import open_journal
from tape.core.event import Event

STRANGER = """
import sys, anyio, tape
async def main():
    async with tape.open_journal(sys.argv[1]) as journal:
        await journal.append(tape.Event(run_id="open_transaction", payload=1), open=True)
anyio.run(main)
"""


def visit(url: str) -> None:
    """Another process comes, appends and goes, as the last one to close the file if it believes that it is."""
    subprocess.run([sys.executable, "-c", STRANGER, url], check=True, timeout=60)


async def test_p1_opening_the_same_file_twice_loses_nothing_to_other_processes(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'tape.db'}"
    async with open_journal(url) as journal:
        await journal.append(Event(run_id="own", payload=0), open=True)
        async with open_journal(url) as second:
            await second.head()
        visit(url)
        await journal.append([Event(run_id="own", payload=n) for n in range(5)])
        visit(url)

    async with open_journal(url) as journal:
        found = [(entry.global_seq, entry.run_id) async for entry in journal.stream(follow=False)]
    assert found == list(enumerate(["own", "open_transaction", *["own"] * 5, "open_transaction"], 1))
