"""A log of a process: one JSON line per record; what kill -9 tore is cut off before the next process writes."""

import os
import time
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

import msgspec

from tape.core.errors import Unavailable

T = TypeVar("T")

MAX_LINE = 4096  # bytes of a line

What = Literal["invoke", "ok", "fail", "unknown"]


class Op(NamedTuple):
    """A step of a writer's n-th request; `unknown` is not `fail`."""

    at_ns: int
    number: int
    what: What
    first: int = 0
    seqs: tuple[int, ...] = ()
    reason: str = ""


class Seen(NamedTuple):
    """An entry as a reader received it."""

    at_ns: int
    global_seq: int
    run_id: str
    seq: int
    event_id: str


def result_of(error: Unavailable) -> What:
    """The result of a request that the store did not answer."""
    return "fail" if error.outcome == "nothing" else "unknown"


class Log:
    """An append-only file with one writer at a time."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
        os.ftruncate(self._file, len(whole_lines(path)))  # a killed write may end at any page of the file

    def write(self, record: object) -> None:
        os.write(self._file, msgspec.json.encode(record) + b"\n")


def read(path: Path, kind: type[T]) -> list[T]:
    """The records so far; a missing file is empty."""
    if not path.exists():
        return []
    decoder = msgspec.json.Decoder(kind)
    return [decoder.decode(line) for line in whole_lines(path).splitlines()]


def whole_lines(path: Path) -> bytes:
    whole, end, _ = path.read_bytes().rpartition(b"\n")
    return whole + end


def last(path: Path, kind: type[T]) -> T | None:
    """The newest record, without reading the others."""
    if not path.exists():
        return None
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - MAX_LINE))
        lines = file.read().rpartition(b"\n")[0].splitlines()
    return msgspec.json.decode(lines[-1], type=kind) if lines else None


def now_ns() -> int:
    """A clock that all processes of a machine share."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)
