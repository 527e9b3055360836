"""Reads the `cel.expr.CheckedExpr` that the CEL compiler serialises into a syntax tree.

Eight small messages do not justify the protobuf runtime; the numbers are those of cel-spec's checked.proto and
syntax.proto.
"""

import struct
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable
from typing import ClassVar

from tape.core.errors import UsageError
from tape.core.predicate.ast import (
    Call,
    Comprehension,
    Const,
    CreateList,
    CreateMap,
    Expression,
    Ident,
    Literal,
    Select,
)

_PRIMITIVES = {1: "bool", 2: "int", 3: "uint", 4: "double", 5: "string", 6: "bytes"}
_WELL_KNOWN = {1: "dyn", 2: "timestamp", 3: "duration"}
_COMPOSITES = {2: "null", 6: "list", 7: "map", 11: "type"}


def read_checked(serialized: bytes) -> Expression:
    """The tree of a checked expression, as `Expression.serialize()` gives it."""
    checked = _Message(serialized).message(2)  # the value of a google.protobuf.Any
    return _Reader(checked).expression(checked.message(4))


class _Message:
    """One protobuf message: its numbers, and its chunks of bytes, by field."""

    def __init__(self, data: bytes) -> None:
        self._numbers: dict[int, int] = {}
        self._chunks: defaultdict[int, list[bytes]] = defaultdict(list)
        at = 0
        while at < len(data):
            key, at = _varint(data, at)
            at = self._take(key >> 3, key & 7, data, at)

    def _take(self, field: int, wire_type: int, data: bytes, at: int) -> int:
        size = 8 if wire_type == 1 else 4
        if wire_type in {0, 2}:
            size, at = _varint(data, at)
        if wire_type == 0:
            self._numbers[field] = size
            return at
        self._chunks[field].append(data[at : at + size])
        return at + size

    def __contains__(self, field: int) -> bool:
        return field in self._numbers or field in self._chunks

    def number(self, field: int) -> int:
        return self._numbers.get(field, 0)

    def signed(self, field: int) -> int:
        number = self.number(field)
        return number - (1 << 64) if number >> 63 else number

    def chunk(self, field: int) -> bytes:
        return self._chunks[field][-1] if field in self._chunks else b""

    def text(self, field: int) -> str:
        return self.chunk(field).decode()

    def texts(self, field: int) -> tuple[str, ...]:
        return tuple(chunk.decode() for chunk in self._chunks.get(field, ()))

    def message(self, field: int) -> "_Message":
        return _Message(self.chunk(field))

    def messages(self, field: int) -> "list[_Message]":
        return [_Message(chunk) for chunk in self._chunks.get(field, ())]

    def packed(self, field: int) -> list[int]:
        data, at, numbers = self.chunk(field), 0, list[int]()
        while at < len(data):
            number, at = _varint(data, at)
            numbers.append(number)
        return numbers


class _Reader:
    """Turns `Expr` messages into nodes, using the types, overloads and positions stored beside them."""

    def __init__(self, checked: _Message) -> None:
        source = checked.message(5)
        self._overloads = {item.number(1): item.message(2).texts(3) for item in checked.messages(2)}
        self._types = {item.number(1): _type(item.message(2)) for item in checked.messages(3)}
        self._offsets = {item.number(1): item.number(2) for item in source.messages(4)}
        self._line_starts = [0, *source.packed(3)]

    def expression(self, expr: _Message) -> Expression:
        for field, read in self._READERS.items():
            if field in expr:
                number = expr.number(2)
                return read(self, expr.message(field), number, self._position(number), self._types.get(number, "dyn"))
        raise UsageError("the CEL compiler produced an expression of a kind that Tape does not know")

    def _position(self, number: int) -> str:
        offset = self._offsets.get(number, 0)
        line = bisect_right(self._line_starts, offset)
        return f"{line}:{offset - self._line_starts[line - 1] + 1}"

    def _const(self, const: _Message, _: int, position: str, kind: str) -> Const:
        return Const(position=position, type=kind, value=_literal(const))

    def _ident(self, ident: _Message, _: int, position: str, kind: str) -> Ident:
        return Ident(position=position, type=kind, name=ident.text(1))

    def _select(self, select: _Message, _: int, position: str, kind: str) -> Select:
        operand = self.expression(select.message(1))
        is_test = bool(select.number(3))
        return Select(position=position, type=kind, operand=operand, field=select.text(2), is_test=is_test)

    def _call(self, call: _Message, number: int, position: str, kind: str) -> Call:
        receiver = [call.message(1)] if 1 in call else []
        return Call(
            position=position,
            type=kind,
            function=call.text(2),
            operands=tuple(map(self.expression, [*receiver, *call.messages(3)])),
            overloads=self._overloads.get(number, ()),
            is_method=bool(receiver),
        )

    def _list(self, create: _Message, _: int, position: str, kind: str) -> CreateList:
        return CreateList(position=position, type=kind, elements=tuple(map(self.expression, create.messages(1))))

    def _map(self, create: _Message, _: int, position: str, kind: str) -> CreateMap:
        if 1 in create:
            raise UsageError(f"predicate at {position}: a predicate may not build {create.text(1)!r} messages")
        entries = [(self.expression(item.message(3)), self.expression(item.message(4))) for item in create.messages(2)]
        return CreateMap(position=position, type=kind, entries=tuple(entries))

    def _comprehension(self, loop: _Message, _: int, position: str, kind: str) -> Comprehension:
        return Comprehension(
            position=position,
            type=kind,
            variable=loop.text(1),
            range=self.expression(loop.message(2)),
            accumulator=loop.text(3),
            start=self.expression(loop.message(4)),
            condition=self.expression(loop.message(5)),
            step=self.expression(loop.message(6)),
            result=self.expression(loop.message(7)),
        )

    _READERS: ClassVar[dict[int, Callable[["_Reader", _Message, int, str, str], Expression]]] = {
        3: _const,
        4: _ident,
        5: _select,
        6: _call,
        7: _list,
        8: _map,
        9: _comprehension,
    }


def _type(kind: _Message) -> str:
    if 3 in kind:
        return _PRIMITIVES[kind.number(3)]
    if 5 in kind:
        return _WELL_KNOWN[kind.number(5)]
    return next((name for field, name in _COMPOSITES.items() if field in kind), "dyn")


def _literal(const: _Message) -> Literal:
    readers: dict[int, Callable[[], Literal]] = {
        2: lambda: bool(const.number(2)),
        3: lambda: const.signed(3),
        4: lambda: const.number(4),
        5: lambda: float(struct.unpack("<d", const.chunk(5))[0]),
        6: lambda: const.text(6),
        7: lambda: const.chunk(7),
    }
    return next((read() for field, read in readers.items() if field in const), None)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
