"""`tape doctor`: a Postgres server's version, settings, connections, and a pooler in between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tape.cli.doctor.finding import Finding

if TYPE_CHECKING:
    from tape.store.postgres.checkup import Checkup

OLDEST: Final = 13
FULL: Final = 0.8
LONG_S: Final = 300
SAFE: Final = {
    "fsync": "set fsync = on: without it a crash of the machine loses or damages what was acknowledged",
    "full_page_writes": "set full_page_writes = on, unless the disk never tears a page",
    "synchronous_commit": "set synchronous_commit = on: without it acknowledged events are lost in a crash",
}


async def check_postgres(url: str, listen_url: str | None) -> list[Finding]:
    """No findings for another store."""
    from tape.core.errors import TapeError

    if not url.startswith(("postgresql:", "postgres:")):
        return []
    from tape.store.postgres.checkup import check_up

    try:
        return list(findings_of(await check_up(url, listen_url)))
    except TapeError:
        return []  # opening the journal reports why it cannot be reached


def findings_of(checkup: Checkup) -> Iterator[Finding]:
    """Each fact, and what to do about a problem."""
    is_new = checkup.version >= OLDEST
    yield Finding("postgres", f"{checkup.version}", "ok" if is_new else "fail", "" if is_new else f"needs {OLDEST}")
    for name, fix in SAFE.items():
        value = checkup.settings.get(name, "on")
        yield Finding(name, value, "fail", fix) if value == "off" else Finding(name, value)
    yield _sessions(checkup)
    yield _oldest(checkup)
    yield _hearing(checkup)
    if sum(checkup.standbys):
        yield _standbys(checkup)


def _sessions(checkup: Checkup) -> Finding:
    most = int(checkup.settings.get("max_connections", "0"))
    found = Finding("connections", f"{checkup.sessions:,} of {most:,}")
    if checkup.sessions < FULL * most:
        return found
    return found._replace(status="warn", fix="raise max_connections, or put a pooler before TAPE_STORE")


def _oldest(checkup: Checkup) -> Finding:
    found = Finding("oldest transaction", f"{checkup.oldest_s:,.0f} s")
    if checkup.oldest_s < LONG_S:
        return found
    fix = "find it in pg_stat_activity and end it: as long as it stands, nothing can be cleaned up"
    return found._replace(status="warn", fix=fix)


def _hearing(checkup: Checkup) -> Finding:
    if checkup.hears:
        return Finding("listening", "notifications arrive")
    fix = "a pooler stands between; give the server's own URL, and leave the pooler to your other programs"
    return Finding("listening", "notifications do not arrive", "warn", fix)


def _standbys(checkup: Checkup) -> Finding:
    """Whether commits wait for a standby; without the privilege to see standbys, by the settings."""
    synchronous, asynchronous, hidden = checkup.standbys
    names = ((synchronous, "synchronous"), (asynchronous, "asynchronous"), (hidden, "hidden from this role"))
    found = Finding("standbys", ", ".join(f"{count} {name}" for count, name in names if count))
    is_set = checkup.settings.get("synchronous_standby_names", "") != "" and (
        checkup.settings.get("synchronous_commit") != "local"
    )
    if is_set and (synchronous or hidden):
        return found
    fix = "promoting one loses what it has not received; set synchronous_standby_names, or see promote-a-standby"
    return found._replace(status="warn", fix=fix)
