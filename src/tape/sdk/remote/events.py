"""The journal, behind a wire."""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Self

import grpc

from tape.core.errors import UsageError
from tape.core.event import Entry, Event
from tape.operations.ledgers import LedgerStreamOptions
from tape.sdk.remote.channel import Channel
from tape.sdk.remote.coming_back import ComingBack
from tape.wire import tape_pb2 as pb
from tape.wire.message_mapping import build
from tape.wire.messages.entries import appended, entry_value, event_message

BATCH: Final = 256
EPOCH: Final = "tape-epoch"


class Events:
    """What producers say, and everything that is said."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def append(
        self, events: Sequence[Event], key: str | None = None, expected_seq: int | None = None, open: bool = False
    ) -> list[Entry]:
        messages = [event_message(_event(event)) for event in events]
        request = build(pb.AppendRequest, events=messages, key=key, expected_seq=expected_seq, open=open)
        answer = await self._channel.call("Append", request, pb.AppendResponse)
        positions = zip(events, answer.entries, strict=True)
        return [appended(event, position, answer.epoch) for event, position in positions]

    async def stream(self, options: LedgerStreamOptions) -> "Follow":
        _check(options)
        follow = Follow(self._channel, options)
        await follow.open()
        return follow


class Follow:
    """Entries as they come, each once, over any number of connections, until the server says that this was the end."""

    def __init__(self, channel: Channel, options: LedgerStreamOptions) -> None:
        self._channel = channel
        self._wish = options
        self._ready: deque[Entry] = deque()
        self._epoch = self._answered_in = 0
        self._call: Any = None
        self._is_over = False
        self._coming_back = ComingBack(self.open)

    async def open(self) -> None:
        options = self._wish
        request = build(
            pb.TailBatchesRequest,
            run_id=options.run_id,
            from_seq=options.from_seq,
            subject_pattern=options.subject,
            predicate_cel=options.where,
            from_global_seq=options.from_global_seq,
            no_follow=not options.follow,
            max_entries=BATCH,
            epoch=self._epoch,
        )
        self._call = await self._channel.stream("TailBatches", request, pb.EventBatch)
        self._answered_in = int(dict(await self._call.initial_metadata()).get(EPOCH, 0))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Entry:
        while not self._ready:
            if self._is_over:
                raise StopAsyncIteration
            await self._read()
        return self._passed(self._ready.popleft())

    async def _read(self) -> None:
        try:
            batch = await self._call.read()
        except grpc.aio.AioRpcError as error:
            await self._coming_back.after(error)
            return
        if batch is grpc.aio.EOF:  # a proxy may end a stream with OK, too
            await self._coming_back.after()
            return
        self._coming_back.succeeded()
        self._is_over = batch.HasField("end")
        self._ready.extend(map(entry_value, batch.entries))

    async def aclose(self) -> None:
        self._call.cancel()

    def _passed(self, entry: Entry) -> Entry:
        """Moves on, so that a new connection begins after it.

        The epoch changes only together with the place, which the server judges by it; a term that begins under the
        stream is named by its entries.
        """
        self._epoch = max(self._answered_in, entry.epoch)
        if self._wish.run_id is None:
            self._wish = replace(self._wish, from_global_seq=entry.global_seq)
        else:
            self._wish = replace(self._wish, from_seq=entry.seq + 1)
        return entry


def _event(event: Event) -> Event:
    if not isinstance(event, Event):
        raise UsageError(f"append takes events, not {type(event).__name__}")
    return event


def _check(options: LedgerStreamOptions) -> None:
    if options.run_id is None and options.from_seq != 1:
        raise UsageError("from_seq is a place in a run; give run_id, or from_global_seq")
    if options.run_id is not None and options.from_global_seq != 0:
        raise UsageError("from_global_seq is a place in the journal; a run is read from from_seq")
