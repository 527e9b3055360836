"""Operations of values and sessions: each write of a value is a version; a session's event is appended once."""

from dataclasses import dataclass
from typing import Final

from tape.core.errors import UsageError
from tape.core.session import Session, SessionEvent, SessionId
from tape.core.value import Deletion, Value
from tape.operations.operation import Access, Operation, OperationRequest, PageRequest, Repeat, Scope, Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class OfValue:
    """The base of requests that name a value."""

    namespace: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueChangeRequest(OfValue):
    """The base of requests that write a version; with `if_version`, only over that one (0: over none)."""

    if_version: int | None = None
    writer: str = ""
    call_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteValue(OperationRequest[Value], ValueChangeRequest):
    """Writes the next version; with `if_version`, only over that one (0: over none). With `call_key`, once.

    With `if_exists`, only over a value that is not deleted.
    """

    value_json: str
    if_exists: bool = False

    def check(self) -> None:
        if self.if_exists and self.if_version == 0:
            raise UsageError("if_exists asks for a value, and if_version 0 for none; give one of them")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteValue(OperationRequest[Deletion], ValueChangeRequest):
    """Writes a deletion; a value that does not exist stays as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GetValue(OperationRequest[Value], OfValue):
    """The newest version; `deleted` if there is no value, with version 0 if there never was one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListValues(PageRequest[Value]):
    """The values of a namespace, by key."""

    namespace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSession(OperationRequest[Session]):
    """The session of that name as it is, or a new one with this state; without a name, always a new one."""

    app: str
    user: str
    session: str = ""
    state_json: str = "{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendEvent(OperationRequest[Session]):
    """Appends an event to a session, once per id, and merges its change into the state; without an id it gets one."""

    of: SessionId
    event: SessionEvent
    state_delta_json: str = "{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GetSession(OperationRequest[Session]):
    """A session with its events: all that are kept, or the newest ones up to a limit, before an event's number.

    An answer carries the newest of them that fit; `before` leads to older ones.
    """

    of: SessionId
    max_events: int | None = None
    before: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSessions(PageRequest[Session]):
    """A user's sessions without their events, by the time of the last change, newest first.

    A session that is changed while pages are read may be listed twice or left out; any other is listed once.
    """

    app: str
    user: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteSession(OperationRequest[bool]):
    """Deletes a session; whether there was one."""

    of: SessionId


OPERATIONS: Final = (
    Operation("value.write", WriteValue, Access.WRITE, Scope.SUBJECT, Repeat.KEYED),
    Operation("value.delete", DeleteValue, Access.WRITE, Scope.SUBJECT, Repeat.KEYED),
    Operation("value.get", GetValue, Access.READ, Scope.SUBJECT, Repeat.SAFE),
    Operation("value.list", ListValues, Access.READ, Scope.SUBJECT, Repeat.SAFE, Shape.PAGE),
    Operation("session.create", CreateSession, Access.WRITE, Scope.NODE, Repeat.KEYED),
    Operation("session.append", AppendEvent, Access.WRITE, Scope.NODE, Repeat.KEYED),
    Operation("session.get", GetSession, Access.READ, Scope.NODE, Repeat.SAFE),
    Operation("session.list", ListSessions, Access.READ, Scope.NODE, Repeat.SAFE, Shape.PAGE),
    Operation("session.delete", DeleteSession, Access.WRITE, Scope.NODE, Repeat.SAME),
)
