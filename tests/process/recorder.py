"""Records what a client does as lines of a history, and puts the records of several clients together."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from tape.checker.check import judge
from tape.checker.history import RecordedHistory
from tape.checker.invariant_result import InvariantResult
from tape.checker.lines import (
    DECODER,
    AnyLine,
    AppendLine,
    DeliverLine,
    EntryLine,
    HandleLine,
    Line,
    PublishLine,
    TermLine,
)
from tests import figures
from tests.process.log import Log, now_ns, whole_lines

COUNTED: Final[Mapping[tuple[type[Line], str], str]] = {
    (AppendLine, "ok"): "appends acknowledged",
    (AppendLine, "unknown"): "appends with an unknown outcome",
    (EntryLine, ""): "entries read",
    (HandleLine, "ok"): "tasks handled",
    (PublishLine, "ok"): "outbox events committed",
    (DeliverLine, "ok"): "outbox events handled",
}


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
    count(lines)
    terms = sorted((line for line in lines if isinstance(line, TermLine)), key=lambda term: term.epoch)
    return judge(RecordedHistory.collect(enumerate(lines, 1), terms))


def count(lines: Iterable[AnyLine]) -> None:
    """Adds what clients did to the figures of a soak."""
    steps = Counter[tuple[type[Line], str]]((type(line), getattr(line, "step", "")) for line in lines)
    for kind, what in COUNTED.items():
        figures.add(what, steps[kind])
    figures.add("lines of history judged", steps.total())


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
