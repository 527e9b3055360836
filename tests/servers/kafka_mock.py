"""librdkafka's mock cluster in a process of its own; it says where its brokers are in a file."""

import sys
from pathlib import Path
from threading import Event

from confluent_kafka import Producer


def main() -> None:
    keeper = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 3})
    brokers = keeper.list_topics(timeout=30).brokers.values()
    place = Path(sys.argv[2]) / "servers"
    place.with_suffix(".new").write_text(",".join(f"{broker.host}:{broker.port}" for broker in brokers))
    place.with_suffix(".new").rename(place)
    Event().wait()
