"""The end of a run of chaos: it must recover within its bound, and its history is judged."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from tape.bus.journal import Journal
from tape.checker.lines import EffectLine, EntryLine, LakeLine, ReadLine, StreamLine, TaskLine, TermLine
from tape.compose import open_store, run_journal
from tape.core.ports import Store
from tape.core.task import TaskStatus
from tests.chaos.clients import Clients
from tests.chaos.installation import Installation
from tests.chaos.lake import Checksums, ranges
from tests.chaos.names import PUBLISHERS, REACTION, READERS
from tests.chaos.report import Report
from tests.chaos.waiting import Remaining, until
from tests.deadlines import DEADLINE_S
from tests.process import recorder
from tests.process.recorder import Recorder
from tests.servers.databases import fetch

LAKE_S = 120.0  # its process starts a JVM first
OPEN_TASKS = f"SELECT count(*) FROM tape_tasks WHERE reaction_id = '{REACTION}' AND status NOT IN (3, 5)"
OPEN_OUTBOX = "SELECT count(*) FROM core.outbox WHERE status IN ('pending', 'in_flight')"
HEAD = "SELECT coalesce(max(global_seq), 0) FROM tape_journal"
ENTRIES = "SELECT count(*) FROM tape_journal WHERE subject LIKE '/chaos/%'"
UNMATCHED = f"""
SELECT count(*) FROM tape_journal AS j WHERE subject LIKE '/chaos/%'
AND NOT EXISTS (SELECT FROM tape_tasks AS t WHERE t.source_global_seq = j.global_seq AND t.reaction_id = '{REACTION}')
"""
NO_ROOM = "No space left on device"
SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
TABLES = """
SELECT CASE schemaname WHEN 'core' THEN 'core.' ELSE '' END || tablename FROM pg_tables
WHERE schemaname = 'core' OR tablename LIKE 'tape%' ORDER BY 1
"""
PUBLISHED = "SELECT count(*) FROM orders"


@dataclass
class Run:
    """What the end of a run needs of it."""

    folder: Path
    seed: int
    installation: Installation
    clients: Clients
    done: Counter[str]
    usage: dict[str, tuple[int, int]] = field(default_factory=dict)

    def measure(self) -> None:
        """Remembers what each part uses before anything is broken."""
        self.usage = {part.name: part.usage() for part in self.installation.measured}

    def count(self, query: str) -> int:
        ((found,),) = fetch(self.installation.database.direct_url, query)
        return int(found)


async def wait_for_appends(clients: Clients) -> None:
    """Until every publisher has an answer."""
    with anyio.fail_after(3 * DEADLINE_S):
        await until(lambda: all(clients.acknowledged[name] for name in PUBLISHERS))


async def heal(run: Run) -> list[str]:
    """Nothing is broken any more: every publisher must be answered again."""
    await anyio.to_thread.run_sync(run.installation.database.revive)
    before = dict(run.clients.acknowledged)

    def is_waiting(name: str) -> bool:
        return run.clients.acknowledged[name] == before.get(name, 0)

    return await stuck([Remaining(f"{name} gets no answer", partial(is_waiting, name)) for name in PUBLISHERS])


async def finish(run: Run) -> list[str]:
    """No more is asked for: all work ends, and the readers and the lake reach the head."""
    run.installation.outboxes[0].kill()
    lake = run.installation.lake

    def behind(name: str) -> int:
        return run.count(HEAD) - run.clients.position.get(name, 0)

    remaining = [
        Remaining("entries have no task", partial(run.count, UNMATCHED)),
        Remaining("tasks do not end", partial(run.count, OPEN_TASKS)),
        Remaining("deliveries do not end", partial(run.count, OPEN_OUTBOX)),
        *(Remaining(f"{name} does not reach the head", partial(behind, name)) for name in READERS),
    ]
    if lake is not None:
        remaining.append(Remaining("the lake does not reach the head", lambda: run.count(HEAD) - lake.through, LAKE_S))
    return await stuck(remaining)


async def stuck(remaining: Sequence[Remaining]) -> list[str]:
    return [f"no progress within {each.bound_s:g} s: {each.what}" for each in remaining if await each.is_stuck()]


async def judged(run: Run, wrong: list[str]) -> Report:
    installation, records = run.installation, Recorder(run.folder / "final.jsonl")
    after = {part.name: part.usage() for part in installation.measured}
    sessions = run.count(SESSIONS)
    async with open_store(installation.database.direct_url) as store, run_journal(store) as journal:
        await list_terms(run, store, records)
        if installation.lake is not None:
            records.write(LakeLine, ranges=ranges(installation.lake.positions()))
        checksums = await read_journal(journal, records)
        run.done["lease expiries"] = await list_tasks(store, records)
    list_effects(run, records)
    count_signs(run)
    lines = recorder.merged(run.folder.glob("*.jsonl"))
    recorder.save(lines, run.folder / "history.json")
    return Report(
        seed=run.seed, plan=installation.plan, done=run.done + run.clients.seen,
        stuck=[*wrong, *deaths(installation), *wrong_copies(installation, checksums)],
        findings=recorder.findings(lines), lines=len(lines),
        asked=run.clients.asked, published=run.count(PUBLISHED), entries=run.count(ENTRIES),
        rows={str(table): run.count(f"SELECT count(*) FROM {table}") for (table,) in tables(run)},
        before=run.usage, after=after, sessions=sessions,
    )  # fmt: skip


def deaths(installation: Installation) -> list[str]:
    return [death for part in installation.parts for death in part.deaths]


def wrong_copies(installation: Installation, checksums: Checksums) -> list[str]:
    return [*installation.lake.wrong(checksums)] if installation.lake is not None else []


def tables(run: Run) -> list[tuple[object, ...]]:
    return fetch(run.installation.database.direct_url, TABLES)


def count_signs(run: Run) -> None:
    """What only the parts' own output tells."""
    installation = run.installation
    outputs = [part.output for part in installation.measured]
    run.done["poll fallbacks"] = sum(output.count(".degraded") for output in outputs)
    run.done["requests without room"] = sum(output.count(NO_ROOM) for output in outputs)
    if installation.lake is not None:
        run.done["lake steps without room"] = installation.lake.refusals
        run.done["lakes rebuilt"] = installation.lake.rebuilt


async def list_terms(run: Run, store: Store, records: Recorder) -> None:
    is_lossless = run.installation.plan.promotion != "lagging"
    terms = await store.journal.terms()
    for term in terms:
        records.write(TermLine, epoch=int(term.epoch), first=max(1, int(term.first)), is_lossless=is_lossless)
    run.done["new terms"] = len(terms) - 1


async def read_journal(journal: Journal, records: Recorder) -> Checksums:
    """Records a read of the whole journal; returns the checksums of its entries."""
    checksums = {}
    records.write(StreamLine, number=1, step="invoke", is_followed=False, epoch=int(journal.epoch))
    async for entry in journal.stream(follow=False):
        checksums[int(entry.global_seq)] = entry.crc
        body = entry.payload.get("id", "") if isinstance(entry.payload, dict) else ""
        records.write(
            EntryLine, number=1, run_id=entry.run_id, seq=entry.seq, global_seq=entry.global_seq,
            event_id=str(body), subject=entry.subject, epoch=int(entry.epoch),
        )  # fmt: skip
    records.write(StreamLine, number=1, step="ok")
    return checksums


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


def list_effects(run: Run, records: Recorder) -> None:
    records.write(ReadLine, number=3, step="invoke", of="effects")
    for (n,) in fetch(run.installation.database.direct_url, "SELECT n FROM effects WHERE handler = 'once'"):
        records.write(EffectLine, number=3, handler="once", event_id=str(n))
    records.write(ReadLine, number=3, step="ok", of="effects", is_final=True)
