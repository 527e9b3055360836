"""Errors of HTTP requests."""

from collections.abc import Sequence

from tape.core.errors import NotFound, TapeError, UsageError


class BadRequest(UsageError):
    """The bytes are not an unambiguous HTTP request."""


class MisdirectedRequest(UsageError):
    """The Host header names another host, as in DNS rebinding."""

    http_status = 421


class OriginNotAllowed(UsageError):
    """The Origin header names an origin that is not allowed."""

    http_status = 403


class RouteNotFound(NotFound):
    """No route has this path."""

    def __str__(self) -> str:
        return "no route has this path; /openapi.json lists them"


class MethodNotAllowed(UsageError):
    """The path exists, but not with this method."""

    http_status = 405

    def __init__(self, allowed: Sequence[str]) -> None:
        super().__init__(allowed)
        self.allowed = tuple(allowed)

    def __str__(self) -> str:
        return f"this path takes {', '.join(self.allowed)}"


class UnsupportedMediaType(UsageError):
    """The body has a media type or encoding that is not supported."""

    http_status = 415


class RequestTimeout(UsageError):
    """The request did not arrive in time."""

    http_status = 408


class UriTooLong(UsageError):
    """The URL is over its limit."""

    http_status = 414


class HeadersTooLarge(UsageError):
    """The headers are over their limit."""

    http_status = 431


class ClientDisconnected(TapeError):
    """The client has disconnected."""
