"""A request for handlers: parsed headers, query and body, within limits."""

import os
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from functools import cached_property
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl

import anyio

from tape.core import codec
from tape.core.codec import JsonValue
from tape.core.errors import UsageError
from tape.core.event import JSON, Trace
from tape.core.near_miss import unknown_name
from tape.server.http.body import MAX_BODY, SMALL, BodyReader
from tape.server.http.errors import ClientDisconnected, RequestTimeout, UnsupportedMediaType
from tape.server.http.protocol import EXTENSION, HttpConnection
from tape.wire.traceparent import parse as parse_traceparent

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

BODY_S: Final = 30.0
PARSE_IN_THREAD: Final = 128 * 1024  # larger bodies would block the event loop for milliseconds


class Request:
    """One request; `values` are the named segments of its path."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._scope = scope
        self._receive = receive
        self.method: str = scope["method"]
        self.raw_path: bytes = scope["raw_path"]
        self.raw_headers: Sequence[tuple[bytes, bytes]] = scope["headers"]
        self.has_query = bool(scope["query_string"])
        self.values: Mapping[str, str] = {}
        self.is_read = False

    @property
    def connection(self) -> HttpConnection:
        """The client's connection, for streams that write to it directly."""
        connection: HttpConnection = self._scope["extensions"][EXTENSION]["connection"]
        return connection

    def header(self, name: str) -> str | None:
        """A header that may be given once."""
        found = [value for key, value in self.raw_headers if key == name.encode()]
        if len(found) > 1:
            raise UsageError(f"header {name} may be given once, not {len(found)} times")
        return found[0].decode("latin-1") if found else None

    def parameter(self, name: str) -> str | None:
        """A parameter of the query that may be given once."""
        found = [value for key, value in self._query if key == name]
        if len(found) > 1:
            raise UsageError(f"parameter {name} may be given once, not {len(found)} times")
        return found[0] if found else None

    def parameters(self, name: str) -> list[str]:
        """A parameter of the query that may be given several times."""
        return [value for key, value in self._query if key == name]

    def check_parameters(self, known: Mapping[str, bool]) -> None:
        """Refuses a parameter that the route does not have, with the near miss, and a required one that is missing."""
        given = {name for name, _ in self._query}
        for name in sorted(given - known.keys()):
            raise UsageError(unknown_name("parameter", name, known))
        for name in (name for name, is_required in known.items() if is_required and name not in given):
            raise UsageError(f"the parameter {name} is required")

    @cached_property
    def trace(self) -> Trace | None:
        """The caller's span, if it sent one."""
        return parse_traceparent(self.header("traceparent"))

    @cached_property
    def trace_id(self) -> str:
        """The trace id of this request in logs and problems."""
        try:
            trace = self.trace
        except UsageError:
            trace = None
        return trace.trace_id if trace else os.urandom(16).hex()

    @property
    def media_type(self) -> str:
        """The type of the body without parameters; empty if the request has none."""
        return (self.header("content-type") or "").partition(";")[0].strip().lower()

    async def json(self) -> JsonValue:
        """The body, parsed as strictly as a payload."""
        if self.media_type != JSON:
            raise UnsupportedMediaType("a body is application/json and needs that Content-Type")
        text = await self.body()
        if len(text) < PARSE_IN_THREAD:
            return codec.decode_request(text, MAX_BODY)
        return await anyio.to_thread.run_sync(codec.decode_request, text, MAX_BODY)

    @property
    def is_unread(self) -> bool:
        """Whether a body was sent and not read."""
        is_chunked = any(name == b"transfer-encoding" for name, _ in self.raw_headers)
        lengths = [value for name, value in self.raw_headers if name == b"content-length"]
        return not self.is_read and (is_chunked or lengths not in ([], [b"0"]))

    @property
    def has_small_body(self) -> bool:
        lengths = [value for name, value in self.raw_headers if name == b"content-length"]
        return len(lengths) == 1 and lengths[0].isdigit() and int(lengths[0]) <= SMALL

    async def discard(self) -> None:
        """Reads the rest of the body and drops it."""
        while not self.is_read:
            message = await self._receive()
            self.is_read = message["type"] == "http.disconnect" or not message.get("more_body", False)

    async def disconnected(self) -> None:
        """Returns when the client has disconnected."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def body(self) -> bytes:
        """The body, unpacked."""
        reader = BodyReader(self.header("content-encoding"), self.header("content-length"))
        with anyio.move_on_after(BODY_S):
            while not self.is_read:
                message = await self._receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnected
                reader.add(message.get("body", b""))
                self.is_read = not message.get("more_body", False)
            return reader.end()
        raise RequestTimeout(f"a body must arrive within {BODY_S:g} s")

    @cached_property
    def _query(self) -> list[tuple[str, str]]:
        try:
            text = bytes(self._scope["query_string"]).decode("ascii")
            return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=64)
        except ValueError as error:
            raise UsageError("the query is not percent-encoded UTF-8 of at most 64 parameters") from error
