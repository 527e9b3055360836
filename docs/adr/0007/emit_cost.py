"""What an event costs through a broker and straight to the journal, in processor time: medians of nine turns."""

import asyncio
import statistics
import time

from tape import Event, open_journal
from tape.broker import InProcessEventBroker, RunId

RUN = RunId("r1")
EVENT = Event(run_id=RUN, payload={"n": 1})
MANY, FEW = 10_000, 500


async def emit(broker, journal):
    for _ in range(MANY):
        broker.emit(RUN, EVENT)
    await broker.flush()


async def send(broker, journal):
    for _ in range(MANY):
        journal.send(EVENT)
    await journal.drain()


async def publish(broker, journal):
    for _ in range(FEW):
        await broker.publish(RUN, EVENT)


async def append(broker, journal):
    for _ in range(FEW):
        await journal.append(EVENT)


async def cost_us(work, count, *places):
    began = time.process_time()
    await work(*places)
    return (time.process_time() - began) / count * 1e6


async def main():
    ways = {emit: MANY, send: MANY, publish: FEW, append: FEW}
    turns = {way: [] for way in ways}
    async with InProcessEventBroker() as broker, open_journal("memory://") as journal:
        broker.open_run(RUN)
        await journal.open_run(RUN)
        for _ in range(9):
            for way, count in ways.items():
                turns[way].append(await cost_us(way, count, broker, journal))
    for way, costs in turns.items():
        print(f"{way.__name__:8} {statistics.median(costs):6.1f} µs")


asyncio.run(main())
