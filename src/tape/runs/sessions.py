"""The ledger of sessions: an event and its change of state are one request."""

from collections import deque
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace
from functools import partial
from os import urandom
from typing import Final

from tape.core import codec
from tape.core.caller import Caller
from tape.core.codec import JsonValue
from tape.core.errors import NotFound, UsageError
from tape.core.event import Entry
from tape.core.ids import RunId
from tape.core.page import Page, fit_beside
from tape.core.ports import CellSnapshot
from tape.core.sequence import CellId
from tape.core.session import Session, SessionEvent, SessionId
from tape.operations.values import AppendEvent, CreateSession, DeleteSession, GetSession, ListSessions
from tape.runs.ledger import Ledger, LedgerEvent, Transition, check_repeat, descending, digest, parts, request_digest
from tape.runs.ledger_store import LedgerStore


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenEvent:
    """Marks an event id as appended; `digest` is of the request, or empty if an older version appended it."""

    event_id: str
    digest: str = ""


def _place(session: Session) -> str:
    """Sessions of a user are listed by the time of their newest event, the latest first."""
    of = session.of
    return f"{parts(of.app, of.user)}/{descending(session.updated_at_ms)}/{parts(of.session)}"


SESSIONS: Final = Ledger("session", Session, _place)
LIVING: Final = "living"
SEEN_EVENTS: Final = Ledger("session_event", SeenEvent)


def create(snapshot: CellSnapshot, of: SessionId, state_json: str) -> Transition[Session]:
    """Creates the session, unless it exists; a deleted one begins a new incarnation."""
    stored = SESSIONS.find(snapshot, key_of(of))
    if stored is not None and not stored.deleted:
        return Transition(result=stored)
    incarnation = 1 if stored is None else stored.incarnation + 1
    now = snapshot.now_ms
    session = Session(of=of, state_json=state_json, created_at_ms=now, updated_at_ms=now, incarnation=incarnation)
    return _transition(snapshot, session, "created", "session", {"state_json": state_json})


def append(snapshot: CellSnapshot, of: SessionId, event: SessionEvent, delta_json: str) -> Transition[Session]:
    """Appends an event and merges its change of state; an event appended before changes nothing."""
    session = existing(snapshot, of)
    seen = _seen_key(session, event.id)
    request = request_digest(event, delta_json)
    if (known := SEEN_EVENTS.find(snapshot, seen)) is not None:
        check_repeat(f"event {event.id!r} of session {of.session!r}", known.digest or request, request)
        return Transition(result=session)
    state = codec.encode({**session.state, **_object(delta_json)})
    after = replace(session, state_json=state, event_count=session.event_count + 1, updated_at_ms=snapshot.now_ms)
    transition = _transition(
        snapshot, after, "appended", "event", {"event": asdict(event), "state_delta_json": delta_json}
    )
    kept = SEEN_EVENTS.change(snapshot, seen, SeenEvent(event_id=event.id, digest=request), "appended")
    return replace(transition, cells=(*transition.cells, kept))


def delete(snapshot: CellSnapshot, of: SessionId) -> Transition[bool]:
    """Whether there was a session to delete; its events stay in the journal."""
    session = SESSIONS.find(snapshot, key_of(of))
    if session is None or session.deleted:
        return Transition(result=False)
    gone = replace(session, state_json="{}", deleted=True, updated_at_ms=snapshot.now_ms)
    transition = _transition(snapshot, gone, "deleted", "session", {})
    return transition.returning(True)


def existing(snapshot: CellSnapshot, of: SessionId) -> Session:
    session = SESSIONS.find(snapshot, key_of(of))
    if session is None or session.deleted:
        raise NotFound(f"{of.user!r} has no session {of.session!r} in {of.app!r}")
    return session


def key_of(of: SessionId) -> str:
    return parts(of.app, of.user, of.session)


def run_of(of: SessionId) -> RunId:
    return RunId(f"tape.session.{digest(of.app, of.user, of.session)}")


class Sessions:
    def __init__(self, store: LedgerStore) -> None:
        self._store = store

    async def create(self, request: CreateSession, caller: Caller) -> Session:
        name = request.session or f"session-{urandom(16).hex()}"
        of = SessionId(app=request.app, user=request.user, session=name)
        decide = partial(create, of=of, state_json=codec.encode(_object(request.state_json)))
        return await self._store.change((SESSIONS.at(key_of(of)),), decide, caller)

    async def append(self, request: AppendEvent, caller: Caller) -> Session:
        of, event = request.of, request.event

        async def read() -> CellSnapshot:
            snapshot = await self._store.cells.snapshot((SESSIONS.at(key_of(of)),))
            return await self._with_seen_event(snapshot, existing(snapshot, of), event.id)

        decide = partial(append, of=of, event=event, delta_json=request.state_delta_json)
        return await self._store.change_from(read, decide, caller)

    async def get(self, request: GetSession, caller: Caller) -> Session:
        session = existing(await self._store.cells.snapshot((SESSIONS.at(key_of(request.of)),)), request.of)
        most = session.event_count if request.max_events is None else min(request.max_events, session.event_count)
        if not request.before:
            return _with_newest(session, await self._events(session, most))
        events = await self._events(session, session.event_count)
        gone = session.event_count - len(events)  # the journal no longer has the oldest
        older = events[: max(request.before - 1 - gone, 0)]
        return _with_newest(session, older[max(len(older) - most, 0) :])

    async def listed(self, request: ListSessions, caller: Caller) -> Page[Session]:
        return await self._store.page(SESSIONS, request, (LIVING,), parts(request.app, request.user))

    async def delete(self, request: DeleteSession, caller: Caller) -> bool:
        return await self._store.change((SESSIONS.at(key_of(request.of)),), partial(delete, of=request.of), caller)

    async def _with_seen_event(self, snapshot: CellSnapshot, session: Session, event_id: str) -> CellSnapshot:
        seen: CellId = SEEN_EVENTS.at(_seen_key(session, event_id))
        return snapshot._replace(cells={**snapshot.cells, **await self._store.cells.read([seen])})

    async def _events(self, session: Session, most: int) -> list[SessionEvent]:
        """The newest entries of a session that was not deleted are its events."""
        head = await self._store.head(run_of(session.of))
        first = max(head.floor, head.last_seq - most + 1)
        kept: deque[Entry] = deque(maxlen=most)
        async with aclosing(
            self._store.journal.stream(run_id=run_of(session.of), from_seq=first, follow=False)
        ) as entries:
            async for entry in entries:
                if entry.type == "appended":
                    kept.append(entry)
        return [_event_of(entry) for entry in kept]


def _with_newest(session: Session, events: Sequence[SessionEvent]) -> Session:
    """The session with the newest of these events that one answer carries."""
    newest = fit_beside(reversed(events), codec.size, codec.size(session))
    return replace(session, events=tuple(reversed(newest)))


def _event_of(entry: Entry) -> SessionEvent:
    payload = entry.payload if isinstance(entry.payload, dict) else {}
    return codec.decode_state(codec.encode(payload["event"]), SessionEvent)


def _seen_key(session: Session, event_id: str) -> str:
    of = session.of
    return parts(of.app, of.user, of.session, f"{session.incarnation} {event_id}")


def _object(text: str) -> dict[str, JsonValue]:
    value = codec.decode(text)
    if not isinstance(value, dict):
        raise UsageError("the state of a session is a JSON object")
    return value


def _transition(
    snapshot: CellSnapshot, session: Session, verb: str, kind: str, more: dict[str, JsonValue]
) -> Transition[Session]:
    of = session.of
    payload: dict[str, JsonValue] = {
        "app": of.app,
        "user": of.user,
        "session": of.session,
        "incarnation": session.incarnation,
        **more,
    }
    event = LedgerEvent(run_id=run_of(of), kind=kind, verb=verb, dims=(of.app, of.user, of.session), payload=payload)
    cell = SESSIONS.change(snapshot, key_of(of), session, "deleted" if session.deleted else LIVING)
    return Transition(result=session, cells=(cell,), events=(event,), opens=True)
