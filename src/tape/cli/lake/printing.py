"""What `tape lake` says, to people and to programs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from tape.cli import output
from tape.cli.journal import write_fault as _write_fault, write_fault_json

if TYPE_CHECKING:
    from tape.core.lake import LakeStatus
    from tape.core.ports import Bounds, Fault
    from tape.lake.compaction import Compacted, Vacuumed
    from tape.lake.log import LakeSnapshot
    from tape.lake.pipeline import SyncStep
    from tape.store.duckdb.parquet import Answer

_SIZES: Final = ("bytes", "KiB", "MiB", "GiB", "TiB")


def tell_step(done: SyncStep, *, is_json: bool) -> None:
    if is_json:
        output.write_json(done._asdict())
        output.flush()
    else:
        share = done.through / done.head
        output.progress(f"the lake holds {done.through:,} of {done.head:,} entries, {share:4.0%} …")


def tell_synced(done: SyncStep | None, *, is_json: bool) -> None:
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


def tell_status(status: LakeStatus, *, is_json: bool) -> None:
    if is_json:
        named = {name: getattr(status, name)._asdict() for name in ("cold", "warm", "hot")}
        output.write_json({**status._asdict(), **named})
        return
    output.table(
        [
            (output.paint("cold", "blue"), _span(status.cold), f"{_files(status.files)}, {_size(status.size)}"),
            (output.paint("warm", "yellow"), _span(status.warm), "the journal"),
            (output.paint("hot", "red"), _span(status.hot), "in the memory of a process that reads"),
            ("lag", f"{output.count(status.lag, 'entry', 'entries')}", _age(status.lag_ms) if status.lag else "none"),
            ("commit", f"version {status.version}" if status.files else "none", _time(status.committed_at_ms)),
        ]
    )


def tell_compacted(done: Compacted, *, is_json: bool) -> None:
    if is_json:
        output.write_json(done._asdict())
    elif done.before == done.after:
        output.write(f"{_files(done.before)}: nothing to merge")
    else:
        output.write(f"{_files(done.before)} became {done.after:,}, version {done.version}")


def tell_vacuumed(done: Vacuumed, *, is_json: bool) -> None:
    if is_json:
        output.write_json({"files": done.files, "bytes": done.size})
    else:
        output.write(f"{_files(done.files)} deleted, {_size(done.size)}")


def write_fault(fault: Fault, *, is_json: bool) -> None:
    (write_fault_json if is_json else _write_fault)(fault)


def tell_verified(seen: LakeSnapshot | None, faults: int, *, is_json: bool) -> None:
    if is_json:
        output.write_json({"through": None if seen is None else seen.through, "faults": faults})
    elif seen is None:
        output.write(f"{output.paint('damaged', 'red', 'bold')}  {output.count(faults, 'fault', 'faults')}")
    else:
        what = f"{output.count(seen.through, 'entry', 'entries')} in {_files(len(seen.files))}"
        output.write(f"{output.paint('ok', 'green', 'bold')}  {what}: each position once, in every version")


def tell_rows(answer: Answer, *, is_json: bool) -> None:
    if is_json:
        for row in answer.rows:
            output.write_json(dict(zip(answer.names, map(_plain, row), strict=True)))
        return
    heading = [output.paint(output.escape(name), "bold") for name in answer.names]
    output.table([heading, *([output.escape(_shown(value)) for value in row] for row in answer.rows)])


def _plain(value: Any) -> object:
    """A value as JSON can say it."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case dict():
            return {str(key): _plain(each) for key, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case bytes():
            return value.hex()
        case _:
            return str(value)


def _shown(value: Any) -> str:
    if isinstance(value, Iterable) and not isinstance(value, str):
        return str(_plain(value))
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
