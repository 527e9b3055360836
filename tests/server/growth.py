"""What a store grows by while a server answers requests one by one, judged by what each operation writes by design."""

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import psycopg

from tape.core.subject import Pattern

TABLES: Final = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
    "postgresql": "SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname IN ('public', 'core')",
}
ENTRIES: Final = "SELECT global_seq, run_id, kind, type FROM tape_journal WHERE global_seq > {} ORDER BY global_seq"
LEDGERS: Final = "SELECT ledger, count(*) FROM tape_cells GROUP BY ledger"
TASKS: Final = """
SELECT t.reaction_id, j.subject FROM tape_tasks AS t LEFT JOIN tape_journal AS j ON j.global_seq = t.source_global_seq
"""
DEFINITIONS: Final = (
    "SELECT payload_json FROM tape_journal WHERE kind = 'reaction' AND type IN ('registered', 'changed')"
)

_EFFECT: Final = "(effect.[a-z]+ (obligation.registered )?)?"
_SIGNAL: Final = "(gate.released (run.runnable )?)?"

# Operation: the entries that an accepted request appends, each followed by a space, and the rows that it may add.
# `event` is one that a producer appends; a name alone is a ledger, with a star any number of its rows.
BY_DESIGN: Final[Mapping[str, tuple[str, str]]] = {
    "run.open": ("", "tape_runs tape_heads"),
    "run.close": ("", ""),
    "run.cancel": ("(run.cancelled )?", "debt"),
    "run.reap": ("", ""),
    "run.fork": ("run.fork (event )?", "tape_runs tape_heads run decision* effect* gate* budget"),
    "run.begin": ("(run.(running|runnable) )?", "tape_runs tape_heads run newest"),
    "run.take": ("(run.running )?", ""),
    "run.end": ("(run.[a-z]+ )?", "debt"),
    "run.compact": ("(run.compacted )?", "compaction"),
    "decision.record": ("(decision.recorded )?", "decision"),
    "effect.begin": ("(effect.[a-z]+ )?", "effect business"),
    "effect.complete": (_EFFECT, "obligation debt"),
    "effect.reconcile": (_EFFECT, "obligation debt"),
    "effect.claim": (_EFFECT, "obligation debt"),
    "effect.attempt": (_EFFECT, "obligation debt"),
    "effect.observe": (f"{_EFFECT}(obligation.registered )?", "obligation obligation debt"),
    "effect.retry": (_EFFECT, "obligation debt"),
    "effect.doubt-silent": ("(effect.unknown )*", ""),
    "obligation.register": ("(obligation.registered )?", "obligation debt"),
    "obligation.claim": ("(obligation.[a-z]+ )?", ""),
    "obligation.attempt": ("(obligation.[a-z]+ )?", ""),
    "obligation.resolve": ("(obligation.[a-z]+ )?", ""),
    "obligation.retry": ("(obligation.[a-z]+ )?", ""),
    "gate.wait": ("(gate.waiting run.waiting )?", "gate"),
    "gate.send": (_SIGNAL, "gate call"),
    "timer.set": ("(timer.set )?", "timer"),
    "timer.cancel": ("(timer.cancelled )?", ""),
    "timer.due": (f"(timer.[a-z]+ {_SIGNAL})*", "gate*"),
    "timer.claim": ("(timer.cancelled )?", ""),
    "timer.fire": (f"(timer.fired {_SIGNAL})?", "gate"),
    "budget.set": ("(budget.set )?", "budget"),
    "budget.reserve": ("(budget.reserved )?", "budget reservation"),
    "budget.settle": ("(budget.settled )?", "budget"),
    "budget.charge": ("(budget.charged )?", "budget call"),
    "value.write": ("(value.changed )?", "tape_runs tape_heads value call"),
    "value.delete": ("(value.deleted )?", "call"),
    "session.create": ("(session.created )?", "tape_runs tape_heads session"),
    "session.append": ("(event.appended )?", "session_event"),
    "session.delete": ("(session.deleted )?", ""),
    "reaction.register": ("(reaction.(registered|changed) )?", "tape_runs tape_heads tape_reactions tape_limits"),
    "reaction.pause": ("(reaction.paused )?", ""),
    "reaction.resume": ("(reaction.changed )?", ""),
    "reaction.remove": ("(reaction.removed )?", ""),
    "task.replay": ("(task.replayed )*", ""),
    "event.append": ("(event )*", "tape_keys tape_runs* tape_heads*"),
}
DENIED: Final = ("effect.begin", ("policy.denied",))  # an effect without its scope is refused, and that is recorded
BY_MATCHER: Final = "task.dead"  # it ends tasks of removed reactions when it reads the removal, after any request
JUDGED_ELSEWHERE: Final = frozenset({"tape_journal", "tape_tasks"})  # by the entries; the matcher adds tasks later


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Entries as `kind.type` in their order, and rows by table; those of `tape_cells` by their ledger alone."""

    entries: tuple[str, ...] = ()
    rows: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request: its operation (none for a route that is no operation), its answer, and what the store grew by.

    `events` is how many the answer says were appended, None if the request may have repeated an earlier one.
    """

    operation: str | None
    status: str
    is_accepted: bool
    growth: Growth
    events: int | None = None

    def unexplained(self) -> str | None:
        """What has grown although nobody asked for it, or has not although it was accepted."""
        if not self.is_accepted and (self.operation, self.growth.entries) == DENIED:
            return None
        entries, rows = BY_DESIGN.get(self.operation or "", ("", "")) if self.is_accepted else ("", "")
        written = "".join(f"{each} " for each in self.growth.entries if each != BY_MATCHER)
        most = Counter(name.rstrip("*") for name in rows.split())
        more = {name: count for name, count in self.growth.rows.items() if name not in JUDGED_ELSEWHERE}
        is_explained = (
            re.fullmatch(entries, written) is not None
            and (self.events is None or self.growth.entries.count("event") == self.events)
            and all(0 < count <= most[name] or f"{name}*" in rows.split() for name, count in more.items())
        )
        return None if is_explained else f"{self.operation} ({self.status}): {self.growth.entries} {dict(more)}"


class Census:
    """Reads a store beside its server; each look tells what was added since the last one."""

    def __init__(self, store: str) -> None:
        self._fetch, self.close = _reader(store)
        self._dialect = store.partition(":")[0]
        self._head = 0
        self._rows: Counter[str] = Counter()
        self.look()

    def look(self) -> Growth:
        before, self._rows = self._rows, self._counted()
        entries = self._fetch(ENTRIES.format(self._head))
        self._head = entries[-1][0] if entries else self._head
        changed = {name: self._rows[name] - before[name] for name in self._rows | before}
        return Growth(
            entries=tuple(_label(*each) for _, *each in entries),
            rows={name: more for name, more in changed.items() if more},
        )

    def stray_tasks(self) -> list[tuple[str, str]]:
        """Tasks of an entry that no definition of their reaction matches."""
        patterns: dict[str, set[Pattern]] = {}
        for (text,) in self._fetch(DEFINITIONS):
            definition = json.loads(text)["reaction"]
            patterns.setdefault(definition["reaction_id"], set()).add(Pattern(definition["subject_pattern"]))
        return [
            (reaction_id, subject)
            for reaction_id, subject in self._fetch(TASKS)
            if not any(pattern.matches(subject) for pattern in patterns[reaction_id])
        ]

    def _counted(self) -> Counter[str]:
        tables = sorted(name for (name,) in self._fetch(TABLES[self._dialect]) if not name.endswith("tape_cells"))
        counts = self._fetch(" UNION ALL ".join(f"SELECT '{name}', count(*) FROM {name}" for name in tables))
        found = {name.removeprefix("public."): count for name, count in counts}
        return Counter({**found, **dict(self._fetch(LEDGERS))})


def _label(run_id: str, kind: str, type: str) -> str:
    return "event" if kind == "event" and not run_id.startswith("tape.") else f"{kind}.{type}"


def _reader(store: str) -> tuple[Callable[[str], list[tuple[Any, ...]]], Callable[[], None]]:
    if store.startswith("sqlite:"):
        file = sqlite3.connect(
            f"file:{store.removeprefix('sqlite:///')}?mode=ro", uri=True, timeout=60, check_same_thread=False
        )
        return lambda query: file.execute(query).fetchall(), file.close
    database = psycopg.connect(store, autocommit=True)
    return lambda query: database.execute(query.encode()).fetchall(), database.close


def write(call: Call, file: Path) -> None:
    with file.open("a") as lines:
        lines.write(json.dumps(asdict(call)) + "\n")


def read(file: Path) -> list[Call]:
    found = [json.loads(line) for line in file.read_text().splitlines()]
    return [Call(**{**each, "growth": _growth(each["growth"])}) for each in found]


def _growth(given: dict[str, Any]) -> Growth:
    return Growth(entries=tuple(given["entries"]), rows=given["rows"])


def unexplained(calls: Iterable[Call]) -> list[str]:
    return [found for call in calls if (found := call.unexplained()) is not None]
