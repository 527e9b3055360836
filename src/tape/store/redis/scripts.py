"""Our Lua scripts: each has a shared part and its own."""

from hashlib import sha1
from typing import Final, NamedTuple

from tape.store.statements import statements

_SHARED: Final = statements("redis", "data_set.lua")["shared"]
_READING: Final = f"{_SHARED}\n{statements('redis', 'journal.lua')['reading']}"
_ENDING: Final = f"{_SHARED}\n{statements('redis', 'runs.lua')['ending']}"
_RECORDS: Final = f"{_SHARED}\n{statements('redis', 'runs.lua')['records']}"


class Script(NamedTuple):
    """A script and its SHA-1, by which Redis runs it."""

    text: str
    sha: str

    @classmethod
    def of(cls, file: str, name: str, shared: str = _SHARED) -> "Script":
        text = f"{shared}\n{statements('redis', file)[name]}"
        return cls(text, sha1(text.encode(), usedforsecurity=False).hexdigest())


ENTER: Final = Script.of("data_set.lua", "enter")
BEGIN: Final = Script.of("data_set.lua", "begin")
APPEND: Final = Script.of("append.lua", "append")
BOUNDS: Final = Script.of("journal.lua", "bounds")
READ: Final = Script.of("journal.lua", "read", _READING)
READ_RUN: Final = Script.of("journal.lua", "read_run", _READING)
OPEN: Final = Script.of("runs.lua", "open")
CLOSE: Final = Script.of("runs.lua", "close", _ENDING)
REAP: Final = Script.of("runs.lua", "reap")
RENEW: Final = Script.of("runs.lua", "renew")
CLOSE_SILENT: Final = Script.of("runs.lua", "close_silent", _ENDING)
FIND: Final = Script.of("runs.lua", "find", _RECORDS)
LISTED: Final = Script.of("runs.lua", "listed", _RECORDS)
LISTED_BY_ID: Final = Script.of("runs.lua", "listed_by_id", _RECORDS)
HEADS: Final = Script.of("runs.lua", "heads")
TRIM: Final = Script.of("retention.lua", "trim")
TRIM_RUN: Final = Script.of("retention.lua", "trim_run")
FORGET_KEYS: Final = Script.of("retention.lua", "forget_keys")

LOADED: Final = (
    BEGIN, APPEND, BOUNDS, READ, READ_RUN, OPEN, CLOSE, REAP, RENEW, CLOSE_SILENT, FIND, LISTED, LISTED_BY_ID, HEADS,
    TRIM, TRIM_RUN, FORGET_KEYS,
)  # fmt: skip
