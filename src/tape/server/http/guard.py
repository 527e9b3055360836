"""Checks Host and Origin before anything else, so that a foreign web page cannot call the server."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tape.core.errors import quoted
from tape.server.http.errors import MisdirectedRequest, OriginNotAllowed

# Any port, because a tunnel has a different one.
_SERVED: Final = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?")

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
        host = hosts[0].lower()
        if _SERVED.fullmatch(host) is None:
            raise MisdirectedRequest(f"host {quoted(hosts[0])} is not served here; use localhost")
        return host

    def _is_allowed(self, origin: str, host: str) -> bool:
        return origin.lower() == f"http://{host}" or origin in self.origins


def _values(headers: Headers, header: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in headers if name == header]
