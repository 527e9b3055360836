"""Child processes: a cancelled one is gone, and its pipes are closed when no thread uses them."""

import os
import sys
from contextlib import suppress
from pathlib import Path

import anyio
from anyio import to_thread
from anyio.lowlevel import checkpoint

from tape.work.child_process import open_child, run_child
from tests.deadlines import DEADLINE_S

KEEPS_THE_PIPE = """
import os, subprocess, sys
subprocess.Popen([sys.executable, "-c", "import sys; open(sys.argv[1]).read()", sys.argv[1]], start_new_session=True)
print("started", flush=True)
sys.stdin.read()
"""


async def test_a_program_gets_its_input_and_its_output_is_given_back() -> None:
    done = await run_child(["cat"], b"x" * 1_000_000)

    assert (done.returncode, len(done.stdout)) == (0, 1_000_000)


async def test_a_program_that_ignores_a_request_to_end_is_killed() -> None:
    code = "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); sys.stdin.read()"
    with anyio.fail_after(DEADLINE_S):
        async with open_child([sys.executable, "-c", code], grace_s=0.1) as child:
            await child.read_line(10)

    assert await child.wait() == -9


async def test_a_pipe_is_not_closed_while_a_thread_reads_from_it(tmp_path: Path) -> None:
    """Otherwise the thread would read from whatever file gets the number of the pipe next."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    others = pipes()
    with anyio.fail_after(DEADLINE_S):
        async with open_child([sys.executable, "-c", KEEPS_THE_PIPE, str(fifo)]) as child:
            await child.read_line(100)
            before = pipes() - others
            with anyio.move_on_after(0.1):
                await child.read_line(100)
        held = pipes() & before

        await to_thread.run_sync(fifo.write_bytes, b"")  # what has kept the pipe ends
        while pipes() & before:
            await checkpoint()

    assert held


def pipes() -> set[str]:
    found = set()
    for number in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add(str(number.readlink()))
    return {name for name in found if name.startswith("pipe:")}
