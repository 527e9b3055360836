"""Which route a request takes."""

from collections.abc import Mapping, Sequence
from urllib.parse import unquote_to_bytes

from tape.core.errors import UsageError
from tape.server.http.refusals import MethodNotAllowed, RouteNotFound
from tape.server.http.route import Route


class Router:
    """Finds a route by its method and path; a part in braces stands for any one part."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self.routes = tuple(routes)
        self._parts = [(tuple(route.path.split("/")), route) for route in routes]

    def find(self, method: str, raw_path: bytes) -> tuple[Route, Mapping[str, str]]:
        """The route, and the parts that it has names for."""
        here = self._at(raw_path)
        wanted = "GET" if method == "HEAD" else method
        for route, values in here:
            if route.method == wanted and not (method == "HEAD" and route.is_stream):
                return route, {name: _decoded(value) for name, value in values.items()}
        raise MethodNotAllowed(self._methods(here))

    def methods(self, raw_path: bytes) -> list[str]:
        """What a path takes."""
        return self._methods(self._at(raw_path))

    def _at(self, raw_path: bytes) -> list[tuple[Route, dict[str, str]]]:
        parts = tuple(raw_path.decode("ascii", "replace").split("/"))
        found = [(route, values) for names, route in self._parts if (values := _match(names, parts)) is not None]
        if not found:
            raise RouteNotFound
        return found

    def _methods(self, here: Sequence[tuple[Route, dict[str, str]]]) -> list[str]:
        methods = {route.method for route, _ in here} | {"OPTIONS"}
        is_plain = any(route.method == "GET" and not route.is_stream for route, _ in here)
        return sorted(methods | {"HEAD"} if is_plain else methods)


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
