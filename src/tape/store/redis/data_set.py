"""The data set of a server, as far as this process knows it."""

from tape.core.ids import Epoch, GlobalSeq


class DataSet:
    """The newest epoch that was observed, and its highest observed head.

    A server can come back empty, or with less than it had. Then an epoch begins, and a cursor of the one before means
    nothing in it.
    """

    def __init__(self) -> None:
        self.epoch = Epoch(0)
        self.head = GlobalSeq(0)

    @property
    def place(self) -> tuple[Epoch, GlobalSeq]:
        """Every later read must find this or more."""
        return self.epoch, self.head

    def observe(self, epoch: Epoch, head: GlobalSeq) -> None:
        """Remembers the highest epoch and head; answers of two connections may arrive out of order."""
        self.epoch, self.head = max(self.place, (epoch, head))
