"""Errors as HTTP tells them: RFC 9457, a code from a closed list, and nothing about the inside."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

import msgspec

from tape.core.errors import (
    BrokerOverflowError,
    Corrupt,
    ExpectedSeqConflict,
    LimitReached,
    RunClosed,
    RunNotFound,
    RunOpen,
    SubscriberLimitExceeded,
    TapeError,
    Unavailable,
)
from tape.server.http.refusals import MethodNotAllowed, NotNow

CONTENT_TYPE: Final = "application/problem+json"
MAX_DETAIL: Final = 300
_RETRY_AFTER_S: Final[Mapping[type[TapeError], int]] = {SubscriberLimitExceeded: 5, LimitReached: 1, Unavailable: 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An answer that says what is wrong, and what to do."""

    status: int
    code: str
    detail: str
    trace_id: str
    facts: Mapping[str, object] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, error: Exception, trace_id: str | None = None) -> "Problem":
        """What may be said of an error; of one that nobody foresaw, nothing but that it happened."""
        trace = trace_id or os.urandom(16).hex()
        if not isinstance(error, TapeError):
            detail = "something broke in the server; its log says more under this trace_id"
            return cls(status=500, code="internal", detail=detail, trace_id=trace)
        return cls(
            status=error.http_status,
            code=error.code,
            detail=_escaped(_sentence(error)),
            trace_id=trace,
            facts=_facts(error),
            headers=_headers(error),
        )

    def body(self) -> bytes:
        said = {"type": "about:blank", "title": HTTPStatus(self.status).phrase, "status": self.status}
        return msgspec.json.encode(
            {**said, "code": self.code, "detail": self.detail, "trace_id": self.trace_id, **self.facts}
        )

    def raw(self) -> bytes:
        """The whole answer of a connection that is hung up next."""
        body = self.body()
        status = f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}"
        head = f"{status}\r\ncontent-type: {CONTENT_TYPE}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        return head.encode() + body


def _sentence(error: TapeError) -> str:
    """What it says; a store's own words stay in the log, because they may hold a path or a statement."""
    match error:
        case RunNotFound():
            return f"there is no run {error.run_id!r}; POST /runs opens one"
        case NotNow():
            return error.reason
        case Unavailable(outcome="unknown"):
            return "the store did not answer; whether it was written is unknown, and the same key asks again safely"
        case Unavailable():
            return "the store did not answer; nothing was written"
        case Corrupt():
            return "stored bytes are not what was written; tape journal verify names them"
        case _:
            return str(error)


def _facts(error: TapeError) -> Mapping[str, object]:
    facts: dict[str, object] = {}
    match error:
        case Unavailable():
            facts |= {"outcome": error.outcome, "reason": _sentence(error)}
        case ExpectedSeqConflict():
            facts |= {"run_id": error.run_id, "expected": error.expected, "actual": error.actual}
        case BrokerOverflowError():
            facts |= {"requested_seq": error.requested_seq, "available_from": error.available_from}
        case RunOpen() | RunClosed() | RunNotFound():
            facts["run_id"] = error.run_id
        case SubscriberLimitExceeded():
            facts["limit"] = error.limit
        case _:
            pass
    if seconds := _retry_after_s(error):
        facts["retry_after_ms"] = seconds * 1000
    return facts


def _headers(error: TapeError) -> Mapping[str, str]:
    if isinstance(error, MethodNotAllowed):
        return {"allow": ", ".join(error.allowed)}
    seconds = _retry_after_s(error)
    return {"retry-after": str(seconds)} if seconds else {}


def _retry_after_s(error: TapeError) -> int:
    return next((seconds for kind, seconds in _RETRY_AFTER_S.items() if isinstance(error, kind)), 0)


def _escaped(text: str) -> str:
    """No more than a few lines of it, and only characters that everybody sees."""
    return ascii(text[:MAX_DETAIL])[1:-1].replace("\\'", "'")[:MAX_DETAIL]
