"""What one message on one of many streams costs a server: grpc.aio against grpclib, both driven by the same clients.

    pip install grpcio grpclib uvloop psutil
    python docs/adr/0011/streams.py

Every stream is sent the same messages in turn, so that all of them are live at once. What is counted is the CPU time of
the server's process; the clients are grpc.aio in another process.
"""

import asyncio
import subprocess
import sys
import time

import psutil

MESSAGE = b"x" * 386
METHOD = "/bench.Bench/Tail"
PORT = 17_878
TOTAL = 60_000


async def serve_aio():
    import grpc

    async def tail(request, context):
        size, count = map(int, request.split())
        for _ in range(count):
            yield MESSAGE * size

    async def nothing(request, context):
        return b""

    server = grpc.aio.server(options=[("grpc.max_concurrent_streams", 2_000), ("grpc.so_reuseport", 0)])
    methods = {
        "Tail": grpc.unary_stream_rpc_method_handler(tail),
        "Nothing": grpc.unary_unary_rpc_method_handler(nothing),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bench.Bench", methods),))
    server.add_insecure_port(f"127.0.0.1:{PORT}")
    await server.start()
    print("ready", flush=True)
    await server.wait_for_termination()


async def serve_grpclib():
    from grpclib.const import Cardinality, Handler
    from grpclib.encoding.base import CodecBase
    from grpclib.server import Server

    class Plain(CodecBase):
        __content_subtype__ = "proto"

        def encode(self, message, message_type):
            return message

        def decode(self, data, message_type):
            return data

    class Bench:
        async def tail(self, stream):
            size, count = map(int, (await stream.recv_message()).split())
            for _ in range(count):
                await stream.send_message(MESSAGE * size)

        async def nothing(self, stream):
            await stream.recv_message()
            await stream.send_message(b"")

        def __mapping__(self):
            return {
                METHOD: Handler(self.tail, Cardinality.UNARY_STREAM, bytes, bytes),
                "/bench.Bench/Nothing": Handler(self.nothing, Cardinality.UNARY_UNARY, bytes, bytes),
            }

    server = Server([Bench()], codec=Plain())
    await server.start("127.0.0.1", PORT)
    print("ready", flush=True)
    await server.wait_closed()


async def read(streams: int, size: int) -> int:
    """How many messages came, over a few connections, as browsers and workers would have them."""
    import grpc

    options = [("grpc.use_local_subchannel_pool", 1)]
    channels = [grpc.aio.insecure_channel(f"127.0.0.1:{PORT}", options=options) for _ in range(max(1, streams // 64))]
    count = TOTAL // streams // (1 if size == 1 else 20)
    asked = f"{size} {count}".encode()

    async def one(number: int) -> int:
        return sum([1 async for _ in channels[number % len(channels)].unary_stream(METHOD)(asked)])

    came = sum(await asyncio.gather(*map(one, range(streams))))
    for channel in channels:
        await channel.close()
    assert came == count * streams, (came, count * streams)
    return came


async def call(at_once: int, count: int = 3_000) -> int:
    import grpc

    async with grpc.aio.insecure_channel(f"127.0.0.1:{PORT}") as channel:
        nothing = channel.unary_unary("/bench.Bench/Nothing")

        async def some() -> None:
            for _ in range(count // at_once):
                await nothing(b"")

        await asyncio.gather(*(some() for _ in range(at_once)))
    return count


def measure(kind: str, loop: str) -> None:
    server = subprocess.Popen([sys.executable, __file__, kind, loop], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout.readline() == "ready\n"
        process = psutil.Process(server.pid)
        for streams, size in ((1, 1), (64, 1), (512, 1), (1, 100), (64, 100)):
            show(process, f"{kind} {loop}: {streams} streams, {size} a message", read(streams, size))
        for at_once in (1, 32):
            show(process, f"{kind} {loop}: empty calls, {at_once} at once", call(at_once))
        print(f"{kind} {loop}: {process.memory_info().rss >> 20} MiB", flush=True)
    finally:
        server.kill()
        server.wait()


def show(process: psutil.Process, name: str, work) -> None:
    before, began = sum(process.cpu_times()[:2]), time.perf_counter()
    came = asyncio.run(work)
    spent, took = sum(process.cpu_times()[:2]) - before, time.perf_counter() - began
    print(f"{name:<48} {spent / came * 1e6:7.1f} µs of the server's CPU, {came / took:9,.0f} a second", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        if sys.argv[2] == "uvloop":
            import uvloop

            uvloop.install()
        asyncio.run({"grpc.aio": serve_aio, "grpclib": serve_grpclib}[sys.argv[1]]())
    else:
        for kind in ("grpc.aio", "grpclib"):
            for loop in ("asyncio", "uvloop"):
                measure(kind, loop)
