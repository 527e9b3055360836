"""Results of operations as JSON, as HTTP and the command line carry them.

The fields of a record keep their names, but for those in `SHAPES`. A duration is a number of milliseconds, with `_ms`
behind its name, and the fields of `of`, which identifies a record, stand beside the others.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from functools import cache
from operator import attrgetter
from types import MappingProxyType, UnionType
from typing import Any, Final, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from msgspec import Struct

from tape.core import codec
from tape.core.explanation import Explanation
from tape.core.gate import SignalResult
from tape.core.ids import RunId
from tape.core.ledger_diff import LedgerRow
from tape.core.matched import ReactionRecord
from tape.core.page import Page
from tape.core.run import RunRecord
from tape.core.run_detail import RunDetail
from tape.core.value import Value, ValueChange
from tape.operations.fields import may_be_none, without_none
from tape.operations.operation import Operation
from tape.operations.rules import MILLISECOND
from tape.operations.surfaces import plural
from tape.wire.operation_json import Json, is_json, make_struct, plain_type


class RecordShape(NamedTuple):
    """How a record differs in JSON: fields whose own fields stand beside the others, names, and properties.

    In a list it has only the members `listed`, if there are any.
    """

    flat: tuple[str, ...] = ("of",)
    names: Mapping[str, str] = MappingProxyType({})
    properties: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()


ROWS: Final = {"outbox": "rows"}
_PLAIN: Final = frozenset({str, int, float, bool, type(None)})
USUAL: Final = RecordShape()
SHAPES: Final[Mapping[Any, RecordShape]] = MappingProxyType(
    {
        ReactionRecord: RecordShape(("reaction",), {"is_removed": "deleted", "cursor": "last_global_seq"}),
        Explanation: RecordShape(("judgement",), {"cursor": "last_global_seq"}),
        RunRecord: RecordShape(
            ("meta", "head"),
            properties=("n_events", "status"),
            listed=("run_id", "label", "started_at", "n_events", "status"),
        ),
        RunDetail: RecordShape(("record",)),
        LedgerRow: RecordShape(properties=("is_same",)),
        SignalResult: RecordShape(names={"is_accepted": "accepted"}),
        Value: RecordShape(names={"value_json": "value"}),
        ValueChange: RecordShape(("value",)),
    }
)  # a text of JSON whose other name does not say so is the JSON value


class RecordMember(NamedTuple):
    """A field or property of a record: its attribute, its name in JSON, its type, and how it is written."""

    attribute: str
    name: str
    kind: Any
    is_flat: bool = False
    is_json: bool = False


def write_result(operation: Operation, result: Any) -> Json | None:
    """A result as a JSON object; None if what was asked for does not exist."""
    kind = operation.result
    if result is None or result is False:
        return None
    if isinstance(result, Page):
        return {_rows(operation): [_row(each) for each in result.rows], "next_cursor": result.next_cursor}
    if is_list(kind):
        return {_rows(operation): [_row(each) for each in result]}
    if kind is bool:
        return {"found": True}
    written: Json = {"run_id": result} if _is_run_id(operation) else plain(result)
    return written


@cache
def result_type(operation: Operation) -> type[Struct]:
    """The shape of what `write_result` returns."""
    kind: Any = without_none(operation.result)
    name = f"{operation.request.__name__}Result"
    if is_list(kind):
        (row,) = get_args(kind)
        cursor = [("next_cursor", str)] if get_origin(kind) is Page else []
        members = [(_rows(operation), list[_row_type(row)]), *cursor]  # type: ignore[misc]
        return make_struct(name, operation.summary, members)
    if kind is bool:
        return make_struct(name, operation.summary, [("found", bool)])
    if _is_run_id(operation):
        return make_struct(name, operation.summary, [("run_id", str)])
    return output_type(kind)  # type: ignore[no-any-return]


def _is_run_id(operation: Operation) -> bool:
    """Whether the result is the id of a run; raises if it is no record either."""
    kind: Any = without_none(operation.result)
    if kind is not RunId and not _is_record(kind):
        raise TypeError(f"the result of {operation.name} is {kind}, which is no record, no list, no flag and no run id")
    return kind is RunId


def plain(value: Any) -> Any:
    """A value of the library as JSON has it."""
    kind: Any = type(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, timedelta):
        return value // MILLISECOND
    if _is_record(kind):
        return _writer(kind)(value)
    if isinstance(value, UUID | datetime):
        return str(value) if isinstance(value, UUID) else value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    return value


def _row(record: Any) -> Any:
    """A record as a list has it."""
    kind: Any = type(record)
    return _row_writer(kind)(record)


@cache
def _row_writer(kind: Any) -> Callable[[Any], Any]:
    return _writer(kind, _shape(kind).listed) if _is_record(kind) else plain


@cache
def _writer(kind: Any, listed: tuple[str, ...] = ()) -> Callable[[Any], Json]:
    """Writes records of a type; only members that JSON has in another form are converted."""
    members = [(path, each) for path, each in _flat_members(kind) if not listed or each.name in listed]
    columns = [(each.name, attrgetter(path)) for path, each in members]
    converted = [(each.name, _json_value if each.is_json else plain) for _, each in members if not _is_plain(each)]

    def write(record: Any) -> Json:
        written = {name: get(record) for name, get in columns}
        for name, convert in converted:
            written[name] = convert(written[name])
        return written

    return write


def _is_plain(member: RecordMember) -> bool:
    """Whether JSON has the values of a member as they are."""
    kinds = get_args(member.kind) if get_origin(member.kind) in (Union, UnionType) else (member.kind,)
    return not member.is_json and all(plain_type(each) in _PLAIN for each in kinds)


def _json_value(text: str | None) -> Any:
    return codec.decode(text) if text else None


def _flat_members(kind: Any, before: str = "") -> Iterator[tuple[str, RecordMember]]:
    """The members with their paths; those of flat ones stand in their places."""
    for member in _members(kind):
        if member.is_flat:
            yield from _flat_members(member.kind, f"{before}{member.attribute}.")
        else:
            yield f"{before}{member.attribute}", member


def _shape(kind: Any) -> RecordShape:
    return SHAPES.get(kind, USUAL)


@cache
def _members(kind: Any) -> tuple[RecordMember, ...]:
    shape, hints = _shape(kind), get_type_hints(kind)
    names = [each.name for each in fields(kind) if each.init] if is_dataclass(kind) else kind._fields
    return (
        *(_member(name, hints[name], shape) for name in names),
        *(RecordMember(name, name, get_type_hints(getattr(kind, name).fget)["return"]) for name in shape.properties),
    )


def _member(attribute: str, hint: Any, shape: RecordShape) -> RecordMember:
    name = _name(attribute, hint, shape)
    return RecordMember(attribute, name, hint, attribute in shape.flat, is_json(attribute, name))


def _name(name: str, hint: Any, shape: RecordShape) -> str:
    return f"{name}_ms" if hint is timedelta else shape.names.get(name, name)


def _is_record(kind: Any) -> bool:
    return is_dataclass(kind) or hasattr(kind, "_fields")


def _rows(operation: Operation) -> str:
    return ROWS.get(operation.noun) or plural(operation.noun)


def is_list(kind: Any) -> bool:
    """Whether a result of this type is written as rows."""
    return get_origin(kind) in (Page, Sequence, list)


@cache
def output_type(kind: Any) -> Any:
    """The type of a member of a result."""
    if may_be_none(kind):
        return output_type(without_none(kind)) | None
    if _is_record(kind):
        return make_struct(kind.__name__, kind.__doc__ or "", list(_typed(kind)))
    if get_origin(kind) is tuple:
        return list[output_type(get_args(kind)[0])]  # type: ignore[misc]
    if get_origin(kind) is Literal:
        return kind
    if get_origin(kind) is None:
        return plain_type(kind)
    return dict[str, str] if get_args(kind)[1] is str else dict[str, Any]


def _row_type(kind: Any) -> Any:
    """The type of a record as a list has it."""
    listed = _shape(kind).listed
    members = [each for each in _typed(kind) if each[0] in listed] if listed else []
    return make_struct(f"Listed{kind.__name__}", kind.__doc__ or "", members) if listed else output_type(kind)


def _typed(kind: Any) -> Iterator[tuple[str, Any]]:
    for _, member in _flat_members(kind):
        if member.is_json:
            yield member.name, Any
        else:
            yield member.name, int if member.kind is timedelta else output_type(member.kind)
