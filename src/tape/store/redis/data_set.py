"""Which data set a server holds, as far as this process has been told."""

from collections.abc import Callable

from tape.core.errors import InvalidCursor
from tape.core.ids import Epoch, GlobalSeq


class DataSet:
    """Follows the epoch, and knows in which one the cursors of its readers were given.

    A server can come back empty, or with less than it had. Then an epoch begins: what is appended goes there, but a
    cursor of the one before means nothing in it, and no read can tell how old its cursor is. So reads end for good,
    and who opens the store again reads from the beginning.
    """

    def __init__(self) -> None:
        self.epoch = Epoch(0)
        self.head = GlobalSeq(0)
        self.changed: Callable[[Epoch], None] = lambda epoch: None
        self._opened_in = Epoch(0)

    def see(self, epoch: Epoch, head: GlobalSeq) -> None:
        """Takes note of where the journal stands; the answers of two connections may overtake each other."""
        if epoch == self.epoch:
            self.head = max(self.head, head)
        elif epoch > self.epoch:
            self.epoch, self.head = epoch, head
            self.changed(epoch)

    def begin(self, epoch: Epoch, head: GlobalSeq) -> None:
        """Takes an epoch for the one in which its readers read on."""
        self._opened_in = epoch
        self.see(epoch, head)

    def check(self, epoch: Epoch, head: GlobalSeq, seen: GlobalSeq) -> None:
        """Raises unless this is the data set in which cursors were given; `seen` was its head before the read."""
        self.see(epoch, head)
        if epoch != self._opened_in:
            raise InvalidCursor(
                f"the data set in Redis is not the one of epoch {self._opened_in}, in which this store was opened; "
                "its cursors mean nothing any more: open the store again and read from the beginning"
            )
        if head < seen:
            raise InvalidCursor(
                f"the data set in Redis ends at {head}, but {seen} was there before: it is an older one"
            )
