"""What to stream, as the query of `GET /events`."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from tape.core.errors import InvalidCursor, UsageError, quoted
from tape.core.event import check_run_id
from tape.core.flow import check_max_queued
from tape.core.subject import Pattern

Slow: TypeAlias = Literal["evict", "lag"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """One run by seq, or the journal across runs by position; `from_seq` is inclusive, `from_global_seq` exclusive.

    Without a start position a run is read from its beginning, and the journal from now on.
    """

    run_id: str | None = None
    from_seq: int | None = None
    subject: str | None = None
    where: str | None = None
    from_global_seq: int | None = None
    max_queued: int | None = None
    slow: Slow | None = None

    def __post_init__(self) -> None:
        if self.run_id is not None:
            check_run_id(self.run_id)
        if self.subject is not None:
            Pattern.parse(self.subject)
        if self.max_queued is not None:
            check_max_queued(self.max_queued)
        if self.slow not in (None, "evict", "lag"):
            raise UsageError(f"slow must be 'evict' or 'lag', not {quoted(self.slow)}")
        self._check_place()

    def _check_place(self) -> None:
        if self.run_id is None and self.from_seq is not None:
            raise InvalidCursor("from_seq is a place in a run; name the run_id, or use from_global_seq")
        if self.run_id is not None and self.from_global_seq is not None:
            raise InvalidCursor("from_global_seq is a place across runs; with a run_id use from_seq")
        for place in (self.from_seq, self.from_global_seq):
            if place is not None and (type(place) is not int or place < 0):
                raise InvalidCursor(f"a place to start is a number from 0 on, not {quoted(place)}")

    @property
    def query(self) -> dict[str, str]:
        asked = {
            "run_id": self.run_id,
            "from_seq": self.from_seq,
            "subject": self.subject,
            "where": self.where,
            "from_global_seq": self.from_global_seq,
            "maxQueued": self.max_queued,
            "slow": self.slow,
        }
        return {name: str(value) for name, value in asked.items() if value is not None}
