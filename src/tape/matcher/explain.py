"""Explains from the journal why an entry became a task of a reaction or not, with the rules of the matcher."""

from collections.abc import Sequence
from contextlib import aclosing
from functools import partial
from typing import Final

import anyio

from tape.bus.journal import Journal
from tape.core.errors import NotFound
from tape.core.event import Entry
from tape.core.explanation import Explanation, Judgement, LifecycleEvent, MatchOutcome, TaskDetail
from tape.core.ids import GlobalSeq
from tape.core.lifecycle import reacts
from tape.core.page import fit_answer
from tape.core.ports import Store
from tape.core.predicate.parts import parts
from tape.core.predicate.predicate import Predicate, bind
from tape.core.reaction import system_run
from tape.core.registration import REACTION, ReactionState, Verb, reaction_history
from tape.core.subject import Pattern
from tape.core.task import DEREGISTERED, MAX_DEPTH, TASK, Task, TaskStatus
from tape.matcher.rules import predicate_of

HISTORY_BYTES: Final = 512 << 10  # of the events in one answer


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
        global_seq=entry.global_seq,
        subject=entry.subject,
        outcome=_outcome(judgement, entry, record.cursor, task),
        judgement=judgement,
        registrations=_events(registrations),
        cursor=record.cursor,
        task=task,
        life=() if task is None else _events(_history_of(entries, task)),
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


async def task_detail(journal: Journal, task: Task) -> TaskDetail:
    """A task with each of its deaths and replays; the removal of its reaction ends a pending task."""
    return TaskDetail(task=task, life=_events(_history_of(await _entries_about(journal, task.reaction_id), task)))


def _events(entries: Sequence[Entry]) -> tuple[LifecycleEvent, ...]:
    """Entries as events, the newest of them if there are too many for one answer."""
    newest = fit_answer(map(LifecycleEvent.of, reversed(entries)), lambda event: event.size, HISTORY_BYTES)
    return tuple(reversed(newest))


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
