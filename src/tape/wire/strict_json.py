"""Converts JSON to a schema: a field that it does not have is refused with the name that was probably meant."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec import inspect

from tape.core.codec import JsonValue
from tape.core.errors import UsageError, quoted
from tape.core.near_miss import near_miss

_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*?)`(?: - at `\$(.*)`)?", re.DOTALL)
_STEP: Final = re.compile(r"\.(\w+)|\[[^]]*\]")


def convert(value: JsonValue, schema: Any) -> Any:
    """The value as its schema has it; a UsageError names the field that does not fit."""
    try:
        return _convert(value, schema)
    except msgspec.ValidationError as error:
        raise UsageError(_sentence(str(error), schema)) from None


def _convert(value: JsonValue, schema: Any) -> Any:
    try:
        return msgspec.convert(value, schema)
    except msgspec.ValidationError as error:
        if "`float`" not in str(error):
            raise
    return msgspec.convert(_with_whole_numbers(value, inspect.type_info(schema)), schema)


def _with_whole_numbers(value: Any, kind: inspect.Type) -> Any:
    """The value with ints for floats such as 2.0 where the schema has integers: to JSON Schema both are integers."""
    match kind:
        case inspect.IntType() if isinstance(value, float) and value.is_integer():
            return int(value)
        case inspect.UnionType():
            for each in kind.types:
                value = _with_whole_numbers(value, each)
        case inspect.ListType() if isinstance(value, list):
            return [_with_whole_numbers(each, kind.item_type) for each in value]
        case inspect.StructType() if isinstance(value, dict):
            kinds = {field.encode_name: field.type for field in kind.fields}
            return {
                name: _with_whole_numbers(each, kinds[name]) if name in kinds else each for name, each in value.items()
            }
    return value


def _sentence(text: str, schema: Any) -> str:
    unknown = _UNKNOWN.fullmatch(text)
    if unknown is None:
        return f"the body has another shape: {quoted(text)[1:-1]}"
    name, path = unknown[1], unknown[2] or ""
    known = {name for struct in _at(inspect.type_info(schema), _STEP.findall(path)) for name in struct}
    place = f" at {path.lstrip('.')}" if path else ""
    return f"the body has no field {quoted(name)[1:-1]}{place}; {near_miss(name, known)}"


def _at(kind: inspect.Type, steps: Sequence[str]) -> Iterator[list[str]]:
    """The names of the fields of the objects at a path; a step without a name is an item of a list."""
    match kind:
        case inspect.UnionType():
            for each in kind.types:
                yield from _at(each, steps)
        case inspect.StructType() if not steps:
            yield [field.encode_name for field in kind.fields]
        case inspect.StructType():
            for field in kind.fields:
                if field.encode_name == steps[0]:
                    yield from _at(field.type, steps[1:])
        case inspect.ListType() if steps and not steps[0]:
            yield from _at(kind.item_type, steps[1:])
