"""Procedures of sessions."""

from dataclasses import replace
from os import urandom
from typing import Final, Protocol

from tape.core.caller import Caller
from tape.core.errors import UsageError
from tape.core.page import ANSWER_BYTES, fit_answer
from tape.core.session import SessionId
from tape.server.grpc.hall import Hall
from tape.server.grpc.pages import page, size
from tape.wire import tape_pb2 as pb
from tape.wire.messages.known import SESSION, SESSION_EVENT

EMPTY: Final = 4_096  # bytes of a session's names and numbers


async def create_session(hall: Hall, request: pb.CreateSessionRequest, caller: Caller) -> pb.Session:
    names = request.app_name, request.user_id, request.session_id
    return SESSION.message(await hall.ledgers.sessions.create(*names, request.state_json or "{}", caller))


async def get_session(hall: Hall, request: pb.GetSessionRequest, caller: Caller) -> pb.Session:
    most = max(request.max_events, 0) if request.max_events else None
    if not request.before:
        return _carried(SESSION.message(await hall.ledgers.sessions.find(_id(request), most)))
    session = await hall.ledgers.sessions.find(_id(request))
    gone = session.event_count - len(session.events)  # the journal no longer has the oldest
    older = session.events[: max(request.before - 1 - gone, 0)]
    wanted = older if most is None else older[max(len(older) - most, 0) :]
    return _carried(SESSION.message(replace(session, events=wanted)))


async def list_sessions(hall: Hall, request: pb.ListSessionsRequest, caller: Caller) -> pb.ListSessionsResponse:
    found = await hall.ledgers.sessions.listed(request.app_name, request.user_id)
    carried, rest = page(found, lambda each: (-each.updated_at_ms, each.of.session), SESSION.message, request.cursor)
    return pb.ListSessionsResponse(sessions=carried, next_cursor=rest)


async def delete_session(hall: Hall, request: pb.DeleteSessionRequest, caller: Caller) -> pb.DeleteSessionResponse:
    return pb.DeleteSessionResponse(deleted=await hall.ledgers.sessions.delete(_id(request), caller))


async def append_event(hall: Hall, request: pb.AppendEventRequest, caller: Caller) -> pb.AppendEventResponse:
    if not request.HasField("event"):
        raise UsageError("AppendEvent needs an event")
    event = SESSION_EVENT.value(request.event, id=request.event.id or urandom(16).hex())
    session = await hall.ledgers.sessions.append(_id(request), event, request.state_delta_json or "{}", caller)
    return pb.AppendEventResponse(event=SESSION_EVENT.message(event), session=SESSION.message(session))


def _carried(session: pb.Session) -> pb.Session:
    """The session with the newest of these events that fit into an answer with it."""
    room = ANSWER_BYTES - len(session.state_json.encode()) - EMPTY
    newest = fit_answer(reversed(session.events), size, room)
    del session.events[: len(session.events) - len(newest)]
    return session


class _OfSession(Protocol):
    """A request that names a session."""

    app_name: str
    user_id: str
    session_id: str


def _id(request: _OfSession) -> SessionId:
    return SessionId(app=request.app_name, user=request.user_id, session=request.session_id)
