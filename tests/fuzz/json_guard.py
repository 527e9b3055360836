"""Fuzz target: JSON from outside."""

import json

from tape.core import codec
from tape.core.errors import TapeError, UsageError
from tape.operations.catalogue import OPERATIONS
from tape.operations.operation import Operation
from tape.wire import strict_json
from tape.wire.operation_json import request_of, request_type
from tests.fuzz.inputs import text

BY_NAME = {each.name: each for each in OPERATIONS}


def json_text(data: bytes) -> None:
    """Text is refused, or a value whose text is a normal form and which every other reader of JSON agrees on."""
    try:
        value = codec.decode(data)
    except TapeError:
        return
    written = codec.encode(value)
    assert _same(codec.decode(written), value) and _same(codec.parse(written), value)
    assert codec.encode(codec.decode(written)) == written
    assert _same(json.loads(data), value)


def _same(one: object, other: object) -> bool:
    """Whether two values are equal with the same types: 1, 1.0 and True are three, and so are 0.0 and -0.0."""
    return repr(one) == repr(other)


def request_json(data: bytes) -> None:
    """The body of an operation is refused with a UsageError, or a request, twice the same."""
    name, _, body = text(data).partition("\n")
    operation = BY_NAME.get(name)
    if operation is None:
        return
    try:
        value = codec.decode_request(body.encode("utf-8", "surrogateescape"), codec.MAX_BYTES)
        found = _request(operation, value)
    except (UsageError, TapeError):
        return
    assert isinstance(found, operation.request)
    assert _request(operation, codec.decode(codec.encode(value))) == found


def _request(operation: Operation, value: codec.JsonValue) -> object:
    given = strict_json.convert(value, request_type(operation))
    return request_of(operation, {name: getattr(given, name) for name in given.__struct_fields__})
