"""The outbox never runs functions that a user has put into a schema of the worker role's search path."""

from collections.abc import Iterator

import pytest

from tests.outbox.business_database import BusinessDatabase, RecordingHandler, insert_handled, make_event
from tests.servers import binaries
from tests.servers.pgbouncer import PgBouncerServer
from tests.servers.planting import caught, planting

PROGRAM = binaries.pgbouncer()
WAYS = [
    "direct",
    *(
        pytest.param(way, marks=pytest.mark.skipif(PROGRAM is None, reason="no PgBouncer here"))
        for way in ("pooled", "pooled and ignored")
    ),
]


@pytest.fixture(params=WAYS)
def reached(request: pytest.FixtureRequest, postgres_url: str) -> Iterator[BusinessDatabase]:
    """The same outbox, directly and through poolers that refuse or ignore how a session is to be set."""
    if request.param == "direct":
        yield BusinessDatabase("postgres", postgres_url)
        return
    assert PROGRAM is not None
    ignored = "application_name, lock_timeout, jit, search_path" if "ignored" in request.param else ""
    with PgBouncerServer(PROGRAM, postgres_url, ignored) as server:
        yield BusinessDatabase("postgres", server.url(postgres_url))


async def test_functions_planted_in_the_business_schema_are_not_run(
    reached: BusinessDatabase, postgres: BusinessDatabase
) -> None:
    seen = RecordingHandler()
    async with planting(postgres.url) as owner:
        async with reached.listening({"orders.seen": seen, "orders.noted": insert_handled}):
            await postgres.publish(make_event(1))
            await postgres.wait_until("delivered", 1)

        assert await caught(owner) == set()
    assert seen.numbers == [1]
    assert await postgres.rows("SELECT n, note FROM orders ORDER BY note") == [
        (1, ""),
        (1, "handled"),
    ]


SHADOWS = """
CREATE FUNCTION public.jsonb_to_recordset(given jsonb) RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.caught VALUES (current_user, 'jsonb_to_recordset');
  RETURN QUERY SELECT h.handler_name, h.idempotency_key
  FROM pg_catalog.jsonb_to_recordset(given) AS h(handler_name text, idempotency_key text);
END $$;
CREATE FUNCTION public.catch(given pg_catalog.text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN INSERT INTO public.caught VALUES (current_user, 'text'); RETURN true; END $$;
CREATE DOMAIN public.text AS pg_catalog.text CHECK (public.catch(VALUE));
CREATE DOMAIN public.jsonb AS pg_catalog.jsonb CHECK (public.catch(VALUE::pg_catalog.text));
"""


async def test_functions_before_pg_catalog_in_a_handlers_search_path_are_not_run(postgres: BusinessDatabase) -> None:
    async with planting(postgres.url) as owner:
        name = await owner.fetchval("SELECT current_database()")
        await owner.execute(f"SET ROLE author_{name}; {SHADOWS} RESET ROLE")
        await owner.execute(f"ALTER DATABASE {name} SET search_path = public, pg_catalog")
        async with postgres.listening({"orders.noted": insert_handled}):
            await postgres.publish(make_event(1))
            await postgres.wait_until("delivered", 1)

        assert {what for _, what in await caught(owner)} == set()
