"""The start of a forked run: whether it may begin, and its first head."""

from collections.abc import Sequence
from typing import Final, Literal, assert_never

from tape.core.errors import BrokerOverflowError, Conflict, LimitReached, RunNotFound, TapeError, UsageError, quoted
from tape.core.event import Event, check_run_id
from tape.core.fork import FORK, RUN, Fork, lineage_of_child
from tape.core.ids import RunId, Seq
from tape.core.run import Head

MAX_ANCESTORS: Final = 256

ForkRefusal = Literal["exists", "orphan", "beyond", "gone", "deep"]


def check_fork(fork: Fork, events: Sequence[Event], expected_seq: Seq | None) -> None:
    """Refuses a fork that no store could accept."""
    runs = {event.run_id for event in events}
    if len(runs) != 1 or check_run_id(fork.parent_run_id) in runs:
        raise UsageError("a fork is one run, and another one than its parent")
    if (events[0].kind, events[0].type) != (RUN, FORK):
        raise UsageError(f"a fork begins with an event of kind {RUN!r} and type {FORK!r}")
    if expected_seq is not None:
        raise UsageError("a fork begins a new run, so it has no expected_seq")
    if type(fork.at_seq) is not int or not 0 <= fork.at_seq < 1 << 63:
        raise UsageError(f"a run is forked at a seq from 0 on, not at {quoted(fork.at_seq)}")


def find_refusal(run_id: RunId, fork: Fork, child: Head | None, parent: Head | None) -> TapeError | None:
    """Why this run cannot begin as this fork, or None: it exists, or its parent has no such entry any more."""
    if child is not None:
        return refusal(run_id, fork, "exists")
    if parent is None:
        return refusal(run_id, fork, "orphan")
    if fork.at_seq > parent.last_seq:
        return refusal(run_id, fork, "beyond", parent.last_seq)
    if fork.at_seq + 1 < parent.floor:
        return refusal(run_id, fork, "gone", parent.floor)
    ancestors = len(lineage_of_child(parent.lineage, fork.parent_run_id, fork.at_seq))
    return refusal(run_id, fork, "deep", ancestors) if ancestors > MAX_ANCESTORS else None


def head_of_child(fork: Fork, parent: Head, events: int) -> Head:
    """The child's head after its first events; the child has its parent's content type."""
    lineage = lineage_of_child(parent.lineage, fork.parent_run_id, fork.at_seq)
    return Head(Seq(fork.at_seq + events), None, parent.floor, Seq(0), parent.content_type, lineage)


def refusal(run_id: RunId, fork: Fork, why: ForkRefusal, fact: int = 0) -> TapeError:
    """The error for a reason, whichever store found it."""
    match why:
        case "exists":
            return Conflict(f"run {run_id!r} is there already: a fork begins a new run; choose another run_id")
        case "orphan":
            return RunNotFound(fork.parent_run_id)
        case "beyond":
            return UsageError(f"run {fork.parent_run_id!r} can be forked at 0 to {fact}, not at {fork.at_seq}")
        case "gone":
            return BrokerOverflowError(fork.parent_run_id, max(fork.at_seq, 1), fact)
        case "deep":
            return LimitReached(f"run {run_id!r} would have {fact} ancestors; at most {MAX_ANCESTORS} are read")
        case _:
            assert_never(why)
