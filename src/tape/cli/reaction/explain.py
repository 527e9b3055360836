"""`tape reaction explain`: why an entry became a task of a reaction, or why not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from tape.cli import output
from tape.cli.choices import Choices, ask_node, in_lake, shared

if TYPE_CHECKING:
    from tape.core.explanation import Explanation, LifecycleEvent
    from tape.core.predicate.parts import Part
    from tape.core.task import Task

CELLS: Final = 60
ANSWERS: Final = {
    "not_active": "no task: the reaction was not active",
    "other_subject": "no task: the pattern does not match the subject",
    "no_match": "no task: the predicate does not hold",
    "predicate_error": "no task: the predicate raised an error",
    "too_deep": "no task: the chain of causes is too long",
    "not_yet": "it matches, and the matcher has not come to it yet",
    "task": "it matches, and became a task",
    "coalesced": "it matches, and went into the task of a newer entry",
    "backfilled": "it became a task in a backfill, although the reaction was not active",
    "forgotten": "it matches, and its task was forgotten after it was done",
}


@click.command()
@click.argument("reaction_id", metavar="ID")
@click.argument("global_seq", metavar="GLOBAL_SEQ", type=click.IntRange(min=1))
@shared
@in_lake
@click.pass_obj
def explain(choices: Choices, reaction_id: str, global_seq: int) -> None:
    """Show why the entry at GLOBAL_SEQ became a task of ID, or why not."""
    explanation = ask_node(choices, lambda node: node.reactions.explain(reaction_id, global_seq))
    if choices.is_json:
        output.write_record(explanation)
    else:
        _print(explanation)


def _print(explanation: Explanation) -> None:
    output.write(output.paint(ANSWERS[explanation.outcome.value], "bold"))
    output.table(_lines(explanation))
    if explanation.judgement.parts:
        output.write(output.paint("the predicate", "bold"))
        output.table(map(_part, explanation.judgement.parts))
    if explanation.task is not None:
        output.write(output.paint("the task", "bold"))
        output.table([*_task(explanation.task), *map(_event_row, explanation.life)])


def _lines(explanation: Explanation) -> Iterator[tuple[str, ...]]:
    judged, rule = explanation.judgement, explanation.judgement.definition
    yield "active", _yes(judged.is_active), judged.reason
    yield "pattern", _yes(judged.is_subject), _pattern(rule.subject_pattern, explanation.subject, judged.is_subject)
    error = f"  {judged.verdict.error}" if judged.verdict.error else ""
    yield "predicate", _yes(judged.verdict.matched), output.escape((rule.predicate_cel or "none") + error)
    yield "depth", str(judged.depth), ""
    if rule.debounce_ms:
        yield "debounce", f"{rule.debounce_ms:,} ms", "the newest entry of a subject replaces those before"
    yield "matched to", f"{explanation.cursor:,}", ""


def _pattern(pattern: str, subject: str, is_subject: bool) -> str:
    from tape.core.subject import Pattern

    is_withheld = not is_subject and Pattern(pattern).matches(subject)
    note = "  (a pattern has to name entries about tasks and reactions)" if is_withheld else ""
    return f"{pattern}  on  {output.escape(subject)}{note}"


def _part(part: Part) -> tuple[str, ...]:
    text, colour = (part.error or "", "red") if part.value is None else (part.value, "green")
    value = output.paint(output.fit(output.escape(text), CELLS), colour)
    return part.position, output.fit(output.escape(part.text), CELLS), value


def _task(task: Task) -> Iterator[tuple[str, ...]]:
    attempts = output.count(task.attempts, "attempt", "attempts")
    yield task.task_id, task.status.name.lower(), attempts, output.escape(task.last_error)


def _event_row(event: LifecycleEvent) -> tuple[str, ...]:
    return f"at {event.global_seq:,}", event.type, "", output.escape(event.error)


def _yes(is_so: bool) -> str:
    return output.paint("yes", "green") if is_so else output.paint("no", "red")
