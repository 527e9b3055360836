"""Every procedure by its name, as the .proto has them, and what is around each: its request, its caller, its errors."""

import re
from collections.abc import Awaitable, Callable, Mapping
from types import ModuleType
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from tape.core.errors import UsageError
from tape.server.grpc import (
    budgets,
    decisions,
    dispatch,
    effects,
    events,
    gates,
    obligations,
    reactions,
    runs,
    sessions,
    streams,
    tasks,
    timers,
    values,
)
from tape.server.grpc.caller import caller_of
from tape.server.grpc.hall import Hall
from tape.server.grpc.refusal import refuse, status_of
from tape.wire import tape_pb2 as pb

SERVICE: Final = pb.DESCRIPTOR.services_by_name["Tape"]
ROOMS: Final[tuple[ModuleType, ...]] = (
    runs, decisions, effects, dispatch, obligations, budgets, gates, timers, values, sessions, events, reactions,
    tasks, streams,
)  # fmt: skip

METHOD: Final = "gRPC"
OK: Final = "OK"

_WORD_START: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

Handler = Callable[..., Awaitable[Any]]


def handlers(hall: Hall) -> Mapping[str, Any]:
    """What gRPC calls for each procedure."""
    return {method.name: _handler(hall, method) for method in SERVICE.methods}


def procedure(name: str) -> Handler:
    """The function of a procedure: the same words, in the room it belongs to."""
    word = _WORD_START.sub("_", name).lower()
    found: list[Handler] = [getattr(room, word) for room in ROOMS if hasattr(room, word)]
    (handler,) = found
    return handler


def _handler(hall: Hall, method: Any) -> Any:
    work, parse = procedure(method.name), _parser(GetMessageClass(method.input_type))
    if method.server_streaming:
        return grpc.unary_stream_rpc_method_handler(_streaming(hall, method.name, work, parse))
    return grpc.unary_unary_rpc_method_handler(_answering(hall, method.name, work, parse))


def _answering(hall: Hall, name: str, work: Handler, parse: Callable[[bytes], Message]) -> Handler:
    async def call(body: bytes, context: Any) -> bytes | None:
        try:
            response: Message = await work(hall, parse(body), caller_of(context.invocation_metadata()))
            answer = response.SerializeToString()
        except Exception as error:  # noqa: BLE001 - whatever it is, it becomes a status
            hall.meters.requests.add(1, METHOD, name, status_of(error))
            await refuse(context, error, name)
            return None
        hall.meters.requests.add(1, METHOD, name, OK)
        return answer

    return call


def _streaming(hall: Hall, name: str, work: Handler, parse: Callable[[bytes], Message]) -> Handler:
    async def stream(body: bytes, context: Any) -> None:
        try:
            await work(hall, parse(body), context)
            hall.meters.requests.add(1, METHOD, name, OK)
        except Exception as error:  # noqa: BLE001 - whatever it is, it becomes a status
            hall.meters.requests.add(1, METHOD, name, status_of(error))
            await refuse(context, error, name)

    return stream


def _parser(kind: type[Message]) -> Callable[[bytes], Message]:
    def parse(body: bytes) -> Message:
        try:
            return kind.FromString(body)
        except DecodeError:
            raise UsageError(f"the bytes are no {kind.DESCRIPTOR.name}") from None

    return parse
