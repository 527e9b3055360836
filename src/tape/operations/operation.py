"""An operation: one definition, from which every surface is derived.

An operation is a frozen request type, which checks its fields, the type of its result, and a few facts. Surfaces call
`Ledgers.call(request)`; where the operation runs, a handler takes the request.
"""

import json
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from functools import cache
from typing import Any, ClassVar, Final, Generic, TypeVar, get_args, get_origin

from tape.core.page import Page
from tape.operations.fields import may_be_none, rule_of
from tape.operations.rules import Rule

R_co = TypeVar("R_co", covariant=True)

PAGE: Final = 200


class OperationRequest(Generic[R_co]):
    """The base of request types, to be named before other bases; R_co is the type of the result.

    What each field may hold follows from its name and type (`fields.RULES`). `statuses` are those that the field
    `status` may have, if not all.
    """

    __slots__ = ()
    statuses: ClassVar[tuple[StrEnum, ...]] = ()

    def __post_init__(self) -> None:
        for name, is_optional, rule in _rules(type(self)):  # type: ignore[arg-type]  # a type has a hash
            value = getattr(self, name)
            if value is not None or not is_optional:
                rule.check(name, value)
        check_record = getattr(super(), "__post_init__", None)
        if check_record is not None:
            check_record()
        self.check()

    def check(self) -> None:
        """Checks what no field shows alone."""


@cache
def _rules(request: Any) -> tuple[tuple[str, bool, Rule], ...]:
    return tuple((each.name, may_be_none(each.type), rule_of(request, each)) for each in fields(request))


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest(OperationRequest[Page[R_co]], Generic[R_co]):
    """The base of requests for a page of a list of R_co: at most `limit` of them, and at most 4 MiB.

    Without a cursor it is the first page; the cursor of the next one is in the result.
    """

    limit: int = PAGE
    cursor: str = ""

    @property
    def question(self) -> str:
        """The request without its page; a cursor belongs to one question."""
        filters = {name: value for name, value in asdict(self).items() if name not in ("limit", "cursor")}
        return json.dumps([type(self).__name__, filters])


class Access(StrEnum):
    READ = "read"
    WRITE = "write"


class Scope(StrEnum):
    """What a permission for the operation is given on."""

    RUN = "run"
    SUBJECT = "subject"
    REACTION = "reaction"
    OUTBOX = "outbox"
    LAKE = "lake"
    NODE = "node"


class Repeat(StrEnum):
    """What a repetition of the same request does.

    SAFE: nothing is changed. SAME: it changes nothing more, and returns what is there, as the first one did; a deletion
    returns that there was nothing. KEYED: with a key, a name, an id or the number of an attempt, as SAME; without one
    it is done again. AGAIN: it is done again.
    """

    SAFE = "safe"
    SAME = "same"
    KEYED = "keyed"
    AGAIN = "again"


class Shape(StrEnum):
    """One result, a list that is read page by page, or a stream."""

    UNARY = "unary"
    PAGE = "page"
    STREAM = "stream"


@dataclass(frozen=True, slots=True, eq=False)  # each is made once, and a key of many caches
class Operation:
    """A request type with its facts. The name is `<noun>.<verb>`."""

    name: str
    request: type[OperationRequest[Any]]
    access: Access
    scope: Scope
    repeat: Repeat
    shape: Shape = Shape.UNARY

    @property
    def noun(self) -> str:
        return self.name.partition(".")[0]

    @property
    def verb(self) -> str:
        return self.name.partition(".")[2]

    @property
    def summary(self) -> str:
        return (self.request.__doc__ or "").partition("\n")[0]

    @property
    def result(self) -> Any:
        """The type of the result."""
        return _result(self.request)  # type: ignore[arg-type]  # a type has a hash


@cache
def _result(request: Any) -> Any:
    for base in request.__orig_bases__:
        if get_origin(base) is OperationRequest:
            return get_args(base)[0]
        if get_origin(base) is PageRequest:
            return Page[get_args(base)[0]]  # type: ignore[misc]
    raise TypeError(f"{request.__name__} names no result")
