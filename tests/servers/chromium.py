"""A private headless Chromium, which tests may kill; run as a program, it makes sure that there is one."""

import http.client
import sys
from pathlib import Path

from tests.servers import binaries
from tests.servers.account import Account
from tests.servers.errors import ServerMissing
from tests.servers.process import Command, PrivateServer

# It shows nothing but our own pages, so it needs no sandbox, which root and most containers could not have.
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
    "--mute-audio",
    "--no-first-run",
]

# It reaches nothing but this machine, and does not try.
QUIET = [
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-quic",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost",
    "--no-proxy-server",
]

# A page that nobody looks at keeps its timers, as EventSource needs them to come back.
AWAKE = [
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
]


class ChromiumServer(PrivateServer):
    """A browser of our own, without a history, which is driven through its port."""

    def __init__(self, program: Path | None = None) -> None:
        self.program = program or binaries.chromium()
        super().__init__("chromium", Account())
        self.url = f"http://127.0.0.1:{self.port}"

    def _create(self) -> None:
        return

    def _command(self) -> Command:
        place = [f"--remote-debugging-port={self.port}", f"--user-data-dir={self.folder / 'profile'}"]
        return [self.program, *FLAGS, *QUIET, *AWAKE, *place, "about:blank"]

    def _is_ready(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        try:
            connection.request("GET", "/json/version")
            return connection.getresponse().status == http.HTTPStatus.OK
        except OSError:
            return False
        finally:
            connection.close()


if __name__ == "__main__":
    try:
        binaries.chromium()
    except ServerMissing as missing:
        sys.exit(f"tape: {missing}")
