"""One call of tape_append: what goes in, and what its answer means for each request."""

import json
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, Final, NamedTuple

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
from tape.core.sequence import KeyRecord, Request

SEPARATOR: Final = "\x1f"  # no JSON text and none of our names can hold a control character
NULL: Final = "\x1e"


TYPES: Final = (
    "bigint bigint bigint bigint[] text[] boolean[] text[] int[] int[] int[] int[] int[] text[] bytea[] int[] int[] "
    "bigint[] int[] text[] text[] bigint[] text[] bigint[] text[] text[] text[] " + "text " * 15 + "bytea[] text bigint"
).split()


def one_event(event: Event, now_ms: int, head: int, changes: int, last: int) -> tuple[object, ...]:
    """The arguments of tape_append_one; that the event has no cause, it knows."""
    *said, _, trace, span, parent, attributes, text, blob = event.content
    return (now_ms, head, changes, last, event.crc, *said, trace, span, parent, attributes, text, blob)


class Answer(NamedTuple):
    """What the function returns."""

    base: GlobalSeq
    ts_ms: int
    epoch: Epoch
    changes: int
    lasts: Sequence[Seq] | None
    depths: Sequence[int] | None
    refused: str | None


class Call:
    """A group's requests, laid out as arguments."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self.requests = requests
        self.fork = requests[0].fork  # one that forks is alone in its call
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
            *_columns(self._cells(), 9),
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
                    change.app, change.kind,
                )  # fmt: skip

    def _event_columns(self, counts: dict[RunId, int]) -> list[object]:
        """Each column joined into one text, which is far cheaper to send than an array; None where all is default."""
        events = [event for request in self.requests for event in request.events]
        if not events:
            return [None] * 16
        places = []
        for event in events:
            counts[event.run_id] += 1
            places.append(str(counts[event.run_id]))
        runs, kinds, types, subjects, versions, ids, causes, traces, spans, parents, attributes, texts, blobs = zip(
            *(event.content for event in events), strict=True
        )
        return [
            SEPARATOR.join(str(self._index[run_id]) for run_id in runs),
            SEPARATOR.join(places),
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

    def outcomes(self, answer: Answer) -> list[Sequence[Entry] | KeyRecord | TapeError]:
        """What became of each request; a key that was used before gives its record."""
        refused = {int(number): why for number, why in json.loads(answer.refused).items()} if answer.refused else {}
        lasts = dict(zip(self.runs, answer.lasts or (), strict=True))
        depths = iter(answer.depths or ())
        places = count(answer.base + 1)
        found: list[Sequence[Entry] | KeyRecord | TapeError] = []
        for number, request in enumerate(self.requests, 1):
            if number in refused:
                found.append(self._verdict(request, *refused[number]))
                continue
            entries = []
            for event in request.events:
                lasts[event.run_id] = seq = Seq(lasts[event.run_id] + 1)
                entries.append(event.at(next(places), seq, answer.ts_ms, next(depths, 0), answer.epoch))
            found.append(entries)
        return found

    def _verdict(self, request: Request, why: str, place: int, a: str, b: str | None) -> KeyRecord | TapeError:
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

    def _run_verdict(self, request: Request, why: str, run_id: RunId, held: str) -> TapeError:
        if why == "missing":
            return RunNotFound(run_id)
        if why == "closed":
            return RunClosed(run_id)
        return UsageError(f"run {run_id!r} holds {held}, not {request.runs[run_id]}")


def _columns(rows: Iterator[tuple[object, ...]], width: int) -> list[Any]:
    """Rows turned into arrays, or nothing for each when there is no row."""
    found = list(rows)
    return [list(column) for column in zip(*found, strict=True)] if found else [None] * width


def _joined(column: Sequence[object], default: object) -> str | None:
    """A column as one text, or None when no event has a value of its own."""
    if all(value == default for value in column):
        return None
    return SEPARATOR.join(NULL if value is None else str(value) for value in column)
