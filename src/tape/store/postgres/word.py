"""What is said when one event was appended: the new head, and where nobody else can hear or say it the entry, too."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, NoReturn

import anyio

from tape.core import codec
from tape.core.errors import Corrupt, TapeError
from tape.core.event import Columns, Entry
from tape.core.ids import GlobalSeq
from tape.store.statements import statements

MOST_BYTES: Final = 7_900  # a notification is shorter than 8,000
LONGEST: Final = len(str(sys.maxsize))
ASKED_S: Final = 10.0


class Privacy:
    """Which journal this is, as long as nobody who may not read and write it can listen or notify in its database.

    It is asked beside everything else for as long as anybody wants to know, and what is not new counts for nothing.
    """

    def __init__(self, ask: Callable[[str], Awaitable[str | None]]) -> None:
        (self._sql,) = statements("postgres", "word.sql").values()
        self._ask = ask
        self._is_wanted = asyncio.Event()
        self._where: str | None = None
        self._until = 0.0

    @property
    def where(self) -> str | None:
        self._is_wanted.set()
        return self._where if time.monotonic() < self._until else None

    async def run(self) -> NoReturn:
        while True:
            await self._is_wanted.wait()
            self._is_wanted.clear()
            began, self._where = time.monotonic(), await self._asked()
            self._until = began + 2 * ASKED_S
            await anyio.sleep(ASKED_S)

    async def _asked(self) -> str | None:
        with suppress(TapeError):
            return await self._ask(self._sql)
        return None


def word(entry: Entry, where: str) -> str | None:
    """The head, which journal it is of, and the entry; nothing where that is too long or not text."""
    if entry.payload_json is None or len(entry.payload_json) > MOST_BYTES:
        return None
    text = f"{entry.global_seq} {where} {codec.encode_state(entry)}"
    return text if len(text.encode()) <= MOST_BYTES else None


def head_of(text: str) -> GlobalSeq:
    """How far the journal is; what is no number may be anything."""
    number, _, _ = text.partition(" ")
    return GlobalSeq(int(number) if number.isdecimal() and len(number) <= LONGEST else sys.maxsize)


def entry_of(text: str, where: str) -> Entry | None:
    """The entry there, if it was said of this journal and is what was said."""
    _, _, said = text.partition(f" {where} ")
    try:
        entry = Entry._make(codec.decode_state(said, Columns)) if said else None
    except Corrupt:
        return None
    return entry if entry is not None and entry.is_intact else None
