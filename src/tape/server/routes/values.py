"""`/values`: what is known under names, with a version for each time it was said."""

import re
from typing import Any, Final

from tape.core import codec
from tape.core.caller import Caller
from tape.core.errors import NotFound, UsageError, quoted
from tape.core.value import Value
from tape.core.value_history import history
from tape.server.http.request import Request
from tape.server.http.response import Response
from tape.server.node import Node
from tape.server.routes.ledger_shapes import KnownValue, KnownValues, NewValue, ValueVersion, ValueVersions
from tape.server.routes.ledgers import ledgers_of
from tape.server.routes.shapes import shaped

USUAL: Final = 100
MOST: Final = 1000
_TAG: Final = re.compile(r'"?([0-9]{1,18})"?')


async def get_value(request: Request, node: Node) -> Response:
    """The newest version; what was deleted is not found."""
    found = await ledgers_of(node).values.find(*_names(request))
    if found.deleted:
        raise _missing(found)
    return _answer(found)


async def put_value(request: Request, node: Node) -> Response:
    """Writes the next version: over any, or only over the one that the caller has seen."""
    asked: NewValue = shaped(await request.json(), NewValue)
    writer = asked.writer or request.header("x-client-id") or ""
    written = await ledgers_of(node).values.write(
        *_names(request), codec.encode(asked.value), _seen(request), writer,
        request.header("idempotency-key"), Caller(trace=request.trace),
    )  # fmt: skip
    return _answer(written)


async def delete_value(request: Request, node: Node) -> Response:
    """Writes a tombstone, which is a version too; what was never there is not found."""
    buried = await ledgers_of(node).values.delete(
        *_names(request), _seen(request), request.header("x-client-id") or "",
        request.header("idempotency-key"), Caller(trace=request.trace),
    )  # fmt: skip
    if buried.version == 0:
        raise _missing(buried)
    return _answer(buried)


async def list_values(request: Request, node: Node) -> Response:
    found = await ledgers_of(node).values.listed(request.values["namespace"])
    return Response.json(KnownValues(values=[_known(value) for value in found]))


async def value_history(request: Request, node: Node) -> Response:
    """The newest versions, the oldest of them first, each with the one before."""
    changes = await history(ledgers_of(node).values, *_names(request), _limit(request.parameter("limit")))
    if not changes:
        raise NotFound("there never was such a value")
    told = [ValueVersion(**_facts(each.value), prev_version=each.prev_version) for each in changes]
    return Response.json(ValueVersions(versions=told))


def _names(request: Request) -> tuple[str, str]:
    return request.values["namespace"], request.values["key"]


def _seen(request: Request) -> int | None:
    """Which version the caller decided on: `If-Match` names it, and `If-None-Match: *` says that there is none."""
    match, none = request.header("if-match"), request.header("if-none-match")
    if match is not None and none is not None:
        raise UsageError("If-Match and If-None-Match exclude each other")
    if none is not None and none.strip() != "*":
        raise UsageError(f"If-None-Match is *, which says that there is no value, not {quoted(none)}")
    if none is not None:
        return 0
    if match is None or match.strip() == "*":
        return None
    tag = _TAG.fullmatch(match.strip())
    if tag is None:
        raise UsageError(f"If-Match is a version as ETag had it, not {quoted(match)}")
    return int(tag[1])


def _answer(value: Value) -> Response:
    return Response.json(_known(value), etag=f'"{value.version}"')


def _known(value: Value) -> KnownValue:
    return KnownValue(**_facts(value))


def _facts(value: Value) -> dict[str, Any]:
    names = ("namespace", "key", "version", "value", "writer", "ts_ms", "deleted")
    return {name: getattr(value, name) for name in names}


def _missing(value: Value) -> NotFound:
    name = f"{quoted(value.namespace)[1:-1]}/{quoted(value.key)[1:-1]}"
    if value.version:
        return NotFound(f"value {name} was deleted; its tombstone is version {value.version}")
    return NotFound(f"there never was a value {name}")


def _limit(text: str | None) -> int:
    if text is None:
        return USUAL
    if not (text.isascii() and text.isdecimal() and len(text) <= 5) or not 1 <= int(text) <= MOST:
        raise UsageError(f"limit is 1 to {MOST:,}, not {quoted(text)}")
    return int(text)
