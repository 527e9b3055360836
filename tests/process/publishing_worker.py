"""A process that publishes events one by one, handles the matching tasks itself, and records both."""

import sys
from argparse import Namespace
from functools import partial
from itertools import count
from typing import NoReturn

import anyio

from tape.bus.journal import Journal
from tape.checker.lines import AppendedEvent, AppendedPosition, AppendLine
from tape.compose import open_store, run_journal
from tape.core.background import background
from tape.core.errors import Unavailable
from tape.core.event import Event
from tape.matcher.dispatcher import Dispatcher
from tests.process.lifetime import end_with_parent
from tests.process.log import now_ns, result_of
from tests.process.recorder import Recorder
from tests.process.worker import config_of, parse


async def publish_forever(journal: Journal, records: Recorder, run_id: str) -> NoReturn:
    for number in count(now_ns()):  # a number that no earlier life of this process has used
        event = Event(run_id=run_id, payload="plain", subject="/a/b")
        asked = (AppendedEvent(run_id, event.event_id, event.subject),)
        records.write(AppendLine, number=number, step="invoke", events=asked)
        try:
            (entry,) = await journal.append(event, open=True)
        except Unavailable as error:
            records.write(AppendLine, number=number, step=result_of(error), reason=error.reason)
        else:
            given = (AppendedPosition(entry.global_seq, entry.seq),)
            records.write(AppendLine, number=number, step="ok", positions=given)
        await anyio.sleep(0.002)
    raise AssertionError("unreachable")


async def run(options: Namespace) -> None:
    records, config = Recorder(options.log), config_of(options)
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
