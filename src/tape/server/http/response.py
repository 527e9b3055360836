"""A whole response."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from tape.server.http.problem import CONTENT_TYPE, Problem
from tape.server.http.request import Send

JSON: Final = "application/json"
ALWAYS: Final = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
BODILESS: Final = frozenset({204, 304})


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A status, headers and a body."""

    status: int = 200
    content_type: str = JSON
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def json(cls, value: object, status: int = 200, **headers: str) -> "Response":
        return cls(status=status, body=msgspec.json.encode(value), headers=headers)

    @classmethod
    def of_problem(cls, problem: Problem) -> "Response":
        headers = problem.headers
        return cls(status=problem.status, content_type=CONTENT_TYPE, body=problem.body(), headers=headers)

    @classmethod
    def empty(cls, headers: Mapping[str, str]) -> "Response":
        return cls(status=204, content_type="", headers=headers)

    async def send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status, "headers": self._raw_headers()})
        await send({"type": "http.response.body", "body": self.body})

    def _raw_headers(self) -> list[tuple[bytes, bytes]]:
        raw = [(name.encode(), value.encode()) for name, value in {**ALWAYS, **self.headers}.items()]
        if self.status in BODILESS:
            return raw
        length = str(len(self.body)).encode()
        return [*raw, (b"content-type", self.content_type.encode()), (b"content-length", length)]
