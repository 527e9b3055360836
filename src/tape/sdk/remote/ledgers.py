"""All ledgers of a server, as a program reaches them over a wire."""

from dataclasses import replace
from typing import Any, TypeVar

from tape.core.caller import PLAIN, Caller
from tape.core.errors import UsageError
from tape.core.session import Session
from tape.operations.journal_runs import ListEvents
from tape.operations.operation import OperationRequest
from tape.operations.values import GetSession
from tape.sdk.remote.channel import Channel
from tape.sdk.remote.events import Events
from tape.sdk.remote.values import Watch
from tape.wire.procedure import Procedure
from tape.wire.procedures import BY_OPERATION

R = TypeVar("R")


class Ledgers:
    """The same operations as a node in this process has."""

    def __init__(self, channel: Channel) -> None:
        self.events = Events(channel)
        self._channel = channel

    async def call(self, request: OperationRequest[R], caller: Caller = PLAIN) -> R:
        if type(request) not in BY_OPERATION:
            raise UsageError(f"{type(request).__name__} is not on gRPC; tape operations says where it can be called")
        result: Any = await self._call(BY_OPERATION[type(request)], request, caller)
        if isinstance(request, GetSession):
            result = await self._with_older_events(request, result)
        answer: R = result
        return answer

    async def watch(self, namespace: str, key: str, from_version: int | None = None) -> Watch:
        watch = Watch(self._channel, namespace, key, from_version)
        await watch.open()
        return watch

    async def _call(self, carried: Procedure, request: OperationRequest[Any], caller: Caller) -> Any:
        wait_s = request.wait.total_seconds() if isinstance(request, ListEvents) else 0
        response = await self._channel.call(carried.name, carried.encode(request), carried.response, caller, wait_s)
        return carried.result.decode(response)

    async def _with_older_events(self, request: GetSession, session: Session) -> Session:
        """The session with all events that were requested: one answer carries only the newest that fit."""
        carried, count = BY_OPERATION[GetSession], session.event_count
        wanted = count if request.max_events is None else min(request.max_events, count)
        before = count - len(session.events) + 1
        while len(session.events) < wanted:
            page = GetSession(of=request.of, max_events=wanted - len(session.events), before=before)
            older: Session = await self._call(carried, page, PLAIN)
            if not older.events:
                break
            before -= len(older.events)
            session = replace(session, events=(*older.events, *session.events))
        return session
