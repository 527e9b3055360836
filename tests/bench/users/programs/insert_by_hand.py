"""Inserts events into the table of `by_hand` and ends: what a shell script would call instead of `tape publish`."""

import asyncio
import sys

from tests.bench.users.by_hand import NewEvent, open_events
from tests.bench.users.events import PAYLOAD_JSON, TYPE


async def main(url: str, run_id: str, batch: str) -> None:
    async with open_events(url) as events:
        await events.append(run_id, [NewEvent(TYPE, PAYLOAD_JSON)] * int(batch))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
