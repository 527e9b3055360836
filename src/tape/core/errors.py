"""All errors, in families by what the caller should do next.

TapeError
├── UsageError (ValueError)      the call is wrong: change it
│   ├── InvalidCursor · InvalidMaxQueued · JsonLimit · MissingStore · ReservedSubject · Unsupported
├── NotFound                     there is no such thing
│   └── RunNotFound (RuntimeError)
├── Conflict                     another caller was first: read again and decide again
│   ├── ExpectedSeqConflict · KeyConflict · StaleClaim · VersionConflict
│   └── RunOpen (ValueError)
├── RunClosed (RuntimeError)     the run has ended: fork it to continue
├── NotReady                     another step must come first
├── ScopeDenied                  the run was not granted what this needs
├── TooLarge                     one value is over a size limit: split it
│   └── SseFramingError
├── LimitReached                 too much at once: try again later
│   └── SubscriberLimitExceeded
├── BrokerOverflowError          the gap: history is gone: continue where it begins
├── Corrupt                      stored bytes are not what was written
└── Unavailable                  the store did not answer; `outcome` says what is known

Facts are attributes, and they are the constructor's positional arguments, so every error survives pickling.
"""

import re
from typing import ClassVar, Literal

from tape.core.ids import GlobalSeq, RunId, Seq

WriteOutcome = Literal["unknown", "nothing"]

MAX_QUOTE = 64

_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def quoted(value: object) -> str:
    """A value for an error message: escaped, and at most MAX_QUOTE characters of it."""
    if isinstance(value, str):
        return ascii(value[:MAX_QUOTE])[: MAX_QUOTE + 2]
    is_small = value is None or isinstance(value, float) or (isinstance(value, int) and abs(value) < 1 << 64)
    return ascii(value) if is_small else type(value).__name__


def code_of(error: type) -> str:
    return _WORD_START.sub("_", error.__name__).lower()


class TapeError(Exception):
    """Every error that Tape raises on purpose."""

    http_status: ClassVar[int] = 500
    grpc_status: ClassVar[str] = "INTERNAL"
    exit_code: ClassVar[int] = 1

    @property
    def code(self) -> str:
        """The class name in snake_case, as it stands in problem+json."""
        return code_of(type(self))


class UsageError(TapeError, ValueError):
    """The call itself is wrong; repeating it will not help."""

    http_status = 400
    grpc_status = "INVALID_ARGUMENT"
    exit_code = 2


class InvalidCursor(UsageError):
    """A start position that no reader of this journal can have received."""


class InvalidMaxQueued(UsageError):
    """A backlog cap outside its bounds."""


class JsonLimit(UsageError):
    """A payload that is not JSON, or that would not decode to the same value."""


class MissingStore(UsageError):
    """A store that does not exist, for what cannot succeed in a new one."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.place = place

    def __str__(self) -> str:
        return f"there is no journal {self.place}; see --store, or create it with tape migrate"


class ReservedSubject(UsageError):
    """A subject that only Tape itself may write."""

    def __init__(self, subject: str) -> None:
        super().__init__(subject)
        self.subject = subject

    def __str__(self) -> str:
        return f"subject {self.subject!r} is reserved; under /tape/ use /tape/event/** without /tape/event/appended/**"


class Unsupported(UsageError):
    """An operation, or a field of its request, that the server's version does not know."""

    http_status = 501
    grpc_status = "UNIMPLEMENTED"

    def __init__(self, operation: str, field: str = "", version: str = "") -> None:
        super().__init__(operation, field, version)
        self.operation = operation
        self.field = field
        self.version = version

    def __str__(self) -> str:
        what = f"the field {self.field} of {self.operation}" if self.field else self.operation
        server = f"of version {self.version}" if self.version else "of an older version"
        return f"the server {server} does not know {what}; update the server, or do without it"


class NotFound(TapeError):
    http_status = 404
    grpc_status = "NOT_FOUND"
    exit_code = 4


class RunNotFound(NotFound, RuntimeError):
    """No run has this id."""

    def __init__(self, run_id: RunId) -> None:
        super().__init__(run_id)
        self.run_id = run_id

    def __str__(self) -> str:
        return f"run {self.run_id!r} is not open: there is no such run; open it first or append with open=True"


class Conflict(TapeError):
    """Another caller was first."""

    http_status = 409
    grpc_status = "ABORTED"
    exit_code = 5


class RunOpen(Conflict, ValueError):
    """The run is open and must not be."""

    def __init__(self, run_id: RunId, wanted: str = "open") -> None:
        super().__init__(run_id, wanted)
        self.run_id = run_id
        self.wanted = wanted

    def __str__(self) -> str:
        if self.wanted == "open":
            return f"run {self.run_id!r} is already open"
        return f"cannot {self.wanted} open run {self.run_id!r}; close it first"


class ExpectedSeqConflict(Conflict):
    """The run's last seq is not the expected one."""

    def __init__(self, run_id: RunId, expected: Seq, actual: Seq) -> None:
        super().__init__(run_id, expected, actual)
        self.run_id = run_id
        self.expected = expected
        self.actual = actual

    def __str__(self) -> str:
        return f"run {self.run_id!r} is at seq {self.actual}, not {self.expected}; read on and decide again"


class KeyConflict(Conflict):
    """The key was used with another body."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key

    def __str__(self) -> str:
        return f"key {self.key!r} was used for another body; a retry must repeat the request exactly"


class VersionConflict(Conflict):
    """A cell has changed since it was read."""

    def __init__(self, ledger: str, key: str, seen: int, actual: int) -> None:
        super().__init__(ledger, key, seen, actual)
        self.ledger = ledger
        self.key = key
        self.seen = seen
        self.actual = actual

    def __str__(self) -> str:
        return f"cell {self.ledger}/{self.key} is at version {self.actual}, not {self.seen}; read it and decide again"


class StaleClaim(Conflict):
    """A newer attempt holds the claim."""


class RunClosed(TapeError, RuntimeError):
    """The run has ended."""

    http_status = 409
    grpc_status = "FAILED_PRECONDITION"
    exit_code = 5

    def __init__(self, run_id: RunId) -> None:
        super().__init__(run_id)
        self.run_id = run_id

    def __str__(self) -> str:
        return f"run {self.run_id!r} is closed, not open; fork it to continue"


class NotReady(TapeError):
    """Another step must come first."""

    http_status = 409
    grpc_status = "FAILED_PRECONDITION"
    exit_code = 5


class ScopeDenied(TapeError):
    """The run lacks the scope that an effect needs."""

    http_status = 403
    grpc_status = "PERMISSION_DENIED"
    exit_code = 3

    def __init__(self, run_id: RunId, tool: str, required: str) -> None:
        super().__init__(run_id, tool, required)
        self.run_id = run_id
        self.tool = tool
        self.required = required

    def __str__(self) -> str:
        if not self.required:
            return f"effect {self.tool!r} cannot be repeated, so it must name a scope that run {self.run_id!r} has"
        return f"run {self.run_id!r} was not granted scope {self.required!r}, which effect {self.tool!r} needs"


class TooLarge(TapeError):
    """One value is over a size limit."""

    http_status = 413
    grpc_status = "RESOURCE_EXHAUSTED"
    exit_code = 2


class SseFramingError(TooLarge):
    """A frame is longer than any that a server sends."""


class LimitReached(TapeError):
    """Too much at once; the same call may succeed later."""

    http_status = 429
    grpc_status = "RESOURCE_EXHAUSTED"
    exit_code = 6


class SubscriberLimitExceeded(LimitReached):
    """The maximum number of streams is open."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.limit = limit

    def __str__(self) -> str:
        return f"{self.limit} subscribers are connected, which is the limit"


class BrokerOverflowError(TapeError):
    """A gap: the requested entries are gone. Without a run_id the positions are global."""

    http_status = 410
    grpc_status = "OUT_OF_RANGE"
    exit_code = 7

    def __init__(self, run_id: RunId | None, requested_seq: int, available_from: int) -> None:
        super().__init__(run_id, requested_seq, available_from)
        self.run_id = run_id
        self.requested_seq = requested_seq
        self.available_from = available_from

    def __str__(self) -> str:
        where = "the journal" if self.run_id is None else f"run {self.run_id!r}"
        return f"{where} begins at {self.available_from}; {self.requested_seq} to {self.available_from - 1} are gone"


class Corrupt(TapeError):
    """Stored bytes are not what was written."""

    http_status = 500
    grpc_status = "DATA_LOSS"
    exit_code = 8

    def __init__(self, reason: str, global_seq: GlobalSeq | None = None) -> None:
        super().__init__(reason, global_seq)
        self.reason = reason
        self.global_seq = global_seq

    def __str__(self) -> str:
        return self.reason if self.global_seq is None else f"entry {self.global_seq}: {self.reason}"


class Unavailable(TapeError):
    """The store did not answer; `outcome` says whether anything may have been written."""

    http_status = 503
    grpc_status = "UNAVAILABLE"
    exit_code = 9

    def __init__(self, reason: str, outcome: WriteOutcome = "nothing") -> None:
        super().__init__(reason, outcome)
        self.reason = reason
        self.outcome: WriteOutcome = outcome

    def __str__(self) -> str:
        known = "nothing was written" if self.outcome == "nothing" else "whether it was written is unknown"
        return f"{self.reason}; {known}"
