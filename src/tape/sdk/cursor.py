"""Where a reader has come to, so that it can go on there over any number of connections."""

from dataclasses import dataclass

from tape.wire.frames import Checkpoint, ClientEvicted, Delivered, Frame, StateResyncRequired


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last id handled, and the journal it belongs to.

    The epoch changes only together with the place: a reader that was cut off between a new journal's headers and its
    first frame must still come back as a reader of the old one, or what it missed would stay untold.
    """

    place: int | None = None
    epoch: str | None = None

    def has_passed(self, frame: Frame) -> bool:
        """Whether the reader has had this entry already."""
        return isinstance(frame, Delivered) and self.place is not None and frame.id <= self.place

    def after(self, frame: Frame, epoch: str | None) -> "Cursor":
        """The cursor once a frame that came under this epoch is handled."""
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
