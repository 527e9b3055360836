"""Processes beside gRPC: a program that uses the SDK may fork, and a server starts what it needs."""

import subprocess
import sys

import pytest

from tests.conftest import ROOT, Scale
from tests.deadlines import DEADLINE_S
from tests.server.conftest import Start
from tests.server.server import clean_environment

BESIDE_GRPC = """
import sys, anyio, grpc
from tape.wire import fork_guard
from tape.work.child_process import run_child

async def echo(request, context):
    return request

async def call(method):
    while True:
        await method(b"", timeout=60)

async def main(count):
    server = grpc.aio.server()
    handlers = {"Echo": grpc.unary_unary_rpc_method_handler(echo)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel, anyio.create_task_group() as tasks:
        tasks.start_soon(call, channel.unary_unary("/test/Echo"))
        codes = {(await run_child(["cat"], b"hello")).stdout for _ in range(count)}
        tasks.cancel_scope.cancel()
    await server.stop(None)
    print(codes)

anyio.run(main, int(sys.argv[1]), backend_options={"use_uvloop": True})
"""


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        ("exec_as_another", "exit 0"),
        ("fork_and_use", "UsageError this connection was opened in process"),
        ("fork_and_connect", "UsageError gRPC was in use in process"),
        ("fork_and_embed", "done"),
        ("fork_and_leave", "exit 0"),
    ],
)
def test_a_program_that_forks_continues_and_its_child_gets_a_clear_error(
    start: Start, scale: Scale, kind: str, outcome: str
) -> None:
    server = start()

    command = [sys.executable, "-m", "tests.server.forking_program", kind, server.rpc, str(scale(8))]
    done = subprocess.run(command, cwd=ROOT, env=clean_environment(), capture_output=True, timeout=DEADLINE_S)

    lines = done.stdout.decode().splitlines()
    assert len(lines) == 2 and lines[0].startswith(outcome) and lines[1].startswith("parent"), done
    assert done.stderr == b""


def test_what_a_server_starts_beside_grpc_is_not_harmed_by_its_threads(scale: Scale) -> None:
    command = [sys.executable, "-c", BESIDE_GRPC, str(scale(16))]

    done = subprocess.run(command, capture_output=True, timeout=DEADLINE_S)

    assert (done.stdout, done.returncode) == (b"{b'hello'}\n", 0) and b"fork" not in done.stderr
