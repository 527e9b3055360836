"""A private NATS with JetStream, which tests may kill."""

import socket

from tests.servers import binaries
from tests.servers.account import Account
from tests.servers.process import Command, PrivateServer


class NatsServer(PrivateServer):
    """A server of our own that keeps streams in files.

    It syncs them when it does by default, every two minutes, or as `sync` says: `always` is before it acknowledges.
    """

    def __init__(self, sync: str | None = None) -> None:
        self._program = binaries.nats()
        super().__init__("nats", Account())
        self._sync = sync
        self.url = f"nats://127.0.0.1:{self.port}"

    def _create(self) -> None:
        sync = f", sync_interval: {self._sync}" if self._sync else ""
        (self.folder / "nats.conf").write_text(f'jetstream {{ store_dir: "{self.folder}"{sync} }}\n')

    def _command(self) -> Command:
        place = ["-a", "127.0.0.1", "-p", str(self.port)]
        return [self._program, *place, "-c", str(self.folder / "nats.conf")]

    def _is_ready(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0
