"""A process that has imported Tape and forks for every program that it is asked to run."""

import atexit
import json
import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from runpy import run_module
from typing import Any, Final

# What a server and the programs of tests/process import. None of them may start a thread: a fork has only one.
MODULES: Final = (
    "asyncpg",
    "click.shell_completion",
    "grpc_health.v1.health",
    "grpc_reflection.v1alpha.reflection",
    "psycopg",
    "redis.asyncio",
    "tape.broker",
    "tape.cli.choices",
    "tape.cli.demo.arena.producer",
    "tape.cli.serve",
    "tape.lake.cold.runs",
    "tape.matcher.dispatcher",
    "tape.outbox.listener",
    "tape.reactions",
    "tape.sdk.durable.agent_worker",
    "tape.server.grpc.server",
    "tape.server.service",
    "tape.serving",
    "tape.store.postgres.store",
    "tape.store.redis.store",
    "tape.store.sqlite.store",
    "uvloop",
)
MAX_REQUEST: Final = 1 << 20

Request = dict[str, Any]


class Preloaded:
    """Forks as long as the tests run; kills what is left of its children when they end."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._exits: dict[int, int] = {}
        self._woken, self._wake = socket.socketpair()
        self._wake.setblocking(False)

    def serve(self) -> Request | None:
        """Returns the request in the child that is to run it, and None in this process, at the end."""
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self._wake.fileno())
        while True:
            ready, _, _ = select.select([self._control, self._woken], [], [])
            if self._woken in ready:
                self._woken.recv(MAX_REQUEST)
                self._report_exits()
            if self._control in ready:
                request, files, _, _ = socket.recv_fds(self._control, MAX_REQUEST, 3)
                if not request:
                    self._kill_all()
                    return None
                if self._fork(files):
                    return dict(json.loads(request))

    def _fork(self, files: Sequence[int]) -> bool:
        """Whether this is the child."""
        pid = os.fork()  # noqa: TID251 - `main` has checked that there is no other thread
        if pid == 0:
            self._begin(files)
            return True
        output, errors, self._exits[pid] = files
        os.close(output)
        os.close(errors)
        return False

    def _begin(self, files: Sequence[int]) -> None:
        """Makes a process of its own of the child, with nothing left of this one's files."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        self._control.send(struct.pack("i", os.getpid()))  # its group can be killed from now on
        os.dup2(files[0], 1)
        os.dup2(files[1], 2)
        for end in (self._control, self._woken, self._wake):
            end.close()
        for file in (*files, *self._exits.values()):
            os.close(file)

    def _report_exits(self) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                exits = self._exits.pop(ended[0])
                with suppress(BrokenPipeError):
                    os.write(exits, struct.pack("i", os.waitstatus_to_exitcode(ended[1])))
                os.close(exits)

    def _kill_all(self) -> None:
        for pid in self._exits:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)


class End:
    """Ends a child after its threads and exit functions, but without taking down all that it shares: 0.2 CPU seconds.

    It is registered first, and so it is the last of the exit functions.
    """

    def __init__(self) -> None:
        self.code: int | None = None
        atexit.register(self._exit)

    def _exit(self) -> None:
        if self.code is not None:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(self.code)


def run(request: Request, end: End) -> None:
    """Runs a module as `python -m` does."""
    os.chdir(request["folder"])
    os.umask(request["umask"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.path[0] = request["folder"]
    sys.argv[1:] = request["arguments"]
    try:
        run_module(request["module"], run_name="__main__", alter_sys=True)
    except SystemExit as error:
        end.code = error.code if isinstance(error.code, int) else int(error.code is not None)
        raise
    except Exception:
        end.code = 1
        raise
    end.code = 0


def main(control: int) -> None:
    end = End()
    os.environ["GRPC_VERBOSITY"] = "NONE"  # which gRPC reads when it is imported
    for module in MODULES:
        import_module(module)
    assert len([*Path("/proc/self/task").iterdir()]) == 1, "an import has started a thread"
    request = Preloaded(socket.socket(fileno=control)).serve()
    if request is not None:
        run(request, end)


if __name__ == "__main__":
    main(int(sys.argv[1]))
