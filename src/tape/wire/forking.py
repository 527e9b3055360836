"""gRPC in a program that forks: the parent goes on shielded, and the child learns what it cannot do.

A thread of grpc.aio is always inside gRPC, so gRPC's own fork handlers never get to their work; they abort children
that were only to start another program. Imported before gRPC, this turns them off, unless the environment says
otherwise. What is left is that a child cannot use gRPC if its parent did: it would wait for threads that it lacks.
"""

import os

from tape.core.errors import UsageError

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")


class Use:
    """Which process has begun to use gRPC; its children have all of it but the threads."""

    def __init__(self) -> None:
        self._process: int | None = None

    def begin(self) -> None:
        """Refuses a process that was forked from one that used gRPC."""
        here = os.getpid()
        if self._process not in (None, here):
            raise UsageError(
                f"gRPC was in use in process {self._process} when this one was forked from it, and does not work here; "
                "fork before the first connection, or start the process with multiprocessing's 'spawn'"
            )
        self._process = here


use = Use()
