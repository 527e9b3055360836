"""The functions of all procedures by name; around each, its request is parsed, its caller read and its error sent."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from tape.core.caller import Caller
from tape.core.errors import UsageError, quoted
from tape.core.ids import RunId
from tape.server.grpc import streams, unary
from tape.server.grpc.refusal import refuse, status_of
from tape.server.grpc.rpc_context import RpcContext
from tape.wire import tape_pb2 as pb, traceparent
from tape.wire.procedures import PROCEDURES, procedure_of

SERVICE: Final = pb.DESCRIPTOR.services_by_name["Tape"]
MODULES: Final[tuple[ModuleType, ...]] = (streams, unary)
CARRIED: Final = frozenset(each.name for each in PROCEDURES)
WITHOUT_NEXT_SEQ: Final = (pb.RunState, pb.ListRunsResponse)

METHOD: Final = "gRPC"
OK: Final = "OK"
TRACE: Final = "traceparent"
PARENT: Final = "tape-parent-span"
SCHEMA_VERSION: Final = "tape-schema-version"
CAUSE: Final = "tape-cause"

_WORD_START: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

Handler = Callable[..., Awaitable[Any]]


def handlers(rpc: RpcContext) -> Mapping[str, Any]:
    """What gRPC calls for each procedure."""
    return {method.name: _handler(rpc, method) for method in SERVICE.methods}


def procedure(name: str) -> Handler:
    """The function of a procedure: one for all that carry operations, or one of the same name."""
    if name in CARRIED:
        return partial(_call, name)
    word = _WORD_START.sub("_", name).lower()
    found: list[Handler] = [getattr(module, word) for module in MODULES if hasattr(module, word)]
    (handler,) = found
    return handler


async def _call(name: str, rpc: RpcContext, message: Message, caller: Caller) -> Message:
    """Runs the operation that a procedure carries."""
    carried = procedure_of(name, message)
    result = await rpc.operations.call(carried.decode(message), caller)
    response = carried.respond(result, message)
    if isinstance(response, WITHOUT_NEXT_SEQ):
        await _add_next_seq(rpc, [response] if isinstance(response, pb.RunState) else response.runs)
    return response


async def _add_next_seq(rpc: RpcContext, runs: Sequence[pb.RunState]) -> None:
    """Adds the next seq to runs that have none: a run's state does not know it."""
    unknown = [run for run in runs if not run.seq_cursor]
    heads = await rpc.heads([RunId(run.run_id) for run in unknown]) if unknown else {}
    for run in unknown:
        run.seq_cursor = heads[RunId(run.run_id)].last_seq + 1


def _handler(rpc: RpcContext, method: Any) -> Any:
    work, parse = procedure(method.name), _parser(GetMessageClass(method.input_type))
    if method.server_streaming:
        return grpc.unary_stream_rpc_method_handler(_streaming(rpc, method.name, work, parse))
    return grpc.unary_unary_rpc_method_handler(_answering(rpc, method.name, work, parse))


def _answering(rpc: RpcContext, name: str, work: Handler, parse: Callable[[bytes], Message]) -> Handler:
    async def call(body: bytes, context: Any) -> bytes | None:
        try:
            response: Message = await work(rpc, parse(body), _caller(context.invocation_metadata()))
            answer = response.SerializeToString()
        except Exception as error:  # noqa: BLE001 - whatever it is, it becomes a status
            rpc.meters.requests.add(1, METHOD, name, status_of(error))
            await refuse(context, error, name)
            return None
        rpc.meters.requests.add(1, METHOD, name, OK)
        return answer

    return call


def _streaming(rpc: RpcContext, name: str, work: Handler, parse: Callable[[bytes], Message]) -> Handler:
    async def stream(body: bytes, context: Any) -> None:
        try:
            await work(rpc, parse(body), context)
            rpc.meters.requests.add(1, METHOD, name, OK)
        except Exception as error:  # noqa: BLE001 - whatever it is, it becomes a status
            rpc.meters.requests.add(1, METHOD, name, status_of(error))
            await refuse(context, error, name)

    return stream


def _parser(kind: type[Message]) -> Callable[[bytes], Message]:
    def parse(body: bytes) -> Message:
        try:
            return kind.FromString(body)
        except DecodeError:
            raise UsageError(f"the bytes are no {kind.DESCRIPTOR.name}") from None

    return parse


def _caller(metadata: Iterable[tuple[str, str | bytes]]) -> Caller:
    """The span, the version of payloads and the cause in the metadata of a call."""
    sent = {name: value for name, value in metadata if isinstance(value, str)}
    cause = _number(CAUSE, sent.get(CAUSE, "0"))
    return Caller(
        trace=traceparent.parse(sent.get(TRACE), sent.get(PARENT, "")),
        schema_version=_number(SCHEMA_VERSION, sent.get(SCHEMA_VERSION, "1")),
        cause=cause or None,
    )


def _number(name: str, text: str) -> int:
    if not text.isdecimal() or len(text) > 18:
        raise UsageError(f"{name} is a whole number, not {quoted(text)}")
    return int(text)
