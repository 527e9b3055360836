"""Finds the route of a request."""

from collections.abc import Mapping, Sequence
from urllib.parse import unquote_to_bytes

from tape.core.errors import UsageError
from tape.server.http.errors import MethodNotAllowed, RouteNotFound
from tape.server.http.route import Route


class Router:
    """Finds a route by method and path; a segment in braces matches any one segment."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self.routes = tuple(routes)
        parts = [(tuple(route.path.split("/")), route) for route in routes]
        self._parts = sorted(parts, key=lambda each: [part.startswith("{") for part in each[0]])  # literals win

    def find(self, method: str, raw_path: bytes) -> tuple[Route, Mapping[str, str]]:
        """The route, and the values of its named segments."""
        matches = self._at(raw_path)
        method_of_route = "GET" if method == "HEAD" else method
        for route, values in matches:
            if route.method == method_of_route and not (method == "HEAD" and route.is_stream):
                return route, {name: _decoded(value) for name, value in values.items()}
        raise MethodNotAllowed(self._methods(matches))

    def methods(self, raw_path: bytes) -> list[str]:
        """The methods of a path."""
        return self._methods(self._at(raw_path))

    def _at(self, raw_path: bytes) -> list[tuple[Route, dict[str, str]]]:
        parts = tuple(raw_path.decode("ascii", "replace").split("/"))
        found = [(route, values) for names, route in self._parts if (values := _match(names, parts)) is not None]
        if not found:
            raise RouteNotFound
        return found

    def _methods(self, matches: Sequence[tuple[Route, dict[str, str]]]) -> list[str]:
        methods = {route.method for route, _ in matches} | {"OPTIONS"}
        has_head = any(route.method == "GET" and not route.is_stream for route, _ in matches)
        return sorted(methods | {"HEAD"} if has_head else methods)


def _match(names: tuple[str, ...], parts: tuple[str, ...]) -> dict[str, str] | None:
    if len(names) != len(parts):
        return None
    values = {}
    for name, part in zip(names, parts, strict=True):
        if name.startswith("{") and part:
            values[name[1:-1]] = part
        elif name != part:
            return None
    return values


def _decoded(part: str) -> str:
    try:
        return unquote_to_bytes(part).decode()
    except UnicodeError:
        raise UsageError("the path is not percent-encoded UTF-8") from None
