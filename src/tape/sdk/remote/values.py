"""The ledger of values, behind a wire."""

from collections.abc import Sequence
from typing import Any, Self

import grpc

from tape.core.caller import PLAIN, Caller
from tape.core.errors import UsageError
from tape.core.value import Value, ValueChange
from tape.sdk.remote.channel import Channel
from tape.sdk.remote.coming_back import ComingBack
from tape.wire import tape_pb2 as pb
from tape.wire.message_mapping import build
from tape.wire.messages.known import CHANGE, VALUE


class Values:
    """What is known under names."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def write(
        self,
        namespace: str,
        key: str,
        value_json: str,
        if_version: int | None = None,
        writer: str = "",
        call_key: str | None = None,
        caller: Caller = PLAIN,
    ) -> Value:
        request = build(
            pb.WriteValueRequest,
            namespace=namespace,
            key=key,
            value_json=value_json,
            if_version=-1 if if_version is None else _version(if_version),
            writer=writer,
            idempotency_key=call_key,
        )
        return VALUE.value(await self._channel.call("WriteValue", request, pb.ValueRecord, caller))

    async def delete(
        self,
        namespace: str,
        key: str,
        if_version: int | None = None,
        writer: str = "",
        call_key: str | None = None,
        caller: Caller = PLAIN,
    ) -> Value:
        request = build(
            pb.DeleteValueRequest,
            namespace=namespace,
            key=key,
            if_version=None if if_version is None else _version(if_version),
            writer=writer,
            idempotency_key=call_key,
        )
        return VALUE.value((await self._channel.call("DeleteValue", request, pb.DeleteValueResponse, caller)).value)

    async def find(self, namespace: str, key: str) -> Value:
        request = build(pb.GetValueRequest, namespace=namespace, key=key)
        return VALUE.value((await self._channel.call("GetValue", request, pb.GetValueResponse)).value)

    async def listed(self, namespace: str) -> Sequence[Value]:
        request = build(pb.ListValuesRequest, namespace=namespace)
        answers = await self._channel.pages("ListValues", request, pb.ListValuesResponse)
        return [VALUE.value(each) for answer in answers for each in answer.values]

    async def watch(self, namespace: str, key: str, from_version: int | None = None) -> "Watch":
        watch = Watch(self._channel, namespace, key, from_version)
        await watch.open()
        return watch


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


def _version(number: int) -> int:
    if type(number) is not int or number < 0:
        raise UsageError("if_version is a version, 0 for none, or left out")
    return number
