"""What only HTTP can be told: errors of the request itself, before it means anything to a journal."""

from collections.abc import Sequence

from tape.core.errors import NotFound, TapeError, Unavailable, UsageError


class BadRequest(UsageError):
    """The bytes are not a request that everybody would read alike."""


class MisdirectedRequest(UsageError):
    """The request was meant for another host: a page of a foreign name may be behind it."""

    http_status = 421


class OriginNotAllowed(UsageError):
    """A page of another origin asks."""

    http_status = 403


class RouteNotFound(NotFound):
    """Nothing lives at this path."""

    def __str__(self) -> str:
        return "nothing lives at this path; /openapi.json says what there is"


class MethodNotAllowed(UsageError):
    """The path is right and the method is not."""

    http_status = 405

    def __init__(self, allowed: Sequence[str]) -> None:
        super().__init__(allowed)
        self.allowed = tuple(allowed)

    def __str__(self) -> str:
        return f"this path takes {', '.join(self.allowed)}"


class UnsupportedMediaType(UsageError):
    """A body of a kind that is not read here."""

    http_status = 415


class RequestTimeout(UsageError):
    """The request did not come in time."""

    http_status = 408


class UriTooLong(UsageError):
    """The URL is over its limit."""

    http_status = 414


class HeadersTooLarge(UsageError):
    """The headers are over their limit."""

    http_status = 431


class NotNow(Unavailable):
    """The server itself cannot do it now, and says why; what a store says of itself is not told."""

    @property
    def code(self) -> str:
        return "unavailable"


class ClientGone(TapeError):
    """Nobody is there any more to be told anything."""
