"""A process that publishes events one by one, handles the matching tasks itself, and logs both."""

import sys
from argparse import Namespace
from contextlib import suppress
from functools import partial
from typing import NoReturn

import anyio

from tape.bus.journal import Journal
from tape.compose import open_store, run_journal
from tape.core.background import background
from tape.core.errors import Unavailable
from tape.core.event import Event
from tape.matcher.dispatcher import Dispatcher
from tests.process.lifetime import end_with_parent
from tests.process.log import Log, now_ns
from tests.process.worker import PUBLISHED, Attempt, config_of, parse


async def publish_forever(journal: Journal, records: Log, run_id: str) -> NoReturn:
    while True:
        with suppress(Unavailable):
            (entry,) = await journal.append(Event(run_id=run_id, payload="plain", subject="/a/b"), open=True)
            records.write(Attempt(now_ns(), PUBLISHED, "", "", 0, entry.global_seq))
        await anyio.sleep(0.002)


async def run(options: Namespace) -> None:
    records, config = Log(options.log), config_of(options)
    while True:
        try:
            async with (
                open_store(options.url) as store,
                run_journal(store) as journal,
                background(partial(publish_forever, journal, records, options.log.stem)),
            ):
                await Dispatcher(store, config, journal).run()
        except Unavailable:
            await anyio.sleep(0.05)


if __name__ == "__main__":
    end_with_parent()
    anyio.run(run, parse(sys.argv[1:]))
