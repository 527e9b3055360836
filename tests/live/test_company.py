"""Streams that walk together: each gets every entry once and in order, whoever falls out of step and comes back."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from random import Random

import anyio
import pytest

from tape.bus.journal import Journal
from tape.bus.stream import Reading
from tape.compose import open_store, run_journal
from tape.core.event import Event
from tape.core.ids import RunId
from tape.core.ports import Store
from tape.server.company import Companies
from tape.server.sources import JournalSource, RunSource, Source
from tape.server.sse import End
from tape.telemetry import Counter
from tape.wire.frames import Goaway, ReplayComplete
from tests.contract.saying import upto
from tests.live.senders import PATIENCE_S, Client, ids, sending

WALKERS = 6


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    async with open_store("memory://") as store:
        yield store


@pytest.fixture
async def journal(store: Store) -> AsyncIterator[Journal]:
    async with run_journal(store) as journal:
        await journal.open_run("r1")
        yield journal


@pytest.fixture
def run(journal: Journal, store: Store) -> RunSource:
    return RunSource(journal, store.runs, RunId("r1"))


@pytest.fixture
def companies() -> Companies:
    return Companies()


async def say(journal: Journal, count: int, payload: str = "") -> None:
    """Events in one append."""
    await journal.append([Event(run_id="r1", payload=payload) for _ in range(count)])


async def together(stack: AsyncExitStack, source: Source, companies: Companies) -> list[Client]:
    """Clients that have all caught up."""
    clients = [await stack.enter_async_context(sending(source, companies=companies)) for _ in range(WALKERS)]
    for client in clients:
        await client.first(ReplayComplete)
    return clients


async def test_all_who_keep_up_get_the_same(journal: Journal, run: RunSource, companies: Companies) -> None:
    async with AsyncExitStack() as stack:
        clients = await together(stack, run, companies)

        for count in (1, 3, 1):
            await say(journal, count)

        assert [await client.entries(5) for client in clients] == [upto(5)] * WALKERS


@pytest.mark.parametrize("seed", range(4))
async def test_who_falls_out_of_step_and_comes_back_misses_nothing_and_gets_nothing_twice(
    journal: Journal, store: Store, companies: Companies, seed: int
) -> None:
    random = Random(seed)
    sources: list[Source] = [RunSource(journal, store.runs, RunId("r1")), JournalSource(journal, "/tape/event/**")]
    said = 0

    async with AsyncExitStack() as stack:
        clients = [client for source in sources for client in await together(stack, source, companies)]
        for _ in range(60):
            count = random.choice((1, 1, 2, 40))
            await say(journal, count, "x" * random.choice((10, 3000)))
            said += count
            for client in random.sample(clients, 3):  # the others stop taking what is sent to them
                with anyio.move_on_after(random.choice((0, 0.001))):
                    await client.entries(said)

        assert [await client.entries(said) for client in clients] == [upto(said)] * len(clients)


class Walker:
    """A member that keeps what it is sent, and never tires."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def part(self) -> None: ...

    def pump(self) -> None: ...

    def fail(self, error: Exception) -> None:
        raise error


async def test_who_joins_gets_nothing_again_that_its_company_has_still_to_be_told(
    journal: Journal, run: RunSource, companies: Companies
) -> None:
    early, late = run.open(0), run.open(0)
    for reading in (early, late):
        await reading.replay()
    first, second = Walker(), Walker()

    def join(reading: Reading, walker: Walker) -> None:
        company = companies.meet(reading, "seq", Counter("streamed", "…"))
        assert company is not None
        company.join(walker, walker.frames.append)

    def catch_up(_: object) -> None:
        assert late.take(10)
        join(late, second)

    join(early, first)
    late.lane.wait().add_done_callback(catch_up)  # before those who listen are called
    await say(journal, 1)
    await say(journal, 1)

    assert [len(walker.frames) for walker in (first, second)] == [2, 1]
    for reading in (early, late):
        reading.close()


async def test_a_company_ends_with_its_run(journal: Journal, run: RunSource, companies: Companies) -> None:
    async with AsyncExitStack() as stack:
        clients = await together(stack, run, companies)
        await say(journal, 2)
        await journal.close_run("r1")

        assert [await client.entries(2) for client in clients] == [upto(2)] * WALKERS
        with anyio.fail_after(PATIENCE_S):
            for client in clients:
                await client.ended.wait()
        assert {client.end for client in clients} == {End.OVER}


async def test_who_goes_leaves_the_others_as_they_were(journal: Journal, run: RunSource, companies: Companies) -> None:
    async with AsyncExitStack() as stack:
        clients = await together(stack, run, companies)
        await say(journal, 1)
        clients[0].socket.close()
        for client in clients[1:]:
            await client.entries(1)
        for _ in range(5):
            await say(journal, 1)

        assert [await client.entries(6) for client in clients[1:]] == [upto(6)] * (WALKERS - 1)


async def test_who_is_sent_away_has_got_what_the_company_got(
    journal: Journal, run: RunSource, companies: Companies
) -> None:
    async with AsyncExitStack() as stack:
        first, second, *_ = await together(stack, run, companies)
        await say(journal, 3)
        first.goaway(50)
        await say(journal, 2)

        await first.first(Goaway)
        assert ids(first.frames) == upto(3)
        assert await second.entries(5) == upto(5)


async def test_what_is_written_together_is_counted_for_each(
    journal: Journal, run: RunSource, companies: Companies
) -> None:
    async with AsyncExitStack() as stack:
        clients = await together(stack, run, companies)
        await say(journal, 2)
        for client in clients:
            await client.entries(2)

        assert sum(client.meters.streamed.total for client in clients) == 2 * WALKERS
