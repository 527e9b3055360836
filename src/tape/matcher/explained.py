"""An explanation as JSON values."""

from dataclasses import asdict

from tape.core.event import Entry
from tape.core.task import MAX_DEPTH, Task
from tape.matcher.explain import Explanation


def explanation_fields(explanation: Explanation) -> dict[str, object]:
    """All fields of an explanation."""
    judged = explanation.judgement
    return {
        "reaction_id": explanation.reaction_id,
        "global_seq": explanation.entry.global_seq,
        "subject": explanation.entry.subject,
        "outcome": explanation.outcome.value,
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
        "last_global_seq": explanation.cursor,
        "registrations": [entry_fields(entry) for entry in explanation.registrations],
        "task": None if explanation.task is None else task_fields(explanation.task),
        "life": [entry_fields(entry) for entry in explanation.life],
    }


def task_fields(task: Task) -> dict[str, object]:
    """A task by the column names of tape_tasks."""
    return {**asdict(task), "status": int(task.status)}


def entry_fields(entry: Entry) -> dict[str, object]:
    """The position, time and type of an entry, with the fields that explain it."""
    payload = entry.payload if isinstance(entry.payload, dict) else {}
    reasons = {name: payload[name] for name in ("attempts", "error", "reason", "paused") if payload.get(name)}
    return {"global_seq": entry.global_seq, "ts_ms": entry.ts_ms, "type": entry.type, **reasons}
