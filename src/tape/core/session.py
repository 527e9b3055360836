"""A session: a user's conversation with an application, its events and its state."""

from dataclasses import dataclass

from tape.core.codec import JsonValue, parse
from tape.core.text import check_body, check_count, check_name


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionId:
    app: str
    user: str
    session: str

    def __post_init__(self) -> None:
        for name in self.__slots__:
            check_name(name, getattr(self, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEvent:
    """An event of a session; its id is unique there."""

    id: str
    invocation_id: str = ""
    author: str = ""
    branch: str = ""
    content_json: str = ""
    actions_json: str = ""
    timestamp_ms: int = 0

    def __post_init__(self) -> None:
        check_name("an event's id", self.id)
        for name in ("invocation_id", "author", "branch"):
            check_name(name, getattr(self, name), may_be_empty=True)
        check_body("content_json", self.content_json)
        check_body("actions_json", self.actions_json)
        check_count("timestamp_ms", self.timestamp_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session's state. `incarnation` rises when it is created again after a deletion."""

    of: SessionId
    state_json: str = "{}"
    event_count: int = 0
    created_at_ms: int = 0
    updated_at_ms: int = 0
    deleted: bool = False
    incarnation: int = 1
    events: tuple[SessionEvent, ...] = ()

    @property
    def state(self) -> dict[str, JsonValue]:
        parsed = parse(self.state_json)
        return parsed if isinstance(parsed, dict) else {}
