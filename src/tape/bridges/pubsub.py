"""Google Pub/Sub: each message has its run as ordering key, and a `tape-key` by which subscribers know it again."""

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

from tape.bridges.connections import PubsubConnection
from tape.bridges.line import Away
from tape.bridges.message import Message
from tape.work.answers import Dead, Retry

BUSY = (Aborted, Cancelled, DeadlineExceeded, InternalServerError, ResourceExhausted, ServiceUnavailable, Unknown)


class PubsubPeer:
    """The service, through its official client; the channel finds it again by itself."""

    def __init__(self, client: PublisherAsyncClient, deadline_s: float) -> None:
        self._client = client
        self._channel: Any = client.transport  # whose close has no types
        self._deadline_s = deadline_s

    async def send(self, topic: str, message: Message) -> None:
        said = PubsubMessage(data=message.body, ordering_key=message.order, attributes=message.headers)
        try:
            await self._client.publish(topic=topic, messages=[said], retry=None, timeout=self._deadline_s)
        except BUSY as error:
            raise Away(f"Pub/Sub: {error.message}") from error
        except InvalidArgument as error:
            raise Dead(f"Pub/Sub: {error.message}") from error
        except GoogleAPICallError as error:
            raise Retry(f"Pub/Sub: {error.message}") from error

    async def close(self) -> None:
        await self._channel.close()


async def connect(connection: PubsubConnection) -> PubsubPeer:
    """The client with the credentials of its surroundings, or without any for an emulator."""
    try:
        if connection.emulator:
            transport = PublisherGrpcAsyncIOTransport(channel=grpc.aio.insecure_channel(connection.emulator))
            return PubsubPeer(PublisherAsyncClient(transport=transport), connection.deadline_s)
        options = ClientOptions(api_endpoint=connection.endpoint or None)
        return PubsubPeer(PublisherAsyncClient(client_options=options), connection.deadline_s)
    except GoogleAuthError as error:
        raise Away(f"Pub/Sub: {error}") from error
