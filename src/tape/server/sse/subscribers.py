"""How many streams may be open: on one run, and on the whole server."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from tape.core.errors import SubscriberLimitExceeded, UsageError
from tape.core.ids import RunId

PER_RUN: Final = 64
PER_SERVER: Final = 1024
MOST: Final = 100_000
SOONEST_MS: Final = 1_000
LATEST_MS: Final = 5_000


@dataclass(slots=True, eq=False)
class Subscriber:
    """An open stream, how many entries it is behind, and how it is sent away."""

    run_id: RunId | None
    lag: Callable[[], int] = lambda: 0
    goaway: Callable[[int], None] | None = None
    is_goaway_sent: bool = False


class Subscribers:
    """Gives places to streams, and none beyond a limit. Streams across runs count for the server only."""

    def __init__(self, per_run: int = PER_RUN) -> None:
        if not 1 <= per_run <= MOST:
            raise UsageError(f"--max-subscribers must be 1 to {MOST:,}, not {per_run:,}")
        self._per_run = per_run
        self._per_server = max(PER_SERVER, per_run)
        self._present: set[Subscriber] = set()
        self._on_run: Counter[RunId] = Counter()

    def __len__(self) -> int:
        return len(self._present)

    @property
    def lag(self) -> int:
        """How far the slowest one is behind."""
        return max((subscriber.lag() for subscriber in self._present), default=0)

    def send_goaways(self) -> None:
        """Tells everybody to come back, some sooner and some later, so that they do not all come at once."""
        present = [subscriber for subscriber in self._present if subscriber.goaway and not subscriber.is_goaway_sent]
        for number, subscriber in enumerate(present):
            subscriber.is_goaway_sent = True
            if subscriber.goaway is not None:
                subscriber.goaway(SOONEST_MS + (LATEST_MS - SOONEST_MS) * number // len(present))

    @contextmanager
    def join(self, run_id: RunId | None) -> Iterator[Subscriber]:
        """A place for as long as the block lasts."""
        subscriber = self._enter(run_id)
        try:
            yield subscriber
        finally:
            self._leave(subscriber)

    def _enter(self, run_id: RunId | None) -> Subscriber:
        if len(self._present) >= self._per_server:
            raise SubscriberLimitExceeded(self._per_server)
        if run_id is not None and self._on_run[run_id] >= self._per_run:
            raise SubscriberLimitExceeded(self._per_run)
        subscriber = Subscriber(run_id)
        self._present.add(subscriber)
        if run_id is not None:
            self._on_run[run_id] += 1
        return subscriber

    def _leave(self, subscriber: Subscriber) -> None:
        self._present.discard(subscriber)
        if (run_id := subscriber.run_id) is not None:
            self._on_run[run_id] -= 1
            if not self._on_run[run_id]:
                del self._on_run[run_id]
