"""The listening socket, and uvicorn's server without its signal handlers, logs and proxy headers."""

import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import uvicorn

from tape.core.errors import UsageError
from tape.server.http.address import Address
from tape.server.http.protocol import HttpConnection

BACKLOG: Final = 2048
KEEP_ALIVE_S: Final = 75
SHUTDOWN_S: Final = 4


def bind(address: Address) -> socket.socket:
    """The socket of an address, not listening yet."""
    bound = socket.socket(socket.AF_INET6 if address.is_ipv6 else socket.AF_INET)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((address.host, address.port))
    except OSError as error:
        bound.close()
        raise UsageError(f"cannot listen on {address.url}: {error.strerror}") from error
    return bound


class HttpServer(uvicorn.Server):
    """Serves until `stop`; requests in progress then have a few seconds to end."""

    def __init__(self, app: Any, on_started: Callable[[], None]) -> None:
        super().__init__(_config(app))
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_started()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Does nothing: the service handles signals."""
        yield

    def stop(self) -> None:
        self.should_exit = True


def _config(app: Any) -> uvicorn.Config:
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # the service logs what an operator needs
    return uvicorn.Config(
        app,
        http=HttpConnection,
        interface="asgi3",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=SHUTDOWN_S,
    )
