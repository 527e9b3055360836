"""One call of the append script: its arguments, and its result for each request."""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Final, NamedTuple, TypeAlias

import msgspec

from tape.core.child import refusal
from tape.core.errors import ExpectedSeqConflict, KeyConflict, RunClosed, RunNotFound, TapeError, UsageError
from tape.core.event import Entry
from tape.core.ids import Epoch, GlobalSeq, RunId, Seq
from tape.core.sequence import AppendRequest, KeyRecord
from tape.store.redis.packing import pack

EXACT: Final = 1 << 53  # Lua's numbers are exact up to here
NEVER: Final = -1

Fact: TypeAlias = int | str | tuple[int, tuple[Seq, ...]]
Refusal: TypeAlias = tuple[int, str, int, Fact]
Judged: TypeAlias = Sequence[Entry] | KeyRecord | TapeError


class AppendResult(NamedTuple):
    """The result of the script: depths as position, depth, position, …, and a reason for each refused request."""

    base: GlobalSeq
    ts_ms: int
    epoch: Epoch
    lasts: list[Seq]
    depths: list[int]
    refused: list[Refusal]


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(AppendResult).decode


class AppendCall:
    """The requests of a group as arguments."""

    def __init__(self, requests: Sequence[AppendRequest]) -> None:
        self._requests = requests
        self._runs: dict[RunId, int] = {}
        self._types: dict[str, int] = {}
        for request in requests:
            for run_id in request.runs if request.fork is None else (*request.runs, request.fork.parent_run_id):
                self._runs.setdefault(run_id, len(self._runs) + 1)
            for content_type in request.runs.values():
                self._types.setdefault(content_type, len(self._types) + 1)

    def arguments(self, *about: object) -> list[bytes]:
        """In the order of the script's parameters, after those of the appender."""
        call = _encode((*about, list(self._runs), list(self._types), [*map(self._laid_out, self._requests)]))
        return [call, *(pack(event) for request in self._requests for event in request.events)]

    def outcomes(self, result: AppendResult) -> Iterator[Judged]:
        """The outcome of each request; a key that was used before gives its record."""
        refused = {refusal[0]: refusal for refusal in result.refused}
        lasts = dict(zip(self._runs, result.lasts, strict=True))
        depths = dict(zip(result.depths[::2], result.depths[1::2], strict=True))
        places = count(result.base + 1)
        for number, request in enumerate(self._requests, 1):
            if number in refused:
                yield self._verdict(request, *refused[number][1:])
                continue
            entries = []
            if request.fork is not None:
                lasts[request.events[0].run_id] = request.fork.at_seq
            for event in request.events:
                lasts[event.run_id] = seq = Seq(lasts[event.run_id] + 1)
                place = next(places)
                entries.append(event.at(place, seq, result.ts_ms, depths.get(place, 0), result.epoch))
            yield entries

    def _laid_out(self, request: AppendRequest) -> tuple[object, ...]:
        causes = [event.cause or 0 for event in request.events]
        return (
            request.opens,
            request.key or "",
            "" if request.key is None else request.digest.hex(),
            _expectation(request),
            [index for run_id, kind in request.runs.items() for index in (self._runs[run_id], self._types[kind])],
            [self._runs[event.run_id] for event in request.events],
            causes if any(causes) else (),
            request.fork is not None and (self._runs[request.fork.parent_run_id], min(request.fork.at_seq, EXACT)),
        )

    def _verdict(self, request: AppendRequest, why: str, place: int, fact: Fact) -> Judged:
        if isinstance(fact, tuple):
            ts_ms, seqs = fact
            return KeyRecord(request.digest, GlobalSeq(place), seqs, ts_ms)
        match why:
            case "key":
                return KeyConflict(request.key or "")
            case "cause":
                cause = request.events[place - 1].cause
                return UsageError(f"cause {cause} is beyond the head {fact}: it names no entry")
            case "exists" | "orphan" | "beyond" | "gone" | "deep" if request.fork is not None:
                return refusal(request.events[0].run_id, request.fork, why, int(fact))
            case _:
                return _run_refusal(request, list(self._runs)[place - 1], why, fact)


def read_result(packed: bytes) -> AppendResult:
    return _decode(packed)


def _expectation(request: AppendRequest) -> int | bool:
    """The seq as an exact number of Lua; a larger one stays larger than any seq of a run."""
    if request.expected_seq is None:
        return False
    return request.expected_seq if 0 <= request.expected_seq < EXACT else NEVER


def _run_refusal(request: AppendRequest, run_id: RunId, why: str, fact: int | str) -> TapeError:
    if why == "seq" and isinstance(fact, int):
        return ExpectedSeqConflict(run_id, request.expected_seq or Seq(0), Seq(fact))
    if why == "type":
        return UsageError(f"run {run_id!r} holds {fact}, not {request.runs[run_id]}")
    return RunNotFound(run_id) if why == "missing" else RunClosed(run_id)
