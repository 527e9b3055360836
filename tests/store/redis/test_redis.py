"""Features of Redis: exact trimming, lost and unexpected answers, and URLs."""

from collections.abc import AsyncIterator, Iterator
from random import Random

import anyio
import pytest
import redis

from tape.compose import open_store, run_journal
from tape.core.errors import BrokerOverflowError, Corrupt, Unavailable, UsageError
from tape.core.ids import GlobalSeq, RunId, Seq
from tape.core.ports import Store
from tape.store.redis import journal as redis_journal
from tape.store.redis.call import AppendCall
from tape.store.redis.location import Location
from tape.store.redis.scripts import APPEND
from tape.store.redis.store import open_store as open_redis
from tests.conftest import Scale
from tests.contract.backends import LossyWake
from tests.contract.events import append, drain, entries, make_event, positions, request, seqs, upto
from tests.deadlines import DEADLINE_S
from tests.servers.redis_proxy import RedisProxy
from tests.servers.valkey import ValkeyServer
from tests.store.redis.redis_client import execute

DAY_MS = 24 * 60 * 60 * 1000


@pytest.fixture
def client(redis_url: str) -> Iterator["redis.Redis"]:
    with redis.Redis.from_url(redis_url) as client:
        yield client


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[Store]:
    async with open_store(redis_url) as store:
        yield store


@pytest.fixture
async def three(redis_url: str) -> AsyncIterator[Store]:
    """A store that keeps three entries a run."""
    async with open_store(f"{redis_url}?keep=3") as store:
        yield store


@pytest.fixture
async def lossy(redis_url: str) -> AsyncIterator[RedisProxy]:
    async with RedisProxy(redis_url).open() as proxy:
        yield proxy


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("redis://", "a Redis store is"),
        ("redis://h:port", "a Redis store is"),
        ("redis://h/first", "a Redis store is"),
        ("redis://h?kept=3", "unknown option kept"),
        ("redis://h?keep=0", "keep must be"),
        ("redis://h?keep=1000001", "keep must be"),
        ("redis://h?keep=x", "keep must be"),
        ("redis://h?prefix={a}", "prefix must be"),
        ("redis://h?prefix=", "prefix must be"),
    ],
)
def test_a_url_that_says_something_else_is_refused(url: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        open_store(url)


def test_an_error_about_a_url_does_not_quote_its_password() -> None:
    with pytest.raises(UsageError) as refused:
        Location.parse("redis://user:secret@h?kept=3")

    assert "secret" not in str(refused.value)


async def test_every_key_lies_under_the_prefix_and_data_sets_do_not_meet(redis_url: str, client: "redis.Redis") -> None:
    async with open_store(f"{redis_url}?prefix=one") as one, open_store(f"{redis_url}?prefix=two") as two:
        await one.journal.append([request(make_event("a"), key="k")])
        await two.runs.close((await append(two, make_event("b")))[0].run_id)

        assert (await one.journal.bounds()).head == (await two.journal.bounds()).head == 1
        assert {key.partition(b":")[0] for key in execute(client, "KEYS", "*")} == {b"{one}", b"{two}"}


@pytest.mark.parametrize(("count", "floor"), [(2, 1), (3, 1), (4, 2), (9, 7)])
async def test_a_run_is_trimmed_exactly(three: Store, count: int, floor: int) -> None:
    for n in range(count):
        await append(three, make_event(n=n))

    page = await three.journal.read_run(RunId("r1"), Seq(0))
    assert page.run and page.run.floor == floor and seqs(page.entries) == upto(count, first=floor)
    assert page.bounds == (floor, count)


async def test_a_request_larger_than_a_run_keeps_leaves_the_newest(three: Store) -> None:
    given = await append(three, *(make_event(n=n) for n in range(10)))

    page = await three.journal.read(GlobalSeq(7))
    assert seqs(given) == upto(10) and seqs(page.entries) == [8, 9, 10]
    assert page.bounds == (8, 10)


async def test_the_journals_floor_is_one_above_the_highest_position_that_went(three: Store) -> None:
    await append(three, make_event("quiet"), make_event("a"), make_event("a"), make_event("quiet"), make_event("a"))
    before = await three.journal.bounds()

    await append(three, make_event("a"))

    quiet = await three.journal.read_run(RunId("quiet"), Seq(0))
    assert before == (1, 5) and quiet.bounds == (3, 6)
    assert positions(quiet.entries) == [1, 4]
    assert positions((await three.journal.read(GlobalSeq(2))).entries) == [3, 4, 5, 6]


async def test_a_reader_at_the_floor_reads_on_and_one_before_it_gets_a_gap(three: Store) -> None:
    await append(three, *(make_event(n=n) for n in range(5)))
    async with run_journal(three) as journal:
        assert positions(await drain(journal.stream(from_global_seq=2, follow=False))) == [3, 4, 5]
        with pytest.raises(BrokerOverflowError) as gap:
            await drain(journal.stream(from_global_seq=1, follow=False))

    assert (gap.value.requested_seq, gap.value.available_from) == (2, 3)


async def test_trimming_reaches_entries_of_quiet_runs_below_the_floor(three: Store) -> None:
    await append(three, make_event("quiet"), *(make_event("a") for _ in range(9)), make_event("quiet"))

    bounds = await three.retention.trim(GlobalSeq(9))

    heads = await three.runs.heads([RunId("quiet"), RunId("a")])
    assert bounds == (10, 11)
    assert {run_id: (head.floor, head.last_seq) for run_id, head in heads.items()} == {"quiet": (2, 2), "a": (9, 9)}


async def test_a_key_outlives_the_entries_and_lives_sixty_days(three: Store, client: "redis.Redis") -> None:
    keyed = request(make_event(n=1), make_event("r2"), key="k")
    (first,) = await three.journal.append([keyed])
    await append(three, *(make_event(n=n) for n in range(5)), *(make_event("r2") for _ in range(5)))

    (again,) = await three.journal.append([keyed])

    assert positions(entries(again)) == positions(entries(first)) == [1, 2] and seqs(entries(again)) == [1, 1]
    assert 59 * DAY_MS < execute(client, "PTTL", "{tape}:key:k") <= 60 * DAY_MS


async def test_positions_are_exact_as_far_as_lua_can_count(store: Store, client: "redis.Redis") -> None:
    far = 2**53 - 5
    client.hset("{tape}:journal", "state", f"{store.epoch} {far} {far + 1} 1 0")
    client.hset("{tape}:run:r1", "head", f"{far} {far + 1} 0 - -")

    given = await append(store, make_event(n=1), make_event(n=2), make_event(n=3))

    page = await store.journal.read_run(RunId("r1"), Seq(far))
    assert positions(given) == seqs(given) == upto(far + 3, first=far + 1)
    assert page.entries == given == (await store.journal.read(GlobalSeq(far))).entries


async def test_an_entry_that_is_not_what_was_written_is_an_error_in_its_place(
    store: Store, client: "redis.Redis"
) -> None:
    await append(store, make_event(n=1), make_event(n=2), make_event(n=3))
    (first, fields), (second, others), _ = execute(client, "XRANGE", "{tape}:entries:r1", "-", "+")
    execute(client, "DEL", "{tape}:entries:r1")
    execute(client, "XADD", "{tape}:entries:r1", first, *fields)
    execute(client, "XADD", "{tape}:entries:r1", second, *(field.replace(b'"n":2', b'"n":7') for field in others))

    assert positions((await store.journal.read(GlobalSeq(0))).entries) == [1]
    with pytest.raises(Corrupt, match="entry 2: its stored bytes"):
        await store.journal.read_run(RunId("r1"), Seq(1))
    with pytest.raises(Corrupt, match="entry 3: it is missing"):
        await store.journal.read(GlobalSeq(2))


async def test_a_server_that_throws_keys_away_is_refused() -> None:
    with ValkeyServer(appendfsync=None) as server, redis.Redis.from_url(server.url) as client:
        client.config_set("maxmemory", "100mb")
        client.config_set("maxmemory-policy", "allkeys-lru")

        with pytest.raises(UsageError, match="set it to noeviction"):
            async with open_store(server.url):
                pytest.fail("it was opened")


async def test_b04_cancelled_calls_leave_no_answer_for_the_next(store: Store, scale: Scale) -> None:
    await append(store, *(make_event("r1", n) for n in range(100)), *(make_event("r2", n) for n in range(100)))
    chance = Random(4)

    async def read(run_id: str) -> None:
        page = await store.journal.read_run(RunId(run_id), Seq(0))
        assert {entry.run_id for entry in page.entries} == {run_id}

    for n in range(scale(500)):
        with anyio.move_on_after(chance.uniform(0, 0.003)):
            await read(f"r{1 + n % 2}")
        if n % 10 == 0:
            await read(f"r{1 + n // 10 % 2}")


async def test_b04_cancelled_appends_are_whole_or_absent_and_the_next_is_right(store: Store, scale: Scale) -> None:
    chance = Random(4)

    for n in range(scale(200)):
        with anyio.move_on_after(chance.uniform(0, 0.002)):
            await append(store, make_event("cancelled", n), make_event("cancelled", n))
        (entry,) = await append(store, make_event("whole", n))
        assert entry.seq == n + 1

    found = (await store.journal.read_run(RunId("cancelled"), Seq(0))).entries
    assert [entry.payload for entry in found[::2]] == [entry.payload for entry in found[1::2]]


async def test_an_append_whose_answer_is_lost_is_answered_and_counts_once(lossy: RedisProxy) -> None:
    async with open_redis(Location.parse(lossy.url), LossyWake()) as store:
        await append(store, make_event(n=1))
        lossy.loses_an_answer = True

        given = await append(store, make_event(n=2), make_event(n=3))

        assert positions(given) == [2, 3]
        assert (await store.journal.bounds()).head == 3


async def test_an_append_that_was_lost_on_its_way_is_made(lossy: RedisProxy) -> None:
    async with open_redis(Location.parse(lossy.url), LossyWake()) as store:
        await append(store, make_event(n=1))
        lossy.loses_a_request = True

        assert positions(await append(store, make_event(n=2))) == [2]


async def test_a_call_that_comes_late_finds_its_number_taken(store: Store, client: "redis.Redis") -> None:
    def call(number: int) -> object:
        arguments = AppendCall([request(make_event(n=number))]).arguments("late", number, 0, 0, 10, DAY_MS)
        return execute(client, "EVALSHA", APPEND.sha, 1, "{tape}", *arguments)

    first = call(1)
    assert call(1) == first
    call(2)

    with pytest.raises(redis.ResponseError, match="STALE call 1"):
        call(1)
    assert (await store.journal.bounds()).head == 2


async def test_an_append_to_a_server_that_is_down_has_written_nothing() -> None:
    with ValkeyServer() as server:
        async with open_store(server.url) as store:
            await until_listening(store, True)
            server.kill_hard()
            await until_listening(store, False)

            with pytest.raises(Unavailable) as down:
                await append(store, make_event(n=2))

    assert down.value.outcome == "nothing"


async def test_a_store_on_a_server_that_is_down_cannot_be_opened() -> None:
    with pytest.raises(Unavailable, match="cannot connect to Redis"):
        async with open_store("redis://127.0.0.1:1"):
            pytest.fail("it was opened")


async def test_a_database_that_is_not_there_is_named(redis_url: str) -> None:
    with pytest.raises(UsageError, match="out of range"):
        async with open_store(f"{redis_url.rpartition('/')[0]}/99"):
            pytest.fail("it was opened")


async def test_a_listener_that_is_cut_off_listens_again(
    redis_url: str, client: "redis.Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_store(redis_url) as one, open_store(redis_url) as other:
        await until_listening(other, True)
        client.client_kill_filter(_type="pubsub")
        await until_listening(other, False)
        await until_listening(other, True)

        monkeypatch.setattr(redis_journal, "POLL_S", 10 * DEADLINE_S)
        with anyio.fail_after(DEADLINE_S):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(other.journal.wait, GlobalSeq(0))
                await append(one, make_event())


async def until_listening(store: Store, is_listening: bool) -> None:
    listener = store.journal._listener  # type: ignore[attr-defined]  # noqa: SLF001 - the store does not show it
    with anyio.fail_after(DEADLINE_S):
        while listener.is_listening != is_listening:  # noqa: ASYNC110
            await anyio.sleep(0.001)
