"""The parts of a run of chaos: a database, servers, workers, an outbox and a lake, and the ways between them."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import anyio
import anyio.to_thread
import httpx

from tape.checker.lines import RegisterLine
from tape.outbox import migrate
from tests.chaos.balancer import Balancer
from tests.chaos.database import ChaosDatabase
from tests.chaos.lake import ChaosLake
from tests.chaos.names import PATTERN, REACTION
from tests.chaos.parts import Part
from tests.chaos.plan import Plan
from tests.chaos.waiting import until
from tests.deadlines import DEADLINE_S
from tests.process.recorder import Recorder
from tests.servers.databases import fetch
from tests.servers.process import free_port

LEASE_MS = 2_000
PAUSE_MS = "150"
IS_REGISTERED = f"SELECT count(*) = 1 FROM tape_reactions WHERE reaction_id = '{REACTION}'"


class Ways(NamedTuple):
    """The balancers: of HTTP, of gRPC, of HTTP for one slow reader, and of the connections that listen for wake-ups."""

    http: Balancer
    rpc: Balancer
    slow: Balancer
    wakes: tuple[Balancer, ...]


class Installation:
    """All processes but the clients."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self._folder = folder
        self.plan = plan
        self.database = ChaosDatabase(plan.promotion)
        self.lake: ChaosLake | None = None
        self.servers: list[Part] = []
        self.workers: list[Part] = []
        self.outboxes: list[Part] = []
        self._ports = [[free_port(), free_port()], [free_port(), free_port()]]  # of HTTP and of gRPC

    @property
    def parts(self) -> list[Part]:
        lake = [self.lake.part] if self.lake is not None else []
        return [*self.measured, self.outboxes[0], *lake]

    @property
    def measured(self) -> list[Part]:
        """Those whose memory and descriptors are compared."""
        return [*self.servers, *self.workers, *self.outboxes[1:]]

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Ways]:
        try:
            await anyio.to_thread.run_sync(self.database.open)
            await migrate(self.database.direct_url)
            async with self._ways() as ways:
                self._start(self.database.url_by([wake.port for wake in ways.wakes]))
                await self._ready()
                yield ways
        finally:
            await anyio.to_thread.run_sync(self._close)

    @asynccontextmanager
    async def _ways(self) -> AsyncIterator[Ways]:
        http, rpc = self._ports
        async with AsyncExitStack() as stack:
            targets = (http, rpc, http, *([port] for port in self.database.ports))
            first, second, third, *others = [
                await stack.enter_async_context(Balancer(*ports).open()) for ports in targets
            ]
            yield Ways(first, second, third, tuple(others))

    def _start(self, listen_url: str) -> None:
        url, folder = self.database.url, self._folder
        for number in range(2):
            http, rpc = (f"127.0.0.1:{ports[number]}" for ports in self._ports)
            serve = ["serve", "--store", url, "--http", http, "--grpc", rpc]
            self.servers.append(
                Part(f"server{number}", folder, "tape.cli.main", serve, {"TAPE_LISTEN_URL": listen_url})
            )
            records = {"CHAOS_RECORDS": str(folder / f"worker{number}.jsonl"), "TAPE_LISTEN_URL": listen_url}
            work = ["work", "tests.chaos.handlers", "--store", url, "--lease-ms", str(LEASE_MS)]
            self.workers.append(Part(f"worker{number}", folder, "tape.cli.main", work, records))
        business = [url, PAUSE_MS, str(folder / "business.jsonl")]
        shipping = [url, str(folder / "shipping.jsonl")]
        self.outboxes.append(Part("business", folder, "tests.process.outbox_business", business))
        self.outboxes.append(Part("shipping", folder, "tests.process.outbox_worker", shipping))
        for part in self.parts:
            part.start()

    async def _ready(self) -> None:
        """Waits until both servers answer and the reaction is registered, which the history then says."""
        with anyio.fail_after(3 * DEADLINE_S):
            for port in self._ports[0]:
                await until(partial(_is_ready, port))
            await until(lambda: fetch(self.database.direct_url, IS_REGISTERED) == [(True,)])
        Recorder(self._folder / "owner.jsonl").write(
            RegisterLine, number=1, step="ok", reaction_id=REACTION, pattern=PATTERN
        )
        if self.plan.has_lake:
            self.lake = ChaosLake(self._folder, self.database.url)
            self.lake.part.start()

    def revive(self) -> None:
        """Starts what has ended by itself, which `Part.deaths` then says."""
        for part in (*self.measured, self.outboxes[0]):
            part.revive()
        if self.lake is not None:
            self.lake.attend(may_conflict=self.plan.promotion == "lagging" and self.database.is_promoted)

    def _close(self) -> None:
        for part in (*self.servers, *self.workers, *self.outboxes):
            part.kill()
        if self.lake is not None:
            self.lake.close()
        self.database.close()


def _is_ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/ready", trust_env=False).status_code == httpx.codes.OK
    except httpx.TransportError:
        return False
