"""Redis Streams: one script appends a message and stores its key, so that a duplicate is not appended."""

from importlib.resources import files
from itertools import chain

from redis import RedisError
from redis.asyncio import Redis
from redis.asyncio.retry import Retry as ClientRetry
from redis.backoff import NoBackoff
from redis.exceptions import (
    BusyLoadingError,
    ClusterDownError,
    ConnectionError as Unreachable,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
    TimeoutError as TooSlow,
    TryAgainError,
)

from tape.bridges.config import RedisConfig
from tape.bridges.message import Message
from tape.bridges.peer import PeerUnavailable
from tape.work.answers import Dead

UNAVAILABLE = (Unreachable, TooSlow, BusyLoadingError, ClusterDownError, OutOfMemoryError, ReadOnlyError, TryAgainError)
BUSY = ("MISCONF", "NOREPLICAS", "BUSY")  # these have no exception class


class RedisPeer:
    """A server that speaks Redis; the client reconnects on its own."""

    def __init__(self, client: Redis, config: RedisConfig) -> None:
        self._client = client
        self._append = client.register_script((files("tape.bridges") / "redis_stream.lua").read_text())
        self._bounds = [config.remember_s, config.max_len]

    async def send(self, topic: str, message: Message) -> None:
        fields: dict[str, str | bytes] = {"body": message.body, **message.headers}
        keys = [topic, f"tape:sent:{{{topic}}}:{message.key}"]
        try:
            await self._append(keys=keys, args=[*self._bounds, *chain.from_iterable(fields.items())])
        except UNAVAILABLE as error:
            raise PeerUnavailable(f"Redis: {error}") from error
        except ResponseError as error:
            raise (PeerUnavailable if str(error).startswith(BUSY) else Dead)(f"Redis: {error}") from error

    async def close(self) -> None:
        await self._client.aclose()


async def connect(config: RedisConfig) -> RedisPeer:
    """A pool that connects on demand. The client does not retry: `PeerConnection` does."""
    try:
        client = Redis.from_url(
            config.url,
            retry=ClientRetry(NoBackoff(), 0),
            socket_timeout=config.deadline_s,
            socket_connect_timeout=config.deadline_s,
        )
    except (RedisError, ValueError) as error:
        raise Dead(f"Redis: {error}") from error
    return RedisPeer(client, config)
