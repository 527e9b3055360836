"""A watch of a value, behind a wire."""

from typing import Any, Final, Self

import grpc

from tape.core.value import ValueChange
from tape.sdk.remote.channel import Channel
from tape.sdk.remote.coming_back import ComingBack
from tape.wire import tape_pb2 as pb
from tape.wire.message_mapping import build
from tape.wire.messages.known import CHANGE

VERSION: Final = "tape-version"


class Watch:
    """Versions of a value as they come, each once, over any number of connections."""

    def __init__(self, channel: Channel, namespace: str, key: str, seen: int | None) -> None:
        self._channel = channel
        self._place = {"namespace": namespace, "key": key}
        self._seen = seen
        self._call: Any = None
        self._coming_back = ComingBack(self.open)

    async def open(self) -> None:
        request = build(pb.WatchValueRequest, **self._place, from_version=self._seen)
        self._call = await self._channel.stream("WatchValue", request, pb.ValueChange)
        if dict(await self._call.initial_metadata()).get(VERSION) == "0":
            self._seen = 0  # there is no value yet: all its versions are new, even those of an interruption

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ValueChange:
        while True:
            try:
                said = await self._call.read()
            except grpc.aio.AioRpcError as error:
                await self._coming_back.after(error)
                continue
            if said is grpc.aio.EOF:  # a watch has no end
                await self._coming_back.after()
                continue
            self._coming_back.succeeded()
            self._seen = said.value.version
            return CHANGE.value(said)

    async def aclose(self) -> None:
        self._call.cancel()
