"""Registrations are entries; folding them gives the reactions that are active at a position."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple

from tape.core.codec import JsonValue
from tape.core.errors import UsageError, quoted
from tape.core.event import Entry, Event
from tape.core.reaction import MAX_NAME, Reaction, from_definition, system_run
from tape.core.subject import canonical

REACTION: Final = "reaction"
QUARANTINED: Final = "quarantined"


class Verb(StrEnum):
    """What can happen to a reaction; a change also resumes it."""

    REGISTERED = "registered"
    CHANGED = "changed"
    PAUSED = "paused"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A definition that is active after a position."""

    since: int
    reaction: Reaction


class ActiveRange(NamedTuple):
    """Positions above one and through another, and the definition that matches them."""

    above: int
    through: int
    reaction: Reaction


@dataclass(frozen=True, slots=True, kw_only=True)
class ReactionState:
    """A reaction after all entries up to a position.

    Everything up to `cursor` has been matched (None: it is caught up). While it is behind, it keeps the versions it has
    not passed yet. While it is paused or removed, entries after `held` are not matched.
    """

    versions: tuple[Version, ...]
    cursor: int | None = None
    paused: str = ""
    is_removed: bool = False
    held: int = 0

    @property
    def is_matching(self) -> bool:
        return not self.paused and not self.is_removed

    @property
    def reaction(self) -> Reaction:
        """The newest definition."""
        return self.versions[-1].reaction

    def at(self, global_seq: int) -> Reaction:
        """The definition that matches an entry: the newest before it, or else the first one."""
        older = [version.reaction for version in self.versions if version.since < global_seq]
        return older[-1] if older else self.versions[0].reaction

    def covers(self, global_seq: int) -> bool:
        """Whether an entry after the cursor is matched at all, according to the entries read so far."""
        return global_seq > (self.cursor or 0) and (self.is_matching or global_seq <= self.held)

    def spans(self, after: int, through: int) -> list[ActiveRange]:
        """The definition for each part of a range; the first one also covers the time before it."""
        last = through if self.is_matching else min(through, self.held)
        ends = [*(version.since for version in self.versions[1:]), last]
        begins = [0, *ends[:-1]]
        cuts = zip(begins, ends, (version.reaction for version in self.versions), strict=True)
        spans = [ActiveRange(max(above, after), min(end, last), reaction) for above, end, reaction in cuts]
        return [span for span in spans if span.above < span.through]

    def reached(self, cursor: int) -> "ReactionState":
        """With the cursor moved on, and without the versions before it."""
        passed = [place for place, version in enumerate(self.versions) if version.since <= cursor]
        return replace(self, cursor=cursor, versions=self.versions[passed[-1] if passed else 0 :])

    def joined(self) -> "ReactionState":
        """Caught up."""
        return replace(self, cursor=None, versions=self.versions[-1:])

    def stopped(self, cursor: int, reason: str = "") -> "ReactionState":
        """Taken out of matching at a position; with a reason it is paused there."""
        behind = cursor if self.cursor is None else self.cursor
        held = cursor if self.is_matching else self.held
        return replace(self, cursor=behind, paused=reason or self.paused, held=held)

    def left(self, cursor: int, reason: str = "") -> "ReactionState":
        """Left behind at a position by the reactions it was catching up with."""
        return replace(self.reached(cursor), paused=reason or self.paused, held=cursor)


def fold_registrations(entries: Iterable[Entry]) -> dict[str, ReactionState]:
    """The state of every reaction after these entries; other entries are ignored."""
    states: dict[str, ReactionState] = {}
    for entry in entries:
        reaction_id = subject_of(entry)
        if reaction_id is not None and (state := after(states.get(reaction_id), entry)) is not None:
            states[reaction_id] = state
    return states


def reaction_history(entries: Iterable[Entry]) -> ReactionState | None:
    """One reaction with all its versions; its cursor is where it began to match.

    A matcher matches the same entries, however late it starts.
    """
    state: ReactionState | None = None
    for entry in entries:
        state = after(state, entry)
        if state is not None and state.cursor is None:
            state = replace(state, cursor=state.versions[0].since)
    return state


def subject_of(entry: Entry) -> str | None:
    """The reaction that a registration entry is about, or None for any other entry."""
    payload = entry.payload if entry.kind == REACTION else None
    return str(payload["reaction_id"]) if isinstance(payload, dict) else None


def after(state: ReactionState | None, entry: Entry) -> ReactionState | None:
    """The state of a reaction after one of its entries."""
    payload = entry.payload if isinstance(entry.payload, dict) else {}
    return _next(state, Verb(entry.type), payload, entry.global_seq)


def _next(
    state: ReactionState | None, verb: Verb, payload: Mapping[str, JsonValue], place: int
) -> ReactionState | None:
    if verb in (Verb.REGISTERED, Verb.CHANGED):
        version = Version(since=place, reaction=from_definition(payload["reaction"]))
        return _begun(version) if state is None else _redefined(state, version, str(payload.get("paused") or ""))
    if state is None:
        return None
    if verb is Verb.REMOVED:
        return replace(state.stopped(place), is_removed=True, paused="")
    cursor = payload.get("cursor")
    return state if state.paused else state.stopped(cursor if isinstance(cursor, int) else place, _reason(payload))


def _begun(version: Version) -> ReactionState:
    """A first definition is active from its position on, or for all of history."""
    if version.reaction.bootstrap_from_head:
        return ReactionState(versions=(version,))
    return ReactionState(versions=(replace(version, since=0),), cursor=0)


def _redefined(state: ReactionState, version: Version, paused: str) -> ReactionState:
    """A change moves no cursor. Entries that were held back meanwhile are matched with the newest definition."""
    place = version.since if state.is_matching else state.held
    before = () if state.cursor is None else (each for each in state.versions if each.since < place)
    versions = (*before, replace(version, since=place))
    changed = replace(state, versions=versions, paused="", is_removed=False)
    return changed.stopped(place, paused) if paused else changed


def check_reason(reason: str) -> str:
    """Returns a reason if every store can hold it and every page can show it."""
    if not isinstance(reason, str) or not 1 <= len(reason) <= MAX_NAME or not reason.isprintable():
        raise UsageError(f"a reason is printable text of 1 to {MAX_NAME} characters, not {quoted(reason)}")
    return reason


def _reason(payload: Mapping[str, JsonValue]) -> str:
    return str(payload.get("reason") or Verb.PAUSED)


def defined(verb: Verb, reaction: Reaction, paused: str = "") -> Event:
    """The entry of a definition."""
    facts: dict[str, JsonValue] = {"reaction": reaction.definition(), "paused": paused}
    return _event(verb, reaction.reaction_id, facts)


def paused(reaction_id: str, reason: str, cursor: int | None = None) -> Event:
    """The entry of a pause; with a cursor, matching stopped there."""
    place: dict[str, JsonValue] = {} if cursor is None else {"cursor": cursor}
    return _event(Verb.PAUSED, reaction_id, {"reason": reason, **place})


def removed(reaction_id: str, ended_tasks: int) -> Event:
    """The entry of a removal, which also ends this many pending tasks."""
    return _event(Verb.REMOVED, reaction_id, {"ended_tasks": ended_tasks})


def _event(verb: Verb, reaction_id: str, facts: dict[str, JsonValue]) -> Event:
    return Event(
        run_id=system_run(reaction_id),
        kind=REACTION,
        type=verb.value,
        subject=canonical(REACTION, verb.value, reaction_id),
        payload={"reaction_id": reaction_id, **facts},
    )
