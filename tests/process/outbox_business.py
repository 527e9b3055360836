"""A process whose every transaction writes a business row and publishes an event; one in ten is rolled back.

It records each transaction: one that fails otherwise may have been committed.
"""

import sys
import time
from pathlib import Path
from random import Random
from uuid import uuid4

import psycopg

from tape.checker.lines import PublishLine
from tape.outbox import OutboxEvent, publish
from tests.process.lifetime import end_with_parent
from tests.process.recorder import Recorder

ROLLED_BACK = 0.1


def run(url: str, pause_ms: float, records: Recorder) -> None:
    while True:
        try:
            with psycopg.connect(url, connect_timeout=5) as connection:
                trade(connection, pause_ms, records)
        except psycopg.Error:
            time.sleep(0.05)  # the server is down


def trade(connection: psycopg.Connection, pause_ms: float, records: Recorder) -> None:
    chance = Random()
    while True:
        n = uuid4().int % 2**31
        names = {"number": n, "event_id": str(n)}
        records.write(PublishLine, step="invoke", **names)
        connection.execute("INSERT INTO orders (n) VALUES (%s)", (n,))
        publish(OutboxEvent(event_type="orders.placed", source="orders", payload={"n": n}), connection)
        time.sleep(pause_ms / 1000 * chance.random())
        if chance.random() < ROLLED_BACK:
            connection.rollback()
            records.write(PublishLine, step="fail", **names)
        else:
            connection.commit()
            records.write(PublishLine, step="ok", **names)


if __name__ == "__main__":
    end_with_parent()
    run(sys.argv[1], float(sys.argv[2]), Recorder(Path(sys.argv[3])))
