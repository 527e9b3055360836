"""The public API of runs: brokers over any store, and sinks for producers."""

import os
from functools import partial

from tape.bus.broker import Broker
from tape.bus.sinks import BrokerEventSink, MultiRunBrokerSink
from tape.compose import open_backend, open_store
from tape.core.envelope import BrokerMetricsSnapshot, EventEnvelope
from tape.core.errors import BrokerOverflowError
from tape.core.ids import RunId, Seq
from tape.core.lease import Lease
from tape.core.ports import EventBroker
from tape.core.run import LiveRun, RunMeta
from tape.settings import Settings

__all__ = [
    "BrokerEventSink",
    "BrokerMetricsSnapshot",
    "BrokerOverflowError",
    "EventBroker",
    "EventEnvelope",
    "InProcessEventBroker",
    "JournalBroker",
    "Lease",
    "LiveRun",
    "MultiRunBrokerSink",
    "RedisStreamsBroker",
    "RunId",
    "RunMeta",
    "Seq",
    "make_broker",
]


class JournalBroker(Broker):
    """Runs in the store at a URL, shared with all processes that use it."""

    def __init__(self, store_url: str, *, max_events: int | None = None, lease: Lease | None = None) -> None:
        open_store(store_url, keep_per_run=max_events)  # a bad URL raises now; nothing is opened yet
        super().__init__(partial(open_backend, store_url, max_events), lease=lease)


class RedisStreamsBroker(JournalBroker):
    """Runs on a Redis server; each keeps its newest events, 10,000 unless the URL or `max_events` says otherwise."""

    def __init__(self, url: str, *, max_events: int | None = None, lease: Lease | None = None) -> None:
        super().__init__(url, max_events=max_events, lease=lease)


class InProcessEventBroker(JournalBroker):
    """Runs in this process only; each keeps its newest events."""

    def __init__(self, *, max_events: int = 10_000, lease: Lease | None = None) -> None:
        super().__init__("memory://", max_events=max_events, lease=lease)


def make_broker() -> Broker:
    """The broker of the environment: TAPE_BROKER_BACKEND, REDIS_URL, TAPE_STORE."""
    settings = Settings.read(os.environ)
    match settings.broker_backend:
        case "redis":
            return RedisStreamsBroker(settings.redis_url)
        case "journal":
            return JournalBroker(settings.store)
        case _:
            return InProcessEventBroker()
