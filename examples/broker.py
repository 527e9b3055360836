import asyncio

from tape import Event
from tape.broker import BrokerEventSink, EventBroker, InProcessEventBroker, RunId, RunMeta

RUN = RunId("race-7")


def game(sink: BrokerEventSink) -> None:
    """A producer that knows no event loop, in a thread of its own."""
    for turn in range(1, 4):
        sink.emit(Event(run_id=RUN, type="turn", payload={"turn": turn}))


async def watch(broker: EventBroker, name: str) -> None:
    async for envelope in broker.stream(RUN):  # replays, then follows, and ends when the run is closed
        print(name, envelope.seq, envelope.event.payload)


async def main() -> None:
    broker = InProcessEventBroker()
    broker.open_run(RUN, RunMeta(label="friendly"))
    await asyncio.to_thread(game, BrokerEventSink(broker, RUN))
    broker.close_run(RUN)  # after the three emits, which are all stored
    await watch(broker, "late")  # a reader that comes after the end misses nothing
    broker.reap(RUN)
    await watch(broker, "too late")
    print(broker.metrics().to_dict())


asyncio.run(main())
