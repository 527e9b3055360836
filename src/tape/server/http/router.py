"""Finds the route of a request."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

from tape.core.errors import UsageError
from tape.server.http.errors import MethodNotAllowed, RouteNotFound
from tape.server.http.route import Route


@dataclass(slots=True)
class _Segment:
    """What may follow in a path: known literals, any one segment, or its end with these routes."""

    literals: dict[str, "_Segment"] = field(default_factory=dict)
    named: "_Segment | None" = None
    routes: list[Route] = field(default_factory=list)

    def add(self, names: Sequence[str], route: Route) -> None:
        if not names:
            self.routes.append(route)
        elif names[0].startswith("{"):
            self.named = self.named or _Segment()
            self.named.add(names[1:], route)
        else:
            self.literals.setdefault(names[0], _Segment()).add(names[1:], route)

    def find(self, parts: Sequence[str]) -> list[Route]:
        """The routes of a path; a literal wins over a named segment."""
        if not parts:
            return self.routes
        first, *rest = parts
        found = self.literals[first].find(rest) if first in self.literals else []
        return found or (self.named.find(rest) if first and self.named else [])


class Router:
    """Finds a route by method and path; a segment in braces matches any one segment that no other route names."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self.routes = tuple(routes)
        self._root = _Segment()
        for route in routes:
            self._root.add(route.path.split("/"), route)

    def find(self, method: str, raw_path: bytes) -> tuple[Route, Mapping[str, str]]:
        """The route, and the values of its named segments."""
        routes = self.at(raw_path)
        method_of_route = "GET" if method == "HEAD" else method
        for route in routes:
            if route.method == method_of_route and not (method == "HEAD" and route.is_stream):
                return route, _values(route, raw_path)
        raise MethodNotAllowed(methods(routes))

    def at(self, raw_path: bytes) -> Sequence[Route]:
        """The routes of a path, one for each method."""
        found = self._root.find(_parts(raw_path))
        if not found:
            raise RouteNotFound
        return found


def methods(routes: Sequence[Route]) -> list[str]:
    """The methods that the routes of one path take."""
    has_head = any(route.method == "GET" and not route.is_stream for route in routes)
    return sorted({*(route.method for route in routes), "OPTIONS", *(["HEAD"] if has_head else [])})


def _parts(raw_path: bytes) -> list[str]:
    return raw_path.decode("ascii", "replace").split("/")


def _values(route: Route, raw_path: bytes) -> dict[str, str]:
    pairs = zip(route.path.split("/"), _parts(raw_path), strict=True)
    return {name[1:-1]: _decoded(part) for name, part in pairs if name.startswith("{")}


def _decoded(part: str) -> str:
    try:
        return unquote_to_bytes(part).decode()
    except UnicodeError:
        raise UsageError("the path is not percent-encoded UTF-8") from None
