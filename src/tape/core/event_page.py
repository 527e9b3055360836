"""A page of a run's entries."""

from dataclasses import dataclass

from tape.core.event import Entry
from tape.core.ids import Epoch, Seq

FRAME = 1_024  # bytes that an entry takes beside its subject, its attributes and its payload


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPage:
    """Entries of a run: the next page is the one after seq `next`, and `head` is the run's last seq.

    A closed run was read to its end when `next` is its `head`.
    """

    entries: tuple[Entry, ...]
    next: Seq
    head: Seq
    closed: bool
    epoch: Epoch


def answer_size(entry: Entry) -> int:
    """At most how many bytes an entry takes in an answer, where bytes are base64."""
    text, blob = entry.payload_json, entry.payload_bytes
    payload = len((text or "").encode()) + len(blob or b"") * 4 // 3
    return FRAME + 2 * len(entry.subject) + 2 * len(entry.attributes_json) + payload
