"""Lifecycle entries, which say what becomes of reactions and their tasks, and which reactions match them."""

from typing import Final

from tape.core.event import Entry
from tape.core.subject import Pattern

PREFIXES: Final = ("/tape/task/", "/tape/reaction/")
SOURCE_SUBJECT: Final = "source_subject"  # in the payload of an entry about a task: the subject that the task is for


def is_lifecycle(subject: str) -> bool:
    """Whether an entry of this subject is about a task or a reaction."""
    return subject.startswith(PREFIXES)


def names_lifecycle(pattern: Pattern) -> bool:
    """Whether the first two segments are literally those of a lifecycle subject; a wildcard there names none."""
    return pattern.text.startswith(PREFIXES)


def is_of_lifecycle(entry: Entry) -> bool:
    """Whether it is about a task that was itself made of a lifecycle entry.

    No reaction matches such an entry: else reactions to dead tasks would multiply each other's.
    """
    facts = entry.payload if is_lifecycle(entry.subject) else None
    source = facts.get(SOURCE_SUBJECT) if isinstance(facts, dict) else None
    return isinstance(source, str) and is_lifecycle(source)


def reacts(pattern: Pattern, entry: Entry) -> bool:
    """Whether a reaction with this pattern is for an entry; its predicate is another question.

    Everything that matches goes by this: the matcher, dry runs, backfills and explanations.
    """
    return pattern.matches(entry.subject) and may_react(pattern, entry)


def may_react(pattern: Pattern, entry: Entry) -> bool:
    """The same for a subject that the pattern is known to match."""
    return not is_lifecycle(entry.subject) or (names_lifecycle(pattern) and not is_of_lifecycle(entry))
