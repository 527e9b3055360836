"""Events, as a program appends and follows them."""

from collections.abc import Iterable
from datetime import timedelta
from typing import TypeAlias

from tape.core.event import Entry, Event
from tape.core.event_page import EventPage
from tape.operations.fields import NO_WAIT
from tape.operations.journal_runs import EVENTS, ListEvents
from tape.operations.ledgers import Following, Ledgers, LedgerStreamOptions

Entries: TypeAlias = list[Entry]  # in the class, `list` is a method


class Events:
    """Appends events, and reads and follows the journal."""

    def __init__(self, ledgers: Ledgers) -> None:
        self._ledgers = ledgers
        self._log = ledgers.events

    async def append(
        self,
        events: Event | Iterable[Event],
        *,
        key: str | None = None,
        expected_seq: int | None = None,
        open: bool = False,
    ) -> Entries:
        """Appends one event or many, all or none; the same key and body again give the first positions."""
        batch = (events,) if isinstance(events, Event) else tuple(events)
        return [*await self._log.append(batch, key, expected_seq, open)]

    async def list(
        self, run_id: str, after: int = 0, limit: int = EVENTS, *, wait: timedelta = NO_WAIT, epoch: int | None = None
    ) -> EventPage:
        """Entries of a run after a seq, a page at a time; with a `wait`, an empty page only after that time.

        `epoch` is the epoch of `after`: a page has it.
        """
        request = ListEvents(run_id=run_id, after=after, limit=limit, wait=wait, epoch=epoch)
        return await self._ledgers.call(request)

    async def stream(
        self,
        *,
        run_id: str | None = None,
        from_seq: int = 1,
        subject: str | None = None,
        where: str | None = None,
        from_global_seq: int = 0,
        follow: bool = True,
    ) -> Following:
        """Entries in order, once each: first what there is, then what comes; a run's end with it."""
        options = LedgerStreamOptions(
            run_id=run_id,
            from_seq=from_seq,
            subject=subject,
            where=where,
            from_global_seq=from_global_seq,
            follow=follow,
        )
        return await self._log.stream(options)
