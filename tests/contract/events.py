"""Events, requests and reads of the contract tests."""

from collections.abc import AsyncIterable, Sequence
from contextlib import aclosing

import anyio

from tape.bus.journal import Journal
from tape.bus.stream import Stream
from tape.core.event import Entry, Event
from tape.core.ids import Seq
from tape.core.ports import AppendOutcome, Store
from tape.core.sequence import AppendRequest, CellChange, CellId
from tests.deadlines import DEADLINE_S


def make_event(run_id: str = "r1", n: int = 0, **more: object) -> Event:
    """An event whose payload is its number."""
    return Event(run_id=run_id, payload={"n": n}, **more)  # type: ignore[arg-type]


def request(*events: Event, opens: bool = True, key: str | None = None, expected: int | None = None) -> AppendRequest:
    return AppendRequest(events=events, opens=opens, key=key, expected_seq=None if expected is None else Seq(expected))


def change(key: str, seen: int, state: str = "{}", ledger: str = "ledger") -> CellChange:
    return CellChange(id=CellId(ledger, key), seen=seen, status="open", state_json=state)


async def append(store: Store, *events: Event) -> Sequence[Entry]:
    """Appends one request straight to the store."""
    (outcome,) = await store.journal.append([request(*events)])
    return entries(outcome)


def entries(outcome: AppendOutcome) -> Sequence[Entry]:
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


async def fill(journal: Journal, run_id: str, count: int) -> None:
    """A run with numbered entries 1…count, open."""
    if count:
        await journal.append([make_event(run_id, n) for n in range(1, count + 1)], open=True)
    else:
        await journal.open_run(run_id)


async def take(stream: Stream, count: int) -> list[Entry]:
    """The first so many entries of a stream, which is then closed."""
    taken: list[Entry] = []
    with anyio.fail_after(DEADLINE_S):
        async with aclosing(stream):
            while len(taken) < count:
                taken.append(await stream.__anext__())
    return taken


async def drain(stream: AsyncIterable[Entry]) -> list[Entry]:
    """Everything until the stream ends by itself."""
    with anyio.fail_after(DEADLINE_S):
        return [entry async for entry in stream]


async def read_all(journal: Journal, run_id: str, from_seq: int = 1) -> list[Entry]:
    """All entries of a run now."""
    return await drain(journal.stream(run_id=run_id, from_seq=from_seq, follow=False))


def seqs(entries: Sequence[Entry]) -> list[int]:
    return [entry.seq for entry in entries]


def positions(entries: Sequence[Entry]) -> list[int]:
    return [entry.global_seq for entry in entries]


def upto(last: int, first: int = 1) -> list[int]:
    return list(range(first, last + 1))
