"""A private NATS with JetStream, which tests may kill."""

import socket

from tests.servers import binaries
from tests.servers.account import Account
from tests.servers.process import Command, PrivateServer


class NatsServer(PrivateServer):
    """A server of our own that keeps streams in files, and syncs them when it does by default: every two minutes."""

    def __init__(self) -> None:
        self._program = binaries.nats()
        super().__init__("nats", Account())
        self.url = f"nats://127.0.0.1:{self.port}"

    def _create(self) -> None:
        return

    def _command(self) -> Command:
        return [self._program, "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", str(self.folder)]

    def _is_ready(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0
