"""Appends and streams events of this process's journal."""

from collections.abc import Sequence

from tape.bus.journal import Journal
from tape.bus.stream import Stream
from tape.core.event import Entry, Event
from tape.operations.ledgers import LedgerStreamOptions


class Events:
    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def append(
        self, events: Sequence[Event], key: str | None = None, expected_seq: int | None = None, open: bool = False
    ) -> list[Entry]:
        return await self._journal.append(events, key=key, expected_seq=expected_seq, open=open)

    async def head(self) -> int:
        return await self._journal.head()

    async def stream(self, options: LedgerStreamOptions) -> Stream:
        return self._journal.stream(
            run_id=options.run_id,
            from_seq=options.from_seq,
            subject=options.subject,
            where=options.where,
            from_global_seq=options.from_global_seq,
            follow=options.follow,
        )
