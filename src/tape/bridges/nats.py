"""NATS JetStream: a message with a `Nats-Msg-Id` that its stream has seen already is acknowledged and not kept."""

import nats
from nats.aio.client import Client
from nats.errors import ConnectionClosedError, Error, MaxPayloadError, OutboundBufferLimitError
from nats.js.client import JetStreamContext
from nats.js.errors import APIError, NoStreamResponseError

from tape.bridges.connections import NatsConnection
from tape.bridges.line import Away
from tape.bridges.message import Message, header
from tape.work.answers import Dead, Retry

FULL: frozenset[int] = frozenset({10023, 10047, 10077})  # no resources, no storage, the stream is at its limit
TOO_LARGE = 10054


class NatsPeer:
    """A server with JetStream; its client finds it again by itself."""

    def __init__(self, client: Client, streams: JetStreamContext, deadline_s: float) -> None:
        self._client = client
        self._streams = streams
        self._deadline_s = deadline_s

    async def send(self, topic: str, message: Message) -> None:
        said = {"Nats-Msg-Id": message.key, **message.headers}
        headers = {name: header(value) for name, value in said.items()}
        try:
            await self._streams.publish(topic, message.body, timeout=self._deadline_s, headers=headers)
        except MaxPayloadError as error:
            raise Dead(f"NATS: {error}") from error
        except NoStreamResponseError as error:
            raise Retry(f"NATS: no stream takes subject {topic!r}") from error
        except APIError as error:
            raise _refusal(error) from error
        except (Error, OutboundBufferLimitError) as error:
            raise Away(f"NATS: {error}", is_lost=isinstance(error, ConnectionClosedError)) from error

    async def close(self) -> None:
        await self._client.close()


async def connect(connection: NatsConnection) -> NatsPeer:
    """A connection that is kept for as long as the bridge runs."""
    options: dict[str, object] = {
        "user": connection.user or None,
        "password": connection.password or None,
        "token": connection.token or None,
        "user_credentials": connection.credentials or None,
    }
    try:
        client = await nats.connect(
            connection.url.split(","),
            name="tape",
            error_cb=_pass,
            reconnect_time_wait=0.2,
            max_reconnect_attempts=-1,
            allow_reconnect=True,
            connect_timeout=connection.deadline_s,
            **{name: value for name, value in options.items() if value},
        )
    except Error as error:
        raise Away(f"NATS: {error}") from error
    return NatsPeer(client, client.jetstream(), connection.deadline_s)


async def _pass(error: Exception) -> None:
    """What goes wrong is seen by whoever sends."""


def _refusal(error: APIError) -> Exception:
    said = f"NATS: {error.description or error}"
    if error.err_code in FULL or error.code == 503:
        return Away(said)
    return Dead(said) if error.err_code == TOO_LARGE else Retry(said)
