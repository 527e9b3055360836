"""The servers that tests run on are real, private, and come back after they were killed."""

import anyio
import asyncpg
import redis

from tests.deadlines import DEADLINE_S
from tests.servers import binaries
from tests.servers.databases import Databases
from tests.servers.postgres import PostgresServer
from tests.servers.valkey import ValkeyServer


async def run(url: str, *statements: str) -> list[object]:
    """The first column of what the last statement returns."""
    connection = await asyncpg.connect(url)
    try:
        for statement in statements[:-1]:
            await connection.execute(statement)
        return [row[0] for row in await connection.fetch(statements[-1])]
    finally:
        await connection.close()


async def prepare(url: str) -> None:
    await run(url, "CREATE TABLE prepared (id int)", "INSERT INTO prepared VALUES (7)")


async def test_postgres_syncs_what_it_commits(postgres_server: PostgresServer) -> None:
    url = postgres_server.url("postgres")

    values = [await run(url, f"SHOW {name}") for name in ("fsync", "full_page_writes", "synchronous_commit")]

    assert values == [["on"], ["on"], ["on"]]


async def test_a_notification_reaches_a_listener(postgres_url: str) -> None:
    heard = anyio.Event()
    listener = await asyncpg.connect(postgres_url)

    await listener.add_listener("news", lambda *_: heard.set())
    await run(postgres_url, "NOTIFY news")

    with anyio.fail_after(DEADLINE_S):
        await heard.wait()
    await listener.close()


async def test_a_commit_outlives_a_kill_of_every_postgres_process(postgres_server: PostgresServer) -> None:
    with postgres_server.database() as url:
        idle = await asyncpg.connect(url)  # a child more to kill
        await run(url, "CREATE TABLE kept (id int)", "INSERT INTO kept VALUES (1)")

        postgres_server.kill_hard()
        postgres_server.restart()

        assert await run(url, "SELECT id FROM kept") == [1]
        idle.terminate()


async def test_a_database_is_a_clone_of_a_template_prepared_once(postgres_databases: Databases) -> None:
    template = postgres_databases.template(prepare)

    with postgres_databases.database(template) as one, postgres_databases.database(template) as other:
        await run(one, "DELETE FROM prepared")

        assert await run(other, "SELECT id FROM prepared") == [7]
    assert postgres_databases.template(prepare) == template


async def test_a_database_is_dropped_while_somebody_uses_it(postgres_databases: Databases) -> None:
    with postgres_databases.database() as url:
        busy = await asyncpg.connect(url)

    names = await run(postgres_databases.url("postgres"), "SELECT datname FROM pg_database")

    assert url.rpartition("/")[2] not in names
    busy.terminate()


async def test_the_wheel_has_a_second_server_for_the_same_machine(postgres_server: PostgresServer) -> None:
    with PostgresServer(binaries.postgres_of_the_wheel()) as other:
        assert other.port != postgres_server.port
        assert await run(other.url("postgres"), "SELECT 1") == [1]
        folder = other.folder

    assert not folder.exists()


def test_an_acknowledged_entry_outlives_a_kill_of_valkey(valkey_server: ValkeyServer) -> None:
    with redis.Redis.from_url(valkey_server.url) as client:
        entry = client.xadd("stream", {"key": "value"})

        valkey_server.kill_hard()
        valkey_server.restart()

        assert client.xrange("stream") == [(entry, {b"key": b"value"})]


def test_the_next_test_finds_valkey_empty(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        assert client.dbsize() == 0
