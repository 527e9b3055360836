"""One call of tape_append: its arguments, and its result as entries or verdicts."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Final, NamedTuple, TypeVar

from tape.core.child import refusal
from tape.core.errors import (
    ExpectedSeqConflict,
    KeyConflict,
    RunClosed,
    RunNotFound,
    TapeError,
    UsageError,
    VersionConflict,
)
from tape.core.event import Entry, Event
from tape.core.ids import Epoch, GlobalSeq, RunId, Seq
from tape.core.sequence import AppendRequest, KeyRecord

T = TypeVar("T")

SEPARATOR: Final = "\x1f"  # no JSON text and none of our names can hold a control character
NULL: Final = "\x1e"


def one_event(event: Event, now_ms: int, head: int, changes: int, last: int) -> tuple[object, ...]:
    """The arguments of tape_append_one, which takes only events without a cause."""
    *leading, _, trace, span, parent, attributes, text, blob = event.content
    return (now_ms, head, changes, last, event.crc, *leading, trace, span, parent, attributes, text, blob)


class AppendResult(NamedTuple):
    """A row that tape_append returns; if `refused` is not None, nothing was appended."""

    base: GlobalSeq
    ts_ms: int
    epoch: Epoch
    changes: int
    lasts: Sequence[Seq] | None
    depths: Sequence[int] | None
    refused: str | None


class AppendCall:
    """The requests of a group as arguments of tape_append."""

    def __init__(self, requests: Sequence[AppendRequest]) -> None:
        self.requests = requests
        self.fork = requests[0].fork  # a request that forks is alone in its group
        self._opens: dict[RunId, tuple[bool, str]] = {}
        for request in requests:
            for run_id, content_type in request.runs.items():
                self._opens.setdefault(run_id, (request.opens, content_type))
        self.runs = list(self._opens)
        self.types = {run_id: content_type for run_id, (_, content_type) in self._opens.items()}
        self._index = {run_id: number for number, run_id in enumerate(self.runs, 1)}

    def arguments(self, now_ms: int, head: int, changes: int, lasts: Sequence[Seq] | None) -> list[object]:
        """In the order of the function's parameters."""
        counts = dict.fromkeys(self.runs, 0)
        events = self._event_columns(counts)
        opens, types = zip(*self._opens.values(), strict=True) if self._opens else ((), ())
        return [
            now_ms,
            head,
            changes,
            lasts,
            self.runs,
            opens,
            types,
            list(counts.values()),
            *_columns(self._touches(), 2),
            [len(request.events) for request in self.requests],
            *_columns(self._keys(), 3),
            *_columns(self._expectations(), 3),
            *_columns(self._cells(), 10),
            *events,
            *(self.fork or (None, None)),
        ]

    def _touches(self) -> Iterator[tuple[object, ...]]:
        for number, request in enumerate(self.requests, 1):
            for run_id in request.runs:
                yield number, self._index[run_id]

    def _keys(self) -> Iterator[tuple[object, ...]]:
        for number, request in enumerate(self.requests, 1):
            if request.key is not None:
                yield number, request.key, request.digest

    def _expectations(self) -> Iterator[tuple[object, ...]]:
        for number, request in enumerate(self.requests, 1):
            if request.expected_seq is not None:
                (run_id,) = request.runs
                yield number, self._index[run_id], request.expected_seq

    def _cells(self) -> Iterator[tuple[object, ...]]:
        for number, request in enumerate(self.requests, 1):
            for change in request.cells:
                yield (
                    number, *change.id, change.seen, change.status, change.due_at_ms, change.state_json,
                    change.app, change.kind, change.place,
                )  # fmt: skip

    def _event_columns(self, counts: dict[RunId, int]) -> list[object]:
        """Each column as one text, which is cheaper to send than an array; None if all values are the default."""
        events = [event for request in self.requests for event in request.events]
        if not events:
            return [None] * 16
        ordinals = []
        for event in events:
            counts[event.run_id] += 1
            ordinals.append(str(counts[event.run_id]))
        runs, kinds, types, subjects, versions, ids, causes, traces, spans, parents, attributes, texts, blobs = zip(
            *(event.content for event in events), strict=True
        )
        return [
            SEPARATOR.join(str(self._index[run_id]) for run_id in runs),
            SEPARATOR.join(ordinals),
            SEPARATOR.join(str(event.crc) for event in events),
            SEPARATOR.join(runs),
            SEPARATOR.join(kinds),
            SEPARATOR.join(types),
            SEPARATOR.join(subjects),
            _joined(versions, 1),
            SEPARATOR.join(ids),
            _joined(causes, None),
            _joined(traces, ""),
            _joined(spans, ""),
            _joined(parents, ""),
            _joined(attributes, "{}"),
            _joined(texts, None),
            None if all(blob is None for blob in blobs) else blobs,
        ]

    def entries(self, result: AppendResult) -> list[Sequence[Entry]]:
        """The entries of each request of a group that was appended."""
        lasts = dict(zip(self.runs, result.lasts or (), strict=True))
        depths = iter(result.depths or ())
        positions = count(result.base + 1)
        appended: list[Sequence[Entry]] = []
        for request in self.requests:
            entries = []
            for event in request.events:
                lasts[event.run_id] = seq = Seq(lasts[event.run_id] + 1)
                entries.append(event.at(next(positions), seq, result.ts_ms, next(depths, 0), result.epoch))
            appended.append(entries)
        return appended

    def verdicts(self, refused: str) -> dict[int, KeyRecord | TapeError]:
        """Why requests of a group were not appended, by their index; a key that was used before gives its record."""
        found = {int(number) - 1: reason for number, reason in json.loads(refused).items()}
        return {index: self._verdict(self.requests[index], *found[index]) for index in sorted(found)}

    def _verdict(self, request: AppendRequest, why: str, place: int, a: str, b: str | None) -> KeyRecord | TapeError:
        match why:
            case "replay":
                seqs, _, ts_ms = (b or "").rpartition(" ")
                return KeyRecord(request.digest, GlobalSeq(int(a)), tuple(json.loads(seqs)), int(ts_ms))
            case "key":
                return KeyConflict(request.key or "")
            case "seq":
                return ExpectedSeqConflict(self.runs[place - 1], request.expected_seq or Seq(0), Seq(int(a)))
            case "cell":
                change = [change for other in self.requests for change in other.cells][place - 1]
                return VersionConflict(*change.id, change.seen, int(a))
            case "cause":
                cause = [event.cause for other in self.requests for event in other.events][place - 1]
                return UsageError(f"cause {cause} is beyond the head {a}: it names no entry")
            case "exists" | "orphan" | "beyond" | "gone" | "deep" if request.fork is not None:
                return refusal(self.runs[0], request.fork, why, int(a or 0))
            case _:
                return self._run_verdict(request, why, self.runs[place - 1], a)

    def _run_verdict(self, request: AppendRequest, why: str, run_id: RunId, held: str) -> TapeError:
        if why == "missing":
            return RunNotFound(run_id)
        if why == "closed":
            return RunClosed(run_id)
        return UsageError(f"run {run_id!r} holds {held}, not {request.runs[run_id]}")


def _columns(rows: Iterator[tuple[object, ...]], width: int) -> list[Any]:
    """The columns of rows as arrays; None for each column when there are no rows."""
    found = list(rows)
    return [list(column) for column in zip(*found, strict=True)] if found else [None] * width


def _joined(column: Sequence[object], default: object) -> str | None:
    """A column as one text; None if every value is the default."""
    if all(value == default for value in column):
        return None
    return SEPARATOR.join(NULL if value is None else str(value) for value in column)


def in_order(size: int, verdicts: Mapping[int, T], others: Iterable[T]) -> list[T]:
    """The outcomes of a group: some by index, all others in their order."""
    rest = iter(others)
    return [verdicts[index] if index in verdicts else next(rest) for index in range(size)]
