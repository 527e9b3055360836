"""Maps values to protobuf messages and back, field by field; names that differ are given."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum, IntEnum
from functools import cache
from types import MappingProxyType, UnionType
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from google.protobuf.message import Message

from tape.core import codec
from tape.core.errors import UsageError, quoted

V = TypeVar("V")
M = TypeVar("M", bound=Message)

Names = Mapping[str, str]
NO_NAMES: Final[Names] = MappingProxyType({})
_MS: Final = timedelta(milliseconds=1)
_LONGEST_MS: Final = timedelta.max // _MS
_CODECS: Final[dict[type, "FieldCodec"]] = {}  # of records inside others


class FieldCodec(NamedTuple):
    """Converts one field to a message and back; if `is_none_at_0`, a 0 in the message means the field's default."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]
    is_none_at_0: bool = False


class FieldMapping(NamedTuple):
    """Maps an attribute of a value to a field of a message."""

    attribute: str
    field: str
    codec: FieldCodec
    may_be_absent: bool
    has_default: bool


class MessageMapping(Generic[V, M]):
    """Maps a dataclass or named tuple to a message; values `within` it are mapped to fields of the same message."""

    def __init__(
        self,
        kind: type[V],
        message: type[M],
        names: Names = NO_NAMES,
        within: Mapping[str, Names] = MappingProxyType({}),
        *,
        zero_is_default: Collection[str] = (),
    ) -> None:
        hints = get_type_hints(kind)
        known = message.DESCRIPTOR.fields_by_name
        self.kind, self._message, self._zero_is_default = kind, message, frozenset(zero_is_default)
        self._within = {name: _field_mappings(hints[name], inner, known) for name, inner in within.items()}
        self._kinds = {name: hints[name] for name in within}
        self._fields = _field_mappings(kind, names, known, set(within))
        use_codec(kind, self.message, self.value)

    @property
    def name(self) -> str:
        return self._message.DESCRIPTOR.name

    @property
    def unmapped(self) -> set[str]:
        """The attributes that the message has no field for."""
        mapped = {mapping.attribute for mapping in self._fields} | set(self._within)
        return set(get_type_hints(self.kind)) - mapped

    def message(self, value: V, **more: Any) -> M:
        """The message of a value; `more` are fields that the value does not have, or that replace its own."""
        encoded = _encode(self._fields, value)
        for name, mappings in self._within.items():
            encoded.update(_encode(mappings, getattr(value, name)))
        encoded.update(more)
        return build(self._message, **encoded)

    def value(self, message: M, **more: Any) -> V:
        """The value of a message; `more` are attributes that the message does not have."""
        decoded = _decode(self._fields, message, self._zero_is_default)
        for name, mappings in self._within.items():
            decoded[name] = self._kinds[name](**_decode(mappings, message))
        decoded.update(more)
        return self.kind(**decoded)


def use_codec(kind: type, encode: Callable[[Any], Any], decode: Callable[[Any], Any]) -> None:
    """Converts records of this type inside others, unless another conversion was named first."""
    _CODECS.setdefault(kind, FieldCodec(encode, decode))


def build(message: type[M], **fields: Any) -> M:
    """A message; raises `UsageError` for a value that does not fit its field."""
    try:
        return message(**fields)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{message.DESCRIPTOR.name} cannot say this: {quoted(str(error))}") from error


def number(member: Enum | None) -> int:
    """The number of an enum's member on the wire; 0 is None."""
    return 0 if member is None else _numbers(type(member))[member]


@cache
def _numbers(kind: type[Enum]) -> dict[Enum, int]:
    return {each: int(each) if isinstance(each, IntEnum) else place for place, each in enumerate(kind, 1)}


E = TypeVar("E", bound=Enum)


def member(kind: type[E], given: int) -> E:
    """The member of a number; raises for an unknown number."""
    known: dict[int, E] = _members(kind)
    if given not in known:
        raise UsageError(
            f"{kind.__name__} is {', '.join(f'{n} ({each.name.lower()})' for n, each in known.items())}, not {given}"
        )
    return known[given]


@cache
def _members(kind: type[E]) -> dict[int, E]:
    return {number(each): each for each in kind}


def duration(milliseconds: int) -> timedelta:
    """A duration; raises if a timedelta cannot hold it."""
    if not -_LONGEST_MS < milliseconds < _LONGEST_MS:
        raise UsageError(f"{milliseconds} ms are longer than any time that can be meant")
    return milliseconds * _MS


def _field_mappings(
    kind: type, names: Names, known: Mapping[str, Any], without: Collection[str] = ()
) -> tuple[FieldMapping, ...]:
    hints = get_type_hints(kind)
    wanted = [(name, names.get(name, name), has) for name, has in _own_fields(kind).items() if name not in without]
    return tuple(
        FieldMapping(name, field, _codec_of(hints[name]), known[field].has_presence, has_default)
        for name, field, has_default in wanted
        if field in known
    )


def _own_fields(kind: Any) -> dict[str, bool]:
    """The fields of a record, and whether they have a default."""
    if is_dataclass(kind):
        return {each.name: _has_default(each) for each in fields(kind) if each.init}
    return {name: name in kind._field_defaults for name in kind._fields}


def _has_default(field: "Field[Any]") -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


def _encode(mappings: tuple[FieldMapping, ...], value: object) -> dict[str, Any]:
    encoded = {}
    for attribute, field, codec_of_field, _, _ in mappings:
        part = getattr(value, attribute)
        if part is not None:
            encoded[field] = codec_of_field.encode(part)
    return encoded


def _decode(
    mappings: tuple[FieldMapping, ...], message: Message, zero_is_default: Collection[str] = ()
) -> dict[str, Any]:
    """The attributes that differ from their defaults."""
    decoded = {}
    for mapping in mappings:
        part = _part(mapping, message)
        if part is not MISSING and (part or mapping.attribute not in zero_is_default):
            decoded[mapping.attribute] = part
    return decoded


def _part(mapping: FieldMapping, message: Message) -> Any:
    """The attribute; MISSING if the message leaves it to its default."""
    _, field, codec_of_field, may_be_absent, has_default = mapping
    if may_be_absent and not message.HasField(field):
        return MISSING if has_default else None
    part = getattr(message, field)
    if not part and has_default and codec_of_field.is_none_at_0 and not may_be_absent:
        return MISSING
    return codec_of_field.decode(part)


def _codec_of(hint: Any) -> FieldCodec:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (UnionType, Union):
        return _codec_of(next(each for each in arguments if each is not type(None)))
    if origin is tuple:
        item = _codec_of(arguments[0])
        return FieldCodec(
            lambda values: [item.encode(each) for each in values], lambda field: tuple(map(item.decode, field))
        )
    if origin is not None and origin is not Literal:
        return FieldCodec(dict, dict) if arguments[1] is str else FieldCodec(_encode_json, codec.decode)
    return _plain(str if origin is Literal else getattr(hint, "__supertype__", hint))


def _encode_json(value: Mapping[str, Any]) -> str:
    return codec.encode(dict(value))


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise UsageError(f"an event's id is a UUID, not {quoted(text)}") from None


def _plain(kind: type) -> FieldCodec:
    if issubclass(kind, Enum):
        return FieldCodec(number, lambda field: member(kind, field), is_none_at_0=True)
    if issubclass(kind, timedelta):
        return FieldCodec(lambda span: span // _MS, duration, is_none_at_0=True)
    if kind is float:
        return FieldCodec(float, float)
    if issubclass(kind, UUID):
        return FieldCodec(str, _uuid)
    if issubclass(kind, datetime):
        return FieldCodec(datetime.isoformat, datetime.fromisoformat)
    if is_dataclass(kind) or issubclass(kind, tuple):
        return FieldCodec(lambda value: _CODECS[kind].encode(value), lambda field: _CODECS[kind].decode(field))
    return FieldCodec(lambda value: value, lambda field: field)
