"""Redis Streams: one script appends a message and remembers its key, so that a second one finds the first."""

from importlib.resources import files
from itertools import chain

from redis import RedisError
from redis.asyncio import Redis
from redis.asyncio.retry import Retry as RetryInside
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

from tape.bridges.connections import RedisConnection
from tape.bridges.line import Away
from tape.bridges.message import Message
from tape.work.answers import Dead

AWAY = (Unreachable, TooSlow, BusyLoadingError, ClusterDownError, OutOfMemoryError, ReadOnlyError, TryAgainError)
BUSY = ("MISCONF", "NOREPLICAS", "BUSY")  # which have no error of their own


class RedisPeer:
    """A server that speaks Redis; its client connects anew by itself."""

    def __init__(self, client: Redis, connection: RedisConnection) -> None:
        self._client = client
        self._append = client.register_script((files("tape.bridges") / "redis_stream.lua").read_text())
        self._bounds = [connection.remember_s, connection.max_len]

    async def send(self, topic: str, message: Message) -> None:
        fields: dict[str, str | bytes] = {"body": message.body, **message.headers}
        keys = [topic, f"tape:sent:{{{topic}}}:{message.key}"]
        try:
            await self._append(keys=keys, args=[*self._bounds, *chain.from_iterable(fields.items())])
        except AWAY as error:
            raise Away(f"Redis: {error}") from error
        except ResponseError as error:
            raise (Away if str(error).startswith(BUSY) else Dead)(f"Redis: {error}") from error

    async def close(self) -> None:
        await self._client.aclose()


async def connect(connection: RedisConnection) -> RedisPeer:
    """A pool of connections, each made when it is needed; the line tries again, and nobody below it."""
    try:
        client = Redis.from_url(
            connection.url,
            retry=RetryInside(NoBackoff(), 0),
            socket_timeout=connection.deadline_s,
            socket_connect_timeout=connection.deadline_s,
        )
    except (RedisError, ValueError) as error:
        raise Dead(f"Redis: {error}") from error
    return RedisPeer(client, connection)
