"""The server of the demo: the same journal in another process, with the console."""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from subprocess import DEVNULL
from typing import Any, Final, NamedTuple

import anyio
from anyio import to_thread

from tape.cli.demo.report import Check
from tape.core.errors import Unavailable
from tape.work.child_process import ChildProcess, open_child

DEADLINE_S: Final = 30.0
MAX_LINE: Final = 64 << 10


class DemoServer(NamedTuple):
    """The server's URL; None without a server."""

    url: str = ""

    async def ask(self, path: str) -> Any:
        """The JSON answer to a GET request."""
        return await to_thread.run_sync(_get, f"{self.url}{path}")

    def link(self, fragment: str) -> str:
        return f"{self.url}/#/{fragment}"


@asynccontextmanager
async def serving(url: str, lake: Path | None) -> AsyncIterator[DemoServer]:
    """Starts a server over a store for the duration of a block; without its packages there is none."""
    if find_spec("uvicorn") is None:
        yield DemoServer()
        return
    command = [sys.executable, "-m", "tape.cli.main", "serve", "--json", "--store", url, "--http", "127.0.0.1:0"]
    command += ["--grpc", "127.0.0.1:0"] if find_spec("grpc") else []
    command += ["--lake", str(lake)] if lake else []
    async with open_child(command, grace_s=DEADLINE_S, stderr=DEVNULL) as child:
        yield DemoServer(await _ready(child))


async def check(server: DemoServer, expected: Mapping[str, tuple[str, int]]) -> Check:
    """Whether its lists have as many items as the journal says."""
    found = {path: len((await server.ask(path))[name]) for path, (name, _) in expected.items()}
    is_kept = found == {path: count for path, (_, count) in expected.items()}
    counts = ", ".join(f"{count} at {path.partition('?')[0]}" for path, count in found.items())
    return Check("server", is_kept, f"it says the same over HTTP: {counts}" if is_kept else f"other counts: {counts}")


async def _ready(child: ChildProcess) -> str:
    with anyio.move_on_after(DEADLINE_S):
        if line := await child.read_line(MAX_LINE):
            return str(json.loads(line)["url"])
    raise Unavailable("the demo's server has not started; tape serve says why")


def _get(url: str) -> Any:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url) as answer:
        return json.load(answer)
