"""How an operation is carried by a procedure of tape.proto: the messages of its request and of its result."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from tape.core.page import Page
from tape.operations.operation import OperationRequest
from tape.wire import tape_pb2 as pb
from tape.wire.message_mapping import NO_NAMES, MessageMapping, Names, build

METHODS: Final = pb.DESCRIPTOR.services_by_name["Tape"].methods_by_name
NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
ZERO_COUNTS: Final = frozenset(
    {
        "decision_index",
        "if_version",
        "n_turns",
        "generation",
        "from_generation",
        "retired",
        "active",
        "grace",
        "handled_active",
        "handled_grace",
    }
)  # in these fields 0 does not stand for the default

Fields = Mapping[str, Any]


class ResultCodec(NamedTuple):
    """Encodes a result as the fields of a response, given the request's message, and decodes a response."""

    encode: Callable[[Any, Any], Fields]
    decode: Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """Carries one operation."""

    name: str
    operation: type[OperationRequest[Any]]
    encode: Callable[[Any], Message]
    decode: Callable[[Any], OperationRequest[Any]]
    result: ResultCodec
    request: type[Message]
    response: type[Message]

    def respond(self, result: Any, request: Message) -> Message:
        """The response of a result."""
        encoded = self.result.encode(result, request)
        return encoded["self"] if "self" in encoded else build(self.response, **encoded)


def procedure(
    operation: type[OperationRequest[Any]],
    result: ResultCodec,
    *,
    name: str = "",
    names: Names = NO_NAMES,
    within: Mapping[str, Names] = MappingProxyType({}),
    write: Callable[[Any], Fields] = lambda _: NOTHING,
    read: Callable[[Any], Fields] = lambda _: NOTHING,
) -> Procedure:
    """A procedure whose messages have the operation's fields, under other `names` where they differ.

    `write` gives fields of the message that are encoded in another way, and `read` fields of the operation that are
    decoded in another way.
    """
    name = name or operation.__name__
    sent = GetMessageClass(METHODS[name].input_type)
    mapping = MessageMapping(operation, sent, names, within, zero_is_default=_optional(operation) - ZERO_COUNTS)
    return Procedure(
        name=name,
        operation=operation,
        encode=lambda request: mapping.message(request, **write(request)),
        decode=lambda message: mapping.value(message, **read(message)),
        result=result,
        request=sent,
        response=GetMessageClass(METHODS[name].output_type),
    )


def _optional(operation: type[OperationRequest[Any]]) -> set[str]:
    known = fields(operation)  # type: ignore[arg-type]  # every request type is a dataclass
    return {each.name for each in known if each.default is not MISSING or each.default_factory is not MISSING}


def record(mapping: MessageMapping[Any, Any]) -> ResultCodec:
    """The response is the record itself."""
    return ResultCodec(lambda result, _: {"self": mapping.message(result)}, mapping.value)


def optional(field: str, mapping: MessageMapping[Any, Any]) -> ResultCodec:
    """A record that may be missing."""

    def encode(result: Any, _: Message) -> Fields:
        return {"found": False} if result is None else {"found": True, field: mapping.message(result)}

    return ResultCodec(encode, lambda message: mapping.value(getattr(message, field)) if message.found else None)


def rows(field: str, mapping: MessageMapping[Any, Any]) -> ResultCodec:
    """The records of a list."""
    return ResultCodec(
        lambda result, _: {field: map(mapping.message, result)},
        lambda message: [mapping.value(each) for each in getattr(message, field)],
    )


def pages(field: str, mapping: MessageMapping[Any, Any]) -> ResultCodec:
    """The records of a page, and the cursor of the next one."""
    return ResultCodec(
        lambda page, _: {field: [mapping.message(each) for each in page.rows], "next_cursor": page.next_cursor},
        lambda message: Page([mapping.value(each) for each in getattr(message, field)], message.next_cursor),
    )


def claim(field: str, mapping: MessageMapping[Any, Any], kind: Callable[..., Any]) -> ResultCodec:
    """A record, and whether the caller holds it now."""
    return ResultCodec(
        lambda result, _: {"acquired": result.is_acquired, field: mapping.message(getattr(result, field))},
        lambda message: kind(**{field: mapping.value(getattr(message, field))}, is_acquired=message.acquired),
    )


def flag(field: str) -> ResultCodec:
    return ResultCodec(lambda result, _: {field: result}, lambda message: getattr(message, field))
