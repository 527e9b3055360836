"""A `tape serve` process on a free port, killed at the end of its block."""

import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx
import psutil

from tape.compose import open_store
from tests import figures
from tests.deadlines import DEADLINE_S
from tests.servers import forked
from tests.servers.databases import apart


class TapeServer:
    """Ready when it is created; it logs to a file."""

    def __init__(self, folder: Path, store: str, *options: str, environment: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.store = store
        self._log = folder / "serve.log"
        arguments = ["serve", "--json", "--store", store, "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", *options]
        output, theirs = os.pipe()
        with self._log.open("ab") as errors, os.fdopen(theirs, "wb") as written:
            self._process = forked.start(
                "tape.cli.main", arguments, folder=folder, output=written.fileno(), errors=errors.fileno(),
                environment={**clean_environment(), "TAPE_DATA": str(folder), **(environment or {})},
            )  # fmt: skip
        self._output = os.fdopen(output, "rb")
        ready = self._ready()
        self.url, self.rpc = str(ready["url"]), str(ready["grpc"])
        self.port = httpx.URL(self.url).port or 0

    def _ready(self) -> dict[str, object]:
        line = self._output.readline()
        if not line:
            self._output.close()
            self.wait()
        assert line, f"it did not start: {self.log}"
        ready: dict[str, object] = json.loads(line)
        return ready

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        return self._log.read_text(errors="replace")

    @property
    def rss(self) -> int:
        return int(psutil.Process(self.pid).memory_info().rss)

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def client(self, **options: object) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=DEADLINE_S, trust_env=False, **options)  # type: ignore[arg-type]

    def async_client(self, **options: object) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.url, timeout=DEADLINE_S, trust_env=False, **options)  # type: ignore[arg-type]

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def wait(self, within_s: float = DEADLINE_S) -> int:
        """Its exit code."""
        return self._process.wait(within_s)

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        figures.add("kill -9 of a Tape server")
        self.end()

    def end(self) -> None:
        """Kills it if it still runs."""
        if self.is_running:
            os.killpg(self.pid, signal.SIGKILL)
            self.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
        self._output.close()


def clean_environment() -> dict[str, str]:
    """The environment without variables of Tape."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("TAPE_", "REDIS_"))}


def begin_epoch(server: TapeServer) -> None:
    """What `tape migrate --new-epoch` does after a backup was restored."""
    apart(_begin_epoch, server.store)


async def _begin_epoch(url: str) -> None:
    async with open_store(url) as store:
        await store.new_epoch()
