"""A worker of pgqueuer, as its quickstart writes it: `python -m …`.

`pgq run` of pgqueuer 1.6.0 fails with the typer of this lock file ("'str' object has no attribute 'name'"), so the
program runs what `pgq run` would, as the page guides/performance-tuning of its documentation shows.
"""

import asyncio
import os

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.models import Job

from tests.bench.users.handled import note

# guides/performance-tuning: "Increase `batch_size` when jobs are short-lived", from 10 to 25 in its example.
BATCH = 25


async def main() -> None:
    # guides/performance-tuning: "For high-throughput deployments, use a connection pool driver", of 5 to 20.
    async with asyncpg.create_pool(os.environ["PGDSN"], min_size=5, max_size=20) as pool:
        pgq = PgQueuer.from_asyncpg_pool(pool)

        @pgq.entrypoint("handle")  # type: ignore[untyped-decorator]
        async def handle(job: Job) -> None:
            note(int(job.payload))

        await pgq.run(batch_size=BATCH)


if __name__ == "__main__":
    asyncio.run(main())
