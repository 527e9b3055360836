"""The client for programs without async: the same methods, run on one event loop in a thread of their own."""

from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from typing import Concatenate, ParamSpec, Self

from tape.sdk.client import AsyncClient
from tape.sdk.portal import Portal, entered
from tape.sdk.sse import Event, EventStream

P = ParamSpec("P")


class BlockingStream:
    """An `EventStream` that waits for each event."""

    def __init__(self, portal: Portal, stream: EventStream) -> None:
        self._portal = portal
        self._stream = stream
        self._ready: deque[Event] = deque()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        if not self._ready:
            self._ready.extend(self._portal.call(self._stream.batch))  # crossing threads once for all that came
        if not self._ready:
            raise StopIteration
        return self._ready.popleft()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the stream; reading on gives nothing."""
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
    """Talks to the HTTP surface at a URL, while its `with` block lasts."""

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
        """What a streaming method of the async client gives, for a program that waits."""
        return BlockingStream(self._portal, method(self._client, *args, **kwargs))

    events = _streaming(AsyncClient.events)
