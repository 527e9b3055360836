"""`/` and `/assets/…`: the console, as static files that load nothing but each other."""

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from tape.server.http.entity_tag import is_known
from tape.server.http.errors import RouteNotFound
from tape.server.http.request import Request
from tape.server.http.response import Response
from tape.server.http.route import ResponseSpec, Route, respond_with
from tape.server.node import Node

PAGE: Final = "index.html"
CONTENT_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
# With trusted types even our own code cannot turn a text into markup or script.
POLICY: Final = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; object-src 'none'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
HEADERS: Final = {
    "cache-control": "no-cache",
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """A static file with its content type and ETag."""

    body: bytes
    content_type: str
    etag: str

    @classmethod
    def of(cls, file: Traversable, suffix: str) -> "Asset":
        body = file.read_bytes()
        return cls(body=body, content_type=CONTENT_TYPES[suffix], etag=f'"{sha256(body).hexdigest()[:32]}"')


@cache
def assets() -> dict[str, Asset]:
    """All files by path; a path that is not listed here is not served."""
    return _listed(files("tape").joinpath("console"), "")


async def page(request: Request, node: Node) -> Response:
    return _answer(request, PAGE)


async def asset(request: Request, node: Node) -> Response:
    values = request.values
    return _answer(request, "/".join(values[part] for part in ("folder", "name") if part in values))


def _listed(folder: Traversable, prefix: str) -> dict[str, Asset]:
    found: dict[str, Asset] = {}
    for file in folder.iterdir():
        suffix = f".{file.name.rpartition('.')[2]}"
        if file.is_dir():
            found |= _listed(file, f"{prefix}{file.name}/")
        elif suffix in CONTENT_TYPES:
            found[prefix + file.name] = Asset.of(file, suffix)
    return found


def _answer(request: Request, path: str) -> Response:
    found = assets().get(path)
    if found is None:
        raise RouteNotFound
    headers = {**HEADERS, "etag": found.etag}
    if is_known(request, found.etag):
        return Response(status=304, headers=headers)
    return Response(content_type=found.content_type, body=found.body, headers=headers)


_ASSET: Final = ResponseSpec(content_type="application/octet-stream")

ROUTES: Final = (
    Route(
        method="GET", path="/", name="page", summary="The console", handler=respond_with(page),
        response=ResponseSpec(content_type="text/html"),
    ),
    Route(
        method="GET", path="/assets/{name}", name="asset", summary="A file of the console", handler=respond_with(asset),
        response=_ASSET,
    ),
    Route(
        method="GET", path="/assets/{folder}/{name}", name="assetInFolder", summary="A file in a folder of the console",
        handler=respond_with(asset), response=_ASSET,
    ),
)  # fmt: skip
