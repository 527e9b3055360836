"""A reader's position, from which it resumes over any number of connections."""

from dataclasses import dataclass

from tape.wire.frames import Checkpoint, ClientEvicted, Delivered, Frame, StateResyncRequired


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last id handled, and the epoch it belongs to.

    The epoch changes only together with the position: a reader that was disconnected between a new journal's headers
    and its first frame must reconnect with the old epoch, or it would miss the reset.
    """

    place: int | None = None
    epoch: str | None = None

    def has_passed(self, frame: Frame) -> bool:
        """Whether the reader has already received this entry."""
        return isinstance(frame, Delivered) and self.place is not None and frame.id <= self.place

    def after(self, frame: Frame, epoch: str | None) -> "Cursor":
        """The cursor after a frame that was received under this epoch."""
        match frame:
            case Delivered(id=place):
                return Cursor(place, epoch)
            case Checkpoint(id=place):
                return Cursor(max(place, self.place or 0), epoch)
            case StateResyncRequired(reason="epoch_reset", earliest_available_id=earliest):
                return Cursor(earliest - 1, epoch)
            case ClientEvicted(dropped_after=int(place)) if self.place is None:
                return Cursor(place, epoch)
            case _:
                return self
