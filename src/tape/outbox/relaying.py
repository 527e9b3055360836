"""A relay of an outbox as a process of its own, to whichever peer the settings name."""

import os
from dataclasses import dataclass

from tape.bridges.opening import line_to
from tape.outbox.listener import OutboxListener
from tape.outbox.relay import line_relay
from tape.settings import Settings
from tape.work.leaving import until_told


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayOrder:
    """Which outbox to relay, of which generation, to where, and under which name that is remembered."""

    url: str
    target: str
    handler_name: str
    generation: int
    schema: str


async def relay_outbox(order: RelayOrder, once: bool = False) -> int:
    """Relays until a signal says to leave, or with `once` what there is; how many events that were.

    Events of one order_key go in their order.
    """
    line, topic = line_to(order.target, Settings.read(os.environ).connections)
    listener = OutboxListener(order.url, generation=order.generation, schema=order.schema)
    waiting = line_relay(line, topic)  # for a peer that is away; each send has a deadline of its own
    listener.listen(handler_name=order.handler_name, handler=waiting, ordered=True, deadline=None)

    def stop() -> None:
        line.stop()
        listener.stop()

    try:
        await until_told(listener.run_once if once else listener.run, stop)
    finally:
        await line.close()
    return listener.handled
