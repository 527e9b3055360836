"""The end of a run of chaos: it must recover within its bound, and its history is judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from tape.checker.lines import EffectLine, EntryLine, ReadLine, StreamLine, TaskLine, TermLine
from tape.compose import open_store, run_journal
from tape.core.ports import Store
from tape.core.task import TaskStatus
from tests.chaos.names import PUBLISHERS, REACTION
from tests.chaos.report import Report
from tests.process import recorder
from tests.process.recorder import Recorder
from tests.servers.databases import fetch

if TYPE_CHECKING:
    from tests.chaos.chaos import Chaos

BOUND_S = 60.0  # within which all that was asked for must have happened, once nothing is broken any more
OPEN_TASKS = f"SELECT count(*) FROM tape_tasks WHERE reaction_id = '{REACTION}' AND status NOT IN (3, 5)"
OPEN_OUTBOX = "SELECT count(*) FROM core.outbox WHERE status IN ('pending', 'in_flight')"
HEAD = "SELECT coalesce(max(global_seq), 0) FROM tape_journal"
UNMATCHED = f"""
SELECT count(*) FROM tape_journal AS j WHERE subject LIKE '/chaos/%'
AND NOT EXISTS (SELECT FROM tape_tasks AS t WHERE t.source_global_seq = j.global_seq AND t.reaction_id = '{REACTION}')
"""
TABLES = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 'tape%' ORDER BY 1"


async def wait_for_appends(chaos: Chaos) -> None:
    """Until every publisher has an answer."""
    with anyio.fail_after(BOUND_S):
        await until(lambda: all(chaos.clients.acknowledged[name] for name in PUBLISHERS))


async def heal(chaos: Chaos) -> list[str]:
    """Nothing is broken any more: every publisher must be answered again within the bound."""
    for part in chaos.parts:
        if not part.is_running:
            part.start()
    before = dict(chaos.clients.acknowledged)

    def is_answered(name: str) -> bool:
        return chaos.clients.acknowledged[name] > before.get(name, 0)

    return await unmet({f"{name} gets an answer": partial(is_answered, name) for name in PUBLISHERS})


async def finish(chaos: Chaos) -> list[str]:
    """No more is asked for: within the bound readers are at the head, and every task and delivery has ended."""
    chaos.outboxes[0].kill()

    def count(query: str) -> int:
        ((found,),) = fetch(chaos.database.direct_url, query)
        return int(found)

    def is_at_head(name: str) -> bool:
        return chaos.clients.position.get(name, 0) >= count(HEAD)

    at_head = {f"{name} is at the head": partial(is_at_head, name) for name in ("page", "program")}
    ended = {
        "every match has a task": lambda: count(UNMATCHED) == 0,
        "every task has ended": lambda: count(OPEN_TASKS) == 0,
        "every delivery has ended": lambda: count(OPEN_OUTBOX) == 0,
    }
    return await unmet({**ended, **at_head})


async def unmet(wanted: Mapping[str, Callable[[], bool]]) -> list[str]:
    """Those that do not come true within the bound."""
    conditions = {**wanted}
    with anyio.move_on_after(BOUND_S):
        for what, is_so in [*conditions.items()]:
            await until(is_so)
            del conditions[what]
    return [f"not within {BOUND_S:g} s: {what}" for what in conditions]


async def judged(chaos: Chaos, seed: int, stuck: list[str]) -> Report:
    async with open_store(chaos.database.direct_url) as store, run_journal(store) as journal:
        records = Recorder(chaos.folder / "final.jsonl")
        for term in await store.journal.terms():
            lossless = chaos.plan.promotion != "lagging"
            records.write(TermLine, epoch=int(term.epoch), first=max(1, int(term.first)), is_lossless=lossless)
        chaos.done["new terms"] = max(0, len(await store.journal.terms()) - 1)
        records.write(StreamLine, number=1, step="invoke", is_followed=False, epoch=int(journal.epoch))
        entries = 0
        async for entry in journal.stream(follow=False):
            entries += entry.run_id in PUBLISHERS
            body = entry.payload.get("id", "") if isinstance(entry.payload, dict) else ""
            records.write(
                EntryLine, number=1, run_id=entry.run_id, seq=entry.seq, global_seq=entry.global_seq,
                event_id=str(body), subject=entry.subject, epoch=int(entry.epoch),
            )  # fmt: skip
        records.write(StreamLine, number=1, step="ok")
        attempts = await list_tasks(store, records)
    list_effects(chaos, records)
    chaos.done["attempts again"] = attempts
    lines = recorder.merged(chaos.folder.glob("*.jsonl"))
    recorder.save(lines, chaos.folder / "history.json")
    rows = {str(table): count_rows(chaos, str(table)) for (table,) in fetch(chaos.database.direct_url, TABLES)}
    return Report(
        seed=seed, plan=chaos.plan, done=chaos.done + chaos.clients.seen, stuck=stuck,
        findings=recorder.findings(lines), lines=len(lines), asked=chaos.clients.asked, entries=entries, rows=rows,
        before=chaos.usage, after={part.name: part.usage() for part in chaos.servers},
        sessions=count_sessions(chaos),
    )  # fmt: skip


async def list_tasks(store: Store, records: Recorder) -> int:
    """Records the tasks; returns how many had more than one attempt."""
    again = 0
    records.write(ReadLine, number=2, step="invoke", of="tasks")
    for task in await store.tasks.listed(limit=1_000_000):
        if task.reaction_id == REACTION:
            again += task.attempt > 1
            records.write(
                TaskLine, number=2, task_id=task.task_id, reaction_id=task.reaction_id, attempt=task.attempt,
                global_seq=task.source_global_seq, status=TaskStatus(task.status).name.lower(),
            )  # fmt: skip
    records.write(ReadLine, number=2, step="ok", of="tasks", is_final=True)
    return again


def list_effects(chaos: Chaos, records: Recorder) -> None:
    records.write(ReadLine, number=3, step="invoke", of="effects")
    for (n,) in fetch(chaos.database.direct_url, "SELECT n FROM effects WHERE handler = 'once'"):
        records.write(EffectLine, number=3, handler="once", event_id=str(n))
    records.write(ReadLine, number=3, step="ok", of="effects", is_final=True)


def count_rows(chaos: Chaos, table: str) -> int:
    ((found,),) = fetch(chaos.database.direct_url, f"SELECT count(*) FROM {table}")
    return int(found)


def count_sessions(chaos: Chaos) -> int:
    ((found,),) = fetch(
        chaos.database.direct_url, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
    )
    return int(found)


async def until(condition: Callable[[], bool]) -> None:
    while not await anyio.to_thread.run_sync(condition):  # noqa: ASYNC110 - other processes make it true
        await anyio.sleep(0.1)
