"""The ledgers of a store and its journal, as clients use them, in this process or over gRPC."""

from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

from tape.core.caller import PLAIN, Caller
from tape.core.event import Entry, Event
from tape.core.value import ValueChange
from tape.operations.operation import OperationRequest

R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerStreamOptions:
    """Which entries to stream: those of a run from a seq on, or of the journal after a position."""

    run_id: str | None = None
    from_seq: int = 1
    subject: str | None = None
    where: str | None = None
    from_global_seq: int = 0
    follow: bool = True


class Watching(Protocol):
    """Versions of a value as they are written, each once; the caller must close it."""

    def __aiter__(self) -> Self: ...
    async def __anext__(self) -> ValueChange: ...
    async def aclose(self) -> None: ...


class Following(Protocol):
    """Entries in order, each once; the caller must close it."""

    def __aiter__(self) -> AsyncIterator[Entry]: ...
    def __anext__(self) -> Awaitable[Entry]: ...
    def aclose(self) -> Awaitable[None]: ...


class EventLog(Protocol):
    """Appends and streams events; a stream misses nothing from the moment it is returned."""

    async def append(
        self, events: Sequence[Event], key: str | None = None, expected_seq: int | None = None, open: bool = False
    ) -> Sequence[Entry]: ...
    async def head(self) -> int:
        """The last position; an older server raises `Unsupported`."""

    async def stream(self, options: LedgerStreamOptions) -> Following: ...


class OperationCalls(Protocol):
    """Runs operations, in this process or at a server."""

    async def call(self, request: OperationRequest[R], caller: Caller = PLAIN) -> R: ...


class Ledgers(OperationCalls, Protocol):
    """Runs operations, watches values, and appends and streams events."""

    @property
    def events(self) -> EventLog: ...
    async def watch(self, namespace: str, key: str, from_version: int | None = None) -> Watching: ...
