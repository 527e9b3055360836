"""What is said when one event was appended: the new head, and where nobody else can hear or say it the entry, too."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, NoReturn

import anyio
import asyncpg

from tape.core import codec
from tape.core.errors import Corrupt
from tape.core.event import Columns, Entry
from tape.core.ids import GlobalSeq
from tape.store.postgres.errors import LOST
from tape.store.statements import statements

MOST_BYTES: Final = 7_900  # a notification is shorter than 8,000
LONGEST: Final = len(str(sys.maxsize))
ASKED_S: Final = 10.0


class Privacy:
    """Whether nobody but this role, and superusers, can connect to the database and so listen or notify.

    It is asked beside everything else for as long as anybody wants to know, and what is not new counts for nothing.
    """

    def __init__(self, ask: Callable[[str], Awaitable[bool]]) -> None:
        (self._sql,) = statements("postgres", "word.sql").values()
        self._ask = ask
        self._is_wanted = asyncio.Event()
        self._until = 0.0

    def is_sure(self) -> bool:
        self._is_wanted.set()
        return time.monotonic() < self._until

    async def run(self) -> NoReturn:
        while True:
            await self._is_wanted.wait()
            self._is_wanted.clear()
            is_private = False
            with suppress(asyncpg.PostgresError, *LOST):
                is_private = await self._ask(self._sql)
            self._until = time.monotonic() + 2 * ASKED_S if is_private else 0.0
            await anyio.sleep(ASKED_S)


def word(entry: Entry) -> str | None:
    """The head and the entry, or nothing where that is too long or not text."""
    if entry.payload_json is None or len(entry.payload_json) > MOST_BYTES:
        return None
    text = f"{entry.global_seq} {codec.encode_state(entry)}"
    return text if len(text.encode()) <= MOST_BYTES else None


def head_of(text: str) -> GlobalSeq:
    """How far the journal is; what is no number may be anything."""
    number, _, _ = text.partition(" ")
    return GlobalSeq(int(number) if number.isdecimal() and len(number) <= LONGEST else sys.maxsize)


def entry_of(text: str) -> Entry | None:
    """The entry there, if it was said and is what was said."""
    _, _, said = text.partition(" ")
    try:
        entry = Entry._make(codec.decode_state(said, Columns)) if said else None
    except Corrupt:
        return None
    return entry if entry is not None and entry.is_intact else None
