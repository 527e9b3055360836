"""Which data set a server holds, as far as this process has been told."""

from tape.core.ids import Epoch, GlobalSeq


class DataSet:
    """The newest epoch that was met, and how far it was seen to reach.

    A server can come back empty, or with less than it had. Then an epoch begins, and a cursor of the one before means
    nothing in it.
    """

    def __init__(self) -> None:
        self.epoch = Epoch(0)
        self.head = GlobalSeq(0)

    @property
    def place(self) -> tuple[Epoch, GlobalSeq]:
        """What any later look must find, or more."""
        return self.epoch, self.head

    def see(self, epoch: Epoch, head: GlobalSeq) -> None:
        """Takes note of where the journal stands; the answers of two connections may overtake each other."""
        self.epoch, self.head = max(self.place, (epoch, head))
