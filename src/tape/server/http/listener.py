"""The socket and uvicorn's server on it, without a say in signals, logs or proxies."""

import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import uvicorn

from tape.core.errors import UsageError
from tape.server.http.address import Address
from tape.server.http.protocol import Connection

BACKLOG: Final = 2048
KEEP_ALIVE_S: Final = 75
LEAVE_S: Final = 4


def bind(address: Address) -> socket.socket:
    """The socket of an address, not listening yet."""
    bound = socket.socket(socket.AF_INET6 if address.is_six else socket.AF_INET)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((address.host, address.port))
    except OSError as error:
        bound.close()
        raise UsageError(f"cannot listen on {address.url}: {error.strerror}") from error
    return bound


class Listener(uvicorn.Server):
    """Serves until it is told to leave; what is under way then has a few seconds to end."""

    def __init__(self, app: Any, started: Callable[[], None]) -> None:
        super().__init__(_config(app))
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._started()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the service's business."""
        yield

    def leave(self) -> None:
        self.should_exit = True


def _config(app: Any) -> uvicorn.Config:
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # whatever a person should know, we log ourselves
    return uvicorn.Config(
        app,
        http=Connection,
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
        timeout_graceful_shutdown=LEAVE_S,
    )
