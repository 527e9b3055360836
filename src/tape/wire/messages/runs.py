"""Runs on the wire."""

from typing import Any, Final

from tape.core.run_state import Compaction, RunClaim, RunState
from tape.wire import tape_pb2 as pb
from tape.wire.message_mapping import NO_NAMES, MessageMapping, build, number

NAMES_OF_RUN: Final = {
    "app": "app_name",
    "user": "user_id",
    "session": "session_id",
    "invocation": "invocation_id",
}
LEASE: Final = {"owner": "lease_owner", "attempt": "attempt", "expires_at_ms": "lease_expires_at_ms"}

RUN: Final = MessageMapping(
    RunState,
    pb.RunState,
    {"lease_ms": "lease_ttl_ms"},
    {"of": NAMES_OF_RUN, "claim": LEASE, "identity": NO_NAMES},
)
COMPACTION: Final = MessageMapping(Compaction, pb.CompactionReport)


def resumed(begun: RunClaim) -> pb.RunState:
    """A run as whoever has just begun or taken it is told."""
    told: dict[str, Any] = {
        "seq_cursor": begun.next_seq,
        "resumed": begun.is_resumed,
        "acquired": begun.is_acquired,
    }
    return RUN.message(begun.run, **told)


def begun(begun: RunClaim) -> pb.BeginRunResponse:
    return build(
        pb.BeginRunResponse,
        run_id=begun.run.run_id,
        resumed=begun.is_resumed,
        next_seq=begun.next_seq,
        status=number(begun.run.status),
        acquired=begun.is_acquired,
        run=resumed(begun),
    )


def begun_value(run: pb.RunState) -> RunClaim:
    return RunClaim(run=RUN.value(run), is_resumed=run.resumed, is_acquired=run.acquired, next_seq=run.seq_cursor)
