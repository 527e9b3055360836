"""An event as one value in Redis: its subject first, so that a script can match it, its payload last."""

from collections.abc import Iterator, Sequence
from typing import Final

from tape.core.errors import Corrupt
from tape.core.event import Entry, Event
from tape.core.ids import GlobalSeq, RunId

SEPARATOR: Final = "\x1f"  # no JSON text and none of our names can hold a control character
_PARTS: Final = 12


def pack(event: Event) -> bytes:
    _, kind, name, subject, version, event_id, cause, trace, span, parent, attributes, text, blob = event.content
    fields = (subject, kind, name, str(version), event_id, "" if cause is None else str(cause), trace, span, parent,
            attributes, str(event.crc))  # fmt: skip
    if blob is None:
        return SEPARATOR.join((*fields, "", text or "")).encode()
    return SEPARATOR.join((*fields, "b", "")).encode() + blob


def unpack(run_id: RunId, place: bytes, at: bytes, packed: bytes) -> Entry:
    """The entry at a position and seq; `Corrupt` if the value is not a packed event."""
    seq, global_seq = map(int, place.split(b"-"))
    try:
        ts_ms, epoch, depth = map(int, at.split())
        *fields, payload = packed.split(SEPARATOR.encode(), _PARTS)
        subject, kind, name, version, event_id, cause, trace, span, parent, attributes, crc, form = (
            part.decode() for part in fields
        )
        body = (None, payload) if form else (payload.decode(), None)
        row = (global_seq, seq, ts_ms, depth, epoch, int(crc), run_id, kind, name, subject, int(version), event_id,
               int(cause) if cause else None, trace, span, parent, attributes, *body)  # fmt: skip
    except ValueError as error:
        raise Corrupt("its stored bytes are not what was written", GlobalSeq(global_seq)) from error
    return Entry._make(row)


def rows_of(flat: Sequence[bytes], width: int) -> Iterator[tuple[bytes, ...]]:
    """The values that a script returned as one flat list."""
    return zip(*[iter(flat)] * width, strict=True)


def intact(entries: Iterator[Entry]) -> Sequence[Entry]:
    """The entries before the first one whose checksum is wrong; `Corrupt` if that is the first."""
    found: list[Entry] = []
    try:
        for entry in entries:
            if not entry.is_intact:
                raise Corrupt("its stored bytes are not what was written", entry.global_seq)
            found.append(entry)
    except Corrupt:
        if not found:
            raise
    return found
