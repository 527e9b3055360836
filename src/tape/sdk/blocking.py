"""The client without async: the same methods, run on an event loop in its own thread."""

from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from typing import Concatenate, ParamSpec, Self

from tape.sdk.client import AsyncClient
from tape.sdk.portal import Portal, entered
from tape.sdk.sse import Event, EventStream

P = ParamSpec("P")


class BlockingStream:
    """A blocking `EventStream`."""

    def __init__(self, portal: Portal, stream: EventStream) -> None:
        self._portal = portal
        self._stream = stream
        self._ready: deque[Event] = deque()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        if not self._ready:
            self._ready.extend(self._portal.call(self._stream.batch))  # one thread switch for many events
        if not self._ready:
            raise StopIteration
        return self._ready.popleft()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the stream; further reads return nothing."""
        self._ready.clear()
        self._portal.call(self._stream.aclose)


def _streaming(
    method: Callable[Concatenate[AsyncClient, P], EventStream],
) -> Callable[Concatenate["Client", P], BlockingStream]:
    def stream(client: "Client", /, *args: P.args, **kwargs: P.kwargs) -> BlockingStream:
        return client.stream(method, *args, **kwargs)

    stream.__doc__ = method.__doc__
    return stream


class Client:
    """A client of the HTTP API at a URL, open while its `with` block lasts."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._portal, self._client = self._stack.enter_context(entered(AsyncClient(self._url)))
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def stream(
        self, method: Callable[Concatenate[AsyncClient, P], EventStream], *args: P.args, **kwargs: P.kwargs
    ) -> BlockingStream:
        """The blocking form of a streaming method of the async client."""
        return BlockingStream(self._portal, method(self._client, *args, **kwargs))

    events = _streaming(AsyncClient.events)
