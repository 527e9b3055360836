"""One run of chaos: a database with a standby, servers, workers and clients; faults by seed; then all must recover."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import httpx

from tape.checker.lines import RegisterLine
from tape.outbox import migrate
from tests.chaos import ending
from tests.chaos.balancer import Balancer
from tests.chaos.clients import Clients
from tests.chaos.database import ChaosDatabase
from tests.chaos.names import PATTERN, PUBLISHERS, REACTION
from tests.chaos.parts import Part
from tests.chaos.plan import Fault, Plan
from tests.chaos.report import Report
from tests.process.recorder import Recorder
from tests.servers.databases import fetch
from tests.servers.process import free_port

READY_S = 60.0
LEASE_MS = 2_000


class Chaos:
    """The parts of a run, and what is done to them."""

    def __init__(self, folder: Path, seed: int, plan: Plan) -> None:
        self.folder = folder
        self.plan = plan
        self.clients = Clients(folder, seed)
        self.database = ChaosDatabase(plan.promotion)
        self.done: Counter[str] = Counter()
        self.usage: dict[str, tuple[int, int]] = {}
        self.servers: list[Part] = []
        self.workers: list[Part] = []
        self.outboxes: list[Part] = []
        self._ports = [[free_port(), free_port()], [free_port(), free_port()]]  # of HTTP and of gRPC

    def close(self) -> None:
        for part in self.parts:
            part.kill()
        self.database.close()

    @property
    def parts(self) -> list[Part]:
        return [*self.servers, *self.workers, *self.outboxes]

    def start_parts(self) -> None:
        url, log = self.database.url, self.folder
        for number in range(2):
            http, rpc = (f"127.0.0.1:{ports[number]}" for ports in self._ports)
            serve = ["serve", "--store", url, "--http", http, "--grpc", rpc]
            self.servers.append(Part(f"server{number}", self.folder, "tape.cli.main", serve))
            records = {"CHAOS_RECORDS": str(self.folder / f"worker{number}.jsonl")}
            work = ["work", "tests.chaos.handlers", "--store", url, "--lease-ms", str(LEASE_MS)]
            self.workers.append(Part(f"worker{number}", self.folder, "tape.cli.main", work, records))
        business = [url, "40", str(log / "business.jsonl")]
        shipping = [url, str(log / "shipping.jsonl")]
        self.outboxes.append(Part("business", self.folder, "tests.process.outbox_business", business))
        self.outboxes.append(Part("shipping", self.folder, "tests.process.outbox_worker", shipping))
        for part in self.parts:
            part.start()

    async def ready(self) -> None:
        """Waits until both servers answer and the reaction is registered, which the history then says."""
        with anyio.fail_after(READY_S):
            for port in self._ports[0]:
                await ending.until(partial(is_ready, port))
            await ending.until(self._is_registered)
        Recorder(self.folder / "owner.jsonl").write(
            RegisterLine, number=1, step="ok", reaction_id=REACTION, pattern=PATTERN
        )

    def _is_registered(self) -> bool:
        query = f"SELECT count(*) FROM tape_reactions WHERE reaction_id = '{REACTION}'"
        return fetch(self.database.direct_url, query) == [(1,)]

    @asynccontextmanager
    async def balanced(self) -> AsyncIterator[list[Balancer]]:
        async with AsyncExitStack() as stack:
            yield [await stack.enter_async_context(Balancer(*ports).open()) for ports in self._ports]

    async def suffer(self, balancers: list[Balancer]) -> None:
        began = anyio.current_time()
        for fault in self.plan.faults:
            await anyio.sleep_until(began + fault.at_s)
            self.done[fault.action] += 1
            await self._inflict(fault, balancers)

    async def _inflict(self, fault: Fault, balancers: list[Balancer]) -> None:
        match fault.action:
            case "kill server" | "kill worker" | "kill outbox":
                part = self._group(fault.action)[fault.target]
                part.kill()
                part.start()
            case "stop server" | "stop worker":
                await self._stop(self._group(fault.action)[fault.target], fault)
            case "cut" | "stall":
                await self._disturb(balancers, fault)
            case _:
                await self._hurt_database(fault)

    async def _stop(self, part: Part, fault: Fault) -> None:
        """Suspends it: a worker for longer than its leases."""
        part.stop()
        await anyio.sleep(fault.for_s if part in self.servers else 1.5 * LEASE_MS / 1000)
        part.go_on()

    async def _disturb(self, balancers: list[Balancer], fault: Fault) -> None:
        for balancer in balancers:
            if fault.action == "cut":
                await balancer.cut()
            else:
                balancer.stall()
        if fault.action == "stall":
            await anyio.sleep(fault.for_s)
            for balancer in balancers:
                balancer.flow()

    async def _hurt_database(self, fault: Fault) -> None:
        if fault.action == "freeze database":
            with self.database.frozen():
                await anyio.sleep(fault.for_s)
        else:
            hurt = partial(self.database.promote, self.clients.acknowledged.total)
            await anyio.to_thread.run_sync(hurt if fault.action == "promote" else self.database.kill)

    def _group(self, action: str) -> list[Part]:
        return {"server": self.servers, "worker": self.workers, "outbox": self.outboxes}[action.split()[1]]


def is_ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/ready", trust_env=False).status_code == httpx.codes.OK
    except httpx.TransportError:
        return False


async def run(folder: Path, seed: int, plan: Plan) -> Report:
    """The whole run: warm up, suffer, heal, end, judge."""
    chaos = Chaos(folder, seed, plan)
    try:
        await anyio.to_thread.run_sync(chaos.database.open)
        await migrate(chaos.database.direct_url)
        chaos.start_parts()
        await chaos.ready()
        async with chaos.balanced() as balancers:
            http, rpc = (balancer.port for balancer in balancers)
            async with anyio.create_task_group() as readers, anyio.create_task_group() as publishers:
                clients = chaos.clients
                for name in PUBLISHERS:
                    publishers.start_soon(clients.publish, name, f"tape://127.0.0.1:{rpc}")
                readers.start_soon(clients.follow_sse, "page", f"http://127.0.0.1:{http}")
                readers.start_soon(clients.follow_grpc, "program", f"tape://127.0.0.1:{rpc}")
                await ending.wait_for_appends(chaos)
                readers.start_soon(clients.follow_sse, "run-page", f"http://127.0.0.1:{http}", PUBLISHERS[0])
                chaos.usage = {part.name: part.usage() for part in chaos.servers}
                await chaos.suffer(balancers)
                stuck = await ending.heal(chaos)
                clients.is_over = True
                stuck += await ending.finish(chaos)
                publishers.cancel_scope.cancel()
                readers.cancel_scope.cancel()
        return await ending.judged(chaos, seed, stuck)
    finally:
        await anyio.to_thread.run_sync(chaos.close)
