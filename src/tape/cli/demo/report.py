"""The demo's report: figures, and whether every reader got exactly its entries."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from tape.cli import output

if TYPE_CHECKING:
    from tape.cli.demo.fork import ForkResult
    from tape.cli.demo.lake import LakeResult
    from tape.cli.demo.outbox import OutboxOutcome
    from tape.cli.demo.work import WorkResult


class Check(NamedTuple):
    """A claim and its result."""

    name: str
    is_kept: bool
    finding: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All measurements; delays are in nanoseconds."""

    seconds: float
    times_ms: Sequence[int]
    acks: Sequence[int]
    same_process: Sequence[int]
    other_process: Sequence[int]
    checks: Sequence[Check]
    fork: ForkResult | None = None
    work: WorkResult | None = None
    outbox: OutboxOutcome | None = None
    lake: LakeResult | None = None

    @property
    def is_kept(self) -> bool:
        return all(check.is_kept for check in self.checks)

    def with_fork(self, fork: ForkResult) -> Report:
        """With a run and its fork."""
        return replace(self, checks=[*self.checks, *fork.checks], fork=fork)

    def with_work(self, work: WorkResult) -> Report:
        """With the results of a reaction."""
        return replace(self, checks=[*self.checks, *work.checks], work=work)

    def with_outbox(self, outbox: OutboxOutcome) -> Report:
        """With the results of the outbox."""
        return replace(self, checks=[*self.checks, *outbox.checks], outbox=outbox)

    def with_check(self, check: Check) -> Report:
        """With one more check."""
        return replace(self, checks=[*self.checks, check])

    def with_lake(self, lake: LakeResult) -> Report:
        """With the results of Spark."""
        return replace(self, checks=[*self.checks, *lake.checks], lake=lake)

    def audited(self, faults: int) -> Report:
        """With the result of an audit."""
        finding = "dense, in order, every byte as it was written" if not faults else f"{faults:,} faults"
        return self.with_check(Check("journal verify", not faults, finding))

    @property
    def peak(self) -> int:
        """The most events in any one second; timestamps never fall, so a second is a contiguous range."""
        seconds = ((bisect_left(self.times_ms, at - 999), place) for place, at in enumerate(self.times_ms))
        return max((last - first + 1 for first, last in seconds), default=0)


def compare(name: str, received: Sequence[int], expected: Sequence[int], remark: str) -> Check:
    """Whether a reader got exactly its entries, once and in order."""
    is_kept = list(received) == list(expected)
    verdict = "once each, in order" if is_kept else "not exactly what it asked for"
    return Check(name, is_kept, f"{len(received):,} of {len(expected):,}, {verdict}{f'; {remark}' if remark else ''}")


def write(report: Report) -> None:
    output.write()
    output.table((output.paint(name, "bold"), text) for name, text in _figures(report))
    output.write()
    output.table(_row(check) for check in report.checks)


def as_json(report: Report) -> dict[str, object]:
    return {
        "events": len(report.times_ms),
        "seconds": round(report.seconds, 3),
        "peak_per_s": report.peak,
        "ack_ms": _both(report.acks),
        "same_process_ms": _both(report.same_process),
        "other_process_ms": _both(report.other_process),
        "checks": [check._asdict() for check in report.checks],
        "is_kept": report.is_kept,
        "lake": None if report.lake is None else _lake(report.lake),
    }


def _lake(lake: LakeResult) -> dict[str, object]:
    return {**dict(lake.lines), "page": str(lake.page) if lake.page else None, "skipped": lake.skipped}


def _figures(report: Report) -> Iterator[tuple[str, str]]:
    count = len(report.times_ms)
    yield "appended", f"{count:,} events in {report.seconds:.1f} s, {report.peak:,} of them in one second"
    yield "on disk after", f"{_spread(report.acks)}  one event published"
    yield "seen after", f"{_spread(report.same_process)}  publish to tail, one process"
    yield "", f"{_spread(report.other_process)}  publish to tail, two processes"


def _row(check: Check) -> tuple[str, str, str]:
    mark = output.paint("ok", "green", "bold") if check.is_kept else output.paint("fail", "red", "bold")
    return mark, output.paint(check.name, "bold"), check.finding


def _spread(delays: Sequence[int]) -> str:
    both = _both(delays)
    return f"p50 {both['p50']:7.2f} ms  p99 {both['p99']:7.2f} ms"


def _both(delays: Sequence[int]) -> dict[str, float]:
    ordered = sorted(delays) or [0]
    return {f"p{share}": round(ordered[(len(ordered) - 1) * share // 100] / 1e6, 3) for share in (50, 99)}
