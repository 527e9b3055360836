"""A process that keeps a transaction open in another database."""

import sys
from pathlib import Path

import anyio
import asyncpg

from tests.process.lifetime import end_with_parent


async def run(url: str, begun: Path) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute("BEGIN; CREATE TABLE other (n int); SELECT pg_current_xact_id(); NOTIFY tape, '1'")
    begun.write_text("begun\n")
    await anyio.sleep_forever()


if __name__ == "__main__":
    end_with_parent()
    anyio.run(run, sys.argv[1], Path(sys.argv[2]))
