"""Matchers beside an appender, and how to look at what they were answered."""

from collections.abc import Sequence

import anyio
import asyncpg

from tape.core.matched import MatchedPage, Recorded
from tape.core.ports import Store
from tape.core.task import MAX_CLAIM, Task, Want
from tape.matcher.matcher import Hands, Matcher, Source
from tests.contract import reacting
from tests.contract.reacting import catch_up, publish, reaction

APPENDING = "SELECT pid FROM pg_stat_activity WHERE query LIKE '%tape_append_matched%' AND wait_event = 'advisory'"
JOURNAL_LOCK = "SELECT pg_advisory_lock(7461706500000001)"


class Companion(Matcher):
    """A matcher that keeps what it was answered."""

    def __init__(self, store: Store, hands: Hands, source: Source | None = None) -> None:
        super().__init__(store, source, hands=hands)
        self.answers: list[Recorded | None] = []

    def answer(self, page: MatchedPage, recorded: Recorded | None) -> None:
        self.answers.append(recorded)
        super().answer(page, recorded)

    @property
    def given(self) -> list[int]:
        """What was written with its entry."""
        return [task.source_global_seq for recorded in self.answers if recorded for task in recorded.tasks]


class OpenHands(reacting.Hands):
    """Counts what it was promised and has not been answered yet."""

    promises = 0

    def wanted(self, most: int = MAX_CLAIM) -> Want:
        self.promises += 1
        return super().wanted(most)

    def take(self, want: Want, tasks: Sequence[Task]) -> None:
        self.promises -= 1
        super().take(want, tasks)


async def ready(store: Store, hands: Hands, source: Source | None = None, **options: object) -> Companion:
    """A matcher that has read everything there is: a reaction, and an entry that opened the run."""
    await store.reactions.register(reaction(**options))  # type: ignore[arg-type]
    await publish(store, 1, "/elsewhere")
    companion = Companion(store, hands, source)
    await catch_up(companion)
    return companion


async def appending(connection: asyncpg.Connection) -> int:
    """The server's process that waits for the journal's lock with a match."""
    while not (process := await connection.fetchval(APPENDING)):  # noqa: ASYNC110 - only asking can tell
        await anyio.sleep(0.01)
    return int(process)
