"""Prints the results of `tape lake`, as text or as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from tape.cli import output
from tape.cli.journal import write_fault as print_fault_text, write_fault_json as print_fault_json

if TYPE_CHECKING:
    from tape.core.lake import LakeStatus
    from tape.core.ports import Bounds, Fault
    from tape.lake.compaction import Compacted, Vacuumed
    from tape.lake.log import LakeSnapshot
    from tape.lake.pipeline import SyncStep
    from tape.store.duckdb.parquet import Answer

_SIZES: Final = ("bytes", "KiB", "MiB", "GiB", "TiB")


def print_step(done: SyncStep, *, is_json: bool) -> None:
    if is_json:
        output.write_json(done._asdict())
        output.flush()
    else:
        share = done.through / done.head
        output.progress(f"the lake holds {done.through:,} of {done.head:,} entries, {share:4.0%} …")


def print_synced(done: SyncStep | None, *, is_json: bool) -> None:
    if is_json:
        return
    if done is None:
        output.write(f"{output.paint('ok', 'green', 'bold')}  the lake holds everything already")
    else:
        entries = output.count(done.through, "entry", "entries")
        files = output.count(done.files, "file", "files")
        output.write(
            f"{output.paint('ok', 'green', 'bold')}  the lake holds {entries} in {files}, version {done.version}"
        )


def print_status(status: LakeStatus, *, is_json: bool) -> None:
    if is_json:
        named = {name: getattr(status, name)._asdict() for name in ("cold", "warm", "hot")}
        output.write_json({**status._asdict(), **named})
        return
    output.table(
        [
            (output.paint("cold", "blue"), _span(status.cold), f"{_files(status.files)}, {_size(status.bytes)}"),
            (output.paint("warm", "yellow"), _span(status.warm), "the journal"),
            (output.paint("hot", "red"), _span(status.hot), "in the memory of a reading process"),
            ("lag", f"{output.count(status.lag, 'entry', 'entries')}", _age(status.lag_ms) if status.lag else "none"),
            ("commit", f"version {status.version}" if status.files else "none", _time(status.committed_at_ms)),
        ]
    )


def print_compacted(done: Compacted, *, is_json: bool) -> None:
    if is_json:
        output.write_json(done._asdict())
    elif done.before == done.after:
        output.write(f"{_files(done.before)}: nothing to merge")
    else:
        output.write(f"{_files(done.before)} became {done.after:,}, version {done.version}")


def print_vacuumed(done: Vacuumed, *, is_json: bool) -> None:
    if is_json:
        output.write_json({"files": done.files, "bytes": done.size})
    else:
        output.write(f"{_files(done.files)} deleted, {_size(done.size)}")


def print_fault(fault: Fault, *, is_json: bool) -> None:
    (print_fault_json if is_json else print_fault_text)(fault)


def print_verified(snapshot: LakeSnapshot | None, faults: int, *, is_json: bool) -> None:
    if is_json:
        output.write_json({"through": None if snapshot is None else snapshot.through, "faults": faults})
    elif snapshot is None:
        output.write(f"{output.paint('damaged', 'red', 'bold')}  {output.count(faults, 'fault', 'faults')}")
    else:
        what = f"{output.count(snapshot.through, 'entry', 'entries')} in {_files(len(snapshot.files))}"
        output.write(f"{output.paint('ok', 'green', 'bold')}  {what}: each position once, in every version")


def print_rows(answer: Answer, *, is_json: bool) -> None:
    if is_json:
        from tape.lake.query_process import json_value

        for row in answer.rows:
            output.write_json(dict(zip(answer.names, map(json_value, row), strict=True)))
        return
    heading = [output.paint(output.escape(name), "bold") for name in answer.names]
    output.table([heading, *([output.escape(_shown(value)) for value in row] for row in answer.rows)])


def _shown(value: Any) -> str:
    if isinstance(value, Iterable) and not isinstance(value, str):
        from tape.lake.query_process import json_value

        return str(json_value(value))
    return "" if value is None else str(value)


def _span(bounds: Bounds) -> str:
    return f"{bounds.floor:,} to {bounds.head:,}" if bounds.head >= bounds.floor else "nothing"


def _files(count: int) -> str:
    return output.count(count, "file", "files")


def _size(size: float) -> str:
    unit = 0
    while size >= 1024 and unit < len(_SIZES) - 1:
        size /= 1024
        unit += 1
    return f"{size:,.0f} {_SIZES[unit]}" if unit == 0 else f"{size:,.1f} {_SIZES[unit]}"


def _age(ms: int) -> str:
    return f"{ms:,} ms" if ms < 10_000 else f"{ms // 1000:,} s"


def _time(ms: int | None) -> str:
    return "never" if ms is None else datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
