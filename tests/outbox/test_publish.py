"""Publishing through connections of other libraries."""

import sqlite3
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import asyncpg
import django
import psycopg
import psycopg2
import pytest
from django.conf import settings
from django.db.backends.postgresql.base import DatabaseWrapper
from django.db.utils import ConnectionHandler
from psycopg.rows import dict_row
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from tape.core.errors import UsageError
from tape.outbox import OutboxPublisher, migrate, publish
from tests.outbox.business_database import BusinessDatabase, make_event

PUT = "INSERT INTO orders (n) VALUES (1)"
BIG = 20_261_115_083_000  # a generation that is a time, larger than 32 bits


def engine_url(url: str, driver: str) -> str:
    return url.replace("postgresql://", f"postgresql+{driver}://").replace("postgres://", f"postgresql+{driver}://")


def with_psycopg(url: str, is_kept: bool) -> None:
    with psycopg.connect(url, row_factory=dict_row) as connection:
        connection.execute(PUT)
        publish(make_event(1), connection, generation=BIG)
        connection.commit() if is_kept else connection.rollback()


def with_a_psycopg_cursor(url: str, is_kept: bool) -> None:
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(PUT)
        publish(make_event(1), cursor, generation=BIG)
        connection.commit() if is_kept else connection.rollback()


def with_sqlalchemy_core(url: str, is_kept: bool) -> None:
    engine = create_engine(engine_url(url, "psycopg"))
    with engine.connect() as connection:
        connection.execute(text(PUT))
        OutboxPublisher(connection, generation=BIG).publish(make_event(1))
        connection.commit() if is_kept else connection.rollback()
    engine.dispose()


def with_a_sqlalchemy_session(url: str, is_kept: bool) -> None:
    engine = create_engine(engine_url(url, "psycopg"))
    with Session(engine) as session:
        session.execute(text(PUT))
        publish(make_event(1), session, generation=BIG)
        session.commit() if is_kept else session.rollback()
    engine.dispose()


async def with_psycopg_async(url: str, is_kept: bool) -> None:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        await connection.execute(PUT)
        await publish(make_event(1), connection, generation=BIG)
        await (connection.commit() if is_kept else connection.rollback())


async def with_asyncpg(url: str, is_kept: bool) -> None:
    connection = await asyncpg.connect(url)
    transaction = connection.transaction()
    await transaction.start()
    await connection.execute(PUT)
    await publish(make_event(1), connection, generation=BIG)
    await (transaction.commit() if is_kept else transaction.rollback())
    await connection.close()


async def with_an_asyncpg_pool(url: str, is_kept: bool) -> None:
    async with asyncpg.create_pool(url, min_size=1) as pool, pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(PUT)
        await publish(make_event(1), connection, generation=BIG)
        await (transaction.commit() if is_kept else transaction.rollback())


async def with_an_async_session(url: str, is_kept: bool) -> None:
    engine = create_async_engine(engine_url(url, "asyncpg"))
    async with AsyncSession(engine) as session:
        await session.execute(text(PUT))
        await publish(make_event(1, workspace_id=uuid4()), session, generation=BIG)
        await (session.commit() if is_kept else session.rollback())
    await engine.dispose()


def with_psycopg2(url: str, is_kept: bool) -> None:
    connection = psycopg2.connect(url)
    with connection.cursor() as cursor:
        cursor.execute(PUT)
    publish(make_event(1), connection, generation=BIG)
    connection.commit() if is_kept else connection.rollback()
    connection.close()


def with_sqlalchemy_over_psycopg2(url: str, is_kept: bool) -> None:
    engine = create_engine(engine_url(url, "psycopg2"))
    with engine.connect() as connection:
        connection.execute(text(PUT))
        publish(make_event(1), connection, generation=BIG)
        connection.commit() if is_kept else connection.rollback()
    engine.dispose()


async def with_django(url: str, is_kept: bool) -> None:
    await anyio.to_thread.run_sync(in_django, url, is_kept)


def in_django(url: str, is_kept: bool) -> None:
    if not settings.configured:
        settings.configure(USE_TZ=True)
        django.setup()
    business = make_url(url)
    own = {"NAME": business.database, "USER": business.username, "HOST": business.host, "PORT": business.port}
    whole = {**ConnectionHandler({}).configure_settings({"default": own})["default"], **own}
    connection = DatabaseWrapper(whole, "default")
    connection.set_autocommit(False)
    with connection.cursor() as cursor:
        cursor.execute(PUT)
    publish(make_event(1), connection, generation=BIG)
    connection.commit() if is_kept else connection.rollback()
    connection.close()


WAYS: list[Callable[[str, bool], Any]] = [
    with_psycopg,
    with_a_psycopg_cursor,
    with_sqlalchemy_core,
    with_a_sqlalchemy_session,
    with_psycopg_async,
    with_asyncpg,
    with_an_asyncpg_pool,
    with_an_async_session,
    with_psycopg2,
    with_sqlalchemy_over_psycopg2,
    with_django,
]


@pytest.mark.parametrize("is_kept", [True, False], ids=["commit", "rollback"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_p14_an_event_and_the_business_row_are_there_together_or_not_at_all(
    way: Callable[[str, bool], Any], is_kept: bool, postgres: BusinessDatabase
) -> None:
    done = way(postgres.url, is_kept)
    if done is not None:
        await done

    channel = f"outbox_gen_{BIG}"
    assert await postgres.states("generation, channel") == ([(BIG, channel)] if is_kept else [])
    assert len(await postgres.rows("SELECT n FROM orders")) == is_kept


@pytest.mark.parametrize("is_kept", [True, False], ids=["commit", "rollback"])
async def test_p14_the_same_in_a_file(is_kept: bool, tmp_path: Path) -> None:
    business = BusinessDatabase("sqlite", f"sqlite:///{tmp_path / 'business.db'}")
    await migrate(business.url)
    connection = sqlite3.connect(tmp_path / "business.db")
    publish(make_event(1), connection)
    connection.commit() if is_kept else connection.rollback()
    connection.close()

    assert await business.states("event_type") == ([("orders.placed",)] if is_kept else [])


async def test_sqlalchemy_publishes_in_a_file_too(tmp_path: Path) -> None:
    business = BusinessDatabase("sqlite", f"sqlite:///{tmp_path / 'business.db'}")
    await migrate(business.url)

    engine = create_engine(business.url)
    with Session(engine) as session:
        publish(make_event(1), session)
        session.commit()
    engine.dispose()

    assert await business.states("event_type, status") == [("orders.placed", "pending")]


async def test_a_publish_is_one_statement_that_is_prepared_once(postgres: BusinessDatabase) -> None:
    asked: list[object] = []

    async with postgres.connected() as connection:
        with connection.query_logger(lambda query: asked.append(query.query)):
            await publish(make_event(1), connection)
            await publish(make_event(2), connection)
        prepared = await connection.fetch("SELECT 1 FROM pg_prepared_statements WHERE statement LIKE 'INSERT%outbox%'")

    assert len(asked) == 2 and len(prepared) == 1


async def test_a_notification_names_the_rows_id_and_comes_with_the_commit(postgres: BusinessDatabase) -> None:
    received: list[tuple[str, str]] = []
    event = make_event(1)
    async with postgres.connected() as connection:
        await connection.add_listener(
            "outbox_gen_7", lambda _, __, channel, payload: received.append((channel, payload))
        )
        await postgres.publish(make_event(2), generation=7, commits=False)
        await postgres.publish(make_event(3), generation=8)
        await postgres.publish(event, generation=7)
        await connection.execute("SELECT 1")

    assert received == [("outbox_gen_7", str(event.event_id))]


async def test_a_class_of_work_has_a_channel_of_its_own(postgres: BusinessDatabase) -> None:
    async with postgres.connected() as connection:
        await publish(make_event(1), connection, generation=3, processing_class="llm_bound")

    assert await postgres.states("channel") == [("outbox_gen_3_llm_bound",)]


async def test_the_generation_is_that_of_the_environment(
    business: BusinessDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAPE_GENERATION", "41")

    async with business.connected() as connection:
        await publish(make_event(1), connection)

    assert await business.states("generation, channel") == [(41, "outbox_gen_41")]


async def test_an_outbox_lives_in_the_schema_that_is_named(own_business: BusinessDatabase) -> None:
    await migrate(own_business.url, schema="billing")

    async with own_business.connected() as connection:
        await publish(make_event(1), connection, schema="billing")

    assert await own_business.states() == []
    assert await own_business.rows(f"SELECT status FROM {own_business.outbox.replace('core', 'billing')}") == [
        ("pending",)
    ]


async def test_migrating_twice_changes_nothing(business: BusinessDatabase) -> None:
    assert await migrate(business.url) == ()


def test_without_a_key_of_its_own_the_id_is_the_key() -> None:
    event = make_event(1)

    assert event.idempotency_key == str(event.event_id)


@pytest.mark.parametrize(
    "fields",
    [
        {"event_type": ""},
        {"event_version": 0},
        {"occurred_at": datetime.now(UTC).replace(tzinfo=None)},
        {"payload": [1]},
        {"payload": {"n": "\0"}},
        {"payload": {"n": float("nan")}},
        {"target": "a\nb"},
        {"idempotency_key": "x" * 513},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_what_postgres_would_refuse_inside_a_transaction_is_no_event(fields: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        make_event(1, **fields)


def test_a_text_that_only_looks_like_nul_is_fine() -> None:
    assert make_event(1, payload={"n": "\\u0000"}).payload == {"n": "\\u0000"}


def test_a_connection_of_an_unknown_library_is_refused() -> None:
    with pytest.raises(UsageError, match=r"not a _thread\.lock"):
        publish(make_event(1), threading.Lock())
