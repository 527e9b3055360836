"""Explains from the journal why an entry became a task of a reaction or not, with the rules of the matcher."""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

import anyio

from tape.bus.journal import Journal
from tape.core.errors import NotFound
from tape.core.event import Entry
from tape.core.ids import GlobalSeq
from tape.core.lifecycle import reacts
from tape.core.ports import Store
from tape.core.predicate.parts import Part, parts
from tape.core.predicate.predicate import Predicate, Verdict, bind
from tape.core.reaction import Reaction, system_run
from tape.core.registration import REACTION, ReactionState, Verb, reaction_history
from tape.core.subject import Pattern
from tape.core.task import DEREGISTERED, MAX_DEPTH, TASK, Task, TaskStatus
from tape.matcher.rules import predicate_of


class MatchOutcome(StrEnum):
    """What a reaction did with an entry."""

    NOT_ACTIVE = "not_active"
    OTHER_SUBJECT = "other_subject"
    NO_MATCH = "no_match"
    PREDICATE_ERROR = "predicate_error"
    TOO_DEEP = "too_deep"
    NOT_YET = "not_yet"
    TASK = "task"
    COALESCED = "coalesced"
    BACKFILLED = "backfilled"
    FORGOTTEN = "forgotten"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """How the rules judge an entry: the definition that applies, whether it is active, and its results."""

    definition: Reaction
    is_active: bool
    reason: str
    is_subject: bool
    verdict: Verdict
    parts: tuple[Part, ...]
    depth: int

    @property
    def refusal(self) -> MatchOutcome | None:
        """Why the entry becomes no task; None if it does."""
        if not self.is_active:
            return MatchOutcome.NOT_ACTIVE
        if not self.is_subject:
            return MatchOutcome.OTHER_SUBJECT
        if self.verdict.error is not None:
            return MatchOutcome.PREDICATE_ERROR
        if not self.verdict.matched:
            return MatchOutcome.NO_MATCH
        return MatchOutcome.TOO_DEEP if self.depth > MAX_DEPTH else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The judgement, the registrations of the reaction, and the task with its history."""

    reaction_id: str
    entry: Entry
    outcome: MatchOutcome
    judgement: Judgement
    registrations: tuple[Entry, ...]
    cursor: GlobalSeq
    task: Task | None
    life: tuple[Entry, ...]


async def explain(store: Store, journal: Journal, reaction_id: str, global_seq: int) -> Explanation:
    """Explains what a reaction did with the entry at a position."""
    record = await store.reactions.find(reaction_id)
    if record is None:
        raise NotFound(f"there is no reaction {reaction_id!r}")
    entry = await _entry(journal, global_seq)
    entries = await _entries_about(journal, reaction_id)
    registrations = [each for each in entries if each.kind == REACTION]
    judgement = await anyio.to_thread.run_sync(partial(judge, registrations, entry))
    task = await store.tasks.made_of(reaction_id, entry.global_seq, entry.subject)
    if task is not None and not await _covers(task, journal, registrations, entry):
        task = None
    return Explanation(
        reaction_id=reaction_id,
        entry=entry,
        outcome=_outcome(judgement, entry, record.cursor, task),
        judgement=judgement,
        registrations=tuple(registrations),
        cursor=record.cursor,
        task=task,
        life=() if task is None else tuple(_history_of(entries, task)),
    )


def judge(registrations: Sequence[Entry], entry: Entry) -> Judgement:
    """Judges an entry by all registrations of a reaction."""
    state = reaction_history(registrations)
    if state is None:
        raise NotFound("the journal has no registration of this reaction any more")
    definition = state.at(entry.global_seq)
    predicate, activation = predicate_of(definition.predicate_cel), bind(entry)
    return Judgement(
        definition=definition,
        is_active=state.covers(entry.global_seq),
        reason=_reason(state, entry.global_seq),
        is_subject=reacts(Pattern.parse(definition.subject_pattern), entry),
        verdict=predicate.evaluate(activation),
        parts=tuple(parts(predicate, activation)) if isinstance(predicate, Predicate) else (),
        depth=entry.depth,
    )


def _reason(state: ReactionState, position: int) -> str:
    if position <= (state.cursor or 0):
        return f"it was registered to begin at the head, after position {state.cursor}"
    if state.is_matching or position <= state.held:
        older = [version.since for version in state.versions if version.since < position]
        return f"its definition is active after position {older[-1] if older else 0}"
    if state.is_removed:
        return f"it was removed, and nothing after position {state.held} is matched"
    return f"it is paused ({state.paused}), and nothing after position {state.held} is matched until it is resumed"


async def _covers(task: Task, journal: Journal, registrations: Sequence[Entry], entry: Entry) -> bool:
    """Whether the task is for the entry, or for a newer entry that replaced it (debounce)."""
    if task.source_global_seq == entry.global_seq:
        return True
    coalesced, after = 0, entry.global_seq - 1
    async with aclosing(journal.stream(subject=entry.subject, from_global_seq=after, follow=False)) as stream:
        async for each in stream:
            if each.global_seq == task.source_global_seq:
                return True
            coalesced += await anyio.to_thread.run_sync(_is_coalesced, registrations, each)
            if not 0 < coalesced <= task.coalesced:  # the first one is the entry itself
                return False
    return False


def _is_coalesced(registrations: Sequence[Entry], entry: Entry) -> bool:
    """Whether a newer entry may replace this one."""
    judgement = judge(registrations, entry)
    return judgement.refusal is None and judgement.definition.debounce_ms > 0 and judgement.depth < MAX_DEPTH


def _outcome(judgement: Judgement, entry: Entry, cursor: GlobalSeq, task: Task | None) -> MatchOutcome:
    if judgement.refusal is MatchOutcome.NOT_ACTIVE and task is not None:
        return MatchOutcome.BACKFILLED
    if judgement.refusal is not None:
        return judgement.refusal
    if task is not None:
        return MatchOutcome.TASK if task.source_global_seq == entry.global_seq else MatchOutcome.COALESCED
    return MatchOutcome.NOT_YET if cursor < entry.global_seq else MatchOutcome.FORGOTTEN


async def _entry(journal: Journal, global_seq: int) -> Entry:
    if 1 <= global_seq <= await journal.head():
        async with aclosing(journal.stream(from_global_seq=global_seq - 1, follow=False)) as stream:
            async for entry in stream:
                return entry
    raise NotFound(f"there is no entry at position {global_seq}; the journal ends at {await journal.head()}")


async def task_history(journal: Journal, task: Task) -> list[Entry]:
    """The entries of each death and replay of a task; the removal of its reaction ends a pending task."""
    return _history_of(await _entries_about(journal, task.reaction_id), task)


async def _entries_about(journal: Journal, reaction_id: str) -> list[Entry]:
    """All entries about a reaction and its tasks."""
    async with aclosing(journal.stream(run_id=system_run(reaction_id), follow=False)) as stream:
        return [entry async for entry in stream]
    raise AssertionError("a stream suppresses no error")


def _history_of(entries: Sequence[Entry], task: Task) -> list[Entry]:
    """The history of a task. If it was replayed or is `deregistered` without its own death, a removal ended it."""
    life: list[Entry] = []
    removal: Entry | None = None
    for entry in entries:
        if entry.kind == REACTION and entry.type == Verb.REMOVED:
            removal = entry
        elif _is_about(entry, task):
            is_revived = entry.type == "replayed" and (not life or life[-1].type == "replayed")
            life += [removal, entry] if is_revived and removal is not None else [entry]
    is_deregistered = task.status is TaskStatus.DLQ and task.last_error == DEREGISTERED  # a replay keeps the error
    is_ended = is_deregistered and (not life or life[-1].type == "replayed")
    return [*life, removal] if is_ended and removal is not None else life


def _is_about(entry: Entry, task: Task) -> bool:
    payload = entry.payload if entry.kind == TASK else None
    return isinstance(payload, dict) and payload.get("task_id") == task.task_id
