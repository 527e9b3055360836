"""What a broker hands out: an event with its place in its run, and what it has counted."""

from dataclasses import asdict, dataclass

from tape.core.event import Entry, Event
from tape.core.ids import RunId, Seq


@dataclass(frozen=True, slots=True)
class EventEnvelope:
    """An event as its run numbers it."""

    run_id: RunId
    seq: Seq
    event: Event


def envelope_of(entry: Entry, run_id: RunId | None = None) -> EventEnvelope:
    """An entry as a broker hands it out; what a fork inherited is handed out under the fork's run_id."""
    return EventEnvelope(run_id or entry.run_id, entry.seq, entry.event)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerMetricsSnapshot:
    """What a broker has done since it was made, and how many runs it has open."""

    events_published: int = 0
    events_streamed: int = 0
    streams_dropped: int = 0
    runs_open: int = 0

    def to_dict(self) -> dict[str, int]:
        return asdict(self)
