"""Peers that are modules of ours, each in a process of its own: what they accept is in a file before they answer."""

import json
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.servers.account import Account
from tests.servers.kafka_mock import wait_for
from tests.servers.process import ROOT, Command, PrivateServer


class ListeningServer(PrivateServer):
    """A module of tests/servers that listens on a port and writes down what it accepts, a line for each."""

    module: str

    def __init__(self) -> None:
        super().__init__(self.module.rpartition(".")[2], Account())
        self.accepted_at = self.folder / "accepted.jsonl"
        self.busy_at = self.folder / "busy"

    @property
    def accepted(self) -> list[dict[str, Any]]:
        if not self.accepted_at.exists():
            return []
        return [json.loads(line) for line in self.accepted_at.read_text().splitlines()]

    def forget(self) -> None:
        self.accepted_at.unlink(missing_ok=True)
        self.busy_at.unlink(missing_ok=True)

    def _create(self) -> None:
        return

    def _command(self) -> Command:
        start = f"import sys; sys.path[:0] = {[str(ROOT), *sys.path]!r}; from {self.module} import main; main()"
        return [sys.executable, "-c", start, str(self.port), self.folder]

    def _is_ready(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


class WebhookServer(ListeningServer):
    """Somebody's endpoint for webhooks."""

    module = "tests.servers.webhook_receiver"


class PubsubServer(ListeningServer):
    """Our own reading of Pub/Sub's Publish, for the official client; it is no emulator of Google's."""

    module = "tests.servers.pubsub_service"


class KafkaMockServer(ListeningServer):
    """librdkafka's own mock cluster, which is no Kafka: it lives in memory and forgets everything with its process."""

    module = "tests.servers.kafka_mock"

    @property
    def servers(self) -> str:
        return (self.folder / "servers").read_text()

    @contextmanager
    def down(self) -> Iterator[None]:
        """All its brokers go down in the middle of whatever they do, and come back with what they have."""
        (self.folder / "down").touch()
        wait_for(self.folder / "is_down", is_there=True)
        yield
        (self.folder / "down").unlink()
        wait_for(self.folder / "is_down", is_there=False)

    def _is_ready(self) -> bool:
        return (self.folder / "servers").exists()
