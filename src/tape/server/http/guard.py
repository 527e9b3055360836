"""Checks Host and Origin before anything else, so that a foreign web page cannot call the server."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tape.core.errors import quoted
from tape.server.http.errors import MisdirectedRequest, OriginNotAllowed

LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})

Headers = Sequence[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """The allowed origins besides the server's own."""

    origins: frozenset[str] = frozenset()

    def check(self, headers: Headers) -> str | None:
        """Returns the request's Origin, if it has one; refuses a host or an origin that is not allowed."""
        host = self._checked_host(_values(headers, b"host"))
        origins = _values(headers, b"origin")
        if not origins:
            return None
        if len(origins) > 1 or not self._is_allowed(origins[0], host):
            raise OriginNotAllowed(
                f"origin {quoted(origins[0])} may not ask; TAPE_ALLOWED_ORIGINS names those that may"
            )
        return origins[0]

    def _checked_host(self, hosts: Sequence[str]) -> str:
        if len(hosts) != 1:
            raise MisdirectedRequest(f"a request names one host, not {len(hosts)}")
        name, port = _split(hosts[0])
        if name not in LOOPBACK or not _is_port(port):  # any port, because a tunnel has a different one
            raise MisdirectedRequest(f"host {quoted(hosts[0])} is not served here; use localhost")
        return hosts[0].lower()

    def _is_allowed(self, origin: str, host: str) -> bool:
        return origin.lower() == f"http://{host}" or origin in self.origins


def _values(headers: Headers, header: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in headers if name == header]


def _split(host: str) -> tuple[str, str | None]:
    """The host name in lower case, and the port if there is one."""
    name, colon, port = host.lower().rpartition(":")
    return (name, port) if colon and not host.endswith("]") else (host.lower(), None)


def _is_port(port: str | None) -> bool:
    return port is None or (port.isascii() and port.isdecimal() and len(port) <= 5)
