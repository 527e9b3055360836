"""Google Pub/Sub: the ordering key is the run, and subscribers drop duplicates by the attribute `tape-key`."""

from typing import Any

import grpc
from google.api_core.client_options import ClientOptions
from google.api_core.exceptions import (
    Aborted,
    Cancelled,
    DeadlineExceeded,
    GoogleAPICallError,
    InternalServerError,
    InvalidArgument,
    ResourceExhausted,
    ServiceUnavailable,
    Unknown,
)
from google.auth.exceptions import GoogleAuthError
from google.pubsub_v1 import PublisherAsyncClient
from google.pubsub_v1.services.publisher.transports import PublisherGrpcAsyncIOTransport
from google.pubsub_v1.types import PubsubMessage

from tape.bridges.config import PubsubConfig
from tape.bridges.message import Message
from tape.bridges.peer import PeerUnavailable
from tape.wire import fork_guard
from tape.work.answers import Dead, Retry

BUSY = (Aborted, Cancelled, DeadlineExceeded, InternalServerError, ResourceExhausted, ServiceUnavailable, Unknown)


class PubsubPeer:
    """The service through its official client; the gRPC channel reconnects on its own."""

    def __init__(self, client: PublisherAsyncClient, deadline_s: float) -> None:
        self._client = client
        self._channel: Any = client.transport  # its close has no types
        self._deadline_s = deadline_s

    async def send(self, topic: str, message: Message) -> None:
        published = PubsubMessage(data=message.body, ordering_key=message.order, attributes=message.headers)
        try:
            await self._client.publish(topic=topic, messages=[published], retry=None, timeout=self._deadline_s)
        except BUSY as error:
            raise PeerUnavailable(f"Pub/Sub: {error.message}") from error
        except InvalidArgument as error:
            raise Dead(f"Pub/Sub: {error.message}") from error
        except GoogleAPICallError as error:
            raise Retry(f"Pub/Sub: {error.message}") from error

    async def close(self) -> None:
        await self._channel.close()


async def connect(config: PubsubConfig) -> PubsubPeer:
    """A client with the credentials of the environment, or without credentials for an emulator."""
    fork_guard.grpc_use.begin()
    try:
        if config.emulator:
            transport = PublisherGrpcAsyncIOTransport(channel=grpc.aio.insecure_channel(config.emulator))
            return PubsubPeer(PublisherAsyncClient(transport=transport), config.deadline_s)
        options = ClientOptions(api_endpoint=config.endpoint or None)
        return PubsubPeer(PublisherAsyncClient(client_options=options), config.deadline_s)
    except GoogleAuthError as error:
        raise PeerUnavailable(f"Pub/Sub: {error}") from error
