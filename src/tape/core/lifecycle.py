"""Lifecycle entries record what happens to reactions and tasks; this module decides which reactions match them."""

from typing import Final

from tape.core.event import Entry
from tape.core.subject import Pattern

PREFIXES: Final = ("/tape/task/", "/tape/reaction/")
SOURCE_SUBJECT: Final = "source_subject"  # payload field of a task's entry: the subject of the task's source entry


def is_lifecycle(subject: str) -> bool:
    return subject.startswith(PREFIXES)


def names_lifecycle(pattern: Pattern) -> bool:
    """Whether the first two segments are literally those of a lifecycle subject; a wildcard does not count."""
    return pattern.text.startswith(PREFIXES)


def is_of_lifecycle(entry: Entry) -> bool:
    """Whether the entry is about a task whose source is itself a lifecycle entry.

    No reaction matches such an entry, or reactions to dead tasks would cause each other without end.
    """
    facts = entry.payload if is_lifecycle(entry.subject) else None
    source = facts.get(SOURCE_SUBJECT) if isinstance(facts, dict) else None
    return isinstance(source, str) and is_lifecycle(source)


def reacts(pattern: Pattern, entry: Entry) -> bool:
    """Whether a reaction with this pattern applies to an entry, before its predicate is evaluated.

    The matcher, dry runs, backfills and explanations all use this function.
    """
    return pattern.matches(entry.subject) and may_react(pattern, entry)


def may_react(pattern: Pattern, entry: Entry) -> bool:
    """The same for an entry whose subject is known to match the pattern."""
    return not is_lifecycle(entry.subject) or (names_lifecycle(pattern) and not is_of_lifecycle(entry))
