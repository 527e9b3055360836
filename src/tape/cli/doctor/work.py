"""`tape doctor`: work that no worker takes, and what a worker needs to serve it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from tape.cli.doctor.finding import Finding

if TYPE_CHECKING:
    from tape.core.ports import Store
    from tape.core.sequence import Cell

OVERDUE_MS: Final = 60_000
MAX_ROWS: Final = 1_000
SHOWN: Final = 5


async def check_work(store: Store, overdue_ms: int = OVERDUE_MS) -> list[Finding]:
    """Obligations, effects and timers that have been due for this long."""
    from tape.core.errors import UsageError
    from tape.core.timer import TimerStatus
    from tape.runs.effects import EFFECTS, OUTBOX
    from tape.runs.lifecycle import DEBTS
    from tape.runs.timers import TIMERS

    ledgers = (
        ("obligation", DEBTS.name, "due"),
        ("effect", EFFECTS.name, OUTBOX),
        ("timer", TIMERS.name, TimerStatus.SET),
    )
    try:
        before = (await store.cells.snapshot(())).now_ms - overdue_ms
        found = [(what, await store.cells.due(name, status, before, MAX_ROWS)) for what, name, status in ledgers]
    except UsageError:  # a store without ledgers
        return []
    waiting = Counter(_named(what, cell) for what, due in found for cell in due.values())
    if not waiting:
        return []
    named = [f"{count:,} × {name}" for name, count in waiting.most_common(SHOWN)]
    more = [f"{len(waiting) - SHOWN} more kinds"] if len(waiting) > SHOWN else []
    fix = "run a worker of that app whose program has that compensator, connector or handler of timers"
    return [Finding("waiting work", "; ".join([*named, *more]), "warn", fix)]


def _named(what: str, cell: Cell) -> str:
    """The name as it is stored in cells; an empty one is _."""
    return f"{what} {cell.kind} of {'any app' if cell.app in (None, '_') else f'app {cell.app}'}"
