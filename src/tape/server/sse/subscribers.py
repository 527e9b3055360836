"""Limits how many streams are open, per run and per server, and sends their goaways."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from tape.core.errors import SubscriberLimitExceeded, UsageError
from tape.core.ids import RunId

PER_RUN: Final = 64
PER_SERVER: Final = 1024
MAX_PER_RUN: Final = 100_000
SOONEST_MS: Final = 1_000
LATEST_MS: Final = 5_000


@dataclass(slots=True, eq=False)
class Subscriber:
    """An open stream: its lag in entries, and the function that ends it with a goaway."""

    run_id: RunId | None
    lag: Callable[[], int] = lambda: 0
    goaway: Callable[[int], None] | None = None
    is_goaway_sent: bool = False


class Subscribers:
    """The open streams of a server. Streams across runs count towards the server's limit only."""

    def __init__(self, per_run: int = PER_RUN) -> None:
        if not 1 <= per_run <= MAX_PER_RUN:
            raise UsageError(f"--max-subscribers must be 1 to {MAX_PER_RUN:,}, not {per_run:,}")
        self._per_run = per_run
        self._per_server = max(PER_SERVER, per_run)
        self._open: set[Subscriber] = set()
        self._on_run: Counter[RunId] = Counter()

    def __len__(self) -> int:
        return len(self._open)

    @property
    def lag(self) -> int:
        """The lag of the slowest stream."""
        return max((subscriber.lag() for subscriber in self._open), default=0)

    def send_goaways(self) -> None:
        """Sends each stream one goaway, with delays spread so that the clients do not all reconnect at once."""
        remaining = [subscriber for subscriber in self._open if subscriber.goaway and not subscriber.is_goaway_sent]
        for number, subscriber in enumerate(remaining):
            subscriber.is_goaway_sent = True
            if subscriber.goaway is not None:
                subscriber.goaway(SOONEST_MS + (LATEST_MS - SOONEST_MS) * number // len(remaining))

    @contextmanager
    def join(self, run_id: RunId | None) -> Iterator[Subscriber]:
        """Counts a stream for as long as the block lasts; raises beyond a limit."""
        if len(self._open) >= self._per_server:
            raise SubscriberLimitExceeded(self._per_server)
        if run_id is not None and self._on_run[run_id] >= self._per_run:
            raise SubscriberLimitExceeded(self._per_run)
        subscriber = Subscriber(run_id)
        self._open.add(subscriber)
        if run_id is not None:
            self._on_run[run_id] += 1
        try:
            yield subscriber
        finally:
            self._leave(subscriber)

    def _leave(self, subscriber: Subscriber) -> None:
        self._open.discard(subscriber)
        if (run_id := subscriber.run_id) is not None:
            self._on_run[run_id] -= 1
            if not self._on_run[run_id]:
                del self._on_run[run_id]
