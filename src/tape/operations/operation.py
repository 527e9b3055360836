"""An operation: one definition, from which every surface is derived.

An operation is a frozen request type, which checks its fields, the type of its result, and a few facts. Surfaces call
`Ledgers.call(request)`; where the operation runs, a handler takes the request.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from types import MappingProxyType
from typing import Any, ClassVar, Final, Generic, TypeVar, get_args, get_origin

from tape.core.app import check_app
from tape.core.claim import check_lease, check_owner
from tape.core.errors import UsageError
from tape.core.event import check_run_id
from tape.core.page import Page
from tape.core.text import check_body, check_count, check_name

R_co = TypeVar("R_co", covariant=True)

MAX_LIMIT: Final = 10_000
PAGE: Final = 200


def check_limit(limit: int) -> int:
    if type(limit) is not int or not 1 <= limit <= MAX_LIMIT:
        raise UsageError(f"a limit is 1 to {MAX_LIMIT:,}, not {limit!r}")
    return limit


FIELD_CHECKS: Final[Mapping[str, Callable[[Any], object]]] = MappingProxyType(
    {"run_id": check_run_id, "owner": check_owner, "lease": check_lease, "app": check_app, "limit": check_limit}
)


class OperationRequest(Generic[R_co]):
    """The base of request types; R_co is the type of the result.

    Fields are checked by their names: `run_id`, `owner`, `lease`, `app`, `limit`, `error`, bodies that end in `_json`,
    times that end in `_ms`, and the `names` of a type, which must not be empty. `statuses` are those that the field
    `status` may have, if not all.
    """

    __slots__ = ()
    names: ClassVar[tuple[str, ...]] = ()
    statuses: ClassVar[tuple[StrEnum, ...]] = ()

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]  # every request type is a dataclass
            self._check(field.name, getattr(self, field.name))

    def _check(self, name: str, value: Any) -> None:
        if name == "status" and self.statuses and value not in self.statuses:
            raise UsageError(f"the status is {', '.join(self.statuses)}, not {value}")
        if name in self.names:
            check_name(name, value)
        elif value is None:
            return
        elif check := FIELD_CHECKS.get(name):
            check(value)
        elif name.endswith("_json") or name == "error":
            check_body(name, value)
        elif name.endswith("_ms"):
            check_count(name, value)


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

    SAFE: nothing is changed. SAME: the first request decides, and a repetition gets its result. KEYED: with a key, as
    SAME; without one it is done again. AGAIN: it is done again.
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


@dataclass(frozen=True, slots=True)
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
        for base in self.request.__orig_bases__:  # type: ignore[attr-defined]
            if get_origin(base) is OperationRequest:
                return get_args(base)[0]
            if get_origin(base) is PageRequest:
                return Page[get_args(base)[0]]  # type: ignore[misc]
        raise TypeError(f"{self.request.__name__} names no result")
