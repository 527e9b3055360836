"""A client of Redis without any code of Tape."""

from typing import Any

import redis

from tests.servers.valkey import ValkeyServer


def execute(client: "redis.Redis", *words: object) -> Any:
    """The raw answer of the server."""
    connection: Any = client.connection_pool.get_connection()
    try:
        connection.send_command(*words)
        return connection.read_response()
    finally:
        client.connection_pool.release(connection)


def restart(server: ValkeyServer) -> None:
    server.kill_hard()
    server.restart()
