"""Waking the readers of a journal on Postgres: notifications are hints, and a poll never relies on them."""

import asyncio
from collections.abc import Callable
from typing import Final, NoReturn

from tape.core.ids import GlobalSeq
from tape.store.hints import UNKNOWN, Hints, head_of
from tape.store.postgres.listen import ArrivalLog, Connect, Listener
from tape.store.timeouts import Timeouts

CHANNEL: Final = "tape"
OWN_S: Final = 0.25  # the tail of this node has its own entries long before


class JournalWake:
    """Wakes readers when another process has appended, and a little later when this one has.

    It connects with the first wait: a process that only writes would receive nothing but its own notifications.
    """

    def __init__(self, connect: Connect, own_process: Callable[[], int], timeouts: Timeouts) -> None:
        self._connect = connect
        self._own_process = own_process
        arrivals = ArrivalLog("journal.degraded", "journal.recovered", (CHANNEL,))
        self._listener = Listener(connect, self._notify, (CHANNEL,), timeouts, on_state=arrivals.on_state)
        self._is_wanted = asyncio.Event()
        self._hints = Hints()
        self._own_head: GlobalSeq | None = None

    @property
    def is_listening(self) -> bool:
        return self._listener.is_listening

    async def notify(self, head: GlobalSeq) -> None:
        return  # the append itself notifies, in its own transaction

    async def wait_beyond(self, cursor: GlobalSeq) -> None:
        self._is_wanted.set()
        await self._hints.wait_beyond(cursor)

    async def run(self) -> NoReturn:
        await self._is_wanted.wait()
        await self._listener.run(self._on_notify, lambda: self._hints.add(UNKNOWN))

    async def _notify(self, channel: str) -> None:
        connection = await self._connect()
        try:
            await connection.execute("SELECT pg_catalog.pg_notify($1, '')", channel)
        finally:
            connection.terminate()

    def _on_notify(self, process: int, payload: str) -> None:
        head = head_of(payload)
        if process == self._own_process():
            self._on_own(head)
        else:
            self._hints.add(head)

    def _on_own(self, head: GlobalSeq) -> None:
        """Wakes once for all entries that this node appends within a moment.

        The appender passes them to the tail, and reading them again would double the work. Entries that were appended
        by other means are still found sooner than by the poll.
        """
        if self._own_head is None:
            asyncio.get_running_loop().call_later(OWN_S, self._wake_for_own)
        self._own_head = max(self._own_head or head, head)

    def _wake_for_own(self) -> None:
        head, self._own_head = self._own_head, None
        self._hints.add(UNKNOWN if head is None else head)
