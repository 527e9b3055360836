"""`tape doctor`: checks the environment and the store, and says what to do about problems."""

from __future__ import annotations

import os
import platform
import re
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from tape.cli import output
from tape.cli.choices import Choices, run, shared
from tape.cli.doctor.disk import check_disk, size
from tape.cli.doctor.finding import Finding
from tape.cli.doctor.lag import check_readers
from tape.cli.doctor.outbox import check_outbox
from tape.cli.doctor.postgres import check_postgres
from tape.cli.doctor.versions import versions_finding
from tape.cli.doctor.work import check_work

if TYPE_CHECKING:
    from tape.core.errors import TapeError
    from tape.core.ports import Store

MIN_SQLITE: Final = (3, 35, 0)
LONG_WAL: Final = 256 << 20
ECHO_S: Final = 1.0
CREATE: Final = "see --store and TAPE_STORE, or create it with `tape migrate`"
_CREDENTIALS: Final = re.compile(r"(?<=//)[^/@]*@|(?<=[?&])(?:user|password|passfile)=[^&]*&?")
_COLOURS: Final = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command()
@shared
@click.pass_obj
def doctor(choices: Choices) -> int:
    """Say what Tape sees here, and what to do where something is wrong.

    Ends with 1 when something fails.
    """
    findings = run(partial(_check, choices))
    if choices.is_json:
        for finding in findings:
            output.write_json(finding._asdict())
    else:
        output.table(map(_row, findings))
    return int(any(finding.status == "fail" for finding in findings))


def _row(finding: Finding) -> tuple[str, str, str]:
    status = output.paint(finding.status, _COLOURS[finding.status])
    fix = f": {finding.fix}" if finding.fix else ""
    return status, output.paint(finding.subject, "bold"), output.escape(f"{finding.value}{fix}")


async def _check(choices: Choices) -> list[Finding]:
    from tape.settings import Settings

    url, is_unsafe = choices.location()
    path = choices.file()
    settings = Settings.read(os.environ)
    may_be_missing = not choices.store and settings.is_default_store
    findings = [*_programs(), *_packages(), *_spark(), Finding("store", without_credentials(url))]
    if path is not None:
        findings += [_synchronous(url, is_unsafe), *_place(path, may_be_missing)]
    lake = choices.lake_folder()
    if lake.is_dir():
        findings.append(check_disk("lake disk", lake))
    findings += await check_postgres(url, settings.listen_url)
    if path is None or path.is_file():
        findings += await _contents(choices)
        findings += await check_outbox(url)
    if path is not None and path.is_file():
        findings.append(await _wake(path))
    return findings


def without_credentials(url: str) -> str:
    """The URL without user name and password."""
    return _CREDENTIALS.sub("", url)


def tape_version() -> str:
    """The installed version; unknown in a bare source tree."""
    return _version("tape-bus") or "from source"


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _programs() -> Iterator[Finding]:
    import sqlite3

    yield Finding("tape", tape_version())
    yield Finding("python", f"{platform.python_version()} at {sys.executable}")
    is_new = sqlite3.sqlite_version_info >= MIN_SQLITE
    minimum = ".".join(map(str, MIN_SQLITE))
    yield Finding("sqlite", sqlite3.sqlite_version, "ok" if is_new else "fail", "" if is_new else f"needs {minimum}")
    for subject, distribution, extra, gives in (
        ("cel", "cel-expr-python", "cel", "predicates (--where)"),
        ("uvloop", "uvloop", "server", "a faster event loop"),
    ):
        version = _version(distribution)
        fix = "" if version else f"pip install 'tape-bus[{extra}]' gives {gives}"
        yield Finding(subject, version or "not installed", "ok" if version else "warn", fix)


def _packages() -> Iterator[Finding]:
    try:
        requirements = metadata.requires("tape-bus") or ()
    except metadata.PackageNotFoundError:  # a bare source tree has no requirements
        return
    yield versions_finding(requirements, _version)


def _spark() -> Iterator[Finding]:
    """The versions of Spark and Java."""
    from tape.core.errors import UsageError
    from tape.lake.java import FIX, find_java

    version = _version("pyspark")
    if version is None:
        yield Finding("spark", "not installed", "warn", "pip install 'tape-bus[spark]' gives the lake")
        return
    yield Finding("spark", version)
    try:
        java = find_java(os.environ)
    except UsageError:
        yield Finding("java", "no 17 or 21", "warn", FIX)
    else:
        yield Finding("java", f"{java.version} at {java.home}, {java.why}")


def _synchronous(url: str, is_unsafe: bool) -> Finding:
    from tape.store.sqlite.location import Location

    level = Location.parse(url, is_unsafe).synchronous
    if level in ("full", "extra"):
        return Finding("synchronous", f"{level}: an acknowledged event is on disk")
    return Finding("synchronous", level, "warn", "acknowledged events are lost when the machine stops; use full")


def _place(path: Path, may_be_missing: bool) -> Iterator[Finding]:
    folder = path.parent
    if folder.is_dir():
        yield check_disk("disk", folder)
    if path.is_dir():
        yield Finding("file", f"{str(path)!r} is a folder, not a file", "fail", "see --store and TAPE_STORE")
        return
    if not path.exists():
        yield _missing_file(path, may_be_missing)
        return
    yield Finding("file", f"{path}, {size(path.stat().st_size)}")
    yield _mode("file mode", path, 0o600)
    yield _mode("folder mode", folder, 0o700)
    yield _wal(path.with_name(f"{path.name}-wal"))


def _missing_file(path: Path, may_be_missing: bool) -> Finding:
    if may_be_missing:
        return Finding("file", f"{path} does not exist yet; the first write creates it")
    return Finding("file", f"{path} does not exist", "fail", CREATE)


def _mode(subject: str, path: Path, wanted: int) -> Finding:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & ~wanted & 0o777 == 0:
        return Finding(subject, f"{mode:04o}")
    return Finding(subject, f"{mode:04o}", "warn", f"others can reach it; chmod {wanted:o} '{path}'")


def _wal(path: Path) -> Finding:
    length = path.stat().st_size if path.exists() else 0
    if length < LONG_WAL:
        return Finding("wal", size(length))
    return Finding("wal", size(length), "warn", "a reader holds on to an old state; find it and end it")


async def _contents(choices: Choices) -> list[Finding]:
    from tape.bus.every_run import every_run
    from tape.core.errors import MissingStore, TapeError
    from tape.core.run_query import OPEN_RUNS

    try:
        async with choices.open_store(must_exist=True) as store:
            bounds = await store.journal.bounds()
            runs = await every_run(store.runs, OPEN_RUNS)
            readers = await check_readers(store, choices.lake_folder(), bounds.head)
            work = await check_work(store)
            schema = await _schema(store)
    except MissingStore as missing:
        return [Finding("journal", f"there is no journal {missing.place}", "fail", CREATE)]
    except TapeError as error:
        return [Finding("journal", str(error), "fail", _advice(error, choices.file()))]
    entries = output.count(bounds.head - bounds.floor + 1, "entry", "entries")
    return [
        schema,
        Finding("journal", f"{entries}, floor {bounds.floor}, head {bounds.head}, epoch {store.epoch}"),
        Finding("open runs", f"{len(runs):,}"),
        *readers,
        *work,
    ]


async def _schema(store: Store) -> Finding:
    """Whether this Tape or a newer one made the schema, or this check has just brought it up to date."""
    from tape.core.errors import UsageError

    try:
        unknown = await store.audit.unknown_steps()
    except UsageError:  # a store without a schema
        unknown = ()
    if not unknown:
        return Finding("schema", f"applied {', '.join(store.applied)}" if store.applied else "up to date")
    steps = ", ".join(f"{number:04}" for number in unknown)
    fix = "it still works, since steps only add; pip install --upgrade tape-bus to have what they are for"
    return Finding("schema", f"newer than this Tape: it has step {steps}", "warn", fix)


def _advice(error: TapeError, path: Path | None) -> str:
    """What to do about a journal that cannot be opened; a wrong argument is clear by itself."""
    from tape.core.errors import Corrupt, UsageError

    if isinstance(error, UsageError):
        return ""
    if isinstance(error, Corrupt) or path is not None:
        return "restore it from a copy, or make the file usable"
    return "see that the server runs, and that its URL, account and password are right"


async def _wake(path: Path) -> Finding:
    """Sends a notification to itself, as one process does to another."""
    import anyio.lowlevel

    from tape.core.ids import GlobalSeq
    from tape.store.sqlite.wake import DatagramWake

    folder = path.with_name(f"{path.name}.wake")
    is_new = not folder.exists()
    listener, teller = DatagramWake(folder), DatagramWake(folder)
    began = time.perf_counter()
    with anyio.move_on_after(ECHO_S) as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.wait_beyond, GlobalSeq(0))
            await anyio.lowlevel.checkpoint()  # it listens from its first step on
            await teller.notify(GlobalSeq(0))
    took_ms = 1000 * (time.perf_counter() - began)
    listener.close()
    teller.close()
    if is_new:
        with suppress(OSError):  # another process has begun to listen
            folder.rmdir()
    if scope.cancelled_caught:
        return Finding("wake-ups", "none arrive", "warn", "other processes find entries by polling, up to 10 ms later")
    return Finding("wake-ups", f"between processes in {took_ms:.1f} ms")
