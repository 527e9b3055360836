"""Events, as a program says and follows them."""

from collections.abc import Iterable

from tape.core.event import Entry, Event
from tape.operations.ledgers import EventLog, Following, LedgerStreamOptions


class Events:
    """What producers say, and everything that is said."""

    def __init__(self, log: EventLog) -> None:
        self._log = log

    async def append(
        self,
        events: Event | Iterable[Event],
        *,
        key: str | None = None,
        expected_seq: int | None = None,
        open: bool = False,
    ) -> list[Entry]:
        """Appends one event or many, all or none; the same key and body again give the first positions."""
        said = (events,) if isinstance(events, Event) else tuple(events)
        return list(await self._log.append(said, key, expected_seq, open))

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
