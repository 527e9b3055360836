"""One run of chaos: an installation and its clients; faults by seed; then all must recover."""

from pathlib import Path

import anyio
import anyio.abc

from tests.chaos import ending
from tests.chaos.clients import Clients
from tests.chaos.faults import Faults
from tests.chaos.installation import Installation, Ways
from tests.chaos.names import PUBLISHERS
from tests.chaos.plan import Plan
from tests.chaos.report import Report

ATTEND_S = 0.5


async def run(folder: Path, seed: int, plan: Plan) -> Report:
    """The whole run: warm up, suffer, heal, end, judge."""
    installation, clients = Installation(folder, plan), Clients(folder, seed)
    async with installation.opened() as ways:
        faults = Faults(installation, ways, clients.acknowledged.total)
        run = ending.Run(folder, seed, installation, clients, faults.done)
        async with anyio.create_task_group() as readers, anyio.create_task_group() as publishers:
            start_clients(clients, ways, readers, publishers)
            await ending.wait_for_appends(clients)
            url = f"http://127.0.0.1:{ways.http.port}"
            readers.start_soon(clients.follow_sse, "run-page", url, PUBLISHERS[0])
            run.measure()
            readers.start_soon(attend, installation)
            await faults.inflict_all()
            wrong = await ending.heal(run)
            clients.is_over = True
            wrong += await ending.finish(run)
            publishers.cancel_scope.cancel()
            readers.cancel_scope.cancel()
        return await ending.judged(run, wrong)


def start_clients(clients: Clients, ways: Ways, readers: anyio.abc.TaskGroup, publishers: anyio.abc.TaskGroup) -> None:
    http, rpc = f"http://127.0.0.1:{ways.http.port}", f"tape://127.0.0.1:{ways.rpc.port}"
    for name in PUBLISHERS:
        publishers.start_soon(clients.publish, name, rpc)
    readers.start_soon(clients.follow_sse, "page", http)
    readers.start_soon(clients.follow_sse, "slow", f"http://127.0.0.1:{ways.slow.port}")
    readers.start_soon(clients.follow_grpc, "program", rpc)


async def attend(installation: Installation) -> None:
    """What a supervisor and an operator do: start what has ended, and rebuild a lake that a promotion has outdated."""
    while True:
        installation.revive()
        await anyio.sleep(ATTEND_S)
