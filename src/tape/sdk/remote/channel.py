"""The gRPC channel to a server: calls with the caller's deadline, and streams."""

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, Self, TypeVar
from urllib.parse import urlsplit

import anyio
import grpc
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import Message
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest, ServerReflectionResponse

from tape import telemetry
from tape.core.caller import PLAIN, Caller
from tape.core.causation import current_cause
from tape.core.errors import Unavailable, Unsupported, UsageError, quoted
from tape.operations.catalogue import OPERATIONS
from tape.operations.operation import Access
from tape.sdk.remote.errors import error_of
from tape.sdk.remote.server_knowledge import ServerKnowledge
from tape.wire import fork_guard, tape_pb2 as pb, traceparent
from tape.wire.procedures import BY_OPERATION

SCHEME: Final = "tape"
PORT: Final = 7878
CONNECT_S: Final = 10.0
CALL_S: Final = 30.0
MOMENT_S: Final = 0.5
MAX_ANSWER: Final = 256 << 20
SERVICE: Final = pb.DESCRIPTOR.services_by_name["Tape"]
PATH: Final = f"/{SERVICE.full_name}/"
REFLECTION: Final = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
_RETRIES: Final = {
    "methodConfig": [
        {
            "name": [
                {"service": SERVICE.full_name, "method": BY_OPERATION[each.request].name}
                for each in OPERATIONS
                if each.access is Access.READ and each.request in BY_OPERATION
            ],
            "retryPolicy": {
                "maxAttempts": 5,
                "initialBackoff": "0.1s",
                "maxBackoff": "2s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
    ]
}
OPTIONS: Final = (
    ("grpc.service_config", json.dumps(_RETRIES)),  # calls that only read may be repeated
    ("grpc.max_receive_message_length", MAX_ANSWER),
    ("grpc.enable_http_proxy", 0),  # servers are on this machine, where a proxy of the environment does not lead
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 5_000),
    ("grpc.use_local_subchannel_pool", 1),
)

M = TypeVar("M", bound=Message)


class Channel:
    """Reconnects by itself; a call waits for that until its deadline."""

    def __init__(self, url: str) -> None:
        fork_guard.grpc_use.begin()
        self._url = url
        self._known: ServerKnowledge | None = None
        self._channel: Any = grpc.aio.insecure_channel(_target(url), options=OPTIONS)

    async def __aenter__(self) -> Self:
        try:
            await self._connect()
        except BaseException:
            await self._channel.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._channel.close()

    async def _connect(self) -> None:
        with anyio.move_on_after(CONNECT_S):
            await self._channel.channel_ready()
            return
        raise Unavailable(f"nobody answers at {quoted(self._url)}")

    async def call(self, name: str, request: Message, answer: type[M], caller: Caller = PLAIN, wait_s: float = 0) -> M:
        """The answer; it is waited for until the deadline of the caller's scope, or for half a minute.

        `wait_s` is how long the server itself may wait before it answers.
        """
        return await self._send(name, await self._fitting(name, request), answer, caller, wait_s)

    async def _send(self, name: str, request: Message, answer: type[M], caller: Caller = PLAIN, wait_s: float = 0) -> M:
        method = self._channel.unary_unary(PATH + name, type(request).SerializeToString, answer.FromString)
        call = method(request, timeout=_time_left(CALL_S + wait_s), metadata=_metadata(caller), wait_for_ready=True)
        await _ended(call)
        try:
            response: M = await call
        except grpc.aio.AioRpcError as error:
            raise error_of(error) from None
        return response

    async def _fitting(self, name: str, request: Message) -> Message:
        """The request as this server knows it; before it is refused, the server is asked again, as it may be new."""
        if self._known is not None:
            with suppress(Unsupported):
                return self._known.fit(name, request)
        self._known = await self._ask()
        return self._known.fit(name, request)

    async def _ask(self) -> ServerKnowledge:
        try:
            return ServerKnowledge.of_answer(await self.capabilities())
        except Unsupported:
            return await self._reflected()

    async def procedures(self) -> frozenset[str]:
        """The procedures that the server has; one that cannot tell raises `Unsupported`."""
        known = await self._ask()
        if not known.procedures:
            raise Unsupported("GetCapabilities", version=known.version)
        return known.procedures

    async def capabilities(self) -> pb.GetCapabilitiesResponse:
        """What the server knows, and where its journal ends now; a server from before it raises `Unsupported`."""
        return await self._send("GetCapabilities", pb.GetCapabilitiesRequest(), pb.GetCapabilitiesResponse)

    async def _reflected(self) -> ServerKnowledge:
        """What a server knows that is older than GetCapabilities."""
        method = self._channel.stream_stream(
            REFLECTION, ServerReflectionRequest.SerializeToString, ServerReflectionResponse.FromString
        )
        asked = ServerReflectionRequest(file_containing_symbol=SERVICE.full_name)
        try:
            async for answer in method(iter([asked]), timeout=_time_left(CALL_S)):
                (file,) = answer.file_descriptor_response.file_descriptor_proto
                return ServerKnowledge.of_file(FileDescriptorProto.FromString(file))
        except (grpc.aio.AioRpcError, ValueError):
            return ServerKnowledge()
        return ServerKnowledge()

    async def stream(self, name: str, request: Message, answer: type[M]) -> Any:
        """A stream that the server has opened: what happens from now on is in it."""
        request = await self._fitting(name, request)
        method = self._channel.unary_stream(PATH + name, type(request).SerializeToString, answer.FromString)
        call = method(request, wait_for_ready=True)
        try:
            await _opened(call)
        except BaseException:
            call.cancel()
            raise
        return call


async def _ended(call: Any) -> None:
    """Waits for the answer. If the call itself were awaited, its cancellation and ours would look the same."""
    ended = anyio.Event()
    call.add_done_callback(lambda _: ended.set())
    try:
        await ended.wait()
    finally:
        call.cancel()


async def _opened(call: Any) -> None:
    """Waits until the server has opened a stream, or refused it."""
    try:
        with anyio.fail_after(CALL_S):
            await call.initial_metadata()
            await call.wait_for_connection()
    except grpc.aio.AioRpcError as error:
        raise error_of(error) from None
    except TimeoutError:
        raise Unavailable("the server has not answered in time") from None


def _target(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme != SCHEME or not parts.hostname or parts.path.strip("/"):
        raise UsageError(f"a server is named by a URL like tape://localhost:{PORT}, not {quoted(url)}")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{host}:{parts.port or PORT}"


def _time_left(longest_s: float) -> float:
    """A moment longer than the caller's scope has, so that it is the scope that ends the call and not its error."""
    return max(0.0, min(longest_s, anyio.current_effective_deadline() - anyio.current_time() + MOMENT_S))


def _metadata(caller: Caller) -> Sequence[tuple[str, str]]:
    """The span, the cause and the payload version, which the entry that a call writes has."""
    trace = caller.trace or telemetry.current_trace()
    cause = current_cause() if caller.cause is None else caller.cause
    metadata = {
        "traceparent": traceparent.written(trace),
        "tape-parent-span": trace.parent_span_id if trace else "",
        "tape-cause": str(cause or ""),
        "tape-schema-version": "" if caller.schema_version == 1 else str(caller.schema_version),
    }
    return [(name, value) for name, value in metadata.items() if value]
