"""The ledgers and the journal of a server, over gRPC."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from tape.core.app import ANY
from tape.core.caller import PLAIN, Caller
from tape.core.errors import Unavailable, Unsupported, UsageError
from tape.core.event import Entry, Event
from tape.operations.journal_runs import ListEvents
from tape.operations.ledgers import LedgerStreamOptions
from tape.operations.operation import OperationRequest
from tape.sdk.nouns.node import AsyncNode
from tape.sdk.remote.channel import Channel
from tape.sdk.remote.streams import EntryStream, ValueStream
from tape.wire import tape_pb2 as pb
from tape.wire.message_mapping import build
from tape.wire.messages.entries import appended, event_message
from tape.wire.procedures import BY_OPERATION

R = TypeVar("R")


@asynccontextmanager
async def connect(url: str, app: str = ANY) -> AsyncIterator[AsyncNode]:
    """The nouns of a server, for the program of an app."""
    async with connect_ledgers(url) as ledgers:
        yield AsyncNode(ledgers, app)


@asynccontextmanager
async def connect_ledgers(url: str) -> AsyncIterator["RemoteLedgers"]:
    """The operations of a server."""
    async with Channel(url) as channel:
        yield RemoteLedgers(channel)


class RemoteLedgers:
    """The same operations as a node in this process has."""

    def __init__(self, channel: Channel) -> None:
        self.events = Events(channel)
        self._channel = channel

    async def call(self, request: OperationRequest[R], caller: Caller = PLAIN) -> R:
        if type(request) not in BY_OPERATION:
            raise UsageError(f"{type(request).__name__} is not on gRPC; tape operations says where it can be called")
        carried = BY_OPERATION[type(request)]
        wait_s = request.wait.total_seconds() if isinstance(request, ListEvents) else 0
        response = await self._channel.call(carried.name, carried.encode(request), carried.response, caller, wait_s)
        result: R = carried.result.decode(response)
        return result

    async def procedures(self) -> frozenset[str]:
        """The procedures that the server has; one that cannot tell raises `Unsupported`."""
        return await self._channel.procedures()

    async def watch(self, namespace: str, key: str, from_version: int | None = None) -> ValueStream:
        stream = ValueStream(self._channel, namespace, key, from_version)
        await stream.open()
        return stream


class Events:
    """Appends events and streams entries."""

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

    async def head(self) -> int:
        answer = await self._channel.capabilities()
        if not answer.epoch:
            raise Unsupported("the head of the journal", version=answer.version)
        if not answer.HasField("head"):
            raise Unavailable("the store of the server does not answer")
        return answer.head

    async def stream(self, options: LedgerStreamOptions) -> EntryStream:
        _check(options)
        stream = EntryStream(self._channel, options)
        await stream.open()
        return stream


def _event(event: Event) -> Event:
    if not isinstance(event, Event):
        raise UsageError(f"append takes events, not {type(event).__name__}")
    return event


def _check(options: LedgerStreamOptions) -> None:
    if options.run_id is None and options.from_seq != 1:
        raise UsageError("from_seq is a place in a run; give run_id, or from_global_seq")
    if options.run_id is not None and options.from_global_seq != 0:
        raise UsageError("from_global_seq is a place in the journal; a run is read from from_seq")
