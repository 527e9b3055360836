"""What somebody has put into a schema that the worker's role searches is never run by the outbox itself."""

from collections.abc import Iterator

import pytest

from tests.outbox.places import Place, Seen, note, said
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
def reached(request: pytest.FixtureRequest, postgres_url: str) -> Iterator[Place]:
    """The same outbox, directly and through poolers that refuse or ignore how a session is to be set."""
    if request.param == "direct":
        yield Place("postgres", postgres_url)
        return
    assert PROGRAM is not None
    ignored = "application_name, lock_timeout, jit, search_path" if "ignored" in request.param else ""
    with PgBouncerServer(PROGRAM, postgres_url, ignored) as server:
        yield Place("postgres", server.url(postgres_url))


async def test_what_is_planted_beside_business_tables_is_not_run(reached: Place, postgres: Place) -> None:
    seen = Seen()
    async with planting(postgres.url) as owner:
        async with reached.listening({"orders.seen": seen, "orders.noted": note}):
            await postgres.said(said(1))
            await postgres.wait_until("delivered", 1)

        assert await caught(owner) == set()
    assert seen.numbers == [1]
    assert await postgres.rows("SELECT n, note FROM orders ORDER BY note") == [(1, ""), (1, "handled")]
