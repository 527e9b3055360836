"""The gRPC server: its socket, its limits and its shutdown."""

from typing import Any, Final

import anyio
import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from tape.core.errors import UsageError
from tape.server.grpc import reflection
from tape.server.grpc.methods import SERVICE, handlers
from tape.server.grpc.rpc_context import RpcContext
from tape.server.http.address import Address
from tape.telemetry import log
from tape.wire import fork_guard

MAX_MESSAGE: Final = 4 << 20
MAX_METADATA: Final = 16 << 10
MOST_STREAMS: Final = 100
MOST_CALLS: Final = 2_048
LEAVE_S: Final = 4.0
OPTIONS: Final = (
    ("grpc.so_reuseport", 0),  # a second server on the port is a mistake
    ("grpc.max_receive_message_length", MAX_MESSAGE),
    ("grpc.max_metadata_size", MAX_METADATA),
    ("grpc.absolute_max_metadata_size", MAX_METADATA),
    ("grpc.max_concurrent_streams", MOST_STREAMS),
    ("grpc.http2.min_ping_interval_without_data_ms", 30_000),
    ("grpc.http2.max_ping_strikes", 2),
    ("grpc.keepalive_time_ms", 15_000),
    ("grpc.keepalive_timeout_ms", 15_000),
    ("grpc.max_connection_age_ms", 3_600_000),
    ("grpc.max_connection_age_grace_ms", 300_000),
)


class GrpcServer:
    """Serves the procedures, health and reflection.

    An optional server logs a warning and stays closed if its port is taken.
    """

    def __init__(self, rpc: RpcContext, address: Address, *, is_optional: bool = False) -> None:
        fork_guard.grpc_use.begin()
        self._requested = address
        self._is_optional = is_optional
        self.address: Address | None = None
        self._server: Any = grpc.aio.server(options=OPTIONS, maximum_concurrent_rpcs=MOST_CALLS)
        self._health = health.aio.HealthServicer()
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE.full_name, handlers(rpc)),))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        self._server.add_generic_rpc_handlers(reflection.handlers((SERVICE.full_name, health.SERVICE_NAME)))

    async def open(self) -> None:
        """Listens; `address` is then set, because port 0 is any that is free."""
        port = self._bound()
        if port is None:
            return
        for name in ("", SERVICE.full_name):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        with anyio.CancelScope(shield=True):  # a server that is half started cannot be stopped
            await self._server.start()
            self.address = Address(self._requested.host, port)

    async def leave(self, grace_s: float = LEAVE_S) -> None:
        """Refuses new calls and gives open ones some seconds; a second call waits for the same end."""
        if self.address is not None:
            with anyio.CancelScope(shield=True):
                await self._health.enter_graceful_shutdown()
                await self._server.stop(grace_s)

    def _bound(self) -> int | None:
        place = self._requested.url.removeprefix("http://")
        try:
            return int(self._server.add_insecure_port(place))
        except RuntimeError as error:
            if not self._is_optional:
                raise UsageError(f"cannot listen on {place} for gRPC: the port is taken") from error
            log.warning("grpc.not_served", place=place)
            return None
