"""`/values`: shared values by namespace and key; each write makes a version."""

from typing import Any, Final, Literal

from msgspec import Struct, defstruct

from tape.core import codec
from tape.core.caller import Caller
from tape.core.errors import NotFound, UsageError, quoted
from tape.core.page import decode_cursor, encode_cursor
from tape.core.value import Value
from tape.operations.rules import Name as OptionalName, RequiredName as Name
from tape.operations.value_history import history
from tape.operations.values import DeleteValue, GetValue, WriteValue
from tape.server.http.entity_tag import ANY, VersionTag, is_known, version_of
from tape.server.http.request import Request
from tape.server.http.response import Response
from tape.server.http.route import Parameter, ResponseSpec, Route, respond_with
from tape.server.node import Node
from tape.server.routes.bounded import fit
from tape.server.routes.parameters import CURSOR, IDEMPOTENCY_KEY, KNOWN_TAG, LIMIT, TRACEPARENT, key_of, limit_of
from tape.server.routes.schemas import parse_body
from tape.wire.result_json import output_type, plain

DEFAULT_LIMIT: Final = 100
_KNOWN: Final = ResponseSpec(schema=output_type(Value))
_Version = defstruct("ValueVersion", [("prev_version", int | None)], bases=(output_type(Value),), kw_only=True)


class NewValue(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A value to write."""

    value: Any
    writer: OptionalName = ""


class ValueVersions(Struct, frozen=True, kw_only=True):
    """The newest versions in ascending order; `next_cursor` leads to older ones, and is empty after the oldest."""

    versions: list[_Version]  # type: ignore[valid-type]
    next_cursor: str


async def get_value(request: Request, node: Node) -> Response:
    """The newest version; 404 for a deleted value."""
    found = await node.operations.call(GetValue(**_names(request)))
    if found.deleted:
        raise _missing(found)
    tag = _tag(found)
    return Response(status=304, headers={"etag": tag}) if is_known(request, tag) else _answer(found)


async def put_value(request: Request, node: Node) -> Response:
    """Writes the next version; with `If-Match` only over the version that the caller has read."""
    new: NewValue = parse_body(await request.json(), NewValue)
    writer = new.writer or request.header("x-client-id") or ""
    write = WriteValue(
        **_names(request), value_json=codec.encode(new.value), if_version=_expected_version(request), writer=writer,
        if_exists=(request.header("if-match") or "").strip() == ANY, call_key=key_of(request),
    )  # fmt: skip
    written = await node.operations.call(write, Caller(trace=request.trace))
    return _answer(written)


async def delete_value(request: Request, node: Node) -> Response:
    """Writes a tombstone, which is a version too; 404 for a value that never existed."""
    delete = DeleteValue(
        **_names(request), if_version=_expected_version(request), writer=request.header("x-client-id") or "",
        call_key=key_of(request),
    )  # fmt: skip
    tombstone = (await node.operations.call(delete, Caller(trace=request.trace))).value
    if tombstone.version == 0:
        raise _missing(tombstone)
    return _answer(tombstone)


async def value_history(request: Request, node: Node) -> Response:
    """The newest versions in ascending order, each with the version before it; the cursor leads to older ones."""
    names, limit = _names(request), limit_of(request, DEFAULT_LIMIT)
    question = f"history {names['namespace']}/{names['key']}"
    (before,) = decode_cursor(request.parameter("cursor") or "", int, question=question) or (None,)
    if node.ledgers is None:
        raise UsageError("this store has no ledgers; serve a sqlite:///, postgresql:// or memory:// store")
    changes = await history(node.ledgers, **names, limit=limit, before=None if before is None else int(before))
    if not changes and before is None:
        raise NotFound("there never was such a value")
    versions = fit({**plain(each.value), "prev_version": each.prev_version} for each in reversed(changes))[::-1]
    oldest = versions[0]["version"] if versions else 1
    rest = encode_cursor((oldest,), question) if oldest > 1 else ""
    return Response.json({"versions": versions, "next_cursor": rest})


def _names(request: Request) -> dict[str, str]:
    return {name: request.values[name] for name in ("namespace", "key")}


def _expected_version(request: Request) -> int | None:
    """The version that the caller expects: `If-Match` names it, and `If-None-Match: *` means none."""
    match, none = request.header("if-match"), request.header("if-none-match")
    if match is not None and none is not None:
        raise UsageError("If-Match and If-None-Match exclude each other")
    if none is not None and none.strip() != ANY:
        raise UsageError(f"If-None-Match is *, which says that there is no value, not {quoted(none)}")
    if none is not None:
        return 0
    if match is None or match.strip() == ANY:
        return None
    version = version_of(match)
    if version is None:
        raise UsageError(f"If-Match is a version as ETag had it, not {quoted(match)}")
    return version


def _answer(value: Value) -> Response:
    return Response.json(plain(value), etag=_tag(value))


def _tag(value: Value) -> str:
    return f'"{value.version}"'


def _missing(value: Value) -> NotFound:
    name = f"{quoted(value.namespace)[1:-1]}/{quoted(value.key)[1:-1]}"
    if value.version:
        return NotFound(f"value {name} was deleted; its tombstone is version {value.version}")
    return NotFound(f"there never was a value {name}")


_VALUE: Final = (
    Parameter(name="namespace", location="path", schema=Name, description="The value's namespace."),
    Parameter(name="key", location="path", schema=Name, description="The value's key."),
)
_WRITE: Final = (
    *_VALUE,
    Parameter(
        name="If-Match",
        location="header",
        schema=VersionTag,
        description="Write only over this version (its ETag); * is any version.",
    ),
    Parameter(
        name="If-None-Match", location="header", schema=Literal["*"], description="*: write only if there is no value."
    ),
    IDEMPOTENCY_KEY,
    TRACEPARENT,
    Parameter(name="X-Client-Id", location="header", schema=OptionalName, description="The writer."),
)

ROUTES: Final = (
    Route(
        method="GET", path="/values/{namespace}/{key}", name="getValue", summary="Get a value; ETag is its version",
        handler=respond_with(get_value), parameters=(*_VALUE, KNOWN_TAG), response=_KNOWN,
        problems=(400, 404, 503),
    ),
    Route(
        method="PUT", path="/values/{namespace}/{key}", name="putValue", summary="Write the next version",
        handler=respond_with(put_value), parameters=_WRITE, body=NewValue, response=_KNOWN,
        problems=(400, 409, 413, 415, 429, 503),
    ),
    Route(
        method="DELETE", path="/values/{namespace}/{key}", name="deleteValue", summary="Write a tombstone",
        handler=respond_with(delete_value), parameters=_WRITE, response=_KNOWN,
        problems=(400, 404, 409, 429, 503),
    ),
    Route(
        method="GET", path="/values/{namespace}/{key}/history", name="valueHistory",
        summary="The newest versions in ascending order", handler=respond_with(value_history),
        parameters=(*_VALUE, LIMIT, CURSOR), response=ResponseSpec(schema=ValueVersions), problems=(400, 404, 410, 503),
    ),
)  # fmt: skip
