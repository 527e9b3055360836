"""A rolling deployment of a handler that adds a type: its versions run together, restarted and killed."""

import sqlite3
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tape.outbox import OutboxEvent, migrate, publish
from tests.process.processes import Child, Processes
from tests.servers.databases import apart, execute, fetch
from tests.servers.postgres import PostgresServer

PLACED, SHIPPED = "orders.placed", "orders.shipped"
OLD, NEW = ("old", PLACED), ("new", PLACED, SHIPPED)
EFFECTS = "CREATE TABLE effects (n bigint NOT NULL, type text NOT NULL, version text NOT NULL)"


class Deployment:
    """A business that publishes to an outbox, and the processes that handle it."""

    def __init__(self, processes: Processes) -> None:
        self.processes = processes
        self._starts, self._numbers = count(), count()

    def start(self, version: str, *types: str) -> Child:
        """A process that is registered and listens."""
        ready = self.processes.folder / f"ready.{next(self._starts)}"
        child = self.processes.start("outbox_version", self.processes.url, ready, version, *types)
        self.processes.wait(ready.exists, f"{version} listens")
        return child

    def publish(self, event_type: str) -> None:
        event = OutboxEvent(event_type=event_type, source="orders", payload={"n": next(self._numbers)})
        with self._connected() as connection:
            publish(event, connection)
            connection.commit()

    def wait_until_all_have_ended(self) -> None:
        is_open = f"SELECT count(*) FROM {self._outbox} WHERE status <> 'delivered'"
        self.processes.wait(lambda: self._rows(is_open) == [(0,)], "every row is delivered")

    def handled(self, event_type: str) -> list[str]:
        """By which versions, in the order of the events."""
        found = self._rows(f"SELECT version FROM effects WHERE type = '{event_type}' AND version <> 'other' ORDER BY n")
        return [version for (version,) in found]

    @property
    def _outbox(self) -> str:
        return "core_outbox" if self.processes.url.startswith("sqlite") else "core.outbox"

    def _connected(self) -> Any:
        if self.processes.url.startswith("sqlite"):
            return sqlite3.connect(self.processes.url.removeprefix("sqlite:///"), 30)
        import psycopg

        return psycopg.connect(self.processes.url)

    def _rows(self, statement: str) -> list[tuple[Any, ...]]:
        if not self.processes.url.startswith("sqlite"):
            return fetch(self.processes.url, statement)
        with self._connected() as connection:
            return list(connection.execute(statement))


@pytest.fixture(params=["postgres", "sqlite"])
def deployment(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Deployment]:
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'business.db'}"
        apart(migrate, url)
        sqlite3.connect(tmp_path / "business.db").execute(EFFECTS)
        with Processes(tmp_path, url=url) as processes:
            yield Deployment(processes)
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    with server.database() as url, Processes(tmp_path, url=url) as processes:
        apart(migrate, url)
        execute(url, EFFECTS)
        yield Deployment(processes)


def test_a_version_that_is_restarted_last_strands_no_event_of_the_wider_one(deployment: Deployment) -> None:
    deployment.start("other", PLACED, SHIPPED)
    first = deployment.start(*OLD)
    deployment.publish(SHIPPED)
    deployment.start(*NEW)
    first.kill()
    deployment.start(*OLD)

    for _ in range(5):
        deployment.publish(SHIPPED)
        deployment.publish(PLACED)
    deployment.wait_until_all_have_ended()

    assert set(deployment.handled(SHIPPED)) == {"new"} and len(deployment.handled(SHIPPED)) >= 5
    assert len(deployment.handled(PLACED)) == 5


def test_what_is_published_while_the_wider_version_is_killed_waits_for_it(deployment: Deployment) -> None:
    deployment.start("other", PLACED, SHIPPED)
    wide = deployment.start(*NEW)
    for _ in range(5):
        deployment.publish(SHIPPED)
    wide.kill()
    deployment.start(*OLD)
    for _ in range(5):
        deployment.publish(SHIPPED)
        deployment.publish(PLACED)

    deployment.start(*NEW)
    deployment.wait_until_all_have_ended()

    assert deployment.handled(SHIPPED) == ["new"] * 10
    assert len(deployment.handled(PLACED)) == 5
