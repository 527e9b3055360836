"""The one signal handler: the first SIGTERM or SIGINT asks a program to stop, the second does not wait."""

import signal
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, Self

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class StopSignals:
    """Calls `on_first` with the number of the first signal, and `on_second` with that of every later one.

    Python calls them in the main thread between two instructions, so they work while the event loop is blocked.
    A signal that the process ignores stays ignored.
    """

    def __init__(self, on_first: Callable[[int], object], on_second: Callable[[int], object]) -> None:
        self.received: int | None = None
        self._on_first = on_first
        self._on_second = on_second
        self._before: dict[signal.Signals, Any] = {}

    def install(self) -> None:
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._receive)

    def restore(self) -> None:
        """Puts the handlers back that were there before."""
        while self._before:
            signal.signal(*self._before.popitem())

    def __enter__(self) -> Self:
        self.install()
        return self

    def __exit__(self, *_: object) -> None:
        self.restore()

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None:
            self._on_second(number)
            return
        self.received = number
        self._on_first(number)
