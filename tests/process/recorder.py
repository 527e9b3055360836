"""Records what a client does as lines of a history, and puts the records of several clients together."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from tape.checker.check import judge
from tape.checker.history import RecordedHistory
from tape.checker.invariant_result import InvariantResult
from tape.checker.lines import DECODER, AnyLine, Line, TermLine
from tests.process.log import Log, now_ns, whole_lines


class Recorder:
    """Writes the lines of one client, also if kill -9 ends it and it is started again."""

    def __init__(self, path: Path, client: str = "") -> None:
        self.client = client or path.stem
        self._log = Log(path)

    def write(self, kind: type[Line], **fields: object) -> None:
        self._log.write(kind(client=self.client, at_ns=now_ns(), **fields))  # type: ignore[arg-type]


def read(path: Path) -> list[AnyLine]:
    """The lines so far; a missing file has none."""
    if not path.exists():
        return []
    return [DECODER.decode(line) for line in whole_lines(path).splitlines()]


def merged(paths: Iterable[Path]) -> list[AnyLine]:
    """The lines of several clients of this machine, in the order of its clock."""
    return in_order(line for path in sorted(paths) for line in read(path))


def in_order(lines: Iterable[AnyLine]) -> list[AnyLine]:
    return sorted(lines, key=lambda line: line.at_ns)


def findings(lines: Sequence[AnyLine]) -> dict[str, InvariantResult]:
    """What the checker finds in lines."""
    terms = sorted((line for line in lines if isinstance(line, TermLine)), key=lambda term: term.epoch)
    return judge(RecordedHistory.collect(enumerate(lines, 1), terms))


def anomalies(found: dict[str, InvariantResult], *invariants: str) -> list[str]:
    """What contradicts some invariants; nothing to judge is no proof either."""
    idle = [f"{invariant}: nothing to judge" for invariant in invariants if not found[invariant].judged]
    return idle + contradictions(found, *invariants)


def contradictions(found: dict[str, InvariantResult], *invariants: str) -> list[str]:
    return [f"{each.invariant}: {each.sentence}" for one in invariants for each in found[one].anomalies]


def save(lines: Iterable[AnyLine], path: Path) -> Path:
    """A file for `tape check-history`."""
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    return path
