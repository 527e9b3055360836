"""Sessions, as a program holds them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import urandom

from tape.core import codec
from tape.core.caller import PLAIN, Caller
from tape.core.codec import JsonValue, encode_optional
from tape.core.page import Page
from tape.core.session import Session, SessionEvent, SessionId
from tape.operations.ledgers import Ledgers
from tape.operations.operation import PAGE
from tape.operations.values import AppendEvent, CreateSession, DeleteSession, GetSession, ListSessions
from tape.operations.whole_list import read_all


class Sessions:
    """Conversations of users with applications."""

    def __init__(self, ledgers: Ledgers) -> None:
        self._ledgers = ledgers

    async def create(
        self,
        app: str,
        user: str,
        session: str = "",
        state: Mapping[str, JsonValue] | None = None,
        caller: Caller = PLAIN,
    ) -> Session:
        """The session of that name, or a new one with a name of its own."""
        state_json = codec.encode(dict(state or {}))
        request = CreateSession(app=app, user=user, session=session, state_json=state_json)
        return await self._ledgers.call(request, caller)

    async def append(
        self,
        app: str,
        user: str,
        session: str,
        content: JsonValue = None,
        state_delta: Mapping[str, JsonValue] | None = None,
        *,
        event_id: str | None = None,
        author: str = "",
        invocation_id: str = "",
        caller: Caller = PLAIN,
    ) -> Session:
        """Appends an event, once for each id, and merges its change into the state."""
        event = SessionEvent(
            id=event_id or urandom(16).hex(),
            author=author,
            invocation_id=invocation_id,
            content_json=encode_optional(content),
        )
        of = SessionId(app=app, user=user, session=session)
        delta = codec.encode(dict(state_delta or {}))
        return await self._ledgers.call(AppendEvent(of=of, event=event, state_delta_json=delta), caller)

    async def get(self, app: str, user: str, session: str, max_events: int | None = None) -> Session:
        """The session with its events, or the newest so many of them; one answer carries only the newest that fit."""
        of = SessionId(app=app, user=user, session=session)
        found = await self._ledgers.call(GetSession(of=of, max_events=max_events))
        wanted = found.event_count if max_events is None else min(max_events, found.event_count)
        while len(found.events) < wanted:
            left, before = wanted - len(found.events), found.event_count - len(found.events) + 1
            older = await self._ledgers.call(GetSession(of=of, max_events=left, before=before))
            if not older.events:
                break
            found = replace(found, events=(*older.events, *found.events))
        return found

    async def list_all(self, app: str, user: str) -> Sequence[Session]:
        """A user's sessions without their events, the newest first."""
        return await read_all(self._ledgers, ListSessions(app=app, user=user))

    async def list(self, app: str, user: str, *, limit: int = PAGE, cursor: str = "") -> Page[Session]:
        """A part of what `list_all` returns; the cursor is the `next_cursor` of the page before."""
        return await self._ledgers.call(ListSessions(app=app, user=user, limit=limit, cursor=cursor))

    async def delete(self, app: str, user: str, session: str, caller: Caller = PLAIN) -> bool:
        """Whether there was one."""
        return await self._ledgers.call(DeleteSession(of=SessionId(app=app, user=user, session=session)), caller)
