"""Makes gRPC safe in a program that forks: the parent continues, and a child gets a clear error.

A thread of grpc.aio is always inside gRPC, so gRPC's own fork handlers never finish; they abort children that were only
to start another program. Imported before gRPC, this module turns them off, unless the environment says otherwise. A
child still cannot use gRPC if its parent did: it would wait for threads that it does not have.
"""

import os

from tape.core.errors import UsageError
from tape.wire.late_events import accept_late_events

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")


class GrpcUse:
    """Remembers which process uses gRPC; a forked child has none of its threads."""

    def __init__(self) -> None:
        self._process: int | None = None

    def begin(self) -> None:
        """Every user of grpc.aio calls this first. Raises in a process that was forked from one that used gRPC."""
        here = os.getpid()
        if self._process not in (None, here):
            raise UsageError(
                f"gRPC was in use in process {self._process} when this one was forked from it, and does not work here; "
                "fork before the first connection, or start the process with multiprocessing's 'spawn'"
            )
        self._process = here
        accept_late_events()


grpc_use = GrpcUse()
