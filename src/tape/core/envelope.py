"""What a broker returns: events with their seq, and its counters."""

from dataclasses import asdict, dataclass

from tape.core.event import Entry, Event
from tape.core.ids import RunId, Seq


@dataclass(frozen=True, slots=True)
class EventEnvelope:
    """An event with its seq."""

    run_id: RunId
    seq: Seq
    event: Event


def envelope_of(entry: Entry, run_id: RunId | None = None) -> EventEnvelope:
    """The envelope of an entry; an inherited entry gets the run_id of the fork."""
    return EventEnvelope(run_id or entry.run_id, entry.seq, entry.event)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerMetricsSnapshot:
    """A broker's counters since it was created, and how many runs it has open."""

    events_published: int = 0
    events_streamed: int = 0
    streams_dropped: int = 0
    runs_open: int = 0

    def to_dict(self) -> dict[str, int]:
        return asdict(self)
