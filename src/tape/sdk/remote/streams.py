"""Streams from a server: each item once, over any number of connections."""

from abc import ABC, abstractmethod
from collections import deque
from dataclasses import replace
from datetime import timedelta
from random import random
from typing import Any, Final, Self

import anyio
import grpc

from tape.core.errors import Unavailable
from tape.core.event import Entry
from tape.core.value import ValueChange
from tape.operations.ledgers import LedgerStreamOptions
from tape.sdk.backoff import Backoff
from tape.sdk.remote.channel import Channel
from tape.sdk.remote.errors import error_of, is_gone
from tape.wire import tape_pb2 as pb
from tape.wire.message_mapping import build
from tape.wire.messages.entries import entry_value
from tape.wire.messages.ledgers import CHANGE

BATCH: Final = 256
EPOCH: Final = "tape-epoch"
VERSION: Final = "tape-version"
BACKOFF: Final = Backoff(retry=timedelta(milliseconds=100), cap=timedelta(seconds=5))


class RemoteStream(ABC):
    """A stream that is opened again after it was interrupted, later each time until a message has come."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._call: Any = None
        self._backoff = BACKOFF

    @abstractmethod
    async def open(self) -> None:
        """Opens the stream after the last item that was returned."""

    def __aiter__(self) -> Self:
        return self

    async def aclose(self) -> None:
        self._call.cancel()

    async def _read(self) -> Any:
        """The next message; a permanent error is raised."""
        while True:
            try:
                message = await self._call.read()
            except grpc.aio.AioRpcError as error:
                if not is_gone(error):
                    raise error_of(error) from None
            else:
                if message is not grpc.aio.EOF:  # a proxy may end a stream without an error
                    self._backoff = self._backoff.succeeded()
                    return message
            while not await self._is_reopened():
                pass

    async def _is_reopened(self) -> bool:
        await anyio.sleep(self._backoff.delay(random()).total_seconds())
        self._backoff = self._backoff.failed()
        try:
            await self.open()
        except Unavailable:
            return False
        return True


class EntryStream(RemoteStream):
    """Entries in order, until the server sends the end."""

    def __init__(self, channel: Channel, options: LedgerStreamOptions) -> None:
        super().__init__(channel)
        self._options = options
        self._ready: deque[Entry] = deque()
        self._epoch = self._opened_in = 0
        self._is_over = False

    async def open(self) -> None:
        options = self._options
        request = build(
            pb.TailBatchesRequest, run_id=options.run_id, from_seq=options.from_seq, subject_pattern=options.subject,
            predicate_cel=options.where, from_global_seq=options.from_global_seq, no_follow=not options.follow,
            max_entries=BATCH, epoch=self._epoch,
        )  # fmt: skip
        self._call = await self._channel.stream("TailBatches", request, pb.EventBatch)
        self._opened_in = int(dict(await self._call.initial_metadata()).get(EPOCH, 0))

    async def __anext__(self) -> Entry:
        while not self._ready:
            if self._is_over:
                raise StopAsyncIteration
            batch = await self._read()
            self._is_over = batch.HasField("end")
            self._ready.extend(map(entry_value, batch.entries))
        return self._passed(self._ready.popleft())

    def _passed(self, entry: Entry) -> Entry:
        """Moves the cursor behind an entry.

        The epoch changes only together with the cursor, which the server checks against it; a term that begins during
        the stream is named by its entries.
        """
        self._epoch = max(self._opened_in, entry.epoch)
        if self._options.run_id is None:
            self._options = replace(self._options, from_global_seq=entry.global_seq)
        else:
            self._options = replace(self._options, from_seq=entry.seq + 1)
        return entry


class ValueStream(RemoteStream):
    """The versions of a value; it has no end."""

    def __init__(self, channel: Channel, namespace: str, key: str, version: int | None) -> None:
        super().__init__(channel)
        self._names = {"namespace": namespace, "key": key}
        self._version = version

    async def open(self) -> None:
        request = build(pb.WatchValueRequest, **self._names, from_version=self._version)
        self._call = await self._channel.stream("WatchValue", request, pb.ValueChange)
        if dict(await self._call.initial_metadata()).get(VERSION) == "0":
            self._version = 0  # there is no value yet: all its versions are new, even those of an interruption

    async def __anext__(self) -> ValueChange:
        message = await self._read()
        self._version = message.value.version
        return CHANGE.value(message)
