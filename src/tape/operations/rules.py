"""What a field of a request may hold: checked whenever a request is made, and published in every schema."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, IntEnum
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from msgspec import Meta

from tape.core import codec
from tape.core.app import check_app
from tape.core.claim import LONGEST, SHORTEST, check_lease, check_owner
from tape.core.errors import JsonLimit, UsageError, quoted
from tape.core.event import check_run_id
from tape.core.ids import ID_GRAMMAR, ID_IN_WORDS, is_id
from tape.core.outbox import MAX_TEXT, check_text
from tape.core.page import MAX_CURSOR
from tape.core.reaction import check_reaction_id
from tape.core.registration import check_reason
from tape.core.run import MAX_LENGTH
from tape.core.text import MAX_BODY, MAX_NAME, check_body, check_name

LARGEST: Final = (1 << 63) - 1
MILLISECOND: Final = timedelta(milliseconds=1)
PRINTABLE: Final = {"format": "printable"}
MAX_NAMED: Final = 1_000  # events in one request

Id = Annotated[str, Meta(pattern=f"^{ID_GRAMMAR}$", description="1 to 128 of A-Z a-z 0-9 . _ -")]
OptionalId = Annotated[str, Meta(pattern=f"^({ID_GRAMMAR})?$", description="an id, or empty")]
App = Annotated[str, Meta(pattern=f"^({ID_GRAMMAR})?$", description="an app; empty: any")]
Name = Annotated[str, Meta(max_length=MAX_NAME, description="printable text", extra_json_schema=PRINTABLE)]
RequiredName = Annotated[
    str, Meta(min_length=1, max_length=MAX_NAME, description="printable text", extra_json_schema=PRINTABLE)
]
Label = Annotated[str, Meta(max_length=MAX_LENGTH, description="printable text", extra_json_schema=PRINTABLE)]
Cursor = Annotated[
    str,
    Meta(
        max_length=MAX_CURSOR, description="the next_cursor of the page before", extra_json_schema={"format": "cursor"}
    ),
]
Body = Annotated[str, Meta(max_length=MAX_BODY, description="usually JSON; Tape does not interpret it")]
JsonText = Annotated[str, Meta(max_length=MAX_BODY, description="JSON as text", extra_json_schema={"format": "json"})]
JsonObject = Annotated[
    str, Meta(max_length=MAX_BODY, description="a JSON object as text", extra_json_schema={"format": "json-object"})
]
EventType = Annotated[str, Meta(max_length=MAX_TEXT, description="printable text", extra_json_schema=PRINTABLE)]
EventIds = Annotated[list[UUID], Meta(max_length=MAX_NAMED)]
SubjectPattern = Annotated[str, Meta(max_length=1024, extra_json_schema={"format": "subject-pattern"})]
Cel = Annotated[str, Meta(max_length=MAX_BODY, description="a CEL expression", extra_json_schema={"format": "cel"})]
Dollars = Annotated[float, Meta(ge=0, le=(1 << 53) // 1_000_000)]


@dataclass(frozen=True, slots=True)
class Rule:
    """A schema, and the check of the same; the check gets the field's name and its value."""

    schema: Any
    check: Callable[[str, Any], object]


def whole(least: int = 0, most: int = LARGEST) -> Rule:
    """A whole number between two bounds."""

    def check(what: str, value: Any) -> None:
        if type(value) is not int or not least <= value <= most:
            bounds = f"a whole number from {least} on" if most == LARGEST else f"{least} to {most:,}"
            raise UsageError(f"{what} is {bounds}, not {quoted(value)}")

    return Rule(Annotated[int, Meta(ge=least, le=most)], check)


def limit(most: int) -> Rule:
    """The longest list to return."""

    def check(what: str, value: Any) -> None:
        if type(value) is not int or not 1 <= value <= most:
            raise UsageError(f"a limit is 1 to {most:,}, not {quoted(value)}")

    return Rule(Annotated[int, Meta(ge=1, le=most)], check)


def duration(least: timedelta, most: timedelta) -> Rule:
    """A duration, which a schema has in milliseconds."""

    def check(what: str, value: Any) -> None:
        if not isinstance(value, timedelta) or not least <= value <= most:
            bounds = f"{least.total_seconds():g} to {most.total_seconds():g} seconds"
            raise UsageError(f"a {what} is {bounds}, not {quoted(str(value))}")

    return Rule(Annotated[int, Meta(ge=least // MILLISECOND, le=most // MILLISECOND)], check)


def one_of(kind: type[Enum], chosen: tuple[Enum, ...]) -> Rule:
    """A member of an enumeration, or one of those chosen from it."""
    names = tuple(each.name.lower() if isinstance(each, IntEnum) else str(each.value) for each in chosen or kind)

    def check(what: str, value: Any) -> None:
        if not isinstance(value, kind) or (chosen and value not in chosen):
            raise UsageError(f"the {what} is {', '.join(names)}, not {quoted(value)}")

    return Rule(Literal[names] if chosen else kind, check)


def instance(kind: type) -> Rule:
    """A value of a type, which checks itself."""

    def check(what: str, value: Any) -> None:
        if not isinstance(value, kind):
            raise UsageError(f"{what} is a {kind.__name__}, not {quoted(value)}")

    return Rule(kind, check)


def checked_elsewhere(schema: Any) -> Rule:
    """A field that the record which the request extends checks."""
    return Rule(schema, lambda what, value: None)


def _check_json(what: str, value: Any) -> None:
    try:
        codec.decode(check_body(what, value))
    except JsonLimit as error:
        raise JsonLimit(f"{what} is JSON: {error}") from None


def _check_names(what: str, value: Any) -> None:
    if not isinstance(value, tuple | list):
        raise UsageError(f"{what} is a list, not {quoted(value)}")
    for each in value:
        check_name(f"one of {what}", each, may_be_empty=True)


def _check_event_ids(what: str, value: Any) -> None:
    if not isinstance(value, tuple | list) or not all(isinstance(each, UUID) for each in value):
        raise UsageError(f"{what} is a list of UUIDs, not {quoted(value)}")
    if len(value) > MAX_NAMED:
        raise UsageError(f"{what} are at most {MAX_NAMED:,}, not {len(value):,}")


def _check_event_type(what: str, value: Any) -> None:
    if value != "":
        check_text(what, value)


def _check_id(what: str, value: Any) -> None:
    if not isinstance(value, str) or not is_id(value):
        raise UsageError(f"{what} must be {ID_IN_WORDS}, not {quoted(value)}")


def _check_label(what: str, value: Any) -> None:
    if not (isinstance(value, str) and len(value) <= MAX_LENGTH and value.isprintable()):
        raise UsageError(f"{what} is printable text of at most {MAX_LENGTH} characters, not {quoted(value)}")


NAME: Final = Rule(RequiredName, check_name)
OPTIONAL_NAME: Final = Rule(Name, lambda what, value: check_name(what, value, may_be_empty=True))
LABELS: Final = Rule(dict[RequiredName, Name], instance(Mapping).check)
NAMES: Final = Rule(list[Name], _check_names)
LABEL: Final = Rule(Label, _check_label)
BODY: Final = Rule(Body, check_body)
PATTERN: Final = Rule(SubjectPattern, check_body)
CEL: Final = Rule(Cel, check_body)
JSON: Final = Rule(JsonText, _check_json)
OBJECT: Final = Rule(JsonObject, check_body)
ID: Final = Rule(Id, _check_id)
RUN_ID: Final = Rule(Id, lambda what, value: check_run_id(value))
OPTIONAL_RUN_ID: Final = Rule(OptionalId, lambda what, value: value == "" or check_run_id(value))
OWNER: Final = Rule(Id, lambda what, value: check_owner(value))
OPTIONAL_OWNER: Final = Rule(OptionalId, lambda what, value: value == "" or check_owner(value))
REACTION_ID: Final = Rule(Id, lambda what, value: check_reaction_id(value))
OPTIONAL_REACTION_ID: Final = Rule(OptionalId, lambda what, value: value == "" or check_reaction_id(value))
APP: Final = Rule(App, lambda what, value: check_app(value))
REASON: Final = Rule(RequiredName, lambda what, value: check_reason(value))
EVENT_ID: Final = instance(UUID)
EVENT_IDS: Final = Rule(EventIds, _check_event_ids)
EVENT_TYPE: Final = Rule(EventType, _check_event_type)
CURSOR: Final = Rule(Cursor, check_body)
LEASE: Final = Rule(duration(SHORTEST, LONGEST).schema, lambda what, value: check_lease(value))
