"""Requests of operations as JSON, as HTTP and the command line carry them.

The fields of a request keep their names, but for those in `INPUTS`. A duration is a number of milliseconds, with `_ms`
behind its name, and the fields of `of`, which identifies a record, stand beside the others. In a path, in a query and
with a command, a number that has a name is given by its name.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import timedelta
from enum import Enum, IntEnum
from functools import cache
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Struct, UnsetType, inspect

from tape.core import codec
from tape.core.errors import UsageError, quoted
from tape.operations.fields import EXAMPLES, is_required, may_be_none, rule_of, without_none
from tape.operations.gates import SendSignal
from tape.operations.journal_runs import ForkRun
from tape.operations.operation import Operation, OperationRequest
from tape.operations.rules import MILLISECOND

Json = dict[str, Any]

_WHOLE: Final = re.compile("(-?[0-9]+)[.]0+")  # to JSON Schema 7.0 is an integer
INPUTS: Final[Mapping[Any, Mapping[str, str]]] = MappingProxyType(
    {
        ForkRun: {"run_id": "parent_run_id", "mutation_json": "mutation"},
        SendSignal: {"resolution_json": "resolution"},
    }
)  # fields with another name; a text of JSON whose other name does not say so is any JSON value


@cache
def request_type(operation: Operation, without: frozenset[str] = frozenset(), name: str = "") -> type[Struct]:
    """The fields of a request; those in a path may be left out."""
    kept = [each for each in _schema(operation.request) if each[0] not in without]
    return make_struct(name or operation.request.__name__, operation.summary, kept, is_sent=True)


def request_of(operation: Operation, given: Mapping[str, Any]) -> OperationRequest[Any]:
    """The request with these fields, whose types were checked; UNSET stands for a default."""
    request: OperationRequest[Any] = _build(operation.request, given)
    return request


def read_text(operation: Operation, given: Mapping[str, Any]) -> Json:
    """Checks fields that came as text: in a path, in a query or with a command."""
    types = _types(operation)
    return {name: _read(name, text, types[name]) for name, text in given.items()}


@cache
def _types(operation: Operation) -> Mapping[str, Any]:
    """The type of each field of a request, by its name."""
    return {each.name: each.type for each in msgspec.structs.fields(request_type(operation))}


def type_given(kind: Any) -> Any:
    """The type of a field that comes as text: it can be left out, but not null."""
    bare = _bare(kind)
    return Literal[tuple(each.name.lower() for each in bare)] if _is_named_number(bare) else bare


def _bare(kind: Any) -> Any:
    kinds = [each for each in get_args(kind) if each not in (UnsetType, NoneType)]
    return kinds[0] if get_origin(kind) in (Union, UnionType) else kind


def _is_named_number(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, IntEnum)


def _read(name: str, text: Any, kind: Any) -> Any:
    bare, is_text = _bare(kind), isinstance(text, str)
    whole = _WHOLE.fullmatch(text) if is_text else None
    try:
        given = whole[1] if whole and isinstance(inspect.type_info(bare), inspect.IntType) else text
        found = msgspec.convert(given, type_given(kind) if is_text else bare, strict=False)
    except msgspec.ValidationError as error:
        choices = _choices(type_given(kind))
        why = f" is {', '.join(choices)}, not {quoted(text)}" if choices else f": {quoted(str(error))[1:-1]}"
        raise UsageError(f"{name}{why}") from None
    return bare[found.upper()] if is_text and _is_named_number(bare) else found


def _choices(kind: Any) -> list[str]:
    """The values of a field that has only a few."""
    if get_origin(kind) is Literal:
        return [str(each) for each in get_args(kind)]
    return [str(each.value) for each in kind] if isinstance(kind, type) and issubclass(kind, Enum) else []


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


def _build(kind: Any, given: Mapping[str, Any]) -> Any:
    """A dataclass from the fields that were given; its own defaults stand for the others."""
    built: Json = {}
    for name, hint in _hints(kind):
        other = given_name(kind, name)
        if name == "of":
            built[name] = _build(hint, given)
        elif is_json(name, other) and given.get(other, UNSET) is not UNSET:
            built[name] = codec.encode(given[other])
        elif hint is timedelta and given.get(f"{name}_ms", UNSET) is not UNSET:
            built[name] = given[f"{name}_ms"] * MILLISECOND
        elif given.get(other, UNSET) is not UNSET:
            built[name] = _value(without_none(hint), given[other])
    return kind(**built)


def given_name(kind: Any, name: str) -> str:
    """The name of a field in JSON."""
    return INPUTS.get(kind, {}).get(name, name)


def is_json(name: str, other: str) -> bool:
    """Whether a field that is a text of JSON is a JSON value under its other name."""
    return name.endswith("_json") and not other.endswith("_json")


def _value(hint: Any, given: Any) -> Any:
    if given is None:
        return None
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
        name = f"{field.name}_ms" if bare is timedelta else given_name(kind, field.name)
        schema: Any = rule_of(kind, field).schema
        schema = _sent(schema) if is_dataclass(bare) else schema
        schema = schema | None if may_be_none(field.type) else schema
        if field.name == "of":
            yield from _schema(field.type)
        elif is_json(field.name, name):
            yield (name, Any) if is_required(field) else (name, Any, UNSET)
        else:
            yield (name, schema) if is_required(field) else (name, schema | UnsetType, UNSET)


@cache
def _sent(kind: Any) -> type[Struct]:
    return make_struct(f"New{kind.__name__}", kind.__doc__ or "", list(_schema(kind)), is_sent=True)


def plain_type(kind: Any) -> Any:
    """The type behind a NewType."""
    while hasattr(kind, "__supertype__"):
        kind = kind.__supertype__
    return kind


def make_struct(name: str, summary: str, members: Sequence[tuple[Any, ...]], *, is_sent: bool = False) -> type[Struct]:
    return msgspec.defstruct(
        name, members, kw_only=True, frozen=True, forbid_unknown_fields=is_sent, namespace={"__doc__": summary}
    )
