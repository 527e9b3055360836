"""A gateway for gRPC that may end a stream with OK although its server has more to send."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import grpc

from tape.wire.late_events import accept_late_events


class GrpcGateway(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Passes calls on as they are; those of the procedures that it knows to stream, message by message."""

    def __init__(self, channel: Any, streaming: frozenset[str]) -> None:
        self._channel = channel
        self._streaming = streaming
        self._streams: set[anyio.CancelScope] = set()
        self.url = ""

    @property
    def open_streams(self) -> int:
        return len(self._streams)

    def end_streams(self) -> None:
        """Ends what is streamed now, with OK."""
        for stream in tuple(self._streams):
            stream.cancel()

    def service(self, handler_call_details: Any) -> Any:
        method = handler_call_details.method
        if method.rpartition("/")[2] in self._streaming:
            return grpc.unary_stream_rpc_method_handler(self._streamed(method))
        return grpc.unary_unary_rpc_method_handler(self._answered(method))

    def _answered(self, method: str) -> Callable[..., Any]:
        async def answer(request: bytes, context: Any) -> bytes:
            answered: bytes = await self._channel.unary_unary(method)(request)
            return answered

        return answer

    def _streamed(self, method: str) -> Callable[..., Any]:
        async def stream(request: bytes, context: Any) -> None:
            call = self._channel.unary_stream(method)(request)
            await context.send_initial_metadata(await call.initial_metadata())
            with anyio.CancelScope() as scope:
                self._streams.add(scope)
                while (message := await call.read()) is not grpc.aio.EOF:
                    await context.write(message)
            self._streams.discard(scope)
            call.cancel()

        return stream


@asynccontextmanager
async def grpc_gateway(target: str, *streaming: str) -> AsyncIterator[GrpcGateway]:
    """Stands before the server at a target, `host:port`, for as long as its block."""
    accept_late_events()
    async with grpc.aio.insecure_channel(target, options=[("grpc.enable_http_proxy", 0)]) as channel:
        between = GrpcGateway(channel, frozenset(streaming))
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((between,))
        between.url = f"tape://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        with anyio.CancelScope(shield=True):  # a server that is half started cannot be stopped
            await server.start()
        try:
            yield between
        finally:
            with anyio.CancelScope(shield=True):
                await server.stop(0)
