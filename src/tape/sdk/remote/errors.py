"""The error of a call that failed, as the server raised it."""

import re
from typing import Any, Final

import grpc
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from tape.core.errors import LimitReached, TapeError, TooLarge, Unavailable, Unsupported, UsageError
from tape.sdk.problems import raised

DETAILS: Final = "grpc-status-details-bin"
NEVER_SENT: Final = "failed to connect"
TOO_LARGE: Final = "larger than max"
RESET: Final = "RST_STREAM"
_PAGE: Final = re.compile(r"http2 header with status: (\d{3})")


def error_of(error: Any) -> TapeError:
    """The error of a call that failed; without details of Tape, by its status."""
    details = _details(error)
    if details is None:
        return _of_transport(error.code(), error.details() or "")
    code, facts = details
    return raised(code, int(facts.get("status", 500)), error.details() or "", facts)


def is_gone(error: Any) -> bool:
    """Whether the server cannot be reached now: by its status, or because a stream ended without details of Tape."""
    if error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
        return True
    if _details(error) is not None:
        return False
    details = error.details() or ""
    return RESET in details or isinstance(_of_transport(error.code(), details), Unavailable)


def _details(error: Any) -> tuple[str, dict[str, Any]] | None:
    for name, value in error.trailing_metadata() or ():
        if name == DETAILS:
            info, facts = ErrorInfo(), Struct()
            for packed in Status.FromString(value).details:
                packed.Unpack(info) if packed.Is(ErrorInfo.DESCRIPTOR) else packed.Unpack(facts)
            return info.reason, {name: _whole(value) for name, value in MessageToDict(facts).items()}
    return None


def _whole(value: Any) -> Any:
    """Numbers travel as fractions, and all of ours are whole."""
    return int(value) if isinstance(value, float) else value


def _of_transport(status: Any, details: str) -> TapeError:
    if (page := _PAGE.search(details)) is not None:
        return _of_page(int(page[1]))
    codes = grpc.StatusCode
    match status:
        case codes.RESOURCE_EXHAUSTED:
            return TooLarge(details) if TOO_LARGE in details else LimitReached(details)
        case codes.INVALID_ARGUMENT:
            return UsageError(details)
        case codes.UNIMPLEMENTED:
            return Unsupported("this operation")
        case codes.DEADLINE_EXCEEDED:
            return Unavailable("the server has not answered in time", "unknown")
        case codes.UNAVAILABLE | codes.CANCELLED:
            is_nothing = details.startswith(NEVER_SENT)
            return Unavailable("the server does not answer", "nothing" if is_nothing else "unknown")
        case codes.INTERNAL | codes.UNKNOWN:
            return Unavailable(f"the call was interrupted: {details}", "unknown")
        case _:
            return TapeError(details)


def _of_page(status: int) -> TapeError:
    """The error for an HTTP answer without a gRPC status, which only a proxy gives."""
    answered = f"a proxy before the server answered HTTP {status}"
    if status == 413:
        return TooLarge(f"{answered}: the request is larger than it lets pass; send less at once, or raise its limit")
    if status == 429 or status >= 500:
        return Unavailable(answered, "unknown")
    return UsageError(f"{answered}; see the address, and what the proxy asks for")
