"""SSE to a thousand clients: what a server's CPU costs a delivered event."""

import asyncio
import subprocess
import sys
from functools import partial
from typing import Any

from tests.bench.compare import Comparison, Goal
from tests.bench.loop import run
from tests.bench.sse_listeners import Crowd
from tests.bench.sse_servers import RUNS, started

AREA = "SSE, 1,000 clients over 16 runs"
UNIT = "events/CPU-s"
CLIENTS = 1_000
LIVE = (60, 1, 25)
BURSTS = (6, 50, 400)


def comparisons() -> list[Comparison]:
    row = partial(Comparison, area=AREA, unit=UNIT)
    live, burst = partial(rate, "ours", LIVE), partial(rate, "ours", BURSTS)
    return [
        row(name="against bare sockets", ours=live, peer=partial(rate, "bare", LIVE), goal=Goal(">=", 0.5)),
        row(name="against sse-starlette", ours=live, peer=partial(rate, "starlette", LIVE), goal=Goal(">=", 4)),
        row(
            name="bursts of 50 against sse-starlette",
            ours=burst,
            peer=partial(rate, "starlette", BURSTS),
            goal=Goal(">=", 15),
        ),
    ]


def rate(kind: str, load: tuple[int, int, int]) -> float:
    """Delivered events a second of the server's CPU time."""
    return run(_rate(kind, load))


async def _rate(kind: str, load: tuple[int, int, int]) -> float:
    with started(kind) as server:
        port = int(await line(server))
        crowd = Crowd()
        transports = await crowd.come(port, [f"/events?run_id=run-{n % RUNS}&slow=lag" for n in range(CLIENTS)])
        await warm_up(server, crowd)
        before, seen = float((await send_load(server, (0, 0, 0)))[0]), crowd.seen
        await send_load(server, load)
        delivered = CLIENTS * load[0] * load[1]
        await crowd.wait(seen + delivered)
        spent = float((await send_load(server, (0, 0, 0)))[0]) - before
        for transport in transports:
            transport.close()
        server.kill()
    return delivered / spent


async def warm_up(server: "subprocess.Popen[str]", crowd: Crowd) -> None:
    """Until an event reaches everybody, and nothing is on its way any more."""
    while True:
        seen = crowd.seen
        await send_load(server, (1, 1, 300))
        if crowd.seen - seen == CLIENTS:
            return


async def send_load(server: "subprocess.Popen[str]", load: tuple[int, int, int]) -> list[str]:
    assert server.stdin is not None
    print(*load, file=server.stdin, flush=True)
    return (await line(server)).split()


async def line(server: "subprocess.Popen[str]") -> str:
    stdout: Any = server.stdout
    text: str = await asyncio.to_thread(stdout.readline)
    return text


if __name__ == "__main__":
    for kind in sys.argv[1:]:
        for name, load in (("live", LIVE), ("bursts", BURSTS)):
            print(kind, name, f"{1e6 / rate(kind, load):.2f} µs/event")
