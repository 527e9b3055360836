"""Operations as JSON, as HTTP and the command line carry them.

The fields of a request and of a result keep their names. A duration is a number of milliseconds, with `_ms` behind its
name, and the fields of `of`, which identifies a record, stand beside the others.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import msgspec
from msgspec import UNSET, Struct, UnsetType, inspect

from tape.core.errors import UsageError, quoted
from tape.core.page import Page
from tape.operations.fields import EXAMPLES, is_required, may_be_none, rule_of, without_none
from tape.operations.operation import Operation, OperationRequest
from tape.operations.rules import MILLISECOND
from tape.operations.surfaces import PLURALS

Json = dict[str, Any]

_WHOLE: Final = re.compile("(-?[0-9]+)[.]0+")  # to JSON Schema 7.0 is an integer
ROWS: Final = {"outbox": "rows"}


@cache
def request_type(operation: Operation, without: frozenset[str] = frozenset()) -> type[Struct]:
    """The fields of a request; those in a path may be left out."""
    kept = [each for each in _schema(operation.request) if each[0] not in without]
    return _struct(operation.request.__name__, operation.summary, kept, is_sent=True)


def request_of(operation: Operation, given: Mapping[str, Any]) -> OperationRequest[Any]:
    """The request with these fields, whose types were checked; UNSET stands for a default."""
    request: OperationRequest[Any] = _build(operation.request, given)
    return request


def read_text(operation: Operation, given: Mapping[str, Any]) -> Json:
    """Checks fields that came as text: in a path, in a query or with a command."""
    types = {each.name: each.type for each in msgspec.structs.fields(request_type(operation))}
    return {name: _read(name, text, types[name]) for name, text in given.items()}


def type_given(kind: Any) -> Any:
    """The type of a field that comes as text: it can be left out, but not null."""
    kinds = [each for each in get_args(kind) if each not in (UnsetType, NoneType)]
    return kinds[0] if get_origin(kind) in (Union, UnionType) else kind


def _read(name: str, text: Any, kind: Any) -> Any:
    whole = _WHOLE.fullmatch(text) if isinstance(text, str) else None
    try:
        return msgspec.convert(whole[1] if whole and _is_number(kind) else text, type_given(kind), strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(f"{name}: {quoted(str(error))[1:-1]}") from None


def _is_number(kind: Any) -> bool:
    return isinstance(inspect.type_info(type_given(kind)), inspect.IntType)


def example_of(operation: Operation) -> Json:
    """An example of each field that is required, and of the run."""
    found = msgspec.structs.fields(request_type(operation))
    return {each.name: _example(each.name, each.type) for each in found if each.required or each.name == "run_id"}


def _example(name: str, kind: Any) -> Any:
    """The usual example of a field; if it has another set of values, the last one, which is an end."""
    usual = EXAMPLES[name]
    if get_origin(kind) is Literal and usual not in get_args(kind):
        return get_args(kind)[-1]
    if isinstance(kind, type) and issubclass(kind, Enum) and usual not in {each.value for each in kind}:
        return list(kind)[-1].value
    return usual


def write_result(operation: Operation, result: Any) -> Json | None:
    """A result as a JSON object; None if what was asked for does not exist."""
    kind = operation.result
    if result is None:
        return None
    if isinstance(result, Page):
        return {_rows(operation): [plain(each) for each in result.rows], "next_cursor": result.next_cursor}
    if is_list(kind):
        return {_rows(operation): [plain(each) for each in result]}
    if kind is bool:
        return {"found": result}
    written = plain(result)
    return written if isinstance(written, dict) else {"run_id": written}


@cache
def result_type(operation: Operation) -> type[Struct]:
    """The shape of what `write_result` returns."""
    kind: Any = without_none(operation.result)
    name = f"{operation.request.__name__}Result"
    if is_list(kind):
        (row,) = get_args(kind)
        cursor = [("next_cursor", str)] if get_origin(kind) is Page else []
        return _struct(name, operation.summary, [(_rows(operation), list[_output(row)]), *cursor])  # type: ignore[misc]
    if kind is bool:
        return _struct(name, operation.summary, [("found", bool)])
    if _is_record(kind):
        return _output(kind)  # type: ignore[no-any-return]
    return _struct(name, operation.summary, [("run_id", str)])


def plain(value: Any) -> Any:
    """A value of the library as JSON has it."""
    if _is_record(type(value)):
        return dict(_members(value))
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, UUID | datetime):
        return str(value) if isinstance(value, UUID) else value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    return value


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    for field in type(value).__dataclass_fields__.values():
        if not field.init:
            continue
        member = getattr(value, field.name)
        if field.name == "of":
            yield from _members(member)
        elif isinstance(member, timedelta):
            yield f"{field.name}_ms", member // MILLISECOND
        else:
            yield field.name, plain(member)


def _is_record(kind: Any) -> bool:
    return is_dataclass(kind)


def _rows(operation: Operation) -> str:
    return ROWS.get(operation.noun) or PLURALS.get(operation.noun, f"{operation.noun}s")


def is_list(kind: Any) -> bool:
    """Whether a result of this type is written as rows."""
    return get_origin(kind) in (Page, Sequence, list)


def _build(kind: Any, given: Mapping[str, Any]) -> Any:
    """A dataclass from the fields that were given; its own defaults stand for the others."""
    built: Json = {}
    for name, hint in _hints(kind):
        if name == "of":
            built[name] = _build(hint, given)
        elif hint is timedelta and given.get(f"{name}_ms", UNSET) is not UNSET:
            built[name] = given[f"{name}_ms"] * MILLISECOND
        elif given.get(name, UNSET) is not UNSET:
            built[name] = _value(without_none(hint), given[name])
    return kind(**built)


def _value(hint: Any, given: Any) -> Any:
    if isinstance(given, Struct):
        return _build(hint, msgspec.structs.asdict(given))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint(given)
    return tuple(given) if isinstance(given, list) else given


@cache
def _hints(kind: Any) -> tuple[tuple[str, Any], ...]:
    hints = get_type_hints(kind)
    return tuple((name, hints[name]) for name, field in kind.__dataclass_fields__.items() if field.init)


def _schema(kind: Any) -> Iterator[tuple[Any, ...]]:
    """The fields of a dataclass that is sent to Tape, with what they may hold."""
    for field in fields(kind):
        bare: Any = without_none(field.type)
        name = f"{field.name}_ms" if bare is timedelta else field.name
        schema: Any = rule_of(kind, field).schema
        schema = _sent(schema) if is_dataclass(bare) else schema
        schema = schema | None if may_be_none(field.type) else schema
        if field.name == "of":
            yield from _schema(field.type)
        else:
            yield (name, schema) if is_required(field) else (name, schema | UnsetType, UNSET)


@cache
def _sent(kind: Any) -> type[Struct]:
    return _struct(f"New{kind.__name__}", kind.__doc__ or "", list(_schema(kind)), is_sent=True)


@cache
def _output(kind: Any) -> Any:
    """The type of a member of a result."""
    bare = without_none(kind)
    if _is_record(bare):
        found: Any = _struct(bare.__name__, bare.__doc__ or "", list(_result_fields(bare)))
    elif get_origin(bare) is tuple:
        found = list[_output(get_args(bare)[0])]  # type: ignore[misc]
    elif get_origin(bare) is not None:
        found = dict[str, str] if get_args(bare)[1] is str else dict[str, Any]
    else:
        found = _plain_type(bare)
    return found | None if may_be_none(kind) else found


def _result_fields(kind: Any) -> Iterator[tuple[str, Any]]:
    for name, hint in _hints(kind):
        if name == "of":
            yield from _result_fields(hint)
        else:
            yield (f"{name}_ms", int) if hint is timedelta else (name, _output(hint))


def _plain_type(kind: Any) -> Any:
    """The type behind a NewType."""
    while hasattr(kind, "__supertype__"):
        kind = kind.__supertype__
    return kind


def _struct(name: str, summary: str, members: Sequence[tuple[Any, ...]], *, is_sent: bool = False) -> type[Struct]:
    return msgspec.defstruct(
        name, members, kw_only=True, frozen=True, forbid_unknown_fields=is_sent, namespace={"__doc__": summary}
    )
