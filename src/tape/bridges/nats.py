"""NATS JetStream: the stream acknowledges a `Nats-Msg-Id` that it has seen and drops the duplicate."""

import nats
from nats.aio.client import Client
from nats.errors import ConnectionClosedError, Error, MaxPayloadError, OutboundBufferLimitError
from nats.js.client import JetStreamContext
from nats.js.errors import APIError, NoStreamResponseError

from tape.bridges.config import NatsConfig
from tape.bridges.message import Message, header
from tape.bridges.peer import PeerUnavailable
from tape.work.answers import Dead, Retry

FULL: frozenset[int] = frozenset({10023, 10047, 10077})  # no resources, no storage, the stream is at its limit
TOO_LARGE = 10054


class NatsPeer:
    """A server with JetStream; the client reconnects on its own."""

    def __init__(self, client: Client, streams: JetStreamContext, deadline_s: float) -> None:
        self._client = client
        self._streams = streams
        self._deadline_s = deadline_s

    async def send(self, topic: str, message: Message) -> None:
        headers = {name: header(text) for name, text in {"Nats-Msg-Id": message.key, **message.headers}.items()}
        try:
            await self._streams.publish(topic, message.body, timeout=self._deadline_s, headers=headers)
        except MaxPayloadError as error:
            raise Dead(f"NATS: {error}") from error
        except NoStreamResponseError as error:
            raise Retry(f"NATS: no stream takes subject {topic!r}") from error
        except APIError as error:
            raise _error_of(error) from error
        except (Error, OutboundBufferLimitError) as error:
            raise PeerUnavailable(f"NATS: {error}", is_lost=isinstance(error, ConnectionClosedError)) from error

    async def close(self) -> None:
        await self._client.close()


async def connect(config: NatsConfig) -> NatsPeer:
    """Connects once for the lifetime of the bridge."""
    options: dict[str, object] = {
        "user": config.user or None,
        "password": config.password or None,
        "token": config.token or None,
        "user_credentials": config.credentials or None,
    }
    try:
        client = await nats.connect(
            config.url.split(","),
            name="tape",
            error_cb=_ignore,
            reconnect_time_wait=0.2,
            max_reconnect_attempts=-1,
            allow_reconnect=True,
            connect_timeout=config.deadline_s,
            **{name: value for name, value in options.items() if value},
        )
    except Error as error:
        raise PeerUnavailable(f"NATS: {error}") from error
    return NatsPeer(client, client.jetstream(), config.deadline_s)


async def _ignore(error: Exception) -> None:
    """`send` raises the errors."""


def _error_of(error: APIError) -> Exception:
    reason = f"NATS: {error.description or error}"
    if error.err_code in FULL or error.code == 503:
        return PeerUnavailable(reason)
    return Dead(reason) if error.err_code == TOO_LARGE else Retry(reason)
