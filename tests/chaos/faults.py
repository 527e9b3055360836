"""Inflicts the faults of a plan on an installation, one after the other, and counts those that really happened."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial

import anyio
import anyio.to_thread

from tape.server.sse.lag import GRACE_S
from tests.chaos.balancer import Balancer
from tests.chaos.installation import LEASE_MS, Installation, Ways
from tests.chaos.parts import Part
from tests.chaos.plan import Fault

BACKLOG = 60  # requests, of 11 KB each, that no socket holds for a reader
BACKLOG_S = 60.0
NOTICED_S = 1.5  # by when a full disk has refused something


class Faults:
    """What is done to the parts of an installation and to the ways between them."""

    def __init__(self, installation: Installation, ways: Ways, acknowledged: Callable[[], int]) -> None:
        self._installation = installation
        self._ways = ways
        self._acknowledged = acknowledged
        self.done: Counter[str] = Counter()

    async def inflict_all(self) -> None:
        began = anyio.current_time()
        for fault in self._installation.plan.faults:
            await anyio.sleep_until(began + fault.at_s)
            self.done[fault.action] += await self._inflict(fault)

    async def _inflict(self, fault: Fault) -> bool:
        """Whether it could be done here."""
        match fault.action:
            case "kill server" | "kill worker" | "kill outbox" | "kill lake":
                part = self._group(fault.action)[fault.target]
                part.kill()
                part.start()
            case "stop server" | "stop worker":
                await self._stop(self._group(fault.action)[fault.target], fault)
            case "cut" | "stall" | "stall slow reader" | "lose wake-ups":
                await self._disturb(fault)
            case "fill database disk" | "fill lake disk":
                return await self._fill(fault)
            case "kill database" | "freeze database" | "promote":
                await self._hurt_database(fault)
        return True

    async def _stop(self, part: Part, fault: Fault) -> None:
        """Suspends it: a worker for longer than its leases."""
        part.stop()
        await anyio.sleep(fault.for_s if part in self._installation.servers else 1.5 * LEASE_MS / 1000)
        part.go_on()

    async def _disturb(self, fault: Fault) -> None:
        ways = self._ways
        match fault.action:
            case "cut":
                await cut(ways.http, ways.rpc, ways.slow)
            case "stall":
                await stall((ways.http, ways.rpc, ways.slow), fault.for_s)
            case "stall slow reader":
                await self._stall_until_evicted(fault)
            case _:
                await cut(*ways.wakes)
                await stall(ways.wakes, fault.for_s)

    async def _stall_until_evicted(self, fault: Fault) -> None:
        """Lets a reader read nothing while its backlog grows, and then for longer than it is given to catch up."""
        enough = self._acknowledged() + BACKLOG
        self._ways.slow.stall()
        with anyio.move_on_after(BACKLOG_S):
            while self._acknowledged() < enough:  # noqa: ASYNC110 - the servers make it true
                await anyio.sleep(0.1)
        await stall((self._ways.slow,), GRACE_S + fault.for_s)

    async def _fill(self, fault: Fault) -> bool:
        disk = self._installation.database if fault.action == "fill database disk" else self._installation.lake
        assert disk is not None
        return await anyio.to_thread.run_sync(disk.fill_disk, NOTICED_S + fault.for_s)

    async def _hurt_database(self, fault: Fault) -> None:
        database = self._installation.database
        if fault.action == "freeze database":
            with database.frozen():
                await anyio.sleep(fault.for_s)
        else:
            promote = partial(database.promote, self._acknowledged)
            await anyio.to_thread.run_sync(promote if fault.action == "promote" else database.kill)

    def _group(self, action: str) -> Sequence[Part]:
        found = self._installation
        lake = [found.lake.part] * 2 if found.lake is not None else []
        groups = {"server": found.servers, "worker": found.workers, "outbox": found.outboxes, "lake": lake}
        return groups[action.split()[1]]


async def cut(*balancers: Balancer) -> None:
    for balancer in balancers:
        await balancer.cut()


async def stall(balancers: Sequence[Balancer], for_s: float) -> None:
    for balancer in balancers:
        balancer.stall()
    await anyio.sleep(for_s)
    for balancer in balancers:
        balancer.flow()
