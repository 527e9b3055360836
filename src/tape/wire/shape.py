"""Values as protobuf messages and back: field by field, by the same names but for those that are told."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import timedelta
from enum import Enum, IntEnum
from types import MappingProxyType, UnionType
from typing import Any, Final, Generic, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from google.protobuf.message import Message

from tape.core.errors import UsageError, quoted

V = TypeVar("V")
M = TypeVar("M", bound=Message)

Names = Mapping[str, str]
NO_NAMES: Final[Names] = MappingProxyType({})
_MS: Final = timedelta(milliseconds=1)
_LONGEST_MS: Final = timedelta.max // _MS
_SHAPES: Final[dict[type, "Shape[Any, Any]"]] = {}


class Coder(NamedTuple):
    """How one field is put into a message and taken out of it; where 0 stands for nothing, it is left to a default."""

    put: Callable[[Any], Any]
    take: Callable[[Any], Any]
    is_nothing_at_0: bool = False


class Place(NamedTuple):
    """Where a field of a value stands in a message; a default is for a message that has nothing there."""

    attribute: str
    field: str
    coder: Coder
    may_be_absent: bool
    has_default: bool


class Shape(Generic[V, M]):
    """A value and the message that says it. What lies `within` is told by fields of the same message."""

    def __init__(
        self,
        kind: type[V],
        message: type[M],
        names: Names = NO_NAMES,
        within: Mapping[str, Names] = MappingProxyType({}),
    ) -> None:
        hints = get_type_hints(kind)
        known = message.DESCRIPTOR.fields_by_name
        self.kind, self._message = kind, message
        self._within = {name: _places(hints[name], inner, known) for name, inner in within.items()}
        self._kinds = {name: hints[name] for name in within}
        self._places = _places(kind, names, known, set(within))
        _SHAPES.setdefault(kind, self)

    @property
    def name(self) -> str:
        return self._message.DESCRIPTOR.name

    @property
    def unsaid(self) -> set[str]:
        """What the message does not say of a value."""
        said = {place.attribute for place in self._places} | set(self._within)
        return set(get_type_hints(self.kind)) - said

    def message(self, value: V, **more: Any) -> M:
        """What is said of a value, and more that only the message has."""
        said = _said(self._places, value)
        for name, places in self._within.items():
            said.update(_said(places, getattr(value, name)))
        return say(self._message, **said, **more)

    def value(self, message: M, **more: Any) -> V:
        """The value of a message, with more that the message does not say."""
        inner = {name: self._kinds[name](**_taken(places, message)) for name, places in self._within.items()}
        return self.kind(**{**_taken(self._places, message), **inner, **more})


def say(message: type[M], **said: Any) -> M:
    """A message; what does not fit into its fields is the caller's mistake."""
    try:
        return message(**said)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{message.DESCRIPTOR.name} cannot say this: {quoted(str(error))}") from error


def number(member: Enum | None) -> int:
    """The number of an enum's member on the wire; 0 is none."""
    if member is None:
        return 0
    return int(member) if isinstance(member, IntEnum) else [*type(member)].index(member) + 1


E = TypeVar("E", bound=Enum)


def member(kind: type[E], number: int) -> E:
    """The member of a number; a number that nobody has given is refused."""
    members: list[E] = [*kind]
    if not 1 <= number <= len(members):
        raise UsageError(f"{kind.__name__} is a number from 1 to {len(members)}, not {number}")
    return members[number - 1]


def duration(milliseconds: int) -> timedelta:
    """A time that something takes; one that no calendar holds is refused."""
    if not -_LONGEST_MS < milliseconds < _LONGEST_MS:
        raise UsageError(f"{milliseconds} ms are longer than any time that can be meant")
    return milliseconds * _MS


def _places(kind: type, names: Names, known: Mapping[str, Any], without: Collection[str] = ()) -> tuple[Place, ...]:
    hints = get_type_hints(kind)
    wanted = [(each, names.get(each.name, each.name)) for each in fields(kind) if each.name not in without]
    return tuple(
        Place(each.name, field, _coder(hints[each.name]), known[field].has_presence, _has_default(each))
        for each, field in wanted
        if field in known
    )


def _has_default(field: "Field[Any]") -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


def _said(places: tuple[Place, ...], value: object) -> dict[str, Any]:
    parts = [(place, getattr(value, place.attribute)) for place in places]
    return {place.field: place.coder.put(part) for place, part in parts if part is not None}


def _taken(places: tuple[Place, ...], message: Message) -> dict[str, Any]:
    return {place.attribute: _part(place, message) for place in places if not _is_left_out(place, message)}


def _is_left_out(place: Place, message: Message) -> bool:
    if not place.has_default:
        return False
    if place.may_be_absent:
        return not message.HasField(place.field)
    return place.coder.is_nothing_at_0 and not getattr(message, place.field)


def _part(place: Place, message: Message) -> Any:
    if place.may_be_absent and not message.HasField(place.field):
        return None
    return place.coder.take(getattr(message, place.field))


def _coder(hint: Any) -> Coder:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is UnionType:
        return _coder(next(each for each in arguments if each is not type(None)))
    if origin is tuple:
        item = _coder(arguments[0])
        return Coder(lambda values: [item.put(each) for each in values], lambda said: tuple(map(item.take, said)))
    if origin is not None:
        return Coder(dict, dict)
    return _plain(getattr(hint, "__supertype__", hint))


def _plain(kind: type) -> Coder:
    if issubclass(kind, Enum):
        return Coder(number, lambda said: member(kind, said), is_nothing_at_0=True)
    if issubclass(kind, timedelta):
        return Coder(lambda span: span // _MS, duration, is_nothing_at_0=True)
    if is_dataclass(kind):
        return Coder(lambda value: _SHAPES[kind].message(value), lambda said: _SHAPES[kind].value(said))
    return Coder(lambda value: value, lambda said: said)
