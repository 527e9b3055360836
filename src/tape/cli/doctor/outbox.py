"""`tape doctor`: the state and growth of an outbox."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from tape.cli.doctor.finding import Finding

if TYPE_CHECKING:
    from tape.core.outbox_record import OutboxStats

LATE_MS: Final = 300_000
LATE: Final = "start a worker whose TAPE_GENERATION is theirs, or hand them over with `tape outbox hand-over`"


async def check_outbox(store: str) -> list[Finding]:
    """No findings without an outbox."""
    from tape.core.errors import TapeError
    from tape.outbox.database import may_have_outbox, open_table
    from tape.settings import Settings

    url = Settings.read(os.environ).outbox or store
    if not url.startswith(("sqlite:", "postgresql:", "postgres:")):
        return []
    try:
        if not may_have_outbox(url):
            return []
        async with open_table(url) as table:
            return findings_of(await table.stats()) if await table.is_there() else []
    except TapeError as error:
        return [Finding("outbox", "does not answer", "fail", str(error))]
    raise AssertionError("unreachable")


def findings_of(stats: OutboxStats) -> list[Finding]:
    """The outbox's numbers, and each growth limit it has exceeded."""
    waiting = f"{stats.pending:,} pending, {stats.in_flight:,} in flight, oldest {stats.oldest_ms / 1000:,.1f} s"
    ack = f"ack p50 {stats.ack_p50_ms:,.1f} ms, p99 {stats.ack_p99_ms:,.1f} ms"
    backlog = Finding("outbox", f"{stats.rows:,} rows, {waiting}, {ack}")
    if stats.oldest_ms > LATE_MS:
        backlog = backlog._replace(status="warn", fix=LATE)
    dead = Finding("dead letters", f"{stats.failed:,}")
    if stats.failed:
        dead = dead._replace(status="warn", fix="look at them with `tape outbox ls --status failed`")
    grown = [Finding("outbox growth", f"{stats.rows:,} rows, {ack}", "warn", advice) for advice in stats.advice]
    return [backlog, dead, *grown]
