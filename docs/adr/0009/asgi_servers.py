"""The same SSE application on uvicorn and on granian, and frames written straight into uvicorn's transport.

    python docs/adr/0009/asgi_servers.py            # needs uvicorn, httptools, uvloop and granian

500 clients, one event every 25 ms to each of them; prints the server's CPU microseconds for a delivered event.
"""

import asyncio
import os
import resource
import socket
import subprocess
import sys

CLIENTS, ROUNDS, PAUSE_S = 500, 120, 0.025
FRAME = b'id: 123456\nevent: message\ndata: {"id":123456,"v":1,"type":"message","data":"' + b"x" * 200 + b'"}\n\n'
CHUNK = b"%x\r\n%b\r\n" % (len(FRAME), FRAME)

waiting: set[asyncio.Future[None]] = set()
transports: list[asyncio.Transport] = []


async def produce() -> None:
    while len(waiting) + len(transports) < CLIENTS:  # noqa: ASYNC110 - clients come when they come
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.5)
    before = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    for _ in range(ROUNDS):
        woken = list(waiting)
        waiting.clear()
        for future in woken:
            future.set_result(None)
        for transport in transports:
            transport.write(CHUNK)
        await asyncio.sleep(PAUSE_S)
    spent = sum(resource.getrusage(resource.RUSAGE_SELF)[:2]) - before
    print(f"{spent / ROUNDS / CLIENTS * 1e6:.1f}", flush=True)
    os._exit(0)


async def app(scope, receive, send) -> None:
    if scope["type"] != "http":
        return
    headers = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b":\n\n", "more_body": True})
    connection = scope.get("extensions", {}).get("connection")
    if connection is not None:
        transports.append(connection.transport)
        await asyncio.Event().wait()
    while True:
        future = asyncio.get_running_loop().create_future()
        waiting.add(future)
        await future
        await send({"type": "http.response.body", "body": FRAME, "more_body": True})


async def on_uvicorn(port: int, direct: bool) -> None:
    import uvicorn
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    class Direct(HttpToolsProtocol):
        def on_message_begin(self) -> None:
            super().on_message_begin()
            self.scope["extensions"] = {"connection": self}

    config = uvicorn.Config(app, port=port, http=Direct if direct else "httptools", lifespan="off", log_level="error")
    await asyncio.gather(uvicorn.Server(config).serve(), produce())


async def on_granian(port: int) -> None:
    from granian.server.embed import Server

    server = Server(app, address="127.0.0.1", port=port, interface="asginl", backlog=4096, log_enabled=False)
    await asyncio.gather(server.serve(), produce())


def serve(kind: str, port: int) -> None:
    import uvloop

    uvloop.run(on_granian(port) if kind == "granian" else on_uvicorn(port, kind == "transport"))


def measure(kind: str) -> float:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen([sys.executable, __file__, kind, str(port)], stdout=subprocess.PIPE, text=True)
    asyncio.run(listen(port, server))
    return float(server.stdout.read())


async def listen(port: int, server: subprocess.Popen) -> None:
    lines = []
    while len(lines) < CLIENTS:
        try:
            lines.append(await asyncio.open_connection("127.0.0.1", port))
        except OSError:
            await asyncio.sleep(0.1)
    for _, writer in lines:
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await asyncio.gather(*(drain(reader) for reader, _ in lines))


async def drain(reader: asyncio.StreamReader) -> None:
    try:
        while await reader.read(65536):
            pass
    except ConnectionError:
        return


if __name__ == "__main__":
    if len(sys.argv) == 3:
        serve(sys.argv[1], int(sys.argv[2]))
    else:
        for _ in range(3):
            for kind in ("uvicorn", "granian", "transport"):
                print(f"{kind} {measure(kind):.1f}", flush=True)
