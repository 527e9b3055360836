"""A process that opens a run through a broker and publishes: `URL RUN COUNT closes|leaves|stays RENEW_S`."""

import sys
from contextlib import suppress
from datetime import timedelta
from itertools import count

import anyio

from tape.broker import JournalBroker, RunId, RunMeta
from tape.bus.broker import Broker
from tape.core.errors import RunClosed
from tape.core.event import Event
from tape.core.lease import GONE, Lease

PAUSE_S = 0.2


async def produce(url: str, run_id: RunId, events: int, then: str, renew_s: float) -> None:
    broker = JournalBroker(url, lease=Lease(renew=timedelta(seconds=renew_s), gone=GONE))
    broker.open_run(run_id, RunMeta(label="elsewhere"))
    for n in range(events):
        await broker.publish(run_id, Event(run_id=run_id, payload={"n": n}))
    if then == "closes":
        broker.close_run(run_id)
    if then == "stays":
        await stay(broker, run_id)
    await broker.flush()


async def stay(broker: Broker, run_id: RunId) -> None:
    """Publishes until the broker no longer owns the run; the last events may be refused."""
    for n in count():
        await anyio.sleep(PAUSE_S)
        with suppress(RunClosed):
            await broker.publish(run_id, Event(run_id=run_id, payload={"n": n}))
        if not broker.is_open(run_id):
            return


if __name__ == "__main__":
    url, run_id, events, then, renew_s = sys.argv[1:]
    anyio.run(produce, url, RunId(run_id), int(events), then, float(renew_s))
