"""The ledger of sessions, behind a wire."""

from collections.abc import Sequence

from tape.core.caller import PLAIN, Caller
from tape.core.session import Session, SessionEvent, SessionId
from tape.sdk.remote.channel import Channel
from tape.wire import tape_pb2 as pb
from tape.wire.message_mapping import build
from tape.wire.messages.known import SESSION, SESSION_EVENT


class Sessions:
    """Conversations of users with applications."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def create(
        self, app: str, user: str, session: str = "", state_json: str = "{}", caller: Caller = PLAIN
    ) -> Session:
        request = build(pb.CreateSessionRequest, app_name=app, user_id=user, session_id=session, state_json=state_json)
        return SESSION.value(await self._channel.call("CreateSession", request, pb.Session, caller))

    async def append(
        self, of: SessionId, event: SessionEvent, state_delta_json: str = "{}", caller: Caller = PLAIN
    ) -> Session:
        message = SESSION_EVENT.message(event)
        request = build(pb.AppendEventRequest, **_names(of), event=message, state_delta_json=state_delta_json)
        answer = await self._channel.call("AppendEvent", request, pb.AppendEventResponse, caller)
        return SESSION.value(answer.session)

    async def find(self, of: SessionId, max_events: int | None = None) -> Session:
        most = 0 if max_events is None else max_events or -1
        request = build(pb.GetSessionRequest, **_names(of), max_events=most)
        answer = await self._channel.call("GetSession", request, pb.Session)
        older, first = answer, answer.event_count - len(answer.events) + 1
        wanted = answer.event_count if max_events is None else min(max_events, answer.event_count)
        while older.events and len(answer.events) < wanted:
            request = build(pb.GetSessionRequest, **_names(of), max_events=wanted - len(answer.events), before=first)
            older = await self._channel.call("GetSession", request, pb.Session)
            first -= len(older.events)
            _put_before(answer, older)
        return SESSION.value(answer)

    async def listed(self, app: str, user: str) -> Sequence[Session]:
        request = build(pb.ListSessionsRequest, app_name=app, user_id=user)
        answers = await self._channel.pages("ListSessions", request, pb.ListSessionsResponse)
        return [SESSION.value(each) for answer in answers for each in answer.sessions]

    async def delete(self, of: SessionId, caller: Caller = PLAIN) -> bool:
        request = build(pb.DeleteSessionRequest, **_names(of))
        return (await self._channel.call("DeleteSession", request, pb.DeleteSessionResponse, caller)).deleted


def _put_before(session: pb.Session, older: pb.Session) -> None:
    newer = list(session.events)
    del session.events[:]
    session.events.extend([*older.events, *newer])


def _names(of: SessionId) -> dict[str, str]:
    return {"app_name": of.app, "user_id": of.user, "session_id": of.session}
