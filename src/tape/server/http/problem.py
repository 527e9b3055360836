"""Errors as problem+json (RFC 9457): a code, a sentence, and no internals."""

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
from tape.core.server_unavailable import ServerUnavailable
from tape.server.http.errors import MethodNotAllowed

CONTENT_TYPE: Final = "application/problem+json"
SILENT: Final = "the store did not answer"
MAX_DETAIL: Final = 300
_RETRY_AFTER_S: Final[Mapping[type[TapeError], int]] = {SubscriberLimitExceeded: 5, LimitReached: 1, Unavailable: 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An error response."""

    status: int
    code: str
    detail: str
    trace_id: str
    fields: Mapping[str, object] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, error: Exception, trace_id: str | None = None) -> "Problem":
        """The problem for an error; an unexpected error gets no detail but a trace id."""
        trace = trace_id or os.urandom(16).hex()
        if not isinstance(error, TapeError):
            detail = "something broke in the server; its log says more under this trace_id"
            return cls(status=500, code="internal", detail=detail, trace_id=trace)
        return cls(
            status=error.http_status,
            code=error.code,
            detail=_escaped(_sentence(error)),
            trace_id=trace,
            fields=_fields(error),
            headers=_headers(error),
        )

    def body(self) -> bytes:
        head = {"type": "about:blank", "title": HTTPStatus(self.status).phrase, "status": self.status}
        return msgspec.json.encode(
            {**head, "code": self.code, "detail": self.detail, "trace_id": self.trace_id, **self.fields}
        )

    def raw(self) -> bytes:
        """The whole HTTP response, for a connection that is closed after it."""
        body = self.body()
        status = f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}"
        head = f"{status}\r\ncontent-type: {CONTENT_TYPE}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        return head.encode() + body


def _sentence(error: TapeError) -> str:
    """The sentence for the client; a store's error text stays in the log, since it may hold a path or a statement."""
    match error:
        case RunNotFound():
            return f"there is no run {error.run_id!r}; POST /runs opens one"
        case ServerUnavailable():
            return error.reason
        case Unavailable(outcome="unknown"):
            return f"{SILENT}; whether it was written is unknown, and the same key asks again safely"
        case Unavailable():
            return f"{SILENT}; nothing was written"
        case Corrupt():
            return "stored bytes are not what was written; tape journal verify names them"
        case _:
            return str(error)


def _fields(error: TapeError) -> Mapping[str, object]:
    fields: dict[str, object] = {}
    match error:
        case Unavailable():
            reason = error.reason if isinstance(error, ServerUnavailable) else SILENT
            fields |= {"outcome": error.outcome, "reason": reason}
        case ExpectedSeqConflict():
            fields |= {"run_id": error.run_id, "expected": error.expected, "actual": error.actual}
        case BrokerOverflowError():
            fields |= {"requested_seq": error.requested_seq, "available_from": error.available_from}
        case RunOpen() | RunClosed() | RunNotFound():
            fields["run_id"] = error.run_id
        case SubscriberLimitExceeded():
            fields["limit"] = error.limit
        case _:
            pass
    if seconds := _retry_after_s(error):
        fields["retry_after_ms"] = seconds * 1000
    return fields


def _headers(error: TapeError) -> Mapping[str, str]:
    if isinstance(error, MethodNotAllowed):
        return {"allow": ", ".join(error.allowed)}
    seconds = _retry_after_s(error)
    return {"retry-after": str(seconds)} if seconds else {}


def _retry_after_s(error: TapeError) -> int:
    return next((seconds for kind, seconds in _RETRY_AFTER_S.items() if isinstance(error, kind)), 0)


def _escaped(text: str) -> str:
    """The text, shortened and with only visible ASCII."""
    return ascii(text[:MAX_DETAIL])[1:-1].replace("\\'", "'")[:MAX_DETAIL]
