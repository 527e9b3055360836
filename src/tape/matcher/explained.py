"""An explanation as plain values, for whoever shows it."""

from dataclasses import asdict

from tape.core.event import Entry
from tape.core.task import MAX_DEPTH, Task
from tape.matcher.explain import Explanation


def explanation_fields(told: Explanation) -> dict[str, object]:
    """Everything an explanation says."""
    judged = told.judgement
    return {
        "reaction_id": told.reaction_id,
        "global_seq": told.entry.global_seq,
        "subject": told.entry.subject,
        "outcome": told.outcome.value,
        "matched": judged.refusal is None,
        "active": judged.is_active,
        "reason": judged.reason,
        "definition": judged.definition.definition(),
        "pattern": {"text": judged.definition.subject_pattern, "matched": judged.is_subject},
        "predicate": {
            "text": judged.definition.predicate_cel,
            "matched": judged.verdict.matched,
            "error": judged.verdict.error,
            "parts": [part._asdict() for part in judged.parts],
        },
        "depth": judged.depth,
        "max_depth": MAX_DEPTH,
        "debounce_ms": judged.definition.debounce_ms,
        "last_global_seq": told.cursor,
        "registrations": [entry_fields(entry) for entry in told.registrations],
        "task": None if told.task is None else task_fields(told.task),
        "life": [entry_fields(entry) for entry in told.life],
    }


def task_fields(task: Task) -> dict[str, object]:
    """The columns of tape_tasks, by their names."""
    return {**asdict(task), "status": int(task.status)}


def entry_fields(entry: Entry) -> dict[str, object]:
    """What happened, where and when, and what was said of it."""
    said = entry.payload if isinstance(entry.payload, dict) else {}
    told = {name: said[name] for name in ("attempts", "error", "reason", "paused") if said.get(name)}
    return {"global_seq": entry.global_seq, "ts_ms": entry.ts_ms, "type": entry.type, **told}
