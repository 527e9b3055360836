"""What could not be written, and a lake that is not the journal's, as errors of ours that say why."""

from typing import Final

from tape.core.errors import Conflict, TapeError, Unavailable
from tape.core.event import Entry

WAY_OUT: Final = (
    "it is another journal's lake, or the journal lost entries in a restore or a promotion: move the lake away and run "
    "tape lake sync again (docs/runbooks/rebuild-the-lake.md)"
)


def refusal(error: Exception, what: str) -> TapeError:
    """What Spark or Arrow raises of something it could not write, as ours."""
    if isinstance(error, TapeError):
        return error
    reason = next((line for line in str(error).splitlines() if "No space left" in line), str(error).partition("\n")[0])
    return Unavailable(f"{what} was not written: {type(error).__name__}: {reason.strip()}")


def beyond(through: int, head: int) -> Conflict:
    """A lake that holds positions which the journal has not."""
    return Conflict(f"the lake ends at {through} and the journal at {head}: {WAY_OUT}")


def check_same(theirs: Entry, ours: Entry) -> None:
    """Refuses a lake whose entry is not the journal's at that position."""
    if theirs != ours:
        found = f"checksum {theirs.crc:08x}, epoch {theirs.epoch}; in the journal {ours.crc:08x}, {ours.epoch}"
        raise Conflict(f"entry {ours.global_seq} of the lake is not the journal's ({found}): {WAY_OUT}")
