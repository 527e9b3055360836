"""The ledger of sessions: an event and the change of state that comes with it are one request."""

from collections import deque
from contextlib import aclosing
from dataclasses import asdict, dataclass, replace
from functools import partial
from os import urandom
from typing import Final

from tape.core import codec
from tape.core.caller import PLAIN, Caller
from tape.core.codec import JsonValue
from tape.core.errors import NotFound, UsageError
from tape.core.event import Entry
from tape.core.ids import RunId
from tape.core.ports import Sight
from tape.core.sequence import CellId
from tape.core.session import Session, SessionEvent, SessionId
from tape.core.text import check_body, check_name
from tape.runs.desk import Desk
from tape.runs.ledger import Ledger, Line, Step, digest, parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """That an event was appended."""

    event_id: str


SESSIONS: Final = Ledger("session", Session)
HEARD: Final = Ledger("session_event", Heard)


def create(sight: Sight, of: SessionId, state_json: str) -> Step[Session]:
    """The session, unless it is there; one that was deleted begins anew."""
    stored = SESSIONS.find(sight, key_of(of))
    if stored is not None and not stored.deleted:
        return Step(result=stored)
    life = 1 if stored is None else stored.life + 1
    now = sight.now_ms
    session = Session(of=of, state_json=state_json, created_at_ms=now, updated_at_ms=now, life=life)
    return _step(sight, session, "created", "session", {"state_json": state_json})


def append(sight: Sight, of: SessionId, event: SessionEvent, delta_json: str) -> Step[Session]:
    """The session with an event and what it changes; an event that was appended before changes nothing."""
    session = living(sight, of)
    heard = _heard_key(session, event.id)
    if HEARD.find(sight, heard) is not None:
        return Step(result=session)
    state = codec.encode({**session.state, **_object(delta_json)})
    after = replace(session, state_json=state, event_count=session.event_count + 1, updated_at_ms=sight.now_ms)
    step = _step(sight, after, "appended", "event", {"event": asdict(event), "state_delta_json": delta_json})
    kept = HEARD.change(sight, heard, Heard(event_id=event.id), "appended")
    return replace(step, cells=(*step.cells, kept))


def delete(sight: Sight, of: SessionId) -> Step[bool]:
    """Whether there was a session to delete; what was said in it stays in the journal."""
    session = SESSIONS.find(sight, key_of(of))
    if session is None or session.deleted:
        return Step(result=False)
    gone = replace(session, state_json="{}", deleted=True, updated_at_ms=sight.now_ms)
    step = _step(sight, gone, "deleted", "session", {})
    return Step(result=True, cells=step.cells, lines=step.lines, opens=True)


def living(sight: Sight, of: SessionId) -> Session:
    session = SESSIONS.find(sight, key_of(of))
    if session is None or session.deleted:
        raise NotFound(f"{of.user!r} has no session {of.session!r} in {of.app!r}")
    return session


def key_of(of: SessionId) -> str:
    return parts(of.app, of.user, of.session)


def run_of(of: SessionId) -> RunId:
    return RunId(f"tape.session.{digest(of.app, of.user, of.session)}")


class Sessions:
    """Conversations, by application and user."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def create(
        self, app: str, user: str, session: str = "", state_json: str = "{}", caller: Caller = PLAIN
    ) -> Session:
        """The session of that name, or a new one with a name of its own."""
        of = SessionId(app=app, user=user, session=session or f"session-{urandom(16).hex()}")
        decide = partial(create, of=of, state_json=codec.encode(_object(state_json)))
        return await self._desk.change((SESSIONS.at(key_of(of)),), decide, caller)

    async def append(
        self, of: SessionId, event: SessionEvent, state_delta_json: str = "{}", caller: Caller = PLAIN
    ) -> Session:
        """Appends an event, once for each id, and merges its change into the state."""
        check_body("state_delta_json", state_delta_json)

        async def read() -> Sight:
            sight = await self._desk.cells.look((SESSIONS.at(key_of(of)),))
            return await self._with_heard(sight, living(sight, of), event.id)

        decide = partial(append, of=of, event=event, delta_json=state_delta_json)
        return await self._desk.settle(read, decide, caller)

    async def find(self, of: SessionId, max_events: int | None = None) -> Session:
        """The session with its events, or the newest so many of them."""
        session = living(await self._desk.cells.look((SESSIONS.at(key_of(of)),)), of)
        most = session.event_count if max_events is None else min(max_events, session.event_count)
        return replace(session, events=tuple(await self._events(session, most)))

    async def listed(self, app: str, user: str) -> list[Session]:
        """A user's sessions without their events, the newest first."""
        found = SESSIONS.states(await self._desk.under(SESSIONS.name, parts(check_name("app", app), user)))
        return sorted((each for each in found if not each.deleted), key=lambda each: -each.updated_at_ms)

    async def delete(self, of: SessionId, caller: Caller = PLAIN) -> bool:
        """Whether there was one."""
        return await self._desk.change((SESSIONS.at(key_of(of)),), partial(delete, of=of), caller)

    async def _with_heard(self, sight: Sight, session: Session, event_id: str) -> Sight:
        heard: CellId = HEARD.at(_heard_key(session, event_id))
        return sight._replace(cells={**sight.cells, **await self._desk.cells.read([heard])})

    async def _events(self, session: Session, most: int) -> list[SessionEvent]:
        """The newest entries of a session that lives are its events."""
        head = await self._desk.head(run_of(session.of))
        first = max(head.floor, head.last_seq - most + 1)
        kept: deque[Entry] = deque(maxlen=most)
        async with aclosing(
            self._desk.journal.stream(run_id=run_of(session.of), from_seq=first, follow=False)
        ) as entries:
            async for entry in entries:
                if entry.type == "appended":
                    kept.append(entry)
        return [_event_of(entry) for entry in kept]


def _event_of(entry: Entry) -> SessionEvent:
    said = entry.payload if isinstance(entry.payload, dict) else {}
    return codec.decode_state(codec.encode(said["event"]), SessionEvent)


def _heard_key(session: Session, event_id: str) -> str:
    of = session.of
    return parts(of.app, of.user, of.session, f"{session.life} {event_id}")


def _object(text: str) -> dict[str, JsonValue]:
    value = codec.decode(text)
    if not isinstance(value, dict):
        raise UsageError("the state of a session is a JSON object")
    return value


def _step(sight: Sight, session: Session, verb: str, kind: str, more: dict[str, JsonValue]) -> Step[Session]:
    of = session.of
    said: dict[str, JsonValue] = {"app": of.app, "user": of.user, "session": of.session, "life": session.life, **more}
    line = Line(run_id=run_of(of), kind=kind, verb=verb, dims=(of.app, of.user, of.session), payload=said)
    cell = SESSIONS.change(sight, key_of(of), session, "deleted" if session.deleted else "living")
    return Step(result=session, cells=(cell,), lines=(line,), opens=True)
