"""`tape doctor`: how far each reader of the journal is behind, and how many tasks are dead."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from tape.cli.doctor.finding import Finding

if TYPE_CHECKING:
    from tape.core.ports import Store

FAR_BEHIND: Final = 10_000
MAX_ROWS: Final = 1_000


async def check_readers(store: Store, lake: Path, head: int) -> list[Finding]:
    """Reactions, dead tasks and the lake, if there are any."""
    from tape.core.errors import UsageError

    try:
        return [*await _reactions(store, head), *await _dead(store), *_lake(lake, head)]
    except UsageError:  # a store without reactions
        return []


async def _reactions(store: Store, head: int) -> list[Finding]:
    count = len(await store.reactions.listed())
    if not count:
        return []
    pack = await store.reactions.match_cursor(0)
    own = [force.cursor for force in pack.states.values() if force.is_matching and force.cursor is not None]
    behind = head - min([pack.cursor, *own])
    found = Finding("reactions", f"{count:,}, {behind:,} entries behind")
    if behind <= FAR_BEHIND:
        return [found]
    return [found._replace(status="warn", fix="run `tape serve` or `tape work`, or another one of them")]


async def _dead(store: Store) -> list[Finding]:
    from tape.core.task import TaskStatus

    dead = len(await store.tasks.listed(status=TaskStatus.DLQ, limit=MAX_ROWS))
    if not dead:
        return []
    many = f"{MAX_ROWS:,} or more" if dead == MAX_ROWS else f"{dead:,}"
    fix = "read why with `tape task ls --status dlq`, then `tape task replay`"
    return [Finding("dead tasks", many, "warn", fix)]


def _lake(folder: Path, head: int) -> list[Finding]:
    from importlib.util import find_spec

    if not (folder / "journal" / "_delta_log").is_dir() or find_spec("deltalake") is None:
        return []
    from tape.lake.log import DeltaLog

    return [findings_of(DeltaLog(folder / "journal").snapshot().through, head)]


def findings_of(through: int, head: int) -> Finding:
    """The finding for a lake beside its journal."""
    found = Finding("lake", f"holds 1 to {through:,}, {max(head - through, 0):,} entries behind")
    if through > head:
        return found._replace(status="fail", fix="it is ahead of the journal, so it is another one's: rebuild it")
    if head - through > FAR_BEHIND:
        return found._replace(status="warn", fix="run `tape lake sync`, or keep `tape lake sync --follow` running")
    return found
