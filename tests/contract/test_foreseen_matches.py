"""A match that is written with its entry is like any other, and nobody waits for it."""

import anyio
import asyncpg
import pytest

from tape.compose import open_store
from tape.core.event import Event, Trace
from tape.core.matched import FEW
from tape.core.ports import Store
from tape.core.task import TaskStatus
from tape.matcher.matcher import Matcher
from tests.contract.backends import needs_ledgers
from tests.contract.foreseeing import JOURNAL_LOCK, OpenHands, appending, ready
from tests.contract.reacting import Hands, catch_up, claim, expire, publish, reaction, settle, sources, tasks
from tests.contract.saying import append, said
from tests.patience import PATIENCE_S

ONE_COMMIT = "SELECT count(*) FROM tape_journal j, tape_claims c WHERE c.first_place = j.global_seq AND c.xmin = j.xmin"


class TestOnEveryStore:
    pytestmark = needs_ledgers

    async def test_whoever_is_accompanied_gives_each_match_once(self, store: Store) -> None:
        hands = Hands()
        companion = await ready(store, hands, num_shards=4)

        with store.reactions.accompanied(companion):
            for _ in range(5):
                await publish(store, 1)
                await catch_up(companion)

        assert [task.source_global_seq for task in hands.given] == [3, 4, 5, 6, 7]
        assert await tasks(store) == hands.given
        assert [await settle(store, task) for task in hands.given] == [None] * 5
        assert await sources(store, status=TaskStatus.DONE) == [3, 4, 5, 6, 7]

    @pytest.mark.parametrize(
        ("options", "given"), [({"max_concurrency": 2}, 2), ({"rate_limit_per_s": 50}, 0), ({"debounce_ms": 60_000}, 0)]
    )
    async def test_limits_hold_for_what_is_foreseen(self, store: Store, options: dict[str, object], given: int) -> None:
        hands = Hands()
        companion = await ready(store, hands, **options)  # type: ignore[arg-type]

        with store.reactions.accompanied(companion):
            for _ in range(3):
                await publish(store, 1)
                await catch_up(companion)

        assert len(hands.given) == given

    async def test_who_has_left_is_not_asked_any_more(self, store: Store) -> None:
        companion = await ready(store, Hands())
        with store.reactions.accompanied(companion):
            pass

        await publish(store, 1)

        assert companion.answers == [] and await tasks(store) == []


async def test_an_entry_and_its_match_are_one_commit(postgres_url: str) -> None:
    async with open_store(postgres_url) as store:
        companion = await ready(store, Hands(), predicate_cel="payload.n == 1")

        with store.reactions.accompanied(companion):
            await publish(store, 1)
            await publish(store, 1)

        assert companion.given == [3, 4]
        assert await asked(postgres_url, ONE_COMMIT) == 2
        assert not await companion.step()


async def test_what_two_reactions_match_takes_the_way_of_all_others(postgres_url: str) -> None:
    async with open_store(postgres_url) as store:
        hands = OpenHands(100, "rule", "other")
        companion = await ready(store, hands)
        await store.reactions.register(reaction("other", predicate_cel="payload.n == 1"))
        await catch_up(companion)

        with store.reactions.accompanied(companion):
            await publish(store, 1)

        assert companion.answers == [] and hands.promises == 0
        await catch_up(companion)
        assert sorted(task.reaction_id for task in hands.given) == ["other", "rule"]


async def test_what_was_given_with_its_entry_is_what_is_kept(postgres_url: str) -> None:
    trace = Trace(trace_id="a" * 32, span_id="b" * 16)
    async with open_store(postgres_url) as store:
        hands = Hands()
        companion = await ready(store, hands, num_shards=4)
        with store.reactions.accompanied(companion):
            for _ in range(2):
                await append(store, Event(run_id="r8", payload=b"\x1f", content_type="image/png", subject="/a/1"))
                await catch_up(companion)
                changed = Event(
                    run_id="r9", kind="value", payload={"prev_value_json": "a\x1fb"}, subject="/a/2", trace=trace
                )
                await append(store, changed)
                await catch_up(companion)

        assert companion.given == [5, 6]  # a run is opened on the way of all others
        assert await tasks(store) == hands.given


async def test_what_was_caused_is_as_deep_as_ever(postgres_url: str) -> None:
    async with open_store(postgres_url) as store:
        companion = await ready(store, Hands())
        with store.reactions.accompanied(companion):
            (first,) = await publish(store, 1)
            (second,) = await append(store, said("r1", 2, subject="/a/b", cause=first.global_seq))
            (third,) = await append(store, said("r1", 3, subject="/a/b", cause=second.global_seq))

        assert [entry.depth for entry in (first, second, third)] == [0, 1, 2]
        assert companion.given == [first.global_seq]
        await catch_up(companion)
        assert await sources(store) == [first.global_seq, second.global_seq, third.global_seq]


async def test_who_appends_asks_few_reactions_only(postgres_url: str) -> None:
    async with open_store(postgres_url) as store:
        companion = await ready(store, Hands())
        for number in range(FEW):
            await store.reactions.register(reaction(f"other{number}", predicate_cel="payload.n == 0"))
        await publish(store, 1, "/elsewhere")
        await catch_up(companion)

        with store.reactions.accompanied(companion):
            (entry,) = await publish(store, 1)

        assert companion.answers == []
        await catch_up(companion)
        assert await sources(store) == [entry.global_seq]


async def test_what_is_not_plain_takes_the_way_of_all_others(postgres_url: str) -> None:
    async with open_store(postgres_url) as store:
        hands = OpenHands()
        companion = await ready(store, hands, predicate_cel="payload.absent == 1")
        with store.reactions.accompanied(companion):
            await publish(store, 1)
            await publish(store, 2)
            await publish(store, 1, "/elsewhere")
            await catch_up(companion)

        found = await store.reactions.find("rule")
        assert found is not None and found.errors == 3 and companion.answers == [] and hands.promises == 0


async def test_work_of_others_is_left_to_others(postgres_url: str) -> None:
    async with open_store(postgres_url) as store:
        hands = OpenHands()
        companion = await ready(store, hands)
        await store.reactions.register(reaction("other"))
        await catch_up(companion)

        with store.reactions.accompanied(companion):
            await publish(store, 1)

        assert (companion.answers, hands.promises) == ([], 0)
        await catch_up(companion)
        assert [task.status for task in await tasks(store, "other")] == [TaskStatus.PENDING]


@pytest.mark.parametrize("table", ["tape_pack", "tape_limits"])
async def test_who_appends_waits_for_nobody_who_matches(postgres_url: str, table: str) -> None:
    async with open_store(postgres_url) as store:
        companion = await ready(store, Hands())
        async with store.transaction() as tx:
            await tx.fetch(f"SELECT 1 FROM {table} FOR UPDATE", {})
            with store.reactions.accompanied(companion), anyio.fail_after(PATIENCE_S):
                (entry,) = await publish(store, 1)
        assert companion.answers == [None]

        await catch_up(companion)

        assert await sources(store) == [entry.global_seq]


async def test_a_match_that_was_decided_on_an_old_pack_is_made_again(postgres_url: str) -> None:
    async with open_store(postgres_url) as store:
        companion = await ready(store, Hands())
        async with store.transaction() as tx:
            await tx.fetch("UPDATE tape_pack SET version = version + 1", {})

        with store.reactions.accompanied(companion):
            (entry,) = await publish(store, 1)
        assert companion.answers == [None] and await tasks(store) == []

        await catch_up(companion)
        assert await sources(store, status=TaskStatus.CLAIMED) == [entry.global_seq]


async def test_a_reaction_that_was_paused_a_moment_ago_is_given_nothing(postgres_url: str) -> None:
    async with open_store(postgres_url) as store:
        hands = Hands()
        companion = await ready(store, hands)
        await store.reactions.pause("rule", "lunch")

        with store.reactions.accompanied(companion):
            await publish(store, 1)
            await catch_up(companion)
            await publish(store, 1)

        assert hands.given == [] and companion.given == []
        await store.reactions.resume("rule")
        await catch_up(companion)
        assert await sources(store) == [4, 5]


async def test_nothing_passes_what_waits(postgres_url: str) -> None:
    async with open_store(postgres_url) as store:
        companion = await ready(store, Hands())
        await publish(store, 1)
        await catch_up(Matcher(store))
        await catch_up(companion)

        with store.reactions.accompanied(companion):
            await publish(store, 1)

        assert companion.answers == [None]
        await catch_up(companion)
        assert [task.source_global_seq for task in await claim(store)] == [3, 4]


async def test_a_clock_that_went_back_gives_nothing_before_its_time(postgres_url: str) -> None:
    """The entry would have another time than the one it was matched with."""
    async with open_store(postgres_url) as store:
        companion = await ready(store, Hands())
        async with store.transaction() as tx:
            await tx.fetch("UPDATE tape_journal SET ts_ms = ts_ms + 3600000", {})

        with store.reactions.accompanied(companion):
            (entry,) = await publish(store, 1)

        assert companion.answers == [None]
        await catch_up(companion)
        assert [task.ts_ms for task in await tasks(store)] == [entry.ts_ms]


async def test_p12_a_lost_answer_costs_a_lease_and_no_entry(postgres_url: str) -> None:
    async with open_store(postgres_url) as store:
        hands = OpenHands()
        companion = await ready(store, hands)
        with store.reactions.accompanied(companion), anyio.fail_after(PATIENCE_S):
            await losing_its_connection(store, postgres_url)
        assert (set(companion.answers), hands.promises) == ({None}, 0)

        await catch_up(companion)

        assert await sources(store) == [3]
        await expire(store)
        assert [task.attempt for task in await claim(store)] == [2]


async def losing_its_connection(store: Store, url: str) -> None:
    """Appends, and loses the connection while it waits for the journal's lock."""
    connection = await asyncpg.connect(url)
    await connection.execute(JOURNAL_LOCK)
    async with anyio.create_task_group() as group:
        group.start_soon(append, store, said("r1", 1, subject="/a/b"))
        await connection.execute("SELECT pg_terminate_backend($1)", await appending(connection))
        await connection.close()


async def asked(url: str, sql: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(sql)
    finally:
        await connection.close()
