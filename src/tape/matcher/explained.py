"""An explanation as JSON values."""

from dataclasses import asdict

from tape.core.explanation import Explanation, LifecycleEvent
from tape.core.task import MAX_DEPTH, Task


def explanation_fields(explanation: Explanation) -> dict[str, object]:
    """All fields of an explanation."""
    judged = explanation.judgement
    return {
        "reaction_id": explanation.reaction_id,
        "global_seq": explanation.global_seq,
        "subject": explanation.subject,
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
            "parts": [asdict(part) for part in judged.parts],
        },
        "depth": judged.depth,
        "max_depth": MAX_DEPTH,
        "debounce_ms": judged.definition.debounce_ms,
        "last_global_seq": explanation.cursor,
        "registrations": [event_fields(event) for event in explanation.registrations],
        "task": None if explanation.task is None else task_fields(explanation.task),
        "life": [event_fields(event) for event in explanation.life],
    }


def task_fields(task: Task) -> dict[str, object]:
    """A task by the column names of tape_tasks."""
    return {**asdict(task), "status": int(task.status)}


def event_fields(event: LifecycleEvent) -> dict[str, object]:
    """The fields of an event that have a value."""
    return {name: value for name, value in asdict(event).items() if value}
